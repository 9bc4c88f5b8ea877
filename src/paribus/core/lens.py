"""Lenses: other questions about the same launches, such as what they cost or how they scale.

A lens is a module with a `LENS` and one line in LENSES. It is imported only where a study, the
facts of its nodes and launches, or a stored verdict needs it; CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from paribus.core.groups import grouped
from paribus.core.judgement import Finding, Judgement

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.border import Place
    from paribus.core.design import Arm, Selection, Study
    from paribus.core.model import Scalar
    from paribus.judge.evidence import Entry, Evidence
    from paribus.paper.paper import PaperTable
    from paribus.plan import Plan
    from paribus.report.axes import Spec
    from paribus.report.html import Figures
    from paribus.report.markup import Html
    from paribus.store import Stored

R = TypeVar("R")
PACKAGE = "paribus.lenses"
"""The package that holds the modules of LENSES."""

Part = Literal["verdicts", "ratios", "rankings", "cases", "endpoints"]
"""The parts of a report that a lens can follow, in their order."""


@dataclass(frozen=True, slots=True)
class Named:
    """The entry of a lens in LENSES: its module, and what makes Paribus import it.

    A lens is used if the study file has one of its keys, or if one of `needs` is there: another
    field of the study or its arms, the first two parts of a fact's key ("launch.energy"), a
    parameter of cases ("bytes"), or a layer of benchmarks ("gpu").
    """

    module: str  # relative to PACKAGE
    study: tuple[str, ...] = ()  # keys of the study file; KEYS of the lens's study.py reads them
    arm: tuple[str, ...] = ()  # keys of an arm in the study file, read likewise
    needs: tuple[str, ...] = ()
    blocks: int = 0  # the fewest blocks of launches
    points: int = 0  # the fewest values of the parameter of cases that is in `needs`
    keys: tuple[str, ...] = ()  # in every verdict: an empty list where the lens has no rows
    before: str = "tallies"  # the key of the core's verdict before which the lens's keys stand
    design: str = ""  # of a study file that has a key of `study` and names no design
    findings: bool = False  # whether its findings are in the verdict, under its name
    rules: Mapping[str, str] = field(default_factory=dict)
    # The rules of `--fail-on` that it judges, each with what it needs; "@" is any with a size.

    def suffice(self, blocks: int, points: Mapping[str, int]) -> bool:
        """Return whether the lens can say anything of `blocks` blocks of launches.

        `points` is the number of values of each parameter of cases.
        """
        most = max((points.get(one, 0) for one in self.needs), default=0)
        return blocks >= self.blocks and most >= self.points

    def needed(self, known: Set[str]) -> bool:
        """Return whether any of `known` (keys, fields, facts, parameters, layers) needs it."""
        return not known.isdisjoint((*self.study, *self.arm, *self.needs))

    def takes(self, rule: str) -> str:
        """Return what a rule of `--fail-on` needs to be judged, "" for a rule of another lens."""
        return self.rules.get("@" if "@" in rule else rule, "")


_MEASURED = (
    *("point to point", "one-sided", "network", "collective", "memory", "compute", "storage"),
    *("start-up", "gpu"),
)
_COUNTED = ("launch.energy", "launch.energy_j", "load.energy")

LENSES: dict[str, Named] = {
    "calibration": Named(
        ".calibration", needs=("calibration",), rules={"difference": "a calibration"}
    ),
    "ranges": Named(
        ".ranges",
        needs=("bytes",),
        blocks=12,
        points=3,
        rules={"@": "12 blocks that Paribus launched, and three sizes, some of which it names"},
    ),
    "published": Named(".published.lens", keys=("published",), before="transports"),
    "matrices": Named(".matrices.lens", needs=("from", "to"), keys=("matrices",)),
    "scaling": Named(".scaling.lens", study=("scaling",), keys=("scaling", "reaches")),
    "profiles": Named(
        *(".profiles.lens", ("profile",), (), ("replays", *_MEASURED)),
        keys=("advice", "predictions"),
        findings=True,
    ),
    "parts": Named(".parts.lens", study=("parts",)),
    "series": Named(".series.lens", study=("series",), design="series"),
    "cost": Named(".cost.lens", arm=("price",), needs=("hosts",)),
    "energy": Named(".energy", needs=_COUNTED),
    "steadiness": Named(
        ".steadiness",
        needs=("arms",),
        blocks=12,
        rules={"less-steady": "12 blocks or more that Paribus launched"},
    ),
}
"""All lenses by name, in the order of their sections and of their keys in a verdict."""


class Asked(NamedTuple):
    """What the keys of a lens in a study file ask for.

    `values` are fields of Study by name; others are kept in Study.asked, and are values of JSON.
    `each`, if given, turns one [[benchmarks]] table into several selections (a sweep over sizes);
    it gets the table's place and a function that reads one selection. `adds` are further
    [[benchmarks]] tables.
    """

    values: Mapping[str, Any]
    each: Callable[[Place, Callable[[Place], Selection]], Iterable[Selection]] | None = None
    adds: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """How the keys of a lens in a study file are read.

    `arm` reads the table of an arm and returns fields of Arm. `study` reads the whole file, which
    lies in a folder. `check` refuses keys that contradict the study as a whole. All of them
    note or raise StudyError, as Place does.
    """

    arm: Callable[[Place], Mapping[str, Any]] = lambda place: {}
    study: Callable[[Place, Path], Asked] = lambda top, folder: Asked({})
    check: Callable[[Place, Study], None] = lambda top, study: None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a lens judges: the plan, the evidence, and the judgement as far as it goes.

    `over` says of each benchmark that no further launch will come. `launches` are all attempts,
    without samples; none of numbers from elsewhere.
    """

    plan: Plan
    evidence: Evidence
    judgement: Judgement
    over: Mapping[str, bool]
    launches: Sequence[Stored] = ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """A row of the figure of ratios: what an arm takes of something, such as energy.

    `ratio`, arm to reference, is below 1 where the arm takes less of `what`.
    """

    benchmark: str
    arm: str
    what: str
    ratio: float
    low: float
    high: float
    margin: float
    word: str  # the verdict
    decided: bool  # whether the verdict claims something


