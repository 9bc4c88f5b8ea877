"""The tables of findings in the HTML report: headlines, layers, rankings, endpoints, cases."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Finding, Judgement, Word, units
from paribus.report import lookup, sentences, wording
from paribus.report.axes import Panel
from paribus.report.effects import Effect
from paribus.report.markup import Html, element, escape, join, table
from paribus.report.ranking import Ranking, place_text, ranking
from paribus.words.values import reason_of


def anchor(judgement: Judgement, benchmark: str) -> str:
    """Return the id of a benchmark's section in the page."""
    return f"benchmark-{lookup.benchmarks(judgement).index(benchmark)}"


def headlines(judgement: Judgement) -> Html:
    """Return the table of what decides: a row per benchmark and arm."""
    several = len(judgement.study.arms) > 2
    noun = units.plural(lookup.unit(judgement)).capitalize()
    head = ["Benchmark", *(["Arm"] if several else []), *_value_heads(judgement), noun]
    rows = []
    for h in lookup.rows(judgement):
        used, found = lookup.units_of(judgement, h), lookup.total_of(judgement, h)
        place = f"#{anchor(judgement, h.benchmark)}"
        name = element("a", escape(h.benchmark), href=place)
        decides = lookup.decided_by(judgement, h.benchmark)
        under = f"{h.metric.name}, {wording.direction(h.metric)}"
        under += f", decided by the {decides}" if decides else ""
        if not h.decides:
            name, under = escape(h.metric.name), f"{wording.direction(h.metric)}, does not decide"
        under_used = [f"on {blocks}"] if (blocks := sentences.rests_on(judgement, h)) else []
        under_used += [f"{found.failures} failed{found.of_first}"] if found.failures else []
        rows.append(
            [
                join(name, element("small", escape(under))),
                *([escape(h.arm)] if several else []),
                *_value_cells(h),
                join(escape(str(used)), *(element("small", escape(said)) for said in under_used)),
            ]
        )
    caption = "Headline of every benchmark"
    summary = "Values of both arms, ratios and launches"
    return table(head, rows, caption, left=_text_columns(several), summary=summary)


def layers(judgement: Judgement) -> Html:
    """Return the table of layers, empty where there are none."""
    if not judgement.layers:
        return Html("")
    several = len(judgement.study.arms) > 2
    head = ["Layer", *(["Arm"] if several else []), "Verdict", "Ratio [interval]", "Blocks"]
    rows = [
        [
            escape(f.benchmark),
            *([escape(f.arm)] if several else []),
            _verdict_cell(f),
            _ratio_cell(f),
            _blocks_cell(f),
        ]
        for f in judgement.layers
    ]
    caption = "Layers: means over their benchmarks, as times (a ratio above 1 is slower)"
    summary = f"{units.count(len(rows), 'layer')}: {_words(judgement.layers)}"
    return table(head, rows, caption, left=_text_columns(several), summary=summary)


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
    return element(
        "section",
        element("h2", "Ranking"),
        element("p", escape(legend)),
        *(_ranking(r) for r in found),
        id="ranking",
    )


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
    head = ["Place", "Arm", "Against the line above", "Ratio [interval]", "Value"]
    pairs = [
        [escape(f.arm), escape(f.reference), _verdict_cell(f), _ratio_cell(f), _blocks_cell(f)]
        for f in ranked.pairs
    ]
    every = table(
        ["Arm", "Against", "Verdict", "Ratio [interval]", "Blocks"],
        pairs,
        f"{ranked.benchmark}: all pairs of arms",
        left=(0, 1, 2),
    )
    summary = element("summary", escape(f"{ranked.benchmark}: all {len(pairs)} pairs"))
    return join(
        table(head, rows, caption, left=(0, 1, 2)),
        element("p", escape(sentences.ranking_sentence(ranked))),
        element("details", summary, every),
    )


def endpoints(judgement: Judgement, benchmark: str) -> Html:
    """Return the table of the endpoints of a benchmark that do not decide, or nothing."""
    found = judgement.of_benchmark(benchmark, judgement.endpoints)
    if not found:
        return Html("")
    several = len(judgement.study.arms) > 2
    head = ["Endpoint", *(["Arm"] if several else []), *_value_heads(judgement), "Blocks"]
    rows = [
        [
            escape(wording.ENDPOINTS[f.metric.endpoint]),
            *([escape(f.arm)] if several else []),
            *_value_cells(f),
            _blocks_cell(f),
        ]
        for f in found
    ]
    decides = lookup.decided_by(judgement, benchmark) or wording.ENDPOINTS["median"]
    caption = f"{benchmark}: other endpoints; the {decides} decides"
    summary = f"Other endpoints: {_words(found)}"
    return table(head, rows, caption, left=_text_columns(several), summary=summary)


