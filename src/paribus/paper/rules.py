"""The twelve rules of T. Hoefler and R. Belli (SC'15) for reporting performance, for one study.

In goes a `Judgement`, out come twelve `Answer`s: what was done, what was not, and what the authors
must add. Each function below returns, for one rule, how far it is kept, and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from paribus.core import Judgement, Word, count
from paribus.report import lookup, sentences, wording
from paribus.report.axes import ROOFLINE, drawn
from paribus.report.unequal import unexplained
from paribus.words.lists import listed

FOLLOWED, PARTLY, NOT, AUTHORS = "Followed", "In part", "Not followed", "For the authors"
MOST = 8
UNSEEN = "cabling, switches, and what other users did"


class Answer(NamedTuple):
    """A rule in short, how far the study follows it (FOLLOWED to AUTHORS), and why."""

    rule: str
    kept: str
    text: str


def answers(judgement: Judgement) -> tuple[Answer, ...]:
    """Return the answers to the rules 1 to 12, in their order."""
    return (
        Answer("Report the absolute performance behind every ratio", *_absolute(judgement)),
        Answer("Say why only a part of a suite or a machine is used", *_subset(judgement)),
        Answer("Arithmetic means for costs, harmonic means for rates", *_means(judgement)),
        Answer("Do not summarise ratios, or else geometrically", *_summarised(judgement)),
        Answer("Say whether values are deterministic; give intervals", *_intervals(judgement)),
        Answer("Do not assume normality without a check", *_normality(judgement)),
        Answer("Compare in a statistically sound way", *_comparison(judgement)),
        Answer("Consider other percentiles than the centre", *_percentiles(judgement)),
        Answer("Document factors, levels and the set-up", *_documented(judgement)),
        Answer("Report how parallel time is measured", *_timed(judgement)),
        Answer("Show upper bounds of performance", *_bounds(judgement)),
        Answer("Plot what is needed; connect points only where valid", *_plots(judgement)),
    )


def _absolute(judgement: Judgement) -> tuple[str, str]:
    rows = lookup.rows(judgement)
    bare = [f.benchmark for f in rows if f.reference_value is None or f.arm_value is None]
    text = (
        f"Beside each ratio stand the values of both arms; the base case is {judgement.reference}."
    )
    if (scaling := judgement.study.scaling) is not None:
        text += f" Efficiencies are relative to the smallest number of {scaling.over}."
    if bare:
        return PARTLY, f"{text} No values of both arms exist of {_names(bare)}."
    return FOLLOWED, text


def _subset(judgement: Judgement) -> tuple[str, str]:
    labels = lookup.benchmarks(judgement)
    text = f"All benchmarks of the study are reported, whatever their verdict: {_names(labels)}."
    ranks = sorted({s.ranks for s in judgement.study.benchmarks if s.ranks})  # 0: no launcher
    if lookup.measured(judgement) and ranks:
        text += f" Ranks: {listed([str(n) for n in ranks], MOST)}."
    return AUTHORS, f"{text} Why these, and why not the whole machine, is for the authors to say."


def _means(judgement: Judgement) -> tuple[str, str]:
    one = lookup.unit(judgement)
    units = "launches" if one == "launch" else f"{one}s"
    return FOLLOWED, (
        f"No arithmetic mean is taken: a figure of a table is the median over {units}. What a"
        " program averages by itself is not seen."
    )


def _summarised(judgement: Judgement) -> tuple[str, str]:
    several = [
        h.benchmark for h in judgement.headlines if len(lookup.case_findings(judgement, h)) > 1
    ]
    if not several:
        return FOLLOWED, "Every ratio is that of one case; none is summarised."
    return PARTLY, (
        f"The headline of {_names(several)} is a geometric mean of ratios over cases: a sum of"
        " times would be that of the largest case alone. Each case has its values and its ratio."
    )


def _intervals(judgement: Judgement) -> tuple[str, str]:
    heads = judgement.headlines
    without = [h.benchmark for h in heads if not wording.has_interval(h.comparison)]
    text = "No value is taken to be deterministic."
    if without:
        kept = PARTLY if len(without) < len(heads) else NOT
        return kept, f"{text} The ratio of {_names(without)} has no interval."
    return FOLLOWED, f"{text} Every ratio has its interval, its level and its number of blocks."


def _normality(judgement: Judgement) -> tuple[str, str]:
    return FOLLOWED, (
        "Verdicts rest on ranks, signs or bounds that hold for any distribution. Assumed instead:"
        " the effect is a constant factor."
        + " The parts of a change rest on a jackknife."
        * bool(judgement.lenses.get("parts"))
    )


def _comparison(judgement: Judgement) -> tuple[str, str]:
    text = f"{judgement.design} Estimate, looks, margins and corrections are in the methods."
    withheld = [h.benchmark for h in judgement.headlines if h.verdict.word is Word.WITHHELD]
    if withheld:
        text += f" No verdict for {_names(withheld)}: the reason stands in the table."
    known = [h for h in judgement.headlines if wording.has_interval(h.comparison)]
    return (PARTLY if withheld else FOLLOWED) if known else NOT, text.strip()


def _percentiles(judgement: Judgement) -> tuple[str, str]:
    shown = {f.metric.endpoint for f in (*judgement.headlines, *judgement.endpoints)}
    names = [name for name in wording.ENDPOINTS if name in shown]
    if len(names) < 2:
        return NOT, f"Only one figure of a launch is known: {listed(names)}."
    decides = {f.metric.endpoint for f in judgement.headlines}
    return FOLLOWED, (
        f"What decides is the {listed([n for n in names if n in decides], last=' or ')} of a"
        f" launch; {listed(names, last=' and ')} are judged in the report of the study."
    )


def _documented(judgement: Judgement) -> tuple[str, str]:
    arms = listed([arm.name for arm in judgement.study.arms], last=" and ")
    text = f"The factor is {judgement.study.factor}, its levels are {arms}."
    if not judgement.facts:
        return PARTLY, f"{text} No facts of the platforms were recorded: the authors must add them."
    kinds = [d.kind for d in judgement.differences]
    text += f" {count(judgement.equal_facts, 'fact')} of the platforms were equal in all arms;"
    text += f" {kinds.count('unexplained')} differ unexplained, {kinds.count('accepted')} accepted."
    kept = PARTLY if unexplained(judgement) else FOLLOWED
    packed = " The packed study has them all, with its plan." if lookup.measured(judgement) else ""
    return kept, f"{text}{packed} Not among the facts: {UNSEEN}."


def _timed(judgement: Judgement) -> tuple[str, str]:
    kernels: list[str] = []
    programs: list[str] = []
    for one in judgement.study.benchmarks:
        is_kernel = lookup.measured(judgement) and sentences.is_kernel(one.benchmark)
        (kernels if is_kernel else programs).append(one.label)
    parts = []
    if kernels:
        parts.append(
            f"{_names(kernels)}: kernels of Paribus, whose contract (docs/kernels.md) states the"
            " clock, the batch, how ranks synchronise, and whose time counts."
        )
    if programs:
        parts.append(f"{_names(programs)}: as the program itself defines its figure.")
    kept = FOLLOWED if kernels and not programs else PARTLY
    return kept, " ".join(parts) or "Nothing was measured."


def _bounds(judgement: Judgement) -> tuple[str, str]:
    known = []
    if judgement.lenses.get("scaling"):
        known.append("the figure of scaling has the ideal line and the bound that was asked for")
    panels = (panel for b in lookup.benchmarks(judgement) for panel in drawn(judgement, b))
    if any(panel.key == ROOFLINE for panel in panels):
        known.append("the rooflines have their measured roofs")
    if not known:
        return NOT, "No bound is drawn: a link's rate or a model is for the authors to add."
    bounds = listed(known, last=", and ")
    return PARTLY, f"{bounds[0].upper()}{bounds[1:]}. Other figures have no bound."


def _plots(judgement: Judgement) -> tuple[str, str]:
    text = "Figures show intervals, quartiles and every launch; ratios are not connected."
    if any(len(lookup.case_findings(judgement, h)) > 1 for h in judgement.headlines):
        return PARTLY, (
            f"{text} Values are connected over cases, although a change of protocol between two"
            " sizes is a step."
        )
    return FOLLOWED, text


def _names(labels: Iterable[str]) -> str:
    return listed(list(dict.fromkeys(labels)), MOST, last=" and ")
