"""The parts of a difference: which of the changes between two arms makes how much of it.

Of `design = "explain"`: the parts of single changes and the rest multiply to the whole ratio,
1.10 x 1.04 x 1.00 = 1.144. They stand in the first sentence, in reports, in figures and as values.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paribus.core import (
    Arm,
    Comparison,
    Finding,
    Judgement,
    Lens,
    Scalar,
    Seen,
    Study,
    Word,
    count,
    format_interval,
)
from paribus.core.changes import (
    Part,
    confidence_of,
    divisible,
    of_variable,
    parts_of,
    plain_name,
    value_text,
)
from paribus.designs import design_of, explain
from paribus.judge.headlines import pooled_ratios
from paribus.probes.variables import reported
from paribus.report import export
from paribus.report.axes import COLOURS, UNDECIDED, Spec, layer, new_spec, padded, tooltip
from paribus.report.figures import plain
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, table
from paribus.report.printing import Row, heading, item, line, print_rows
from paribus.report.rows import kept
from paribus.report.unequal import explaining
from paribus.report.wording import SIZE_WITHHELD, clean
from paribus.stats import parts as stats
from paribus.stats.opposites import Opposed
from paribus.stats.verdict import judge
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a change in a difference, or what a pair of changes does beyond both parts.

    `name`: the change; `beside`: the other change of a pair. `keys`: those of the arm that are
    switched, `text`: what they are switched to. `comparison`: the ratio of the arm's value to the
    reference's, None without data; those of all parts and the rest multiply to the whole.
    """

    name: str
    text: str
    keys: tuple[str, ...]
    comparison: Comparison | None
    word: Word
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Division:
    """How the difference of `arm` in a benchmark divides: its parts, the rest, and pairs.

    `whole`: the ratio of arm and reference, `rest`: that over the product of the parts. `acting`:
    the pairs of changes that together make more, or less, than their two parts, by more than the
    margin, the strongest first. `fixed`: the keys of differences that no key of an arm switches.
    `needed`: about how many blocks decide the parts that are undecided, None if that is not known.
    `size_known`: as of the verdict on the whole; without it reports show no sizes of parts either.
    """

    benchmark: str
    arm: str
    metric: str
    margin: float
    word: Word
    whole: Comparison
    parts: tuple[Share, ...]
    rest: Comparison
    acting: tuple[Share, ...] = ()
    fixed: tuple[str, ...] = ()
    needed: int | None = None
    size_known: bool = True


def divisions(seen: Seen) -> tuple[Division, ...] | None:
    """Return how the difference of each benchmark divides; None in a study of another design."""
    design = seen.plan.design
    if not isinstance(design, explain.Explain):
        return None
    fixed = tuple(
        one.key
        for one in seen.judgement.differences
        if one.kind in ("unexplained", "accepted") and not one.node
    )
    every = (_division(seen, design, head, fixed) for head in seen.judgement.headlines)
    return tuple(one for one in every if one) or None


