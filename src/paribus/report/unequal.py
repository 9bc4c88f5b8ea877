"""What was not held equal, as a table that reads in ten seconds: terminal and HTML."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from paribus.audit.values import ERROR
from paribus.core import (
    TREE,
    Arm,
    Difference,
    Judgement,
    Study,
    Word,
    count,
    expand,
    matches,
    units,
)
from paribus.core.changes import MOST, changes, of_variable, parts_of, within_of
from paribus.probes.variables import WITH_PATHS, shown
from paribus.report import lookup, sentences
from paribus.report.markup import Html, attribute, element, escape, join, section, table
from paribus.report.printing import heading, item, line
from paribus.report.wording import clean
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console


WAYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("env.LD_LIBRARY_PATH", "lib.", "program."), "build, or env = { LD_LIBRARY_PATH = ... }"),
    (("env.",), "env"),
    (("mpi.transport",), "transport"),
    (("mpi.", "kernel.build", "ucx.version", "libfabric.version"), "mpi"),
    (("container.", "layers.", "cgroup."), "container"),
    (("command.",), "argv"),
    (("build.",), "build"),
    (("wrapper.", "process."), "wrap"),
    (("placement.launcher",), "launcher"),
    (("placement.link", "placement.network"), "network, link"),
    (("placement.", "rank.hosts"), "hosts"),
    (("limits.", "net.", "rdma.", "storage.", "cpu.governor", "cpu.frequency."), "before, after"),
    (("cpu.idle.", "memory.thp", "numa.balancing", "switch."), "before, after"),
)
"""Facts, and the keys of an arm that may switch them, the nearest first."""

LONGEST = 40
"""Characters of a value that a command line names; of longer lists the audit shows a part."""

NOWHERE = "(absent)"
"""How the audit shows that a side lacks a fact."""

KINDS = ("unexplained", "accepted", "factor")


def way(key: str) -> str:
    """Return which key of an arm may switch a fact; "" for what needs another machine or boot.

    >>> way("env.OMP_PLACES"), way("os.kernel")
    ('env', '')
    """
    return next((said for keys, said in WAYS if matches(key, keys)), "")


def how_to_separate(
    study: Study, differences: Sequence[Difference], kinds: Sequence[str] = KINDS
) -> list[str]:
    """Return in lines how each difference of these kinds can be switched, and the command.

    The likeliest come first; nothing where fewer than two can be switched.
    """
    own = [one for one in differences if one.kind in kinds and not one.node]
    ranked = sorted(own, key=lambda one: -one.rank)
    ways = {one.key: way(one.key) for one in ranked}
    by_hand = [key for key, said in ways.items() if said]
    if len(by_hand) < 2:
        return []
    fixed = [key for key, said in ways.items() if not said]
    lines = [f"{key}: switched by `{ways[key]}`" for key in by_hand[:MOST]]
    if len(by_hand) > MOST:
        more = count(len(by_hand) - MOST, "more difference")
        lines.append(f"{more} can be switched: put them into groups, [parts]")
    if fixed:
        lines.append(f"cannot be separated from each other: {', '.join(fixed[:MOST])}")
    return [clean(line) for line in (*lines, _command(study, ranked, len(by_hand)))]


def next_step(judgement: Judgement) -> list[str]:
    """Return the step after *slower* on an arm with several changes, or after failures."""
    study = judgement.study
    if parts_of(study):
        return _failing(judgement)
    slower = {h.arm for h in judgement.headlines if h.verdict.word is Word.SLOWER}
    if not slower or not judgement.complete:
        return []
    if not lookup.measured(judgement):  # without a factor, all that differs is noted
        open_ = (d for d in judgement.differences if d.kind != "noted" or (d.rank and way(d.key)))
        return how_to_separate(study, list(open_), (*KINDS, "noted"))
    for arm in study.arms[1:]:
        keys = changes(study.arms[0], arm)
        if arm.name in slower and len(keys) >= 2:
            return [
                clean(
                    f"Slower by which of {len(keys)} changes: {_of_study(study, arm, len(keys))}."
                )
            ]
    return []


def _failing(judgement: Judgement) -> list[str]:
    """Return what to do where combinations of changes fail, and neither of the arms does."""
    arms = {arm.name for arm in judgement.study.arms}
    failed = {one.arm for one in judgement.tallies if one.failures or one.warm_up_failed}
    if not failed or failed & arms:
        return []
    named = listed(sorted(failed), 3)
    way_on = "group changes that belong together under [parts], or say which one needs another"
    return [clean(f"Combinations fail that no arm is ({named}): {way_on}.")]


def explaining(study: Study) -> str:
    """Return the command that explains a study; "" for one that explains nothing."""
    groups = "".join(f" --within {shlex.quote(one)}" for one in within_of(study))
    return _between(study, *study.arms) + groups if parts_of(study) else ""


def _between(study: Study, reference: Arm, arm: Arm) -> str:
    first, second = map(shlex.quote, (reference.name, arm.name))
    path = shlex.quote(study.path)
    return f"paribus explain {path} --reference {first} --arm {second}"


def _of_study(study: Study, arm: Arm, several: int) -> str:
    alone = f"paribus explain {shlex.quote(study.path)}"
    command = _between(study, study.arms[0], arm) if study.arms[2:] else alone
    return f"`{command}`, {_price(several)}"


def _price(several: int) -> str:
    from paribus.stats.parts import least_launches

    return f"{count(least_launches(min(several, MOST)), 'launch')} or more"


def _command(study: Study, ranked: Sequence[Difference], several: int) -> str:
    """Return the command that separates the changes: of the study, or of what two machines set."""
    if study.path and len(study.arms) > 1 and len(changes(*study.arms[:2])) > 1:
        arm = study.arms[1]
        return _of_study(study, arm, len(changes(study.arms[0], arm)))
    words = ["paribus", "explain", "--a", "./program", "--b", "./program"]
    for one in ranked:
        name = of_variable(one.key)
        for side, value in (("a", one.reference_value), ("b", one.arm_value)):
            short = len(value) <= LONGEST and value != NOWHERE
            if name and short and shown(name, value) and name not in WITH_PATHS:
                words += [f"--{side}-env", f"{name}={value}"]
    return f"`{shlex.join(words)}`, {_price(several)}"


MEANS: Mapping[str, str] = {
    "unexplained": "UNEXPLAINED",
    "accepted": "accepted",
    "factor": "changed by the factor",
    "explained": "follow from the factor",
    "noted": "noted",
    "unknown": "unknown",
}
"""What each kind of difference is called, in the order in which they are shown."""

LIKELY = (
    "no known effect on these figures",
    "rarely affects these figures",
    "often affects these figures",
    "almost always affects these figures",
)
"""What `Difference.rank` means."""

MOST_OF_NAMES = 60
"""Characters of a nodeset that are shown."""

MOST_SHOWN = 6
"""Differences of one kind that are shown with their values; the unexplained are never cut."""


def print_differences(
    differences: Sequence[Difference],
    equal: str,
    console: Console,
    *,
    several: bool = False,
    everything: bool = False,
) -> None:
    """Print differences by kind, most pressing first; `equal` says how many facts are equal.

    `several` arms are named beside each difference. Unknown facts are only counted, and long
    lists cut, unless `everything` is asked for.
    """
    for kind, means in MEANS.items():
        mine = _joined([d for d in differences if d.kind == kind])
        if not mine:
            continue
        if kind == "unknown" and not everything:
            line(console, f"{means}: {len(mine)}", indent=2, style="dim")
            for one, arms in mine:
                if one.key == ERROR:
                    said = f"{', '.join(arms)}: {one.arm_value}"
                    line(console, said, indent=4, hang=2, style="bold", name="no facts")
            continue
        line(console, f"{means}: {len(mine)}", indent=2, style="bold" if kind in _OPEN else "")
        cut = not everything and kind != "unexplained"
        for one, arms in mine[: MOST_SHOWN if cut else None]:
            _print_one(one, arms if several or _among_nodes(one) else (), console)
        if cut and len(mine) > MOST_SHOWN:
            rest = ", ".join(dict.fromkeys(one.key for one, _ in mine[MOST_SHOWN:]))
            line(console, f"{len(mine) - MOST_SHOWN} more: {rest}", indent=4, hang=2, most=2)
    item(console, equal, style="dim")


def _print_one(one: Difference, arms: Sequence[str], console: Console) -> None:
    if _among_nodes(one):
        others = f"{one.reference_value} on the other nodes ({', '.join(arms)})"
        item(console, f"{one.key}: {one.arm_value} on {cut_names(one.node)}, {others}", indent=4)
        return
    who = f" on {cut_names(one.node)}" if one.node else ""
    who += f" ({', '.join(arms)})" if arms else ""
    change = f"{one.key}{who}: {one.reference_value} -> {one.arm_value}"
    change = _short(change, console)
    if one.kind == "unexplained":
        item(console, change, style="bold", indent=4)
        if one.reason:
            item(console, f"{LIKELY[one.rank]}: {one.reason}", indent=6)
    elif one.kind == "accepted":
        item(console, f"{change}; reason given: {one.reason}", indent=4)
    elif one.reference_value == one.arm_value:  # left open in all arms
        item(console, f"{one.key}: {one.arm_value} in all arms; {one.reason}", indent=4)
    else:
        item(console, change, indent=4)


def _short(text: str, console: Console) -> str:
    """Return `text` for a person at a terminal: of a hash the digits that distinguish it."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1", text) if console.is_terminal else text


