"""The tables of findings in the HTML report: headlines, layers, rankings, endpoints, cases."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Comparison, Finding, Judgement, Word, slowness, units
from paribus.report import lookup, sentences, wording
from paribus.report.axes import Panel
from paribus.report.markup import Html, element, escape, join, section, table
from paribus.report.ranking import Ranking, place_text, ranking
from paribus.words.values import reason_of

TIMES = "Times as slow [interval]"


def anchor(judgement: Judgement, benchmark: str) -> str:
    """Return the id of a benchmark's section in the page."""
    return f"benchmark-{lookup.benchmarks(judgement).index(benchmark)}"


def layers(judgement: Judgement) -> Html:
    """Return the table of layers, empty where there are none."""
    caption = "Layers: means over their benchmarks"
    rows = [(f.benchmark, f) for f in judgement.layers]
    said = units.count(len(rows), "layer")
    return _folded(judgement, "Layer", rows, caption, said, values=False)


def rankings(judgement: Judgement) -> Html:
    """Return the section that puts more than two arms in order, empty for two."""
    found = [r for b in lookup.benchmarks(judgement) if (r := ranking(judgement, b))]
    if not found:
        return Html("")
    legend = (
        "Every arm is compared with every other; the verdicts are corrected for multiple "
        "comparisons. \u201c2 to 3\u201d means that the data do not show which of these places "
        "the arm has."
    )
    said = element("p", escape(legend))
    return section("Ranking", "ranking", said, *(_ranking(r) for r in found))


def _ranking(ranked: Ranking) -> Html:
    metric = ranked.pairs[0].metric
    rows = []
    for place in ranked.places:
        above = place.above
        rows.append(
            [
                escape(place_text(place)),
                escape(place.arm),
                _verdict_cell(above) if above else Html(""),
                _ratio_cell(above) if above else Html(""),
                escape(wording.value_text(place.value, metric)),
            ]
        )
    caption = f"{ranked.benchmark}: {metric.name}, {wording.direction(metric)}"
    head = ["Place", "Arm", "Against the line above", TIMES, "Value"]
    pairs = [
        [
            escape(f.arm),
            escape(f.reference),
            _verdict_cell(f),
            _ratio_cell(f),
            _blocks_cell(f),
        ]
        for f in ranked.pairs
    ]
    of_pairs = ["Arm", "Against", "Verdict", TIMES, "Blocks"]
    every = f"{ranked.benchmark}: all {len(pairs)} pairs"
    return join(
        table(head, rows, caption, left=(0, 1, 2)),
        table(of_pairs, pairs, f"{every} of arms", left=(0, 1, 2), summary=every),
    )


def endpoints(judgement: Judgement, benchmark: str) -> Html:
    """Return the table of metrics and endpoints that do not decide a benchmark, "" without any."""
    others = judgement.of_benchmark(benchmark, judgement.others)
    ends = judgement.of_benchmark(benchmark, judgement.endpoints)
    decides = lookup.decided_by(judgement, benchmark) or wording.ENDPOINTS["median"]
    if others:
        [head, *_] = judgement.of_benchmark(benchmark, judgement.headlines)
        decides = f"{head.metric.name}, {decides}"
    caption = f"{benchmark}: what does not decide; the {decides} decides"
    rows = [(f.metric.name, f) for f in others]
    rows += [(wording.ENDPOINTS[f.metric.endpoint], f) for f in ends]
    return _folded(
        judgement, "Figure", rows, caption, f"Other {'figures' if others else 'endpoints'}"
    )


def cases(judgement: Judgement, benchmark: str, panel: Panel) -> Html:
    """Return the table of the cases of one panel."""
    caption = f"{benchmark}: {panel.metric.name}"
    caption += f" in {panel.metric.unit}" if panel.metric.unit else ""
    caption += f", {wording.direction(panel.metric)}"
    caption += f", {panel.group}" if panel.group else ""
    if levels := sentences.levels_text(panel.cases):
        caption += f"; intervals: {levels}"
    named = panel.metric.name + (f", {panel.group}" if panel.group else "")
    rows = [(wording.case_text(f), f) for f in panel.cases]
    summary = f"{named}, {units.count(len(rows), 'case')}"
    return _folded(judgement, "Case", rows, caption, summary, spread=True)


def _folded(
    judgement: Judgement,
    what: str,
    rows: Sequence[tuple[str, Finding]],
    caption: str,
    summary: str,
    *,
    values: bool = True,
    spread: bool = False,
) -> Html:
    """Return findings, each with its name, as a folded table; "" without any.

    With `values` those of both arms have columns, with `spread` including quartiles.
    """
    if not rows:
        return Html("")
    reference, *others = (arm.name for arm in judgement.study.arms)
    several = len(others) > 1
    head = [what, *(["Arm"] if several else []), "Verdict", TIMES]
    arms = (reference, others[0] if len(others) == 1 else "Value") if values else ()
    head += [f"{arm}{', quartiles' if spread else ''}" for arm in arms]
    cells = [
        [
            escape(name),
            *([escape(f.arm)] if several else []),
            _verdict_cell(f),
            _ratio_cell(f),
            *(_value_cells(f, spread=spread) if values else ()),
            _blocks_cell(f),
        ]
        for name, f in rows
    ]
    found = [f.verdict.word for _, f in rows]
    words = ", ".join(f"{found.count(word)} {word.value}" for word in Word if word in found)
    left = (0, 1, 2) if several else (0, 1)
    return table([*head, "Blocks"], cells, caption, left=left, summary=f"{summary}: {words}")


def _value_cells(f: Finding, *, spread: bool) -> list[Html]:
    values = []
    for value in (f.reference_value, f.arm_value):
        text = escape(wording.value_text(value, f.metric))
        if spread and value is not None:
            text = join(text, element("small", escape(wording.spread_text(value))))
        values.append(text)
    return values


def _blocks_cell(f: Finding) -> Html:
    return escape("" if f.comparison is None else str(f.comparison.blocks or ""))


def _ratio_cell(f: Finding) -> Html:
    times = slowness(f)
    return escape(wording.estimate_text(f)) if times is None else ratio_of(times)


def ratio_of(times: Comparison) -> Html:
    """Return a ratio, bold, and its interval."""
    interval = element("span", escape(wording.interval_text(times)), kind="interval")
    return join(element("b", escape(wording.ratio_text(times))), Html(" "), interval)


def _verdict_cell(f: Finding) -> Html:
    now = "so far, " if wording.provisional(f.verdict) else ""
    sign = chip(f.verdict.word, reason_of(f.verdict))
    if f.verdict.word is Word.NO_DATA:
        return sign
    open_yet = f.verdict.word is Word.UNDECIDED and f.comparison is not None
    few = open_yet and not wording.has_interval(f.comparison)
    below = f"{'too few blocks, ' if few else now}margin {units.percent(f.margin)}"
    return join(sign, element("small", escape(below)))


def chip(word: Word, reason: str) -> Html:
    """Return a verdict with a sign; in colour only where it claims something."""
    return chip_of(wording.SYMBOLS[word], word.value, wording.kind_of(word), reason)


def chip_of(sign: str, word: str, kind: str, reason: str) -> Html:
    """Return the word of a verdict, with its sign, in the colour of its kind."""
    shown = element("span", escape(sign), aria_hidden="true")
    why = {"title": reason} if reason else {}
    return element("span", shown, escape(f" {word}"), kind=f"chip {kind}", **why)
