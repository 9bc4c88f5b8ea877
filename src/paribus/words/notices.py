"""The sentences of notices, and of what can be done, made of their figures.

`text(NoticeName.GIVEN_UP, ("latency",), {"arm": "a", "error": "exit code 1"})` is "latency stopped
early: a: exit code 1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

from paribus.core import (
    NoticeName,
    count,
    decimals_beyond,
    format_bytes,
    format_ratio,
    format_seconds,
    percent,
)
from paribus.words import lists, transport
from paribus.words.lists import listed, ranges
from paribus.words.verdicts import effects

Figures = Mapping[str, Any]
Labels = Sequence[str]

MOST_NAMED = 5
"""The most benchmarks of a notice that its sentence names."""

ELSEWHERE = ("paribus.words.modes", "paribus.words.units", "paribus.logs.notices")
"""Modules with TEXTS and FIXES, as here, of notices that few studies have; loaded when needed."""


def text(name: NoticeName, labels: Labels, figures: Figures) -> str:
    """Return a notice about the benchmarks `labels`, in whole sentences."""
    return str(held_by(name).TEXTS[name](labels, figures))


def fix(name: NoticeName, figures: Figures) -> str:
    """Return the sentence on what can be done about a notice, "" for nothing."""
    fixes = held_by(name).FIXES
    return str(fixes[name](figures)) if name in fixes else ""


def held_by(name: NoticeName) -> ModuleType:
    """Return the module whose TEXTS have the notice."""
    files = (import_module(file) for file in (__name__, *ELSEWHERE))
    return next(file for file in files if name in file.TEXTS)


def needless(keys: Sequence[Figures]) -> str:
    """Return, for accepted keys of no difference, why not: equal, or no fact (perhaps a typo)."""
    return "; ".join(f"{one['key']} {_why_needless(one)}" for one in keys)


def _why_needless(one: Figures) -> str:
    if one["equal"]:
        return "is equal in all arms"
    hint = f" (did you mean {one['close']}?)" if one["close"] else ""
    return f"is not a fact of these arms{hint}"


# --- launches of a study ---------------------------------------------------------------------


def _state_probe(_: Labels, figures: Figures) -> str:
    figure = figures["figure"]
    arm, reference = lists.arm(figures["arm"]), lists.arm(figures["reference"])
    if figures["kind"] == "level":
        return (
            f"The state probe differs: {figure} of {arm} is {figures['ratio']:.3f}x that of"
            f" {reference} in the same block ({figures['low']:.3f} to {figures['high']:.3f})."
        )
    return (
        f"The arms did not get the same machine state equally often ({figure}): only {arm} was in"
        f" the upper state in {count(figures['only_arm'], 'block')}, only {reference} in"
        f" {figures['only_reference']} (p = {figures['p']:.2g})."
    )


def _rerun(labels: Labels, figures: Figures) -> str:
    return (
        f"{listed(labels, MOST_NAMED)}: {count(figures['launches'], 'launch')} in"
        f" {count(figures['blocks'], 'block')} do not count: {figures['reason']}."
    )


def _time_outs(labels: Labels, figures: Figures) -> str:
    counts = figures["cut_off"].items()
    arms = ", ".join(f"{lists.arm(arm)} {n} of {figures['blocks']}" for arm, n in counts)
    said = f"{labels[0]}: the time limit cut off launches ({arms}); they rank as the slowest."
    if figures["size_withheld"]:
        said += " The size of the difference is withheld, because more than 2 % were cut off."
    return said


def _drift(labels: Labels, figures: Figures) -> str:
    (_, near), *_, (most, far) = figures["lags"]
    return (
        f"{labels[0]}: launches of {lists.arm(figures['reference'])} drift (rank autocorrelation"
        f" {figures['lag1']:.2f}): neighbours differ by {percent(near)}, launches {most} apart by"
        f" {percent(far)}. Pairs cancel it; launches of one arm in a row would not."
    )


def _order_effect(labels: Labels, figures: Figures) -> str:
    arm, reference = lists.arm(figures["arm"]), lists.arm(figures["reference"])
    moved = figures.get("moved", figures["bias"])  # older verdicts: of the value, not of times
    much = f"by {moved * 100:+.2f} %" if abs(moved) >= 5e-5 else "by less than 0.01 %"
    return (
        f"{labels[0]}: a launch of {reference} or {arm} that follows the other in its"
        f" block gives {figures['ratio']:.4f}x ({figures['low']:.4f} to {figures['high']:.4f}) the"
        f" value of one that precedes it. {arm} ran first in {figures['first']} of"
        f" {count(figures['blocks'], 'block')}, which moves the ratio {much}."
    )


def _one_sided(labels: Labels, figures: Figures) -> str:
    first, blocks = figures["first"], figures["blocks"]
    arms = [lists.arm(figures["arm"]), lists.arm(figures["reference"])]
    one, other = arms if 2 * first > blocks else arms[::-1]
    many = max(first, blocks - first)
    return (
        f"{labels[0]}: {one} was launched before {other} in {many} of the {count(blocks, 'block')}"
        " that the verdict rests on, so an effect of the order within a block cannot be separated"
        " from that of the arm."
    )


def _outlying(_: Labels, figures: Figures) -> str:
    return _flagged("far from the others of the same arm and benchmark", figures)


def _disturbed(_: Labels, figures: Figures) -> str:
    said = _flagged("outside the noise gate", figures, of=figures.get("counted", 0))
    busy = [f"{command} (in {n})" for command, n in figures.get("busy", {}).items()]
    return f"{said} Busy beside them: {', '.join(busy)}." if busy else said


def _slow_hosts(_: Labels, figures: Figures) -> str:
    slow, rest = figures["slow"], figures["hosts"] - len(figures["slow"])
    named = [f"{one['host']} ({percent(one['share'])})" for one in slow[:MOST_NAMED]]
    more = [count(len(slow) - MOST_NAMED, "more host")] if len(slow) > MOST_NAMED else []
    return (
        f"In {lists.arm(figures['arm'])}, ranks had only a part of their cores on"
        f" {listed([*named, *more])}; on the other {count(rest, 'host')}"
        f" {percent(figures['share'])} ({count(figures['launches'], 'launch')})."
        " Ranks wait for the slowest."
    )


def _shared_cores(labels: Labels, figures: Figures) -> str:
    means = (
        "The ratio compares like with like; absolute figures are not those of a core for each rank."
        if figures["all"]
        else "It is otherwise in the other arms, or not known: that alone can be the difference."
    )
    return (
        f"{listed(labels, MOST_NAMED, last=' and ')}: {count(figures['ranks'], 'rank')} of"
        f" {lists.arms(figures['arms'], MOST_NAMED)} share"
        f" {count(figures['cores'], 'core')}, so each waits for the turns of the others. {means}"
    )


QUIETEN = (
    "The machine was busy: absolute figures are those of a loaded machine, and intervals are wider."
    " End what was busy, reserve the nodes, or move the ranks to idle cores; `paribus doctor` shows"
    " what disturbs measurements here. Then rerun in a new directory."
)


def _only_with(figures: Figures) -> str:
    if not (changes := figures.get("with")):
        return ""
    return f"all launches with {listed(changes, last=' and ')} failed, and no others; "


def flag(outlying: float | None, disturbed: Sequence[str]) -> str:
    """Return what is unusual about a launch, "" if nothing is.

    `outlying` is its level divided by the usual one of its arm, `disturbed` why it lies outside the
    noise gate.

    >>> flag(1.0004, ["stolen time"]), flag(None, [])
    ('outlier: 1.0004x the usual level of this arm; disturbed: stolen time', '')
    """
    said = []
    if outlying:
        few = f"{outlying:.3g}"
        times = format_ratio(outlying, decimals=decimals_beyond(outlying)) if few == "1" else few
        said = [f"outlier: {times}x the usual level of this arm"]
    said += [f"disturbed: {'; '.join(disturbed)}"] if disturbed else []
    return "; ".join(said)


def _flagged(where: str, figures: Figures, of: int = 0) -> str:
    """Return how many launches are unusual, and which is the first, if `figures` have it.

    `of` is the number of all launches, 0 if unknown. Launches of a table have no logs.
    """
    logs = figures.get("logs", ())
    number = len(logs or figures["numbers"])
    verbs = ("is", "counts") if number == 1 else ("are", "count")
    many = f"{number} of {count(of, 'launch')}" if of else count(number, "launch")
    said = f"{many} {verbs[0]} {where}, and {verbs[1]} as well."
    if (first := figures.get("first")) is None:
        return said
    why = flag(first["outlying"], first["disturbed"])
    arm = f"{first['benchmark']}, {first['arm']}"
    if logs:
        return f"{said} First: {first['benchmark']}, {logs[0]}: {why}."
    if figures.get("source") == "table":
        return f"{said} First: {arm}, block {first['block']}: {why}."
    log = f"logs/{first['number']:04d}-*"
    return f"{said} First: launch {first['number']} ({arm}): {why}; its output is in {log}."


def _interference(_: Labels, figures: Figures) -> str:
    worst = ", ".join(f"{label} {percent(share)}" for label, share in figures.items())
    return (
        f"Some samples took over 5 times the median of their launch (in the worst launch: {worst}"
        " of the samples). Medians absorb that; p99 shows it."
    )


def _clock_set(_: Labels, figures: Figures) -> str:
    by = ", ".join(f"{'-' if s < 0 else '+'}{format_seconds(abs(s))}" for s in figures["steps_s"])
    return (
        f"The clock of this machine was set during the study ({by}). Durations and the order of"
        " launches are not affected; later times of day are those of the clock as it was before."
    )


def _shortened(_: Labels, figures: Figures) -> str:
    return (
        f"The logs of {count(figures['launches'], 'launch')} are not whole: of each stream, the"
        f" first and the last {format_bytes(figures['kept_bytes'])} are kept, and a line in between"
        f" says how many bytes are left out ({figures['left_out_bytes']:,} in all). "
        + (
            "The figures come from the whole output."
            if figures.get("read", True)  # older verdicts have no such figure
            else "No figure is read from it."
        )
        + f" First: logs/{figures['first']:04d}-*."
    )


def _lost(_: Labels, figures: Figures) -> str:
    launches_lost, whole = figures["lost"], figures["whole"]
    lost = f"{count(launches_lost, 'launch')} of {launches_lost + whole}"
    numbers, unknown = figures["launches"], figures["rows_of_unknown"]
    named = [f"number{'s' * (len(numbers) > 1)} {ranges(numbers)} of the plan"] * bool(numbers)
    named += [
        f"row{'s' * (len(unknown) > 1)} {ranges(unknown)} of the store, launch unknown"
    ] * bool(unknown)
    lost += f" ({'; '.join(named)})" if named else ""
    lost += f" and facts of nodes (row {ranges(figures['facts'])})" if figures["facts"] else ""
    said = (
        f"launches.db is damaged. Lost: {lost}. Damage does not depend on the measured values, so"
        " the ratios use fewer blocks and are not biased; failed launches may be missing."
    )
    if figures["unvoided"]:
        said += f" Up to {figures['unvoided']} of those shown may have been marked as not counting."
    if not figures["counted"]:
        said += " The number of stored launches is unknown: more may be missing."
    return said


def _success(labels: Labels, figures: Figures) -> str:
    rest = [label for label in labels if label not in figures["by_figure"]]
    said = []
    if rest:
        said.append(f"{listed(rest, MOST_NAMED)}: only exit code 0 shows that a launch succeeded.")
    if figures["by_figure"]:
        named = listed(figures["by_figure"], MOST_NAMED)
        said.append(f"{named}: only exit code 0 and a figure show that a launch succeeded.")
    return f"{' '.join(said)} Many programs exit with 0 on failure."


TEXTS: Mapping[NoticeName, Callable[[Labels, Figures], str]] = {
    NoticeName.STATE_PROBE: _state_probe,
    NoticeName.TRANSPORTS_DIFFER: transport.differ,
    NoticeName.BLOCKS_RERUN: _rerun,
    NoticeName.TIME_OUTS: _time_outs,
    NoticeName.DRIFT: _drift,
    NoticeName.ORDER_EFFECT: _order_effect,
    NoticeName.ORDER_ONE_SIDED: _one_sided,
    NoticeName.OUTLYING_LAUNCHES: _outlying,
    NoticeName.DISTURBED_LAUNCHES: _disturbed,
    NoticeName.SLOW_HOSTS: _slow_hosts,
    NoticeName.SHARED_CORES: _shared_cores,
    NoticeName.INTERFERENCE: _interference,
    NoticeName.CLOCK_SET: _clock_set,
    NoticeName.LOGS_SHORTENED: _shortened,
    NoticeName.CHANGED_FACTS: lambda labels, f: (
        f"{labels[0]}, {listed(f['arms'], MOST_NAMED, last=' and ')}: changed between launches:"
        f" {', '.join(f['keys'])}."
    ),
    NoticeName.GIVEN_UP: lambda labels, f: (
        f"{labels[0]} stopped early: {_only_with(f)}{f['arm']}: {f['error']}"
    ),
    NoticeName.ACCEPTED_WITHOUT_NEED: lambda _, f: (
        f"Accepted, but not a difference: {needless(f['keys'])}."
    ),
    NoticeName.BUDGET_USED: lambda labels, _: (
        f"The time budget ended {', '.join(labels)}; the verdicts of the last look hold."
    ),
    NoticeName.LAUNCHES_LOST: _lost,
    NoticeName.NOT_CHECKED: lambda _, f: (
        f"No data on {' and '.join(f['unknown'])}: the report cannot warn of what they would show."
    ),
    NoticeName.SUCCESS_NOT_CHECKED: _success,
    NoticeName.RATIO_MOVED: lambda labels, f: (
        f"{labels[0]}, {f['arm']}: the effect itself has changed ("
        + "; ".join(
            f"noticed at block {one['noticed']}, estimated from block {since['first']} on"
            for one, since in pairwise(f["effects"])
        )
        + f"). {effects(f['effects']).capitalize()}. The verdict is of the last of these."
    ),
}

FIXES: Mapping[NoticeName, Callable[[Figures], str]] = {
    NoticeName.STATE_PROBE: lambda _: (
        "The probe is independent of the benchmark: check the cores, clock frequencies and"
        " neighbours of this arm."
    ),
    NoticeName.DISTURBED_LAUNCHES: lambda f: QUIETEN if f.get("many") else "",
    NoticeName.SLOW_HOSTS: lambda _: (
        "See there what uses these cores, and whether a control group limits them (cpu.max). Fix it"
        ", or leave the host out of `hosts` in all arms, then rerun in a new directory."
    ),
    NoticeName.SHARED_CORES: lambda _: "Plan fewer ranks, or hosts with more cores.",
    NoticeName.TRANSPORTS_DIFFER: lambda _: transport.FIX,
    NoticeName.TIME_OUTS: lambda f: (
        "Give the benchmark a longer timeout." if f["size_withheld"] else ""
    ),
    NoticeName.ORDER_EFFECT: lambda _: (
        "A pause or a warm-up command between launches (`before`) helps."
    ),
    NoticeName.ORDER_ONE_SIDED: lambda _: "Repeat the study with another seed, in a new directory.",
    NoticeName.CLOCK_SET: lambda _: (
        "Find what sets the clock, such as a time daemon that steps it."
    ),
    NoticeName.LAUNCHES_LOST: lambda _: (
        "Report on an intact copy of the directory if there is one. The output of each launch is in"
        " logs/."
    ),
    NoticeName.SUCCESS_NOT_CHECKED: lambda _: (
        'Give the benchmark success = "..." (`ab`: --success): a text that the output has only'
        " when the work is done."
    ),
    NoticeName.RATIO_MOVED: lambda _: "Find what changed on the platforms at that time.",
}

_STAND = "verdicts stand"
_CAUSE = "rival explanation"
_OUT = "left out"
_HELD = "no verdict"
CONSEQUENCES: Mapping[NoticeName, str] = {
    NoticeName.TOO_FEW_BLOCKS: _HELD,
    NoticeName.TIME_OUTS: "size withheld",
    NoticeName.STATE_PROBE: _CAUSE,
    NoticeName.TRANSPORTS_DIFFER: _CAUSE,
    NoticeName.ORDER_ONE_SIDED: _CAUSE,
    NoticeName.SLOW_HOSTS: _CAUSE,
    NoticeName.SHARED_CORES: _CAUSE,
    NoticeName.CHANGED_FACTS: _CAUSE,
    NoticeName.ONE_INSTALLATION_EACH: _CAUSE,
    NoticeName.ALLOCATIONS: _CAUSE,
    NoticeName.ORDER_UNKNOWN: _CAUSE,
    NoticeName.ORDER_FIXED: _CAUSE,
    NoticeName.VERSIONS_DIFFER: _CAUSE,
    NoticeName.ONE_ARM_AFTER_THE_OTHER: _CAUSE,
    NoticeName.NOT_IN_TURNS: _CAUSE,
    NoticeName.CONTAMINATION: _CAUSE,
    NoticeName.RATIO_MOVED: "verdict updated",
    NoticeName.GIVEN_UP: "stopped early",
    NoticeName.LAUNCHES_LOST: "verdicts of what is left",
    NoticeName.COPIES: "may count twice",
    NoticeName.STOPPING_NOT_PLANNED: "error rate unknown",
    NoticeName.NOT_CHECKED: "other causes unseen",
    NoticeName.TWO_STATES: "ratios hold",
    NoticeName.BLOCKS_LEFT_OUT: _OUT,
    NoticeName.NOT_READ: _OUT,
    NoticeName.NOT_COMPARABLE: _OUT,
    NoticeName.TRUNCATED_LOGS: _OUT,
    NoticeName.CASES_LEFT_OUT: _OUT,
    NoticeName.DIRECTION_UNKNOWN: _OUT,
    NoticeName.ORDER_EFFECT: _STAND,
    NoticeName.DISTURBED_LAUNCHES: _STAND,
    NoticeName.CLOCK_SET: _STAND,
    NoticeName.TOOLS_NOT_MIXED: _STAND,
}
"""What a warning means for verdicts, in a few words, the gravest first; other notices are notes."""


def consequence(name: NoticeName, figures: Figures) -> str:
    """Return what a warning means for verdicts, in a few words; "" for a note."""
    return _HELD if figures.get("code") else CONSEQUENCES.get(name, "")


def gravity(name: NoticeName, figures: Figures) -> int:
    """Return a key that sorts warnings, the gravest first."""
    return 0 if figures.get("code") else _PLACES.get(name, len(_PLACES) + 1)


_PLACES = {name: place for place, name in enumerate(CONSEQUENCES, 1)}