def _among_nodes(one: Difference) -> bool:
    """Return whether nodes of one arm differ from each other; from themselves is never noted."""
    return bool(one.node) and one.kind == "noted"


def print_section(judgement: Judgement, console: Console) -> None:
    """Print the section of the report."""
    heading(console, "Not held equal")
    print_differences(
        judgement.differences,
        sentences.equal_text(judgement),
        console,
        several=len(judgement.study.arms) > 2,
    )


def print_short(judgement: Judgement, console: Console) -> None:
    """Print in one line what was measured elsewhere under other conditions, nothing if nothing."""
    kinds = ("unexplained", "noted")
    mine = _joined([d for d in judgement.differences if d.kind in kinds])
    if lookup.measured(judgement) or not mine:
        return
    said = [f"{one.key} {one.reference_value} -> {one.arm_value}" for one, _ in mine[:MOST_SHOWN]]
    more = [f"{len(mine) - MOST_SHOWN} more"] if len(mine) > MOST_SHOWN else []
    line(console, "; ".join([*said, *more]), hang=9, name="Not held equal")


def unexplained(judgement: Judgement) -> bool:
    """Return whether something differs that withholds verdicts: the report then leads with it."""
    return any(d.kind == "unexplained" for d in judgement.differences)


def html_section(judgement: Judgement) -> Html:
    """Return the section of the page: counts, what presses with both values, the rest folded."""
    by_kind = {
        kind: _sorted([d for d in judgement.differences if d.kind == kind]) for kind in MEANS
    }
    counts = {kind: len({d.key for d in mine}) for kind, mine in by_kind.items() if mine}
    folded = [_folded(m, judgement) for kind, m in by_kind.items() if m and kind not in _OPEN]
    if judgement.facts:
        counts = {"equal": judgement.equal_facts, **counts}
    pressing = (
        _table(mine, judgement, MEANS[kind].capitalize())
        for kind, mine in by_kind.items()
        if mine and kind in _OPEN
    )
    said = _keys(counts) if counts else element("p", escape(sentences.equal_text(judgement)))
    rest = element("details", element("summary", "What else differs"), *folded) if folded else ""
    drawn = _layers(judgement) if judgement.facts else ""
    return element(
        "div", section("Not held equal", "unequal", said, drawn, *pressing, rest), kind="unequal"
    )


