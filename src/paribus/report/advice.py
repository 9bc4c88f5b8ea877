"""What the reader can do next, and the commands for it: resume, more blocks, explain, reproduce."""

from __future__ import annotations

import shlex

from paribus.core import Finding, Judgement, NoticeName, Reason, State, Study, Word, count, lenses
from paribus.designs import design_of
from paribus.report import lookup
from paribus.report.unequal import explaining, next_step
from paribus.report.wording import clean
from paribus.words.lists import listed
from paribus.words.values import notice_fix, reason_of, warnings, way_out


def next_steps(judgement: Judgement) -> tuple[str, ...]:
    """Return what the user can do now, most pressing first; empty when nothing is open."""
    return tuple(whole for _, whole in steps(judgement))


def steps(judgement: Judgement, *, running: bool = False) -> list[tuple[str, str]]:
    """Return the `next_steps`, each in a few words and in full.

    A study that is `running` need not be resumed.
    """
    return [(clean(few), clean(whole)) for few, whole in _steps(judgement, running=running)]


def _steps(judgement: Judgement, *, running: bool) -> list[tuple[str, str]]:
    steps: list[tuple[str, str]] = []
    # Facts of nodes that changed while the study went on.
    changed = {d.key for d in judgement.differences if d.kind == "unexplained" and d.node}
    if lookup.measured(judgement) and not judgement.complete and changed:
        accept = " ".join(f"--accept {shlex.quote(key)}=REASON" for key in sorted(changed))
        whole = (
            f"Stopped early: the platform changed ({listed(sorted(changed), 5)}). Start again in"
            " another directory. If the change cannot matter, continue the same schedule with"
            f" {run_command(judgement)} --resume {accept}."
        )
        steps.append(("Start again, or accept the change", whole))
    elif lookup.measured(judgement) and not (judgement.complete or running):
        command = f"{run_command(judgement)} --resume"
        whole = design_of(judgement.study).continues(command, _waits(judgement))
        steps.append(("Resume the study", whole))
    steps += _withheld(judgement)
    if judgement.complete:
        steps += _undecided(judgement)
        steps += [("Raise the budget", one) for one in _too_short(judgement)]
        left = (one for lens, rows in lenses(judgement) for one in lens.left(judgement, rows))
        steps += [("Measure more", one) for one in left]
        steps += [("Find which change it is", one) for one in next_step(judgement)]
    every = sorted([*judgement.points, *judgement.voided], key=lambda p: p.at_s)
    broken = [p for p in every if p.state is not State.OK]
    if broken:
        first = f"logs/{broken[0].number:04d}-*"
        number = f"{count(len(broken), 'launch')} without usable output. Their output is in"
        steps.append((f"See {first}", f"{number} logs/NNNN-*.err and .out; the first is {first}."))
    steps += _without(judgement)
    if not steps:  # what the gravest warning advises
        fixes = (notice_fix(one) for one in warnings(judgement))
        steps += [(fix, fix) for fix in fixes if fix][:1]
    return steps


def _without(judgement: Judgement) -> list[tuple[str, str]]:
    """Return which arms to leave out, because they gave nothing, so that others are compared."""
    stuck = {n.figures["arm"] for n in judgement.notices if n.name is NoticeName.GIVEN_UP}
    first, *others = (arm.name for arm in judgement.study.arms)
    if first in stuck or len(others) < 2:
        return []
    rest = "to compare the others, and use a new directory."
    return [(f"Leave out {arm}", f"Remove [arms.{arm}] {rest}") for arm in others if arm in stuck]


def _waits(judgement: Judgement) -> str:
    """Return the sentence on the look that undecided headlines wait for, "" if none does."""
    nexts = {
        int(h.verdict.figures["next"])
        for h in judgement.headlines
        if h.verdict.code is Reason.BEFORE_NEXT_LOOK
    }
    return f" Undecided until the next look, after {min(nexts)} blocks." if nexts else ""


def why_withheld(judgement: Judgement) -> list[str]:
    """Return a sentence for each reason why verdicts are withheld, with the facts that differ."""
    return [step for _, step in _withheld(judgement)]


def _withheld(judgement: Judgement) -> list[tuple[str, str]]:
    reasons: dict[str, list[Finding]] = {}
    for head in lookup.rows(judgement):
        if head.verdict.word is Word.WITHHELD:
            reasons.setdefault(reason_of(head.verdict), []).append(head)
    steps = []
    for reason, heads in reasons.items():
        labels = listed(list(dict.fromkeys(h.benchmark for h in heads)), 5)
        keys = {key for head in heads for key in head.verdict.figures.get("facts", ())}
        named = f"; unexplained: {listed(sorted(keys), 5)}" if keys else ""
        steps.append((way_out(heads[0].verdict), f"Withheld ({labels}{named}): {reason}."))
    return steps


def _undecided(judgement: Judgement) -> list[tuple[str, str]]:
    """Return what to do about undecided verdicts, once for benchmarks with the same advice."""
    ways: dict[tuple[str, str, str], list[str]] = {}
    for head in judgement.headlines:
        if head.verdict.word is Word.UNDECIDED:
            key = _in_short(judgement, head), _way_out(judgement, head), head.arm
            ways.setdefault(key, []).append(head.benchmark)
    return [
        (f"{short} ({listed(labels, 1)})", f"Undecided ({listed(labels, 5)}, {arm}): {way}")
        for (short, way, arm), labels in ways.items()
    ]


