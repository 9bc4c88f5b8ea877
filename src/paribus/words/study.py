"""The verdict of a whole study in one sentence, and in a shorter summary.

"tcp is slower in latency (14.5x) and bandwidth (2.31x); tcp is equivalent in ep."
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from paribus.core import Finding, Word, count, format_factor, grouped, slowness
from paribus.words import lists, recorded
from paribus.words.lists import listed
from paribus.words.verdicts import why_held

MOST_NAMED = 8
"""The most benchmarks of one word that the sentence names; the table below it has them all."""


def sentence(
    found: Sequence[Finding], others: Sequence[Finding] = (), cases: Sequence[Finding] = ()
) -> str:
    """Return the verdict of the whole study in one sentence: every benchmark, and by how much.

    `found` are headlines. Of `others`, those of metrics that do not decide, the sentence has
    those with another word than their headline, which then names its own metric too; of `cases`
    the number of those whose effect their mean hides.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    named = sorted(_named(found, others), key=lambda one: _RANK[_in_short(one[0])])
    for finding, name in named:
        labels = groups.setdefault((finding.arm, _phrase(finding), _because(finding)), [])
        labels.append(f"{name}{_by_how_much(finding, cases)}")
    parts = [
        phrase.format(arm=lists.arm(arm), labels=listed(labels, MOST_NAMED, last=" and ")) + because
        for (arm, phrase, because), labels in groups.items()
    ]
    if not parts:
        return "Nothing was compared."
    whole = "; ".join(parts) + "."
    # At the beginning, the name of an arm stays as it is.
    begins_with_arm = named[0][0].verdict.word not in (Word.WITHHELD, Word.NO_DATA)
    return whole if begins_with_arm else whole[0].upper() + whole[1:]


LONGEST = 100
"""The most characters of a sentence of a study that is its summary too."""

MOST_ARMS = 3


def summary(whole: str, found: Sequence[Finding]) -> str:
    """Return the verdict in a short sentence: how many benchmarks have each word, largest effect.

    `whole` is that of `sentence`, and is returned if it is short.
    """
    if len(whole) <= LONGEST and not any(map(_too_few, found)):
        return whole
    names = list(dict.fromkeys(one.arm for one in found))
    parts = [_counted(arm, [f for f in found if f.arm == arm]) for arm in names[:MOST_ARMS]]
    rest = len(names) - MOST_ARMS
    return "; ".join(parts) + (f"; {count(rest, 'more arm')}." if rest > 0 else ".")


def _counted(arm: str, of_arm: Sequence[Finding]) -> str:
    """Return "tcp is slower in 7 of 9 benchmarks (most in message_rate, 14.5x), undecided in 2"."""
    parts: list[str] = []
    verb = ""
    alike = grouped(((_in_short(f), _unless(f)), f) for f in of_arm)
    for (word, condition), those in sorted(alike.items(), key=lambda one: _RANK[one[0][0]]):
        phrase = _SHORT[word]
        verb = verb or ("has" if word in ("", Word.NO_DATA) else "is")
        parts.append(f"{phrase} {_number(those, of_arm, first=not parts)}")
        if word in _CHANGES or not word:
            parts[-1] += _most(those, so_far=not word)
        why = {why_held(f.verdict.code, f.verdict.figures) for f in those}
        if word == Word.WITHHELD and len(why) == 1:
            parts[-1] += f" ({why.pop()})"
        parts[-1] += f", {condition}" if condition else ""
    between = "; " if any(map(_unless, of_arm)) else ", "
    return f"{lists.arm(arm)} {verb} {between.join(parts)}"


def _number(those: Sequence[Finding], every: Sequence[Finding], *, first: bool) -> str:
    """Return the name of the only benchmark, or how many `those` are of `every`."""
    if len(those) == 1:
        return those[0].benchmark
    if len(those) == len(every):
        return "both benchmarks" if len(every) == 2 else f"all {len(every)} benchmarks"
    return f"{len(those)} of {len(every)} benchmarks" if first else f"{len(those)}"


def _most(those: Sequence[Finding], *, so_far: bool) -> str:
    """Return " (most in message_rate, 14.5x)", the largest effect; "" without any."""
    sizes = {f.benchmark: times.ratio for f in those if (times := slowness(f))}
    if not sizes:
        return ""
    name = max(sizes, key=lambda one: abs(math.log(sizes[one])))
    where = f"{'largest so far:' if so_far else 'most in'} {name}, " if len(those) > 1 else ""
    now = "so far " * (so_far and not where)
    way = f" {'slower' if sizes[name] > 1 else 'faster'}" if so_far else ""
    return f" ({now}{where}{format_factor(sizes[name])}{way})"