_OPEN = ("unexplained", "accepted")
"""The kinds that are shown with their values at once."""


def _keys(counts: Mapping[str, int]) -> Html:
    """Return how many facts are of which kind in words, each with its colour."""
    key = '<svg width="12" height="12"><rect class="{}" width="12" height="12"/></svg> '
    said = ((kind, escape(f"{n} {MEANS.get(kind, kind)}")) for kind, n in counts.items())
    keys = (element("span", Html(key.format(kind)), text, kind="key") for kind, text in said)
    return element("p", "Facts: ", *keys)


def _shares(counts: Mapping[str, int], y: int) -> Iterator[str]:
    """Yield the parts of the bar of a layer beside its name."""
    whole = sum(counts.values())
    shares = {kind: max(number / whole, LEAST) for kind, number in counts.items()}
    at, room = NAMES, (100.0 - NAMES) / sum(shares.values())
    for kind, share in shares.items():
        size = f'y="{y}" width="{share * room:.2f}%" height="{ROW - 5}"'
        title = f"<title>{counts[kind]} {MEANS.get(kind, kind)}</title>"
        yield f'<rect class="{kind}" x="{at:.2f}%" {size}>{title}</rect>'
        at += share * room


LAYERS: Mapping[str, tuple[str, ...]] = {
    "hardware": ("cpu", "memory", "machine", "numa", "pci", "gpu", "storage"),
    "system": ("os", "limits", "load", "cgroup", "process", "clock", "layers"),
    "network": ("net", "rdma", "libfabric", "ucx"),
    "MPI": ("mpi", "lib", "rank", "arm", "software", "compiler"),
    "container": ("container",),
    "environment": ("env",),
}
"""Layers of a platform, from below, by how the keys of their facts begin."""

ROW, NAMES = 18, 22.0
"""Height in px of the bar of a layer, and percent of the width that its name takes."""