def _too_short(judgement: Judgement) -> list[str]:
    """Return what to do if the budget ended before the first block was complete."""
    ended = {
        label
        for notice in judgement.notices
        if notice.name is NoticeName.BUDGET_USED
        for label in notice.benchmarks
    }
    empty = [h.benchmark for h in judgement.headlines if h.verdict.word is Word.NO_DATA]
    if not (labels := [label for label in dict.fromkeys(empty) if label in ended]):
        return []
    step = f"No data ({listed(labels, 5)}): the budget ended before the first block was complete."
    way = f"Raise the budget {_where(judgement)}, or measure fewer benchmarks and cases"
    return [f"{step} {way}, and use a new directory."]


def _blocks(judgement: Judgement, finding: Finding) -> tuple[int, int]:
    """Return the number of complete blocks, and about how many a verdict needs in all."""
    compared = finding.comparison.blocks if finding.comparison else 0
    done = lookup.blocks_there(judgement, finding)
    needed = finding.verdict.blocks_needed or 0
    if done > compared:  # blocks after the last look count at the next one
        needed = max(needed, next((look for look in judgement.looks if look > done), 0))
    return done, needed


def _in_short(judgement: Judgement, finding: Finding) -> str:
    """Return what to do about an undecided verdict, in a few words."""
    done, needed = _blocks(judgement, finding)
    more = max(needed, lookup.fewest_blocks(judgement, finding)) - done
    if more <= 0 or needed > design_of(judgement.study).most_blocks:
        return "Measure with less noise"
    if any(n.name is NoticeName.LAUNCHES_LOST for n in judgement.notices):
        return "Report on an intact copy"
    unit = lookup.unit(judgement)
    return f"Measure ~{count(more * len(judgement.study.arms), f'more {unit}')}"


def _way_out(judgement: Judgement, finding: Finding) -> str:
    """Return what to do about an undecided verdict, in full."""
    done, needed = _blocks(judgement, finding)
    design, measured = design_of(judgement.study), lookup.measured(judgement)
    fewest = lookup.fewest_blocks(judgement, finding)
    otherwise = "lengthen the measured region, reduce noise on the machine or widen the margin"
    if needed > design.most_blocks:
        return f"a verdict takes about {needed:,} blocks. Instead, {otherwise}, in a new study."
    if done < fewest:
        least = f"a verdict takes at least {fewest} blocks ({done} so far)"
        least += f", here about {needed}" if needed > fewest else ""
        if not measured:
            return f"{least}. Measure more blocks, with the arms in turn."
        way = _under_plan(judgement, done, max(needed, fewest))
        if not way and any(n.name is NoticeName.LAUNCHES_LOST for n in judgement.notices):
            return f"{least}. Report on an intact copy, or repeat the study in a new directory."
        return f"{least}. {way or 'See why the others failed'} and use a new directory."
    if needed <= done:
        return f"{otherwise}, in a new study."
    if not measured:
        return f"a verdict takes about {count(needed, 'block')} in total."
    way = _under_plan(judgement, done, needed)
    way = way or f"Set {design.blocks_key} = {needed} {_where(judgement)}"
    each = f"each a {lookup.unit(judgement)} of each arm"
    more = f"about {count(needed - done, 'more block')} needed, {each}"
    return f"{more}. {way} and use a new directory."


def _under_plan(judgement: Judgement, done: int, needed: int) -> str:
    """Return what to change in the plan for `needed` blocks; "" if it allows as many."""
    settings, key = judgement.study.settings, design_of(judgement.study).blocks_key
    ways = [f"set {key} = {needed}"] if needed > settings.blocks else []
    ways += ["raise the budget"] if settings.budget_s and done < settings.blocks else []
    return f"{' and '.join(ways).capitalize()} {_where(judgement)}" if ways else ""


def _where(judgement: Judgement) -> str:
    """Return where the plan of a study stands, with its file: `ab` wrote one itself."""
    return f"under [plan] of {path}" if (path := judgement.study.path) else "under [plan]"


def run_command(judgement: Judgement) -> str:
    """Return the command that continues this study directory, without `--resume`."""
    return _run(judgement.study, judgement.directory)


def _run(study: Study, directory: str) -> str:
    hosts = [f" --hosts {_quoted(f'{arm}={text}')}" for arm, text in study.hosts.items()]
    again = explaining(study) or f"paribus run {_quoted(study.path)}"
    return f"{again} --out {_quoted(directory)}{''.join(hosts)}"


def reproduce_commands(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """Return pairs of purpose and command for repeating the study and the report.

    None for a table, as the options with which it was compared are not stored.
    """
    if not lookup.measured(judgement):
        return ()
    directory = judgement.directory
    again = _run(judgement.study, f"{directory.rstrip('/')}-again")
    return (
        ("Repeat the study in a new directory:", again),
        ("Make this report again from the stored data:", f"paribus report {_quoted(directory)}"),
    )


def _quoted(path: str) -> str:
    return shlex.quote(clean(path)) if path else "STUDY.toml"