def _division(
    seen: Seen, design: explain.Explain, head: Finding, fixed: tuple[str, ...]
) -> Division | None:
    """Return how the difference of a headline divides, None without one that is known."""
    plan, evidence, whole = seen.plan, seen.evidence, head.comparison
    reference, arm = plan.study.arms
    logs = design.logs(evidence, (reference.name, arm.name), [(head.benchmark, head.metric)])
    if whole is None or logs is None:
        return None
    ratios = pooled_ratios(evidence, head.benchmark, reference.name, arm.name, head.metric)
    blocks = design.stands_on(sorted(ratios), whole)
    held = head.verdict.word if head.verdict.word in HELD else None

    def word_on(found: Comparison | None) -> Word:
        if held or found is None:
            return held or Word.NO_DATA
        return judge(found, better=head.metric.better, margin=head.margin, last=True).word

    found = logs.compared(blocks, plan.looks.confidence)
    parts = tuple(
        Share(part.name, _text(part, arm), part.keys, one, word_on(one))
        for part, one in zip(design.parts, found, strict=True)
    )
    each = explain.needed_by_part(logs, head.margin, plan.looks.confidence)
    open_ = [n for one, n in zip(parts, each, strict=True) if _is_open(one)]
    known = [n for n in open_ if n is not None]
    in_all = [block for block in blocks if all(block in one for one in logs.parts)]
    rest = _rest(whole, found, [ratios[block] for block in in_all], logs, in_all)
    error = (1 - confidence_of(plan.study, design.parts)) / (len(parts) + stats.BESIDE)
    level = 1 - plan.looks.nominal(error / max(1, len(parts) * (len(parts) - 1) // 2))
    acting = []
    for (one, other), more in logs.acting(blocks, level).items():
        first, second = design.parts[one], design.parts[other]
        keys = first.keys + second.keys
        acting.append(Share(first.name, "", keys, more, word_on(more), second.name))
    named = [one for one in acting if one.word in (Word.FASTER, Word.SLOWER)]
    named.sort(key=lambda one: -abs(math.log(one.comparison.ratio)) if one.comparison else 0.0)
    return Division(
        *(head.benchmark, head.arm, head.metric.name, head.margin, head.verdict.word),
        *(whole, parts, rest, tuple(named), fixed),
        needed=max(known) if known and len(known) == len(open_) else None,
        size_known=head.verdict.size_known,
    )


def _is_open(one: Share) -> bool:
    return one.word not in (*CLAIMS, Word.EQUIVALENT)


HELD = (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
"""Words on the whole with which the parts have no words of their own."""


def _rest(
    whole: Comparison,
    parts: Sequence[Comparison | None],
    ratios: Sequence[float],
    logs: explain.Logs | Opposed,
    blocks: Sequence[int],
) -> Comparison:
    """Return the whole over the product of the parts, by the blocks that have all of them."""
    known = [one for one in (whole, *parts) if one and 0 < one.ratio < math.inf]
    if not blocks or len(known) <= len(parts):
        return Comparison(0, 1.0, 0.0, math.inf, whole.level)
    several = [ratios, *([one[block] for block in blocks] for one in logs.parts)]
    return Comparison(len(blocks), *stats.remainder(known[0], known[1:], several), whole.level)


def _text(part: Part, arm: Arm) -> str:
    """Return what a change switches its key to: "OMP_PROC_BIND=close".

    It is the name of the change where it has several keys or a name by the study, and where the
    value of the variable is private.
    """
    (key, *others), name = part.keys, of_variable(part.keys[0])
    private = name in arm.env and reported(name, arm.env[name]) != arm.env[name]
    named = others or private or part.name != plain_name([key])
    return part.name if named else value_text(key, arm)


Rows = tuple[Division, ...]

# --- words -----------------------------------------------------------------------------------

TITLE = "Which change makes the difference"

MEANING = (
    "The part of a change is its mean effect over the orders in which the changes can be switched;"
    " ratios of parts multiply to the whole."
)
IN_ORDER = (
    "Changes act on each other: read a part as a mean over orders, not as what one change alone"
    " would do."
)
REST = "not explained by single changes"
MOST_TEXT = 40
"""Characters of a Share's text, beyond which its name is shown instead."""

CLAIMS = (Word.FASTER, Word.SLOWER)


def change(comparison: Comparison | None) -> str:
    """Return a ratio as a change with its interval: "+14.2 % [13.1, 15.4]".

    >>> change(Comparison(12, 1.142, 1.131, 1.154, 0.997)), change(None)
    ('+14.2 % [13.1, 15.4]', 'none')
    """
    if comparison is None or not 0 < comparison.ratio < math.inf:
        return "none"
    return format_interval(comparison.ratio, comparison.low, comparison.high, plus="")


def lead(judgement: Judgement, rows: Rows) -> str:
    """Return the answer of each benchmark, which follows the first sentence of the report."""
    several = len(rows) > 1
    said = [f"{f'{one.benchmark}: ' if several else ''}{_answer(one)}" for one in rows]
    return clean(" ".join([*said, *_failing(judgement)]))


def _failing(judgement: Judgement) -> list[str]:
    """Return a sentence on what all launches that fail share, by chance in 5 % of studies."""
    design = design_of(judgement.study)
    if not isinstance(design, explain.Explain):
        return []
    tallies, found = judgement.tallies, []
    known = [(design.switched(t.arm), t.launches, t.failures - t.faults) for t in tallies]
    launches, failed = sum(one[1] for one in known), sum(one[2] for one in known)
    for name in (part.name for part in design.parts) if failed else ():
        for word, on in (("with", True), ("without", False)):
            such = [one for one in known if (name in one[0]) is on]
            by_chance = (sum(one[1] for one in such) / launches) ** failed
            if sum(one[2] for one in such) == failed and by_chance <= 0.025 / len(design.parts):
                found.append(f"{word} {name}")
    return [f"Launches fail only {listed(found, last=' and ')}."] if found else []


def _answer(row: Division) -> str:
    """Return which changes make the difference of one benchmark, and how much."""
    if row.word is Word.RELIABILITY:
        return "Parts have no verdicts where launches fail."
    if row.word in HELD:
        return "Parts are reported once the whole has a verdict."
    made = [one for one in row.parts if one.word in CLAIMS]
    none = [one.name for one in row.parts if one.word is Word.EQUIVALENT]
    open_ = [one.name for one in row.parts if _is_open(one)]
    sentences = []
    if row.word is Word.EQUIVALENT:
        sentences.append("The gap is not reproduced here.")
    made.sort(key=lambda one: -_size(one))
    each = [
        f"{_line(one)}{' makes' * (not n)} {change(one.comparison)}" for n, one in enumerate(made)
    ]
    if not row.size_known:
        each = [f"{_line(one)} makes a difference" for one in made]
    parts = [", ".join(each)] if each else []
    if none:
        have = "has" if len(none) == 1 else "have"
        parts.append(f"{listed(none, last=' and ')} {have} no part (equivalent)")
    if open_:
        are = "is" if len(open_) == 1 else "are"
        parts.append(f"{listed(open_, last=' and ')} {are} undecided ({_way_on(row)})")
    sentences.append(f"{'; '.join(parts)}.")
    if row.size_known:
        sentences.append(f"Together, {REST}: {change(row.rest)}.")
    sentences += [f"{one}." for one in _together(row)[:2]]
    if row.fixed:
        sentences.append(f"Cannot be separated: {listed(list(row.fixed), 4)}.")
    return " ".join(sentences)


def _left(_: Judgement, rows: Rows) -> Iterator[str]:
    """Yield what decides the parts that are undecided where the whole is decided."""
    for row in rows:
        names = [one.name for one in row.parts if _is_open(one)]
        if names and row.word not in (*HELD, Word.UNDECIDED):
            way = "change `blocks`, `budget` or `margin` under [plan], and use a new directory"
            yield f"Undecided ({listed(names, 5)}, {row.benchmark}): {_way_on(row)}. So {way}."


def _way_on(row: Division) -> str:
    """Return what decides the parts that are undecided: so many blocks, or less noise."""
    if row.needed is None:
        return "more blocks needed"
    if row.whole.blocks < row.needed <= explain.Explain.most_blocks:
        return f"about {count(row.needed, 'block')} needed"
    return "less noise, or a wider margin, needed"


def _together(row: Division) -> list[str]:
    """Return what pairs of changes make beyond what each of them makes by itself."""
    return [
        f"{one.name} with {one.beside}: {_shown(row, one.comparison)} on top of both"
        for one in row.acting
    ]


def _shown(row: Division, comparison: Comparison | None) -> str:
    return change(comparison) if row.size_known else SIZE_WITHHELD


def _size(one: Share) -> float:
    return _size_of(one.comparison) if one.comparison else 0.0


def _size_of(one: Comparison) -> float:
    """Return how far a ratio is from 1, as a log, infinite without a ratio."""
    return abs(math.log(one.ratio)) if 0 < one.ratio < math.inf else math.inf


def _mixed(row: Division) -> bool:
    """Return whether changes act on each other: a pair, or the rest, is beyond the margin."""
    most = 1 + row.margin
    return bool(row.acting) or row.rest.low > most or row.rest.high < 1 / most


def _lines(row: Division) -> list[tuple[str, str, str]]:
    """Return the cells of the table's rows, name, part and word: the largest first, then the rest
    and the whole."""
    ranked = sorted(row.parts, key=lambda one: -_size(one))
    lines = [(_line(one), _shown(row, one.comparison), _word(one.word)) for one in ranked]
    lines.append((REST, _shown(row, row.rest), ""))
    return [*lines, (f"{row.arm}, all changes", _shown(row, row.whole), row.word.value)]


def _line(one: Share) -> str:
    return one.text if len(one.text) <= MOST_TEXT else one.name


def _word(word: Word) -> str:
    return "no part (equivalent)" if word is Word.EQUIVALENT else word.value


def _notes(row: Division, study: Study) -> list[str]:
    """Return the sentences below the parts of a difference."""
    return [
        *([IN_ORDER] if _mixed(row) else []),
        *(f"{one}." for one in _together(row)),
        *([f"Cannot be separated: {listed(list(row.fixed))}."] if row.fixed else []),
        *(
            f"Which change of {one.name}: `{explaining(study)} --within {shlex.quote(one.name)}`"
            for one in row.parts
            if one.word in CLAIMS and divisible(Part(one.name, one.keys))
        ),
    ]


# --- terminal and HTML -----------------------------------------------------------------------


def print_parts(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the part of every change, the rest, and which changes act together."""
    heading(console, TITLE)
    for row in rows:
        _print_table(row, console)
        for text in _notes(row, judgement.study):
            item(console, text)
    item(console, MEANING, style="dim")


def _print_table(row: Division, console: Console) -> None:
    lines = [Row(one, "bold" if one[2] in ("faster", "slower") else "dim") for one in _lines(row)]
    head = [row.benchmark, "part [interval]", ""]
    print_rows(console, head, lines, right=(), coloured=(2,), indent=2)


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the table of the only benchmark, or a sentence for each of several."""
    if len(rows) == 1:
        heading(console, TITLE)
        _print_table(rows[0], console)
    else:
        console.print()
        for row in rows:
            line(console, _answer(row), name=row.benchmark, hang=2, most=2)
    for text in _failing(judgement):
        line(console, text)


def html_section(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the section of the HTML report: a picture, a table and notes for each benchmark."""
    said = [MEANING, *map(clean, _failing(judgement))]
    made = [element("h2", escape(TITLE)), *(element("p", escape(text)) for text in said)]
    for row in rows:
        caption = f"{clean(row.benchmark)}: from {judgement.reference} to {row.arm}"
        if _has_picture(row):
            drawn = figures.add(
                figure(judgement, row), f"{caption}; whiskers: intervals", wide=True
            )
            made.append(element("div", drawn, kind="figures"))
        notes = _notes(row, judgement.study)
        cells = [[escape(clean(text)) for text in one] for one in _lines(row)]
        made += [table(["Change", "Part [interval]", "Says"], cells, caption, left=(0, 2))]
        made += [element("ul", *(element("li", escape(clean(text))) for text in notes))]
    return element("section", *made, aria_label="Parts")


# --- picture ---------------------------------------------------------------------------------


def _has_picture(row: Division) -> bool:
    return row.size_known and _size_of(row.whole) < math.inf


def _figures(judgement: Judgement, rows: Rows) -> Iterator[tuple[str, Spec]]:
    for number, row in enumerate(filter(_has_picture, rows)):
        yield f"parts-{number:02d}-{plain(row.benchmark)}", figure(judgement, row)


def figure(judgement: Judgement, row: Division) -> Spec:
    """Return a waterfall from the reference to the arm: a bar for each part, with its interval."""
    bars = list(_bars(judgement, row))
    described = "; ".join(f"{bar['name']}: {bar['shown']}" for bar in bars)
    spec = new_spec(f"{row.benchmark}: {TITLE.lower()}", described)
    ends = [bar[key] for bar in bars for key in ("low", "high", "from", "to")]
    scale = {"type": "log", "domain": padded(min(ends), max(ends)), "nice": False}
    label = "format(100 * (datum.value - 1), '+.0f') + ' %'"
    axis = {"title": f"{row.metric} against {clean(judgement.reference)}", "labelExpr": label}
    x = {"field": "from", "type": "quantitative", "scale": scale, "axis": axis}
    names = [bar["name"] for bar in bars]
    y: Spec = {"field": "name", "type": "nominal", "sort": names, "title": None}
    y["axis"] = {"labelLimit": 260}
    kinds = ["arm", "part", "no part"]
    colour = {
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": kinds, "range": [COLOURS[0], COLOURS[1], UNDECIDED]},
            "legend": None,
        }
    }
    tips = tooltip(name="change", shown="part [interval]", word="says")
    whisker = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    layers = [
        layer(
            {"type": "bar", "height": 16}, {"y": y, "x": x, "x2": {"field": "to"}}, colour | tips
        ),
        layer({"type": "rule", "strokeWidth": 2, "color": COLOURS[5]}, whisker, {**tips}),
    ]
    return spec | {"height": 28 * len(bars), "data": {"values": bars}, "layer": layers}


def _bars(judgement: Judgement, row: Division) -> Iterator[Spec]:
    """Yield the bars: the reference, each part beginning where the last one ended, the arm."""
    at = 1.0
    yield _bar(clean(judgement.reference), "arm", (1.0, 1.0), (1.0, 1.0), "the reference", "")
    ranked = sorted(row.parts, key=lambda one: -_size(one))
    for name, one, word in (
        *((_line(one), one.comparison, _word(one.word)) for one in ranked),
        (REST, row.rest, ""),
    ):
        if one is None or not 0 < one.ratio < math.inf:
            continue
        low = at * one.low if one.low > 0 else at * one.ratio
        high = at * one.high if one.high < math.inf else at * one.ratio
        kind = "part" if word in CLAIMS else "no part"
        yield _bar(clean(name), kind, (at, at * one.ratio), (low, high), change(one), word)
        at *= one.ratio
    known = row.whole
    ends = known.low if known.low > 0 else known.ratio, min(known.high, 1e9)
    yield _bar(clean(row.arm), "arm", (1.0, known.ratio), ends, change(known), row.word.value)


def _bar(
    name: str, kind: str, of: tuple[float, float], ends: tuple[float, float], shown: str, word: str
) -> Spec:
    """Return a bar between the ratios `of`, with a whisker between `ends`."""
    where = {"from": of[0], "to": of[1], "low": ends[0], "high": ends[1]}
    return {"name": name, "kind": kind, **where, "shown": shown, "word": word}


# --- values ----------------------------------------------------------------------------------


KEPT = kept("parts", Division, lambda judgement, one: _answer(one))


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    """Return the divisions of a stored verdict; raises ValueError where its study has no parts."""
    parts_of(judgement.study)
    found: Rows | None = KEPT["from_json"](table, judgement)
    return found


COLUMNS = (
    *("benchmark", "arm", "metric", "kind", "name", "keys"),
    *("ratio", "ratio_low", "ratio_high", "level", "blocks", "margin", "word"),
)


def _csv(judgement: Judgement, rows: Rows) -> Iterator[Sequence[Scalar | None]]:
    """Yield a row for each part, the rest, the whole, and each pair that acts together."""
    yield COLUMNS
    for row in rows:
        several = [
            *(("part", one.name, one.keys, one.comparison, one.word) for one in row.parts),
            ("rest", "", (), row.rest, ""),
            ("whole", "", (), row.whole, row.word),
            *(("pair", one.name, one.keys, one.comparison, one.word) for one in row.acting),
        ]
        for kind, name, keys, found, word in several:
            ratio = export.comparison_cells(found if row.size_known else None)
            of = (row.benchmark, row.arm, row.metric, kind, name, " ".join(keys))
            yield (*of, *ratio, row.margin, str(word))


LENS = Lens(
    judge=divisions,
    to_json=KEPT["to_json"],
    from_json=from_json,
    text=print_parts,
    html=html_section,
    lead=lead,
    short=print_short,
    left=_left,
    figures=_figures,
    csv=("parts.csv", _csv),
)