def _layers(judgement: Judgement) -> Html:
    """Return a bar a layer: how many of its facts are of which kind."""
    layer_of = {start: name for name, starts in LAYERS.items() for start in starts}
    kinds = {key: "equal" for facts in judgement.facts.values() for key in facts if key != TREE}
    order = list(MEANS)
    for one in sorted(judgement.differences, key=lambda d: -order.index(d.kind)):
        kinds[one.key] = one.kind
    found: dict[str, dict[str, int]] = {}
    for key, kind in kinds.items():
        mine = found.setdefault(layer_of.get(key.partition(".")[0], "other"), {})
        mine[kind] = mine.get(kind, 0) + 1
    named = [name for name in (*LAYERS, "other") if name in found]
    drawn = []
    for number, name in enumerate(named):
        counts = {kind: n for kind in ("equal", *MEANS) if (n := found[name].get(kind))}
        y = number * ROW
        drawn.append(f'<text x="0" y="{y + 11}">{escape(name)}</text>')
        drawn += _shares(counts, y)
    reported = "; ".join(
        f"{name}: {', '.join(f'{n} {kind}' for kind, n in found[name].items())}" for name in named
    )
    size = f'width="100%" height="{ROW * len(named)}" role="img" aria-label="{attribute(reported)}"'
    shown = Html(f'<svg class="audit strip" {size}>{"".join(drawn)}</svg>')
    return element("figure", element("figcaption", "Facts by layer", kind="unseen"), shown)


LEAST = 0.01
"""Share of the bar that a kind has at least: one unexplained fact is seen beside hundreds."""


def _table(
    differences: Sequence[Difference], judgement: Judgement, caption: str, summary: str = ""
) -> Html:
    of_nodes = any(d.node for d in differences)  # what one was before, or what most of an arm are
    several = of_nodes or len(judgement.study.arms) > 2
    head = ["Fact", *(["Arm"] if several else [])]
    if of_nodes:
        head += ["From", "To"]
    else:
        ours = "In the arm" if several else f"In {differences[0].arm}"
        head += [f"In {judgement.reference}", ours]
    # Of what the factor changes the reason is one and the same, and of what is unknown none.
    why = differences[0].kind not in ("factor", "unknown")
    head += ["Why"] if why else []
    rows = [_cells(d, several=several, why=why) for d in differences]
    return table(head, rows, caption, left=range(len(head)), summary=summary)


def _folded(differences: Sequence[Difference], judgement: Judgement) -> Html:
    kind = differences[0].kind
    keys = list(dict.fromkeys(d.key for d in differences))
    named = keys[:MOST_SHOWN] if kind != "unknown" else []
    more = f", and {len(keys) - len(named)} more" if len(keys) > len(named) else ""
    names = f" ({', '.join(named)}{more})" if named else ""
    caption = differences[0].reason if kind == "factor" else MEANS[kind]
    return _table(differences, judgement, caption, f"{MEANS[kind]}: {len(keys)}{names}")


def _cells(d: Difference, *, several: bool, why: bool) -> list[Html]:
    said = escape(d.reason)
    if d.kind == "unexplained" and d.reason:
        said = element("details", element("summary", escape(LIKELY[d.rank])), element("p", said))
    return [
        join(element("code", escape(d.key)), escape(f" on {cut_names(d.node)}" if d.node else "")),
        *([escape(d.arm)] if several else []),
        escape(d.reference_value + (" on the other nodes" if _among_nodes(d) else "")),
        escape(d.arm_value),
        *([said] if why else []),
    ]


def _sorted(differences: Sequence[Difference]) -> list[Difference]:
    kinds = list(MEANS)
    return sorted(differences, key=lambda d: (kinds.index(d.kind), -d.rank))


def _joined(differences: Sequence[Difference]) -> list[tuple[Difference, list[str]]]:
    """Return differences that several arms share once, with the arms."""
    grouped: dict[tuple[object, ...], tuple[Difference, list[str]]] = {}
    for d in _sorted(differences):
        alike = (d.key, d.reference_value, d.arm_value, d.kind, d.node)
        grouped.setdefault(alike, (d, []))[1].append(d.arm)
    return list(grouped.values())


def cut_names(names: str) -> str:
    """Return a nodeset, of a long one its beginning and its size: the files have all of it."""
    if len(names) <= MOST_OF_NAMES:
        return names
    with suppress(ValueError):
        return f"{names[:MOST_OF_NAMES]} ... ({units.count(len(expand(names)), 'node')})"
    return f"{names[:MOST_OF_NAMES]} ..."
