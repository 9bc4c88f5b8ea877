"""Why a verdict is what it is: a sentence for each reason code, made of the verdict's figures.

WITHIN_MARGIN with ratio 1.01, low 0.996, high 1.014 and a margin of 2 % becomes "between 0.40 %
faster and 1.4 % slower: within the margin of 2 %".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.core import Comparison, DatedBy, Reason, count, format_value, percent
from paribus.words import lists
from paribus.words.lists import and_others, listed
from paribus.words.recorded import DATED_BY, unless

Figures = Mapping[str, Any]

SIZE_WITHHELD = "the size is withheld because the time limit cut off more than 2 % of the launches"


def sentence(code: Reason, figures: Figures, *, size_known: bool = True) -> str:
    """Return why a verdict has its word, without a full stop.

    docs/report.md lists the `figures` of each code. With `size_known` False the sentence names no
    size.
    """
    if code in (*_HOW, *_BESIDE, Reason.TOO_FEW_BLOCKS):
        few = code is Reason.TOO_FEW_BLOCKS
        said = _of_interval(code, figures, _span_of(figures) if size_known and not few else "")
        if "needed" in figures:
            said += f"; a verdict takes about {count(figures['needed'], 'block')}"
        if reserved := figures.get("unless"):
            said += f"; {unless(reserved)}"
        if uneven := figures.get("uneven"):
            said += f"; {_uneven(uneven)}"
        if before := figures.get("before"):
            said += f"; since block {figures['since']}, before: {effects(before)}"
        return said if size_known else f"{said}; {SIZE_WITHHELD}"
    said = FIXED.get(code, "")
    return said or _MADE[code](figures)


# --- intervals -------------------------------------------------------------------------------


def _sized(ratio: float, *, as_factor: bool = False) -> str:
    """Return how far `ratio` is from 1: as a percentage, or from 2 on as a factor."""
    factor = max(ratio, 1 / ratio)
    if factor >= 2 or as_factor:
        return f"{format_value(factor)}x"
    share = abs(ratio - 1) * 100
    return f"{share:{'.1f' if share >= 1 else '.2g' if 1e-4 <= share < 0.01 else '.2f'}} %"


def _between(near: float, far: float, word: str) -> str:
    """Return a range, or the one number that both ends are as far as they are shown."""
    first, last = (_sized(end, as_factor=max(far, 1 / far) >= 2) for end in (near, far))
    return f"{first} {word}" if first == last else f"between {first} and {last} {word}"


def _span_of(figures: Figures) -> str:
    """Return the interval in words, as of times: "between 1.8 % and 2.6 % slower"."""
    known = _times(figures)
    low, high, below, above = known.low, known.high, "faster", "slower"
    if low == 0 and high == math.inf:
        return "no limit known on either side"
    if low == high == 1:
        return "equal"
    if low >= 1:
        if high == math.inf:
            return f"at least {_sized(low)} {above}" if low < math.inf else f"{above} without limit"
        return _between(low, high, above)
    if high <= 1:
        if low == 0:
            return f"at least {_sized(high)} {below}" if high > 0 else f"{below} without limit"
        return _between(high, low, below)
    if high == math.inf:
        return f"at most {_sized(low)} {below}, with no limit known to how much {above}"
    if low == 0:
        return f"at most {_sized(high)} {above}, with no limit known to how much {below}"
    return f"between {_sized(low)} {below} and {_sized(high)} {above}"


def _times(figures: Figures) -> Comparison:
    """Return the comparison as a ratio of times, whatever the metric."""
    known = Comparison(0, figures["ratio"], figures["low"], figures["high"], 0.0)
    return known.times(figures["better"])


def _limit(figures: Figures) -> str:
    """Return the margin; for a ratio below 1 also as the percentage below: 1 / (1 + margin)."""
    margin = figures["margin"]
    text = f"{margin * 100:.3g} %"
    other = _sized(1 / (1 + margin))
    same = other == _sized(1 + margin)
    return text if _times(figures).ratio >= 1 or same else f"{text} (on this side {other})"


def _uneven(times: float) -> str:
    """Return the clause, in a study of few launches, on arms whose launches scatter differently.

    `times` is the ratio of their scatters.
    """
    apart = f"{times:.1f} times as much" if times < math.inf else "differently"
    why = f"the launches of one arm scatter {apart}"
    return f"{why}, so only the signs of pairs count, from block 8 on"


_HOW: Mapping[Reason, str] = {
    Reason.WITHIN_MARGIN: "within the margin of",
    Reason.REAL_WITHIN_MARGIN: "real, but within the margin of",
    Reason.AT_MARGIN: "the effect is at the margin of",
}
_BESIDE = (Reason.BEYOND_MARGIN, Reason.ACROSS_MARGIN, Reason.SIZE_UNCERTAIN)


def _of_interval(code: Reason, figures: Figures, span: str) -> str:
    """Return how an interval lies to its margin; `span` is the interval in words, "": unknown."""
    if code is Reason.TOO_FEW_BLOCKS:
        return (
            f"too few blocks ({figures['blocks']}) for an interval at"
            f" {figures['level'] * 100:.3g} % confidence"
        )
    limit = _limit(figures)
    if code in _HOW:
        more = "; more blocks would not help" * (code is Reason.AT_MARGIN)
        return f"{f'{span}: ' * bool(span)}{_HOW[code]} {limit}{more}"
    if not span:
        beyond = code is Reason.BEYOND_MARGIN
        return f"{'by more than the margin of' if beyond else 'the margin is'} {limit}"
    unknown = "; size unknown so far" if code is Reason.SIZE_UNCERTAIN else ""
    return f"{span}; the margin is {limit}{unknown}"


def effects(several: Sequence[Figures]) -> str:
    """Return the successive effects of a monitored study, each with its blocks."""
    return "; ".join(
        f"blocks {one['first']} to {one['last']} {one['word']}, {_interval(one)}" for one in several
    )


def _interval(one: Figures) -> str:
    low, high = (f"{one[end]:.4g}" for end in ("low", "high"))
    known = one["low"] > 0 or one["high"] < math.inf
    return f"{one['ratio']:.4g} [{low}, {high}]" if known else f"{one['ratio']:.4g} [no interval]"


# --- sentences without figures ---------------------------------------------------------------

FIXED: Mapping[Reason, str] = {
    Reason.NOT_SUPPORTED_AMONG_PAIRS: "not significant after correction for all pairs of arms",
    Reason.CASE_NOT_IN_BOTH_ARMS: "no block has this case in both arms",
    Reason.UNEXPLAINED_DIFFERENCES: (
        "the arms differ in more than the factor: make the unexplained facts equal, or name them"
        " under `explains` in the study file if the factor causes them"
    ),
    Reason.FACTS_LOST: (
        "facts of nodes are lost, so unexplained differences may be undetected: report on an intact"
        " copy of the directory"
    ),
    Reason.FAILURES_LOST: (
        "launches are lost, and failed ones are lost less often because they take less space:"
        " report on an intact copy of the directory"
    ),
    Reason.ONE_LAUNCH_EACH: (
        "one launch for each arm: there is no interval, so a difference cannot be separated from"
        " noise; 8 launches of each arm, or 6 of each in turns, can give a verdict"
    ),
    Reason.NOT_ALTERNATING: (
        "the arms do not alternate in time, so drift of the machine cannot be separated from a"
        " difference between them; launch them in turns"
    ),
    Reason.ORDER_UNKNOWN: (
        "the values are unpaired and their order is unknown, so drift of the machine cannot be"
        " separated from a difference; add a column block, or time"
    ),
    Reason.TIMES_UNKNOWN: (
        "it is unknown which logs are close in time, so drift of the machine cannot be separated"
        " from a difference; keep the times of the files, or give a table with a column block"
    ),
}
"""The codes whose sentence needs no figure."""


# --- in a few words --------------------------------------------------------------------------

_HELD: Mapping[Reason, tuple[str, str]] = {
    Reason.TOO_MANY_FAILURES: ("too many launches failed", "See why launches fail"),
    Reason.UNEXPLAINED_DIFFERENCES: (
        "the arms differ in more than the factor",
        "Align what differs",
    ),
    Reason.TOO_COARSE: ("values too coarse", "Time more iterations, or print more digits"),
    Reason.FACTS_LOST: ("facts are lost", "Report on an intact copy"),
    Reason.FAILURES_LOST: ("failed launches are lost", "Report on an intact copy"),
    Reason.ONE_LAUNCH_EACH: ("one launch each", "Add launches, the arms in turns"),
    Reason.NOT_ALTERNATING: ("arms not in turns", "Launch the arms in turns"),
    Reason.ORDER_UNKNOWN: ("order unknown", "Add a column block, or time"),
    Reason.LAUNCHES_MISSING: ("launches are missing", "Add the missing launches"),
    Reason.PAIRED_BY_ORDER: ("paired by order alone", "Leave out --pair order"),
    Reason.TIMES_UNKNOWN: ("times unknown", "Keep the times of the files"),
    Reason.TOO_FEW_LAUNCHES: ("too few launches", "Add launches, the arms in turns"),
    Reason.LOGS_COPIED: ("copied logs", "Give each log once"),
    Reason.LOGS_ALIKE: ("logs with the same figures", "Print more digits"),
    Reason.WORK_DIFFERS: ("the work differs", "Compare the same work"),
    Reason.LOGS_REFUSED: ("too many logs show no success", "See which logs are refused"),
    Reason.REPEATS_UNCLEAR: ("repeats or cases: unclear", "Add --repeated, or --by place or name"),
}
"""Why a verdict is withheld, and what to do first, in a few words each."""

_OTHERWISE = "see the reason", "See why it is withheld"
MOST_FACTS = 2


def why_held(code: Reason, figures: Figures) -> str:
    """Return in a few words why a verdict is withheld: "cpu.governor differs"."""
    if facts := figures.get("facts"):
        return f"{listed(facts, MOST_FACTS)} {'differs' if len(facts) == 1 else 'differ'}"
    return _HELD.get(code, _OTHERWISE)[0]


def way_out(code: Reason, figures: Figures) -> str:
    """Return in a few words what to do about a verdict that is withheld: "Align cpu.governor"."""
    if facts := figures.get("facts"):
        return f"Align {listed(facts, MOST_FACTS)}"
    return _HELD.get(code, _OTHERWISE)[1]


# --- sentences of figures --------------------------------------------------------------------


def _not_supported(figures: Figures) -> str:
    inner = sentence(Reason(figures["otherwise"]), figures)
    several = ((figures.get(f"{noun}s", 0), noun) for noun in ("figure", "case"))
    family = " and ".join(count(n, noun) for n, noun in several if n)
    return f"{inner}; not significant after correction for {family}"


def _failed(figures: Figures) -> str:
    unit = figures.get("unit", "first attempt")
    return (
        f"{figures['failed']} of {count(figures['blocks'], unit)} failed,"
        f" {figures['reference_failed']} of the reference"
    )


def _coarse(figures: Figures) -> str:
    quantum = figures["quantum"]
    step = "unknown" if math.isinf(quantum) else f"{quantum:.2g} of it"
    several = figures.get("cases", 1) > 1
    many = f"in {figures['coarse']} of {count(figures['cases'], 'case')}, " if several else ""
    return (
        f"{many}{percent(figures['share'])} of the ratios are the same to within one step of"
        f" the values ({step}): the clock or the printed digits are too coarse for the margin; time"
        " more iterations per sample, or print more digits"
    )


def _missing(figures: Figures) -> str:
    source = "logs do" if figures["source"] == "logs" else "table does"
    arm, reference = lists.arm(figures["arm"]), lists.arm(figures["reference"])
    return (
        f"{figures['missing']} of {count(figures['blocks'], 'block')} lack {arm} and"
        f" {figures['reference_missing']} lack {reference}: the reason may be the difference, and"
        f" the {source} not show it; add the missing launches, or their outcome"
    )


def _too_few(figures: Figures) -> str:
    counts = [f"{count(n, 'launch')} of {lists.arm(arm)}" for arm, n in figures["launches"].items()]
    of_table = figures.get("source", "logs") != "logs"
    said = (
        f"{' and '.join(counts)}: launches that are not known to alternate in time need"
        f" {figures['fewest']} or more of each arm; add launches, or launch the arms in turns and"
        f" {'add a column time, or block' if of_table else 'keep the times'}"
    )
    if figures["zones_unknown"]:
        said += "; if the dates are of two time zones, `--pair name` ignores them"
    return said


def _by_order(figures: Figures) -> str:
    return (
        "logs in the order of their names need not be close in time, so drift of the machine cannot"
        " be separated from a difference; without `--pair`"
        f" {DATED_BY[DatedBy(figures['dated_by'])]} decide"
    )


def the_same(groups: Sequence[Sequence[str]], how: str = "have the same figures") -> str:
    """Return in words which logs are the same; `groups` has at least one group of them."""
    others = len(groups) - 1
    are = "group is" if others == 1 else "groups are"
    more = f", and {others} other {are} alike" if others else ""
    return f"{and_others(groups[0])} {how}{more}"


def _copied(figures: Figures) -> str:
    how = "are identical files" if figures.get("identical") else "have the same figures"
    said = the_same(figures["groups"], how)
    return f"{said}: a copied log is not a second launch; give the log of each launch once"


def _no_block(figures: Figures) -> str:
    said = "no block is complete in both arms"
    return f"{said}; first failure, {figures['arm']}: {figures['error']}" if figures else said


def _alike(figures: Figures) -> str:
    return (
        f"{the_same(figures['groups'])}: copies of one log, or figures of too few digits to"
        " distinguish launches; give the log of each launch once, and let the tool print more"
        " digits or larger cases"
    )


def _other_work(figures: Figures) -> str:
    one, other = figures["logs"]
    return (
        f"the work is not the same: {figures['fact']} is {one['value']} in {one['log']} of"
        f" {lists.arm(one['arm'])} and {other['value']} in {other['log']} of"
        f" {lists.arm(other['arm'])}"
    )


def _refused(figures: Figures) -> str:
    counts = ", ".join(
        f"{bad} of {every} of {lists.arm(arm)}" for arm, bad, every in figures["arms"]
    )
    case = "; as no log says of which case these are, they count for all" * figures.get(
        "open", False
    )
    return f"too many logs show no success ({counts}): the reason may be the difference{case}"


def _unclear(figures: Figures) -> str:
    if figures["why"] == "names":
        return (
            f"files of different names ({', '.join(figures['names'])}, ...) print the same"
            f" settings, and their figures differ {figures['fold']:.1f}-fold by name: add --by name"
            " if the names are those of cases, or --repeated if they are repeats"
        )
    if figures["why"] == "ranks":
        number = figures["ranks"]
        shown = f"names {count(number, 'rank')}" if number else "dates all to one second"
        return (
            f"{figures['file']} holds {figures['outputs']} outputs and {shown}: add --by place if"
            " these are of the ranks of one launch, or --repeated if each is a launch"
        )
    scatter = f"differ {figures.get('fold', 0.0):.1f}-fold"
    together = (
        "rise and fall together with those at the same places of the other arm"
        f" (p = {figures.get('chance', 1.0):.2g})"
    )
    said = scatter if figures["why"] == "scatter" else together
    return (
        f"{figures['file']} holds {figures['outputs']} outputs that nothing distinguishes, and"
        f" their figures {said}: add --repeated if they are repeats, or --by place if the first"
        " of each file belong together, the second, and so on"
    )


_MADE: Mapping[Reason, Callable[[Figures], str]] = {
    Reason.NOT_SUPPORTED_AMONG_CASES: _not_supported,
    Reason.BEFORE_NEXT_LOOK: lambda f: (
        f"{count(f['blocks'], 'block')} so far; the next look is after {f['next']}"
    ),
    Reason.ENDED_BEFORE_FIRST_LOOK: lambda f: (
        f"the study ended after {count(f['blocks'], 'block')}, before its first look"
    ),
    Reason.PARTS_UNDECIDED: lambda f: (
        f"{f['open']} of {count(f['parts'], 'change')} lack a verdict: the next look follows"
    ),
    Reason.STEP_UNDECIDED: lambda f: "the step from the arm before it lacks a verdict",
    Reason.TOO_FEW_SAMPLES: lambda f: f"too few samples per launch for {f['endpoint']}",
    Reason.FAILURES_DIFFER: lambda f: f"{_failed(f)}: more than chance explains (p = {f['p']:.2g})",
    Reason.TOO_MANY_FAILURES: lambda f: (
        f"{_failed(f)}: above {f['most'] * 100:g} %, too many for a verdict on speed"
    ),
    Reason.TOO_COARSE: _coarse,
    Reason.LAUNCHES_MISSING: _missing,
    Reason.TOO_FEW_LAUNCHES: _too_few,
    Reason.PAIRED_BY_ORDER: _by_order,
    Reason.LOGS_COPIED: _copied,
    Reason.LOGS_ALIKE: _alike,
    Reason.NO_COMPLETE_BLOCK: _no_block,
    Reason.WORK_DIFFERS: _other_work,
    Reason.LOGS_REFUSED: _refused,
    Reason.REPEATS_UNCLEAR: _unclear,
}