def _words(found: Sequence[Finding]) -> str:
    """Return how many rows say what: "10 slower, 2 undecided"."""
    words = [f.verdict.word for f in found]
    return ", ".join(f"{words.count(word)} {word.value}" for word in Word if word in words)


def cases(judgement: Judgement, benchmark: str, panel: Panel) -> Html:
    """Return the table of the cases of one panel."""
    several = len(judgement.study.arms) > 2
    head = ["Case", *(["Arm"] if several else []), *_value_heads(judgement, spread=True), "Blocks"]
    rows = [
        [
            escape(wording.case_text(f)),
            *([escape(f.arm)] if several else []),
            *_value_cells(f, spread=True),
            _blocks_cell(f),
        ]
        for f in panel.cases
    ]
    caption = f"{benchmark}: {panel.metric.name}"
    caption += f" in {panel.metric.unit}" if panel.metric.unit else ""
    caption += f", {wording.direction(panel.metric)}"
    caption += f", {panel.group}" if panel.group else ""
    if levels := sentences.levels_text(panel.cases):
        caption += f"; intervals: {levels}"
    named = panel.metric.name + (f", {panel.group}" if panel.group else "")
    summary = f"{named}, {units.count(len(rows), 'case')}: {_words(panel.cases)}"
    return table(head, rows, caption, left=_text_columns(several), summary=summary)


def _text_columns(several: bool) -> tuple[int, ...]:
    """Return the columns of a table of findings that hold text: names and the verdict."""
    return (0, 1, 2) if several else (0, 1)


def _value_heads(judgement: Judgement, *, spread: bool = False) -> list[str]:
    others = judgement.study.arms[1:]
    arm = others[0].name if len(others) == 1 else "Value"
    quartiles = ", quartiles" if spread else ""
    return ["Verdict", "Ratio [interval]", f"{judgement.reference}{quartiles}", f"{arm}{quartiles}"]


def _value_cells(f: Finding, *, spread: bool = False) -> list[Html]:
    values = []
    for value in (f.reference_value, f.arm_value):
        text = escape(wording.value_text(value, f.metric))
        if spread and value is not None:
            text = join(text, element("small", escape(wording.spread_text(value))))
        values.append(text)
    return [_verdict_cell(f), _ratio_cell(f), *values]


def _ratio_cell(f: Finding) -> Html:
    if f.comparison is None or not wording.has_size(f):
        return escape(wording.estimate_text(f))
    return join(
        element("b", escape(wording.ratio_text(f.comparison.ratio))),
        Html(" "),
        element("span", escape(wording.interval_text(f.comparison)), kind="interval"),
        element("small", escape(wording.change_text(f))),
    )


def _blocks_cell(f: Finding) -> Html:
    return escape("" if f.comparison is None else str(f.comparison.blocks or ""))


def _verdict_cell(f: Finding) -> Html:
    now = "so far, " if wording.provisional(f.verdict) else ""
    sign = chip(f.verdict.word, reason_of(f.verdict))
    if f.verdict.word is Word.NO_DATA:
        return sign
    open_yet = f.verdict.word is Word.UNDECIDED and f.comparison is not None
    few = open_yet and not wording.has_interval(f.comparison)
    said = f"{'too few blocks, ' if few else now}margin {units.percent(f.margin)}"
    return join(sign, element("small", escape(said)))


def chip(word: Word, reason: str) -> Html:
    """Return a verdict with a sign; in colour only where it claims something."""
    kind = word.name.lower() if word in wording.DECIDED else "open"
    return _chip(wording.SYMBOLS[word], word.value, kind, reason)


def chip_of(one: Effect) -> Html:
    """Return the verdict of a headline; too few launches are a state of its own."""
    return _chip(one.sign, one.word, one.kind, reason_of(one.finding.verdict))


def _chip(sign: str, said: str, kind: str, reason: str) -> Html:
    shown = element("span", escape(sign), aria_hidden="true")
    return element("span", shown, escape(f" {said}"), kind=f"chip {kind}", title=reason)