def _too_few(finding: Finding) -> bool:
    """Return whether a finding is undecided because it has no interval yet."""
    known = finding.comparison
    none = known is not None and known.blocks > 0 and known.low <= 0 and known.high == math.inf
    return none and finding.verdict.word is Word.UNDECIDED


def _reliable(finding: Finding) -> str:
    """Return "less" or "more" reliable for a finding that says so, else nothing."""
    figures = finding.verdict.figures
    known = {"failed", "reference_failed", "blocks"} <= {*figures}
    if finding.verdict.word is not Word.RELIABILITY or not known:
        return ""
    return f"{'less' if figures['failed'] > figures['reference_failed'] else 'more'} reliable"


def _in_short(finding: Finding) -> str:
    """Return the key of a finding in _SHORT."""
    return "" if _too_few(finding) else _reliable(finding) or finding.verdict.word


_SHORT: Mapping[str, str] = {
    Word.SLOWER: "slower in",
    Word.FASTER: "faster in",
    "less reliable": "less reliable in",
    "more reliable": "more reliable in",
    Word.RELIABILITY: "of other reliability in",
    Word.EQUIVALENT: "equivalent in",
    Word.UNDECIDED: "undecided in",
    Word.WITHHELD: "without a verdict in",
    "": "too few launches in",
    Word.NO_DATA: "no data in",
}
"""How the summary counts the benchmarks of each word; "" are those without an interval yet."""

_RANK = {word: rank for rank, word in enumerate(_SHORT)}


def _named(found: Sequence[Finding], others: Sequence[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield the findings that the sentence is about, each with its name there.

    That is the benchmark, followed by the metric where other metrics have another word.
    """
    beside = grouped(((one.benchmark, one.arm), one) for one in others)
    for head in found:
        of_head = beside.get((head.benchmark, head.arm), [])
        word = head.verdict.word
        differing = [
            f for f in of_head if f.verdict.word is not word and f.verdict.word in _CHANGES
        ]
        whole = word is not Word.EQUIVALENT or all(f.verdict.word is word for f in of_head)
        for one in (head, *differing):
            name = "" if one is head and whole and not differing else f" {one.metric.name}"
            yield one, f"{one.benchmark}{name}"


_CHANGES = (Word.FASTER, Word.SLOWER)


def _because(finding: Finding) -> str:
    """Return why a verdict is withheld, or on what condition it holds; else ""."""
    if finding.verdict.word is Word.WITHHELD:
        return f": {why_held(finding.verdict.code, finding.verdict.figures)}"
    condition = _unless(finding)
    return f", {condition}" if condition else ""


def _unless(finding: Finding) -> str:
    reserved = finding.verdict.figures.get("unless")
    return recorded.unless(reserved) if reserved else ""


def _phrase(finding: Finding) -> str:
    word = finding.verdict.word
    if word in (Word.WITHHELD, Word.NO_DATA):
        return f"{'no verdict' if word is Word.WITHHELD else 'no data'} for {{arm}} in {{labels}}"
    few = _too_few(finding)
    return f"{{arm}} {'has' if few else 'is'} {_SHORT[_in_short(finding)]} {{labels}}"


def _by_how_much(finding: Finding, cases: Sequence[Finding] = ()) -> str:
    """Return " (14.5x)" for an arm that is slower or faster, or what failed, else "".

    Behind it stands how many of `cases` are faster or slower where their mean is not.
    For a benchmark without data it is the error of the first failed launch.
    """
    figures = finding.verdict.figures
    if _reliable(finding):
        failed, others = figures["failed"], figures["reference_failed"]
        return f" (failed {failed} of {figures['blocks']} times, the reference {others})"
    if finding.verdict.word is Word.NO_DATA and figures.get("error"):
        return f" ({figures['arm']}: {figures['error']})"
    times = slowness(finding) if finding.verdict.word in _CHANGES else None
    notes = [format_factor(times.ratio)] if times else []
    mine, word = (finding.benchmark, finding.arm, finding.metric), finding.verdict.word
    words = [c.verdict.word for c in cases if (c.benchmark, c.arm, c.metric) == mine]
    for other in _CHANGES if word in (Word.EQUIVALENT, *_CHANGES) and len(words) > 1 else ():
        if other is not word and other in words:
            notes.append(f"{words.count(other)} of {count(len(words), 'case')} {other}")
    return f" ({', '.join(notes)})" if notes else ""