class Drawn(NamedTuple):
    """A picture: the name of its file, its title, its drawing, and what it shows, in words."""

    name: str
    title: str
    spec: Spec
    said: str


class Cases(NamedTuple):
    """What a lens shows in place of the curves and tables of cases: rows of pictures, a note."""

    groups: Sequence[Sequence[Drawn]]
    note: str


def _nothing(judgement: Judgement, rows: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens(Generic[R]):
    """A lens: how it judges, and how its rows, of a type `R`, are stored and shown.

    `judge` and `from_json` return None where there is nothing to say.
    """

    judge: Callable[[Seen], R | None]
    to_json: Callable[[Judgement, R], Mapping[str, Any]]  # its keys of the verdict
    from_json: Callable[[Mapping[str, Any], Judgement], R | None]
    text: Callable[[Judgement, R, Console], None]  # prints a section after the part `text_after`
    html: Callable[[Judgement, R, Figures], Html]  # a section after the part `html_after`
    text_after: Part = "verdicts"
    html_after: Part = "verdicts"
    # Rows that are drawn in the figure of ratios, beside those of times.
    ratios: Callable[[Judgement, R], Iterable[Ratio]] = _nothing
    # The drawings of `html`, by name of their file; a sentence on methods; tables of a paper.
    figures: Callable[[Judgement, R], Iterable[tuple[str, Spec]]] = _nothing
    methods: Callable[[Judgement, R], str] = lambda judgement, rows: ""
    paper: Callable[[Judgement, R], Iterable[PaperTable]] = _nothing
    # What is shown in place of the cases of a benchmark.
    cases: Callable[[Judgement, R, str], Cases | None] = lambda judgement, rows, benchmark: None
    findings: Callable[[R], Sequence[Finding]] = lambda rows: ()
    # For a rule of `--fail-on`: a sentence on each failure; whether the rule can be judged at all.
    failing: Callable[[Judgement, R, str], Iterable[str]] = lambda judgement, rows, rule: ()
    judges: Callable[[Judgement, R, str], bool] = lambda judgement, rows, rule: True
    # A sentence after the first of all reports; what is printed on a report of one screen.
    lead: Callable[[Judgement, R], str] = lambda judgement, rows: ""
    short: Callable[[Judgement, R, Console], None] = lambda judgement, rows, console: None
    # Of an ended study: a sentence on each answer that is open, with what would give it.
    left: Callable[[Judgement, R], Iterable[str]] = _nothing
    # Labels of benchmarks whose reports draw how their launches scatter.
    spread: Callable[[Judgement, R], Iterable[str]] = _nothing
    # The name of a CSV file, and its rows.
    csv: tuple[str, Callable[[Judgement, R], Iterable[Sequence[Scalar | None]]]] = ("", _nothing)


def lens_of(name: str) -> Lens[Any]:
    """Return the lens of this name; its module is imported at the first call."""
    found: Lens[Any] = import_module(LENSES[name].module, PACKAGE).LENS
    return found


def names_of(part: Literal["study", "arm"]) -> list[str]:
    """Return the keys of all lenses in a study file, or in its arms."""
    return [key for named in LENSES.values() for key in getattr(named, part)]


def design_at(place: Place) -> str:
    """Return the design of a study file whose plan names none: that of a lens, else "auto"."""
    designs = (one.design for one in LENSES.values() if place.table.keys() & set(one.study))
    return next(filter(None, designs), "auto")


def keys_of(place: Place, part: Literal["study", "arm"]) -> list[Keys]:
    """Return the readers of the lenses of which the table at `place`, a study or arm, has keys."""
    return [
        import_module(named.module.removesuffix("lens") + "study", PACKAGE).KEYS
        for named in LENSES.values()
        if place.table.keys() & set(getattr(named, part))
    ]


def judged(seen: Seen) -> dict[str, Any]:
    """Return the rows of every lens that the study needs and that has something to say."""
    points = _parameters(seen.evidence)
    known = _known(seen.judgement) | points.keys() | {*seen.plan.layers.values()}
    blocks = max(map(len, seen.evidence.launches.values()), default=0)
    return _found(
        lambda _, one: one.needed(known) and one.suffice(blocks, points),
        lambda lens: lens.judge(seen),
    )


def stored(table: Mapping[str, Any], judgement: Judgement) -> dict[str, Any]:
    """Return the rows of every lens in the verdict `table`, read as far as `judgement` goes."""
    known = _known(judgement) | {key for key, value in table.items() if value}
    return _found(
        lambda name, one: one.needed(known) or not known.isdisjoint((name, *one.keys)),
        lambda lens: lens.from_json(table, judgement),
    )


def _found(
    needed: Callable[[str, Named], bool], rows_of: Callable[[Lens[Any]], Any]
) -> dict[str, Any]:
    """Return the rows of each lens that is `needed`, by its name; none of one without rows."""
    rows = {name: rows_of(lens_of(name)) for name, one in LENSES.items() if needed(name, one)}
    return {name: one for name, one in rows.items() if one is not None}


def _known(judgement: Judgement) -> set[str]:
    """Return what can need a lens: set fields of study and arms, other keys, parts of facts.

    Of a fact these are the first two parts of its key: "launch.energy".
    """
    tables: tuple[Study | Arm, ...] = (judgement.study, *judgement.study.arms)
    known = {one.name for table in tables for one in fields(table) if getattr(table, one.name)}
    facts = {".".join(key.split(".")[:2]) for arm in judgement.facts.values() for key in arm}
    return known | facts | judgement.study.asked.keys()


def _parameters(evidence: Evidence) -> dict[str, int]:
    """Return the number of values that each parameter of cases has, in the launch with most.

    One launch of each benchmark and arm, the first that succeeded, stands for all.
    """
    first: dict[tuple[str, str], Entry] = {}
    for benchmark, blocks in evidence.launches.items():
        for arm, several in (pair for arms in blocks.values() for pair in arms.items()):
            if (benchmark, arm) not in first and several and several[0].medians:
                first[benchmark, arm] = several[0]
    points: dict[str, int] = {}
    for one in first.values():
        by_key = grouped(item for _, case in one.medians for item in case.items)
        for key, values in by_key.items():
            points[key] = max(points.get(key, 0), len({*values}))
    return points


def lenses(judgement: Judgement) -> Iterator[tuple[Lens[Any], Any]]:
    """Yield each lens that has rows in `judgement`, with them, in the order of LENSES."""
    for name in LENSES:
        if name in judgement.lenses:
            yield lens_of(name), judgement.lenses[name]


def with_leads(judgement: Judgement) -> Judgement:
    """Return `judgement` with the sentences of its lenses after its own first one."""
    leads = (lens.lead(judgement, rows) for lens, rows in lenses(judgement))
    return replace(judgement, sentence=" ".join(filter(None, (judgement.sentence, *leads))))


def findings(judgement: Judgement) -> Iterator[tuple[str, Sequence[Finding]]]:
    """Yield the name of each lens that has findings, and those that it has in `judgement`."""
    for name, named in LENSES.items():
        if named.findings:
            there = name in judgement.lenses
            yield name, lens_of(name).findings(judgement.lenses[name]) if there else ()


def failing(judgement: Judgement, rules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `rules` that a lens finds broken, with a sentence for each failure."""
    for rule in rules:
        for name, named in LENSES.items():
            if named.takes(rule) and name in judgement.lenses:
                texts = lens_of(name).failing(judgement, judgement.lenses[name], rule)
                yield from ((rule, text) for text in texts)


def unjudged(judgement: Judgement, rules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `rules` that its lens cannot judge in this study, with what it needs."""
    for rule in rules:
        for name, named in LENSES.items():
            rows = judgement.lenses.get(name)
            takes = named.takes(rule)
            if takes and (rows is None or not lens_of(name).judges(judgement, rows, rule)):
                yield rule, takes


def cases_of(judgement: Judgement, benchmark: str) -> Cases | None:
    """Return what a lens shows in place of the cases of a benchmark, None for these as usual."""
    found = (lens.cases(judgement, rows, benchmark) for lens, rows in lenses(judgement))
    return next((one for one in found if one), None)


def with_keys(judgement: Judgement, core: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict `core` with the keys of all lenses, each where Named.before says."""
    found: dict[str, Any] = {}
    for key, value in core.items():
        for name, named in LENSES.items():
            if named.before == key:
                found |= {one: [] for one in named.keys}
                if name in judgement.lenses:
                    found |= lens_of(name).to_json(judgement, judgement.lenses[name])
        found[key] = value
    return found
