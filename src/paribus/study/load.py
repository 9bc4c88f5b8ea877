"""Study files: TOML in, a checked `Study` out; executed is only the code of benchmark files.

Every refusal names the file, the key, the value and the mend. The format is described in
docs/study-file.md.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from paribus import benchmarks, containers
from paribus.errors import StudyError
from paribus.inputs import MOST_TEXT, read_bounded, read_toml
from paribus.model import Arm, Benchmark, Container, Selection, Settings, Study
from paribus.stats.looks import schedule
from paribus.study import values
from paribus.units import parse_seconds, parse_share

T = TypeVar("T")

MOST_LAUNCHES = 100_000
"""A study beyond this is refused: at one launch a second it would last more than a day."""

LONGEST = 300
"""Characters of a refused key or value that an error shows."""

MONITORED_BLOCKS = 10_000
"""The last block of a study without end: two months of one every ten minutes."""

_STUDY_KEYS = ("question", "factor", "explains", "arms", "benchmarks", "plan")
_ARM_KEYS = ("mpi", "transport", "container", "env", "before", "after")
_LATER_KEYS = ("hosts", "ssh", "scheduler", "simulate")
_CONTAINER_KEYS = ("engine", "network", "each", "image")
_BENCHMARK_KEYS = ("name", "file", "label", "ranks", "timeout", "endpoints")
_PLAN_KEYS = (
    *("margin", "confidence", "blocks", "budget", "seed", "bind"),
    *("unit", "launches", "layout", "decides", "monitor", "every"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}")

_SECRET = re.compile(
    r"passw|passphrase|secret|credential|api_?key|(^|_)(pass|pwd|auth|jwt|token|key|cred|cookie)s?(_|$)",
    re.IGNORECASE,
)
"""Names in `env` that are refused: by whole words, for TOKENIZERS_PARALLELISM is no secret."""


class Place:
    """A place in a study file: it refuses, reads keys, and knows its own name."""

    def __init__(self, file: str, path: str, table: Any) -> None:
        self.file = file
        self.path = path
        if not isinstance(table, dict):
            self.refuse("", table, "is not a table", "write it as a table: [..] or { .. }")
        self.table: dict[str, Any] = table

    def refuse(self, key: str, value: Any, cause: str, mend: str) -> NoReturn:
        where = _cut(".".join(part for part in (self.path, key) if part))
        shown = "" if value is None else f" = {_cut(repr(value))}"
        raise StudyError(f"{where}{shown}: {cause}", place=self.file, mend=mend)

    def only(self, known: Iterable[str]) -> None:
        """Refuse the first key that is not known, with the nearest one that is."""
        names = list(known)
        for key in self.table:
            if key not in names:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
                self.refuse(key, None, "unknown key", hint)

    def read(self, key: str, reader: Callable[[Any], T], default: T) -> T:
        return self.need(key, reader, "") if key in self.table else default

    def need(self, key: str, reader: Callable[[Any], T], example: str) -> T:
        if key not in self.table:
            self.refuse(key, None, "is missing", f"add a line such as: {example}")
        try:
            return reader(self.table[key])
        except ValueError as error:
            # Of a table not the whole: there may be a password in it.
            value = None if isinstance(self.table[key], dict) else self.table[key]
            self.refuse(key, value, "cannot be used", _cut(str(error)))


def load_study(path: Path, tell: Callable[[str], None] | None = None) -> Study:
    """Return the study that the TOML file `path` describes.

    A benchmark `file` is Python, and executed to know its parameters; `tell` hears of it before.
    Raises StudyError for a file that cannot be read, an unknown key, or a value out of range.
    """
    file = str(path)
    try:
        table = read_toml(path, "a study file")
    except OSError as error:
        raise StudyError(
            f"cannot be read: {error.strerror}",
            place=file,
            mend="give the path of a study file; `paribus list --studies` names those that ship",
        ) from error
    except ValueError as error:
        raise StudyError(str(error), place=file, mend="mend that line") from error
    top = Place(file, "", table)
    top.only(_STUDY_KEYS)
    study = Study(
        question=top.need("question", values.text, 'question = "What does X cost?"'),
        factor=top.need("factor", values.text, 'factor = "network"'),
        arms=_arms(top),
        benchmarks=_selections(top, path.parent, tell),
        settings=_settings(top),
        explains=top.read("explains", values.texts, ()),
        path=file,
    )
    _check_whole(top, study)
    return monitored(study) if study.settings.monitor else study


def monitored(study: Study, every_s: float | None = None) -> Study:
    """Return `study` as one without end, a round every `every_s` seconds (default: the study's).

    Raises StudyError where only a study with an end makes sense.
    """
    settings = study.settings
    if settings.unit == "session" or settings.decides == "cases":
        raise StudyError(
            "a monitored study is one of launches, judged by its headlines",
            place=study.path,
            mend='drop unit = "session" and decides = "cases", or do not monitor',
        )
    every = settings.every_s if every_s is None else every_s
    settings = replace(settings, monitor=True, every_s=every, blocks=MONITORED_BLOCKS)
    return replace(study, settings=settings)


def benchmark_of(selection: Selection) -> Benchmark:
    """Return the benchmark that `selection` names; raises UserError if its file has changed."""
    if selection.file is None:
        return benchmarks.get(selection.benchmark)
    if _sha256(Path(selection.file)) != selection.file_sha256:
        raise StudyError(
            "has changed since the plan was frozen",
            place=selection.file,
            mend="put the old file back, or start anew in another directory",
        )
    return benchmarks.load_file(Path(selection.file))


def _arms(top: Place) -> tuple[Arm, ...]:
    tables = top.need("arms", values.table, "[arms.host]")
    if len(tables) < 2:
        top.refuse("arms", None, f"{len(tables)} arm", "name two or more: [arms.a] and [arms.b]")
    return tuple(_arm(top, name, table) for name, table in tables.items())


def _arm(top: Place, name: str, table: Any) -> Arm:
    place = Place(top.file, f"arms.{name}", table)
    if not _NAME.fullmatch(name):
        place.refuse("", None, "is not a usable name", "use letters, digits, '-', '_' and '.'")
    for key in _LATER_KEYS:
        if key in place.table:
            place.refuse(key, None, "is not in this version yet", "leave it out")
    place.only(_ARM_KEYS)
    env: Mapping[str, str] = place.read("env", values.environment, {})
    _refuse_secrets(place, env)
    return Arm(
        name=name,
        mpi=place.read("mpi", values.text, None),
        transport=place.read("transport", values.one_of("auto", "shm", "tcp"), "auto"),
        container=_container(place) if "container" in place.table else None,
        env=env,
        before=place.read("before", values.commands, ()),
        after=place.read("after", values.commands, ()),
    )


def _refuse_secrets(place: Place, env: Mapping[str, str]) -> None:
    """Refuse variables that look like secrets: the plan holds the study, with their values."""
    for name in env:
        if _SECRET.search(name) and name != "PWD":
            place.refuse(
                f"env.{name}",
                None,
                "looks like a secret, and what stands here is stored in plan.json",
                f"take it out, and export {name} before `paribus run`: launches inherit it, and"
                " of what they inherit no secret is stored",
            )


def _container(arm: Place) -> Container:
    place = Place(arm.file, f"{arm.path}.container", arm.table["container"])
    place.only(_CONTAINER_KEYS)
    return Container(
        engine=place.need("engine", values.one_of("namespace", "podman"), 'engine = "namespace"'),
        network=place.read("network", values.one_of("bridge", "host"), "bridge"),
        each=place.read("each", values.one_of("rank", "host"), "host"),
        image=place.read("image", values.text, None),
    )


def _selections(
    top: Place, folder: Path, tell: Callable[[str], None] | None
) -> tuple[Selection, ...]:
    tables = top.need("benchmarks", values.items, '[[benchmarks]]\n  name = "latency"')
    if not tables:
        top.refuse("benchmarks", None, "is empty", "name at least one benchmark")
    found: list[Selection] = []
    for index, table in enumerate(tables):
        selection = _selection(Place(top.file, f"benchmarks[{index}]", table), folder, tell)
        if any(selection.label == other.label for other in found):
            top.refuse(
                f"benchmarks[{index}]",
                None,
                f"there are two called {selection.label!r}",
                'give one of them another: label = "..."',
            )
        found.append(selection)
    return tuple(found)


def _selection(place: Place, folder: Path, tell: Callable[[str], None] | None) -> Selection:
    file: Path | None = None
    if "file" in place.table:
        file = (folder / place.read("file", values.text, "")).absolute()
        benchmark = benchmarks.load_file(file, tell)
    else:
        name = place.need("name", values.text, 'name = "latency"')
        if name not in benchmarks.BENCHMARKS:
            close = difflib.get_close_matches(name, benchmarks.BENCHMARKS, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            place.refuse("name", name, "no such benchmark", f"{hint}`paribus list` names them all")
        benchmark = benchmarks.get(name)
    place.only((*_BENCHMARK_KEYS, *benchmark.parameters))
    for key, parameter in benchmark.parameters.items():
        if parameter.required and key not in place.table:
            place.refuse(key, None, "is missing", f"{benchmark.name} needs it: {parameter.help}")
    parameters = {
        key: place.read(key, parameter.read, parameter.default)
        for key, parameter in benchmark.parameters.items()
    }
    label = place.read("label", values.text, benchmark.name)
    if not _NAME.fullmatch(label):
        place.refuse("label", label, "is not a usable name", "use letters, digits, '-', '_', '.'")
    return Selection(
        label=label,
        benchmark=benchmark.name,
        ranks=place.read("ranks", values.whole(1, 1_000_000), benchmark.ranks),
        parameters=parameters,
        timeout_s=place.read("timeout", parse_seconds, None),
        file=str(file) if file else None,
        file_sha256=_sha256(file) if file else None,
        endpoints=place.read("endpoints", values.endpoints, values.ENDPOINTS),
    )


def _settings(top: Place) -> Settings:
    place = Place(top.file, "plan", top.table.get("plan", {}))
    place.only(_PLAN_KEYS)
    return Settings(
        margin=place.read("margin", parse_share, None),
        confidence=place.read("confidence", values.confidence, 0.95),
        blocks=place.read("blocks", values.whole(8, 100_000_000), 60),
        budget_s=place.read("budget", parse_seconds, None),
        seed=place.read("seed", values.whole(0, 2**63 - 1), None),
        bind=place.read("bind", values.one_of("core", "none"), "core"),
        unit=place.read("unit", values.one_of("launch", "session"), "launch"),
        launches=place.read("launches", values.whole(1, 1000), 5),
        layout=place.read("layout", values.one_of("pairs", "duet"), "pairs"),
        decides=place.read("decides", values.one_of("headline", "cases"), "headline"),
        monitor=place.read("monitor", values.one_of(True, False), False),
        every_s=place.read("every", parse_seconds, 0.0),
    )


def _check_whole(top: Place, study: Study) -> None:
    settings = study.settings
    _check_layout(top, study)
    each = settings.launches + 1 if settings.unit == "session" else 1
    launches = settings.blocks * each * len(study.arms) * len(study.benchmarks)
    if launches > MOST_LAUNCHES and not settings.monitor:
        top.refuse(
            "plan.blocks",
            settings.blocks,
            f"this study would need up to {launches:,} launches",
            f"lower blocks (60 is usual), arms or benchmarks to stay under {MOST_LAUNCHES:,}",
        )
    for arm in study.arms:
        for selection in study.benchmarks:
            reason = arm.container and containers.refusal(arm.container, selection.ranks)
            if reason:
                cause, _, mend = reason.partition(": ")
                top.refuse(f"arms.{arm.name}.container", None, cause, mend)
    try:
        schedule(settings.blocks, settings.confidence, comparisons=len(study.arms) - 1)
    except ValueError as error:
        top.refuse("plan.blocks", settings.blocks, str(error), "60 blocks are usual")


def _check_layout(top: Place, study: Study) -> None:
    """Refuse settings of the plan that contradict each other."""
    settings = study.settings
    if settings.layout == "duet" and settings.unit == "session":
        top.refuse("plan.layout", "duet", "sessions cannot be duets", "drop one of the two")
    if settings.layout == "duet" and settings.bind == "none":
        top.refuse("plan.bind", "none", "the arms of a duet need cores of their own", 'drop "bind"')
    if settings.every_s and not settings.monitor:
        top.refuse("plan.every", None, "is for monitor = true", "add it, or drop `every`")
    if "launches" in top.table.get("plan", {}) and settings.unit != "session":
        top.refuse("plan.launches", None, "counts launches per session", 'add unit = "session"')


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [cut]"


def _sha256(path: Path) -> str:
    """Return the hash of a benchmark's file; raises StudyError if it cannot be read."""
    try:
        return hashlib.sha256(read_bounded(path, MOST_TEXT, "a benchmark file")).hexdigest()
    except OSError as error:
        raise StudyError(
            f"cannot be read: {error.strerror}", place=str(path), mend="put the file back"
        ) from error
