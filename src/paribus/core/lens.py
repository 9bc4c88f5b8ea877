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
"""What the name of a module is relative to that begins with a dot."""

Part = Literal["verdicts", "ratios", "rankings", "cases", "endpoints"]
"""The parts of a report that a lens can follow, in their order."""


@dataclass(frozen=True, slots=True)
class Named:
    """The line of a lens: its module, and what needs it.

    That is a key of the study file (`study`) or of its arms (`arm`), which the KEYS of the module
    `study` beside its own, lens.py, read; or one of `needs`: another field of study or arms, the
    first two parts of a fact, a parameter of cases, or a layer of benchmarks. Of launches it needs
    so many `blocks`, and so many `points` of that parameter. `keys` are in every verdict, with an
    empty list where the lens has nothing, and stand, as all its keys, before the key `before` of
    the core. `design` is that of a study file with its keys. With `findings` there are findings of
    its own in the verdict, under its name before the cases, and in the table of these. `rules` are
    its words for `--fail-on`, each with what it takes; "@" stands for all that name sizes.
    """

    module: str
    study: tuple[str, ...] = ()
    arm: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    blocks: int = 0
    points: int = 0
    keys: tuple[str, ...] = ()
    before: str = "tallies"
    design: str = ""
    findings: bool = False
    rules: Mapping[str, str] = field(default_factory=dict)

    def suffice(self, blocks: int, points: Mapping[str, int]) -> bool:
        """Return whether so many blocks, with so many values of each parameter, say anything."""
        most = max((points.get(one, 0) for one in self.needs), default=0)
        return blocks >= self.blocks and most >= self.points

    def needed(self, known: Set[str]) -> bool:
        return not known.isdisjoint((*self.study, *self.arm, *self.needs))

    def takes(self, rule: str) -> str:
        """Return what a rule of `--fail-on` takes, "" for one that is not of this lens."""
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
    """What the keys of a lens ask for, by key; with `each` a benchmark is several selections.

    `values` are of JSON, unless they have a field of the study. `each` yields selections from the
    place of a benchmark and what reads one. `adds` are tables of more benchmarks.
    """

    values: Mapping[str, Any]
    each: Callable[[Place, Callable[[Place], Selection]], Iterable[Selection]] | None = None
    adds: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """How the keys of a lens in a study file are read.

    `arm` returns fields of the arm at a place, `study` what those of the study at a place, whose
    file is in a folder, ask for. `check` refuses what contradicts the whole study. All of them note
    or raise StudyError as Place does.
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
    """A ratio of arm to reference, below 1 where the arm takes less of `what`.

    `word` is the verdict, and `decided` whether it claims something.
    """

    benchmark: str
    arm: str
    what: str
    ratio: float
    low: float
    high: float
    margin: float
    word: str
    decided: bool


class Drawn(NamedTuple):
    """A picture: the name of its file, its title, what draws it, and what it shows."""

    name: str
    title: str
    spec: Spec
    said: str


class Cases(NamedTuple):
    """What stands in place of curves and tables of cases: pictures, side by side, and a note."""

    groups: Sequence[Sequence[Drawn]]
    note: str


def _nothing(judgement: Judgement, rows: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens(Generic[R]):
    """A lens, whose rows are of the type `R`: how it judges, and how its rows are shown.

    `judge` and `from_json` return None where there is nothing to say. `to_json` returns keys of the
    verdict. `text` prints a section after the part `text_after` of the report, `html` returns one
    after `html_after`; `figures` are what it draws there, by name of a file. `ratios` are drawn
    beside those of times. `methods` is a sentence of the methods, `paper` are tables of a paper,
    `csv` is the name of a file and its rows. `cases` is what stands for those of a benchmark.
    `findings` are among those of the verdict. `failing` says what fails by a rule of its own, and
    `judges` whether there is anything that the rule is about. `lead` follows the first sentence of
    all reports, `short` prints what belongs on a report of one screen. `spread` names benchmarks of
    whose launches it says how they scatter: reports draw that.
    """

    judge: Callable[[Seen], R | None]
    to_json: Callable[[Judgement, R], Mapping[str, Any]]
    from_json: Callable[[Mapping[str, Any], Judgement], R | None]
    text: Callable[[Judgement, R, Console], None]
    html: Callable[[Judgement, R, Figures], Html]
    text_after: Part = "verdicts"
    html_after: Part = "verdicts"
    ratios: Callable[[Judgement, R], Iterable[Ratio]] = _nothing
    figures: Callable[[Judgement, R], Iterable[tuple[str, Spec]]] = _nothing
    methods: Callable[[Judgement, R], str] = lambda judgement, rows: ""
    paper: Callable[[Judgement, R], Iterable[PaperTable]] = _nothing
    cases: Callable[[Judgement, R, str], Cases | None] = lambda judgement, rows, benchmark: None
    findings: Callable[[R], Sequence[Finding]] = lambda rows: ()
    failing: Callable[[Judgement, R, str], Iterable[str]] = lambda judgement, rows, rule: ()
    judges: Callable[[Judgement, R, str], bool] = lambda judgement, rows, rule: True
    lead: Callable[[Judgement, R], str] = lambda judgement, rows: ""
    short: Callable[[Judgement, R, Console], None] = lambda judgement, rows, console: None
    spread: Callable[[Judgement, R], Iterable[str]] = _nothing
    csv: tuple[str, Callable[[Judgement, R], Iterable[Sequence[Scalar | None]]]] = ("", _nothing)


def lens_of(name: str) -> Lens[Any]:
    """Return the lens of this name; its module is imported at the first call."""
    found: Lens[Any] = import_module(LENSES[name].module, PACKAGE).LENS
    return found


def names_of(part: Literal["study", "arm"]) -> list[str]:
    """Return the keys of all lenses in a study file, or in its arms."""
    return [key for named in LENSES.values() for key in getattr(named, part)]


def design_at(place: Place) -> str:
    """Return the design of a study file whose plan names none: what a lens takes, else "auto"."""
    taken = (one.design for one in LENSES.values() if place.table.keys() & set(one.study))
    return next(filter(None, taken), "auto")


def keys_of(place: Place, part: Literal["study", "arm"]) -> list[Keys]:
    """Return what reads the keys of lenses that the table at `place`, a study or arm, has."""
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
    rows = {name: rows_of(lens_of(name)) for name, one in LENSES.items() if needed(name, one)}
    return {name: one for name, one in rows.items() if one is not None}


def _known(judgement: Judgement) -> set[str]:
    """Return the fields that study and arms have, other keys, and facts by their first parts."""
    of: tuple[Study | Arm, ...] = (judgement.study, *judgement.study.arms)
    known = {one.name for each in of for one in fields(each) if getattr(each, one.name)}
    facts = {".".join(key.split(".")[:2]) for arm in judgement.facts.values() for key in arm}
    return known | facts | judgement.study.asked.keys()


def _parameters(evidence: Evidence) -> dict[str, int]:
    """Return how many values the parameters of cases have at most in a first good launch.

    That is one of each benchmark and arm.
    """
    first: dict[tuple[str, str], Entry] = {}
    for benchmark, blocks in evidence.launches.items():
        for arm, several in (pair for arms in blocks.values() for pair in arms.items()):
            if (benchmark, arm) not in first and several and several[0].medians:
                first[benchmark, arm] = several[0]
    points: dict[str, int] = {}
    for one in first.values():
        for key, of in grouped(item for _, case in one.medians for item in case.items).items():
            points[key] = max(points.get(key, 0), len({*of}))
    return points


def lenses(judgement: Judgement) -> Iterator[tuple[Lens[Any], Any]]:
    """Yield each lens that has rows in `judgement`, with them, in the order of LENSES."""
    for name in LENSES:
        if name in judgement.lenses:
            yield lens_of(name), judgement.lenses[name]


def with_leads(judgement: Judgement) -> Judgement:
    """Return `judgement` with what its lenses have to say after its first sentence."""
    said = (lens.lead(judgement, rows) for lens, rows in lenses(judgement))
    return replace(judgement, sentence=" ".join(filter(None, (judgement.sentence, *said))))


def findings(judgement: Judgement) -> Iterator[tuple[str, Sequence[Finding]]]:
    """Yield the name of each lens that has findings, and those that it has in `judgement`."""
    for name, named in LENSES.items():
        if named.findings:
            there = name in judgement.lenses
            yield name, lens_of(name).findings(judgement.lenses[name]) if there else ()


def failing(judgement: Judgement, rules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `rules` of a lens that something fails by, with its sentence."""
    for rule in rules:
        for name, named in LENSES.items():
            if named.takes(rule) and name in judgement.lenses:
                texts = lens_of(name).failing(judgement, judgement.lenses[name], rule)
                yield from ((rule, text) for text in texts)


def unjudged(judgement: Judgement, rules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each of `rules` of a lens that has nothing to say, with what it takes."""
    for rule in rules:
        for name, named in LENSES.items():
            rows = judgement.lenses.get(name)
            if (takes := named.takes(rule)) and (
                rows is None or not lens_of(name).judges(judgement, rows, rule)
            ):
                yield rule, takes


def cases_of(judgement: Judgement, benchmark: str) -> Cases | None:
    """Return what a lens shows in place of the cases of a benchmark, None for these as usual."""
    found = (lens.cases(judgement, rows, benchmark) for lens, rows in lenses(judgement))
    return next((one for one in found if one), None)


def with_keys(judgement: Judgement, core: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict `core` with the keys of all lenses, each where its line says."""
    found: dict[str, Any] = {}
    for key, value in core.items():
        for name, named in LENSES.items():
            if named.before == key:
                found |= {one: [] for one in named.keys}
                if name in judgement.lenses:
                    found |= lens_of(name).to_json(judgement, judgement.lenses[name])
        found[key] = value
    return found
