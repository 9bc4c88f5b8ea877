"""Study files: TOML in, a checked `Study` out; the format is described in docs/study-file.md.

Every refusal names the file, the key, the value and the fix, and one reading reports all of them.
Nothing in a study file is executed, except the benchmark files (Python) that it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from paribus.benchmarks import benchmark_of
from paribus.benchmarks.parameters import argv, located
from paribus.border import Place, exists, fields, read_toml
from paribus.core import (
    BUILD,
    MOST_BUILDS,
    SEED,
    Arm,
    Benchmark,
    Container,
    Hosts,
    Parameter,
    Request,
    Selection,
    Settings,
    Study,
    StudyError,
    UserError,
    arm_at,
    design_at,
    hosts_for,
    keys_of,
    names_of,
    nodes_of_ranks,
    parse_seconds,
    parse_share,
    typed,
)
from paribus.designs import DESIGNS, design_of, least_blocks
from paribus.stats.looks import LONGER
from paribus.stats.summary import LEAST_SAMPLES
from paribus.studyfile import switches

_CONTAINER_KEYS = ("engine", "network", "each", "image", "bind_mpi", "devices", "gpu", "options")
ENGINES = ("namespace", "podman", "docker", "apptainer", "singularity", "charliecloud")


def container_of(arm: Place, folder: Path, hosts: Hosts | None) -> Container | None:
    """Return the container of the arm at `arm`, None if it has none.

    Paths are relative to `folder`; `hosts` are those of the arm. Notes or raises as Place does.
    """
    if "container" not in arm.table:
        return None
    from paribus import containers

    if hosts and hosts.launcher:
        fix = "remove `launcher`: the MPI's own starts ranks in containers"
        arm.refuse("container", None, "srun is not used with containers", fix)
    table = arm.table["container"]
    if isinstance(table, str):
        engine = table if table in ENGINES else (get_close_matches(table, ENGINES) or ["podman"])[0]
        fix = f'write it as a table: container = {{ engine = "{engine}" }}; the engines are'
        arm.refuse("container", table, "is not a table", f"{fix} {', '.join(ENGINES)}")
    place = arm.within(f"{arm.path}.container", table)
    place.only(_CONTAINER_KEYS)
    engine = place.need("engine", fields.one_of(*ENGINES), 'engine = "namespace"')
    default: Literal["rank", "host"] = "host" if engine in containers.ENGINES else "rank"
    each = place.read("each", fields.one_of("rank", "host"), default)
    networks = fields.one_of("bridge", "host", "none")
    image = place.read("image", fields.text, None)
    if image and engine not in ("docker", "podman", "namespace"):
        image = _path(place, folder, engine, image)
    elif image and "://" in image and engine != "namespace":
        get = f"`{typed((engine, 'pull', image))}`, then give the name that `{engine} images` shows"
        place.refuse("image", image, "is not a name of the local store", get)
    if image is None and "bind_mpi" in place.table:
        place.refuse("bind_mpi", None, "without an image there is one MPI", "remove it")
    found = Container(
        engine=engine,
        network=place.read("network", networks, "bridge" if each == "host" else "host"),
        each=each,
        image=image,
        bind_mpi=place.read("bind_mpi", fields.one_of(True, False), True),
        devices=place.read("devices", fields.texts, ()),
        gpu=place.read("gpu", fields.one_of("nvidia", "amd"), ""),
        options=place.read("options", fields.texts, ()),
    )
    if hosts and not hosts.pocket and each == "host" and found.network == "bridge":
        fix = 'use network = "host", or hosts = "pocket:2"'
        arm.refuse("container", None, "only pocket hosts are joined by bridges of containers", fix)
    return found


def _path(place: Place, folder: Path, engine: str, image: str) -> str:
    """Return the path of an image that is a file or a directory; a URL is refused."""
    if "://" in image:
        get = typed((engine, "pull", "image.sif", image))
        if engine == "charliecloud":
            get = typed(("ch-image", "pull", image.partition("://")[2]))
        place.refuse("image", image, "would be fetched by every rank", f"fetch it once: `{get}`")
    return located(folder, image if "/" in image else f"./{image}")


_PLAN_KEYS = (
    *("margin", "confidence", "blocks", "builds", "budget", "seed", "bind"),
    *("unit", "launches", "layout", "decides", "monitor", "every", "same_nodes"),
    *("allocations", "design"),
)


def settings_of(top: Place) -> Settings:
    """Return the table [plan] of a study file; notes or raises StudyError as Place does."""
    place = top.within("plan", top.table.get("plan", {}))
    place.only(_PLAN_KEYS)
    designs = ("standard", *(str(value) for key, value in DESIGNS if key == "design"))
    design = place.read("design", fields.one_of(*designs), design_at(top))
    builds = place.read("builds", fields.whole(2, MOST_BUILDS), 0)
    for key in ("blocks", "unit") if builds else ():
        if key in place.table:
            fix = f"remove `{key}`: each block has a build of its own, and the build counts once"
            place.refuse(key, place.table[key], "is what `builds` says", fix)
    allocations = place.read("allocations", fields.whole(2, LONGER[-1]), 0)
    if allocations and design not in ("auto", "allocations"):
        fix = "remove one of the two"
        place.refuse("allocations", allocations, f"is a design of its own, and not {design}", fix)
    design = "allocations" if allocations else design
    units = fields.one_of("launch", "session")
    return Settings(
        margin=place.read("margin", parse_share, None),
        confidence=place.read("confidence", fields.confidence, 0.95),
        blocks=builds or place.read("blocks", fields.whole(least_blocks(design), LONGER[-1]), 60),
        budget_s=place.read("budget", parse_seconds, None),
        seed=place.read("seed", fields.whole(0, 2**63 - 1), None),
        bind=place.read("bind", fields.one_of("core", "none"), "core"),
        unit="build" if builds else place.read("unit", units, "launch"),
        launches=place.read("launches", fields.whole(1, 1000), 5),
        layout=place.read("layout", fields.one_of("pairs", "duet"), "pairs"),
        decides=place.read("decides", fields.one_of("headline", "cases", "sizes"), "headline"),
        monitor=place.read("monitor", fields.one_of(True, False), False),
        every_s=place.read("every", parse_seconds, 0.0),
        same_nodes=place.read("same_nodes", fields.one_of(True, False), False),
        allocations=allocations,
        design=design,
    )


def check_design(top: Place, study: Study) -> None:
    """Refuse settings of the plan that contradict each other, or the arms."""
    settings = study.settings
    design = design_of(study)
    if settings.every_s and design.has_end:
        top.refuse("plan.every", None, "is for monitor = true", "add it, or drop `every`")
    if "blocks" in top.table.get("plan", {}) and not design.has_end:
        fix = "remove `blocks`, or monitor; a `budget` ends a monitored study"
        top.refuse("plan.blocks", None, "a monitored study has no last block", fix)
    if "launches" in top.table.get("plan", {}) and not design.session:
        top.refuse("plan.launches", None, "counts launches per session", 'add unit = "session"')
    if refused := design.refusal():
        key, value, cause, fix = refused
        top.refuse(f"plan.{key}", value, cause, fix)
    switches.check_topologies(top, study)


_STARTED_KEYS = ("argv", "wrap", "wrap_around", "build", "source")


def started_by(place: Place, folder: Path) -> dict[str, Any]:
    """Return the fields of an Arm that say what its launches start: its program, wrapper, build.

    Paths are relative to `folder`.
    """
    none: list[str] = []
    wrap = list(place.read("wrap", argv, none))
    if "wrap_around" in place.table and not wrap:
        fix = 'add the wrapper: wrap = ["numactl", "--interleave=all"]'
        place.refuse("wrap_around", None, "there is no wrapper", fix)
    around = place.read("wrap_around", fields.one_of("rank", "launcher"), "rank")
    if wrap and "/" in wrap[0] and not wrap[0].startswith(BUILD):
        wrap[0] = located(folder, wrap[0])
    return {
        "argv": tuple(place.read("argv", argv, none)),
        "wrap": tuple(wrap),
        "wrap_around": around,
        **_build(place, folder),
    }


def _build(place: Place, folder: Path) -> dict[str, Any]:
    """Return the fields `build` and `source` of an Arm, none where it builds nothing."""
    build: tuple[tuple[str, ...], ...] = place.read("build", fields.commands, ())
    source = place.read("source", fields.text, "")
    if not build:
        if source:
            fix = 'add the command that builds it: build = "make CC=clang"'
            place.refuse("source", source, "nothing is built of it", fix)
        return {}
    path = (folder.resolve() / source).absolute()
    if not exists(path):
        fix = "give a file or directory, relative to the study file"
        place.refuse("source", source, "there is no such file or directory", fix)
    return {"build": build, "source": str(path)}


def check_builds(top: Place, study: Study) -> None:
    """Refuse an arm that needs a build which it does not have, and a build that nothing starts."""
    shared = [one.label for one in study.benchmarks if BUILD in str(one.parameters)]
    for arm in study.arms:
        own = BUILD in str((arm.argv, arm.wrap, dict(arm.env)))
        if (own or shared) and not arm.build:
            what = "the arm" if own else shared[0]
            fix = 'add its build: build = "make CC=clang"'
            top.refuse(f"arms.{arm.name}", None, f"{what} uses {BUILD}, and nothing is built", fix)
        if arm.build and not (own or shared):
            fix = f'start what it makes: argv = ["{BUILD}/solver"], or path = "{BUILD}/bin"'
            top.refuse(f"arms.{arm.name}.build", None, "nothing starts what it builds", fix)
    check_layouts(top, study, shared)


def check_layouts(top: Place, study: Study, shared: Sequence[str]) -> None:
    """Refuse builds of one block each that would all be alike, and {seed} in the only build.

    `shared` are the benchmarks whose parameters name the build.
    """
    several = design_of(study).builds
    for arm in study.arms:
        place, numbered = f"arms.{arm.name}.build", SEED in str(arm.build)
        if numbered and not several:
            fix = "add builds = 12 to [plan], or write a number in its place"
            top.refuse(place, None, f"{SEED} is for blocks with builds of their own", fix)
        if several and not numbered:
            fix = f'give it to what orders objects or adds padding: build = "make SEED={SEED}"'
            top.refuse(place, None, f"without {SEED} all its builds would have one layout", fix)
        if not several or BUILD in str((arm.wrap, dict(arm.env))):
            continue
        for one in study.benchmarks:
            own = BUILD in str(arm.argv) and "argv" in one.parameters
            if one.label not in shared and not own:
                fix = "compare it in a study of its own, without `builds`"
                cause = f"{arm.name} does not build its program, so its layout would never change"
                top.refuse(one.label, None, cause, fix)


def locate(place: Place, folder: Path, benchmark: Benchmark, tool: str | None) -> None:
    """Make the keys `path` and `directory` of the benchmark at `place` absolute, in its table.

    Both are relative to `folder`. `tool` stands for a missing `path`: that of the suite in [tools].
    """
    path = place.table.get("path", tool)
    if benchmark.parameters.get("path") and path is not None:
        place.table["path"] = located(folder, path) if isinstance(path, str) else path
    own_default = "." if benchmark.name == "command" else None  # others have the launch's directory
    directory = place.table.get("directory", own_default)
    if benchmark.parameters.get("directory") and isinstance(directory, str) and directory.strip():
        own = directory if "{" in directory else str(folder.resolve() / directory)
        place.table["directory"] = own


def check_argv(top: Place, arms: Sequence[Arm], selections: Sequence[Selection]) -> None:
    """Refuse a benchmark without a program to start, and `argv` or threads that nothing uses."""
    own = all("OMP_NUM_THREADS" in arm.env for arm in arms)
    for one in (one for one in selections if own and not one.file and "threads" in one.parameters):
        if one.parameters["threads"] != benchmark_of(one).parameters["threads"].default:
            cause = f"OMP_NUM_THREADS of each arm takes the place of threads of {one.label}"
            top.refuse("benchmarks", None, cause, "remove one of the two")
    takes = [one for one in selections if "argv" in one.parameters]
    fix = 'add argv = ["./solver", "-n", "4"]'
    for one in takes:
        lacking = [arm.name for arm in arms if not arm.argv and not one.parameters["argv"]]
        if lacking:
            cause = f"{one.label} has no program to start in {', '.join(lacking)}"
            top.refuse("benchmarks", None, cause, f"{fix} to it, or to every arm")
        if one.parameters["argv"] and all(arm.argv for arm in arms):
            cause = f"{one.label} has an argv, and every arm has one in its place"
            top.refuse("benchmarks", None, cause, "remove that of the benchmark")
    for arm in arms:
        if arm.argv and not takes:
            fix = 'add a benchmark with name = "command", or remove argv'
            top.refuse(f"arms.{arm.name}.argv", None, "no benchmark starts it", fix)


T = TypeVar("T")

MOST_LAUNCHES = 100_000
"""A study beyond this is refused: at one launch a second it would last more than a day."""

_STUDY_KEYS = (
    *("question", "factor", "explains"),
    *("arms", "tools", "benchmarks", "plan"),
)
_HOSTS_KEYS = (
    *("hosts", "scheduler", "launcher", "ssh", "link", "network", "order", "adapter"),
    "hypervisors",
)
_ARM_KEYS = (
    *("mpi", "transport", "container", "ranks_per_host", "env"),
    *_HOSTS_KEYS,
    *switches.KEYS,
    *_STARTED_KEYS,
)
_NO_KEYS = {
    "simulate": ("is not supported yet", "remove it"),
    "modules": ("is no key of an arm", "say in `mpi` and `env` what the modules set"),
}
"""Keys that an arm could be thought to have: what is wrong with each, and what to write instead."""

_BENCHMARK_KEYS = ("name", "file", "label", "ranks", "timeout", "endpoints")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}")

_SECRET = re.compile(
    r"passw|passphrase|secret|credential|api_?key|(^|_)(pass|pwd|auth|jwt|token|key|cred|cookie)s?(_|$)",
    re.IGNORECASE,
)
"""Names in `env` that are refused: by whole words, for TOKENIZERS_PARALLELISM is no secret."""

_WHICH = "give the path of a study file; `paribus list` shows those that ship"


def load_study(
    path: Path,
    notify: Callable[[str], None] | None = None,
    hosts: Mapping[str, str] | None = None,
) -> Study:
    """Return the study that the TOML file `path` describes.

    `hosts` (by name of an arm) replace those of the file. A benchmark `file` is Python, and is
    executed to know its parameters; `notify` gets a message before that. Raises StudyError for a
    file that cannot be read, an unknown key, or a value out of range.
    """
    file = str(path)
    try:
        table = read_toml(path, "a study file")
    except OSError as error:
        fix = _WHICH
        if (path / "plan.json").exists():
            show, again = ("report", path), ("run", "STUDY", "--out", path, "--resume")
            fix = (
                f"this is a study directory: `{typed(('paribus', *show))}` shows it, and"
                f" `{typed(('paribus', *again))}` continues it"
            )
        raise StudyError(f"cannot be read: {error.strerror}", place=file, fix=fix) from error
    except ValueError as error:
        raise StudyError(str(error), place=file, fix=f"correct it, or {_WHICH}") from error
    top = Place(file, "", table, [])
    top.only((*_STUDY_KEYS, *names_of("study")))
    question = factor = ""
    arms: tuple[Arm, ...] = ()
    selections: tuple[Selection, ...] = ()
    explains: tuple[str, ...] = ()
    with top.noting():
        question = top.need("question", fields.text, 'question = "What does X cost?"')
    with top.noting():
        factor = top.need("factor", fields.text, 'factor = "network"')
    with top.noting():
        arms = _arms(top, path.parent, hosts or {})
        if any(arm.hosts and arm.hosts.scheduler for arm in arms):
            from paribus.studyfile.hosts import check_one_scheduler

            check_one_scheduler(top, arms)
    of_lenses: Mapping[str, Any] = {}
    with top.noting():
        selections, of_lenses = selections_of(top, path.parent, notify)
    settings = Settings()
    with top.noting():
        settings = settings_of(top)
    explains = top.read("explains", fields.texts, explains)
    study = Study(
        question, factor, arms, selections, settings, explains, file, hosts=hosts or {}, **of_lenses
    )
    top.finish()
    _check_whole(top, study)
    top.finish()
    return design_of(study).settled(study)


def _arms(top: Place, folder: Path, hosts: Mapping[str, str]) -> tuple[Arm, ...]:
    """Return the arms of a study file; those named by `hosts` get these hosts."""
    tables = top.need("arms", fields.table, "[arms.host]")
    if len(tables) < 2:
        top.refuse("arms", None, f"{len(tables)} arm", "name two or more: [arms.a] and [arms.b]")
    for name in hosts:
        if name not in tables:
            close = get_close_matches(name, tables, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"arms: {', '.join(tables)}"
            top.refuse("arms", None, f"--hosts names an arm {name!r} that is not there", hint)
    arms = []
    for name, table in tables.items():
        if name in hosts and isinstance(table, dict):
            table["hosts"] = hosts[name]
        if top.full:
            break
        with top.noting():
            arms.append(_arm(top, name, table, folder))
    return tuple(arms)


def _arm(top: Place, name: str, table: Any, folder: Path) -> Arm:
    place = top.within(f"arms.{name}", table)
    if not _NAME.fullmatch(name):
        place.refuse("", None, "is not a usable name", "use letters, digits, '-', '_' and '.'")
    for key in place.table.keys() & _NO_KEYS:
        place.refuse(key, None, *_NO_KEYS[key])
    place.only((*_ARM_KEYS, *names_of("arm")))
    env: Mapping[str, str] = place.read("env", fields.environment, {})
    _refuse_variables(place, env)
    adapter, hosts = None, None
    if place.table.keys() & set(_HOSTS_KEYS):
        from paribus.studyfile.hosts import adapter_of, hosts_of

        with place.noting():
            adapter = adapter_of(place)
        hosts = hosts_of(place, folder)
    container = container_of(place, folder, hosts)
    has_hosts = hosts is not None or (container is not None and container.each == "host")
    if "ranks_per_host" in place.table and not has_hosts:
        place.refuse(
            "ranks_per_host",
            None,
            "this arm has one host, which takes all ranks",
            "leave it out, or give the arm hosts, or containers that stand for hosts",
        )
    of_lenses = {k: v for keys in keys_of(place, "arm") for k, v in keys.arm(place).items()}
    return Arm(
        name=name,
        mpi=place.read("mpi", fields.text, None),
        transport=place.read("transport", fields.one_of("auto", "shm", "tcp"), "auto"),
        container=container,
        hosts=hosts,
        adapter=adapter,
        ranks_per_host=place.read("ranks_per_host", fields.whole(1, 1_000_000), 0),
        env=env,
        **switches.switched_by(place, hosts, folder),
        **started_by(place, folder),
        **of_lenses,
    )


def _refuse_variables(place: Place, env: Mapping[str, str]) -> None:
    """Refuse variables that each launch has, and what looks like a secret: the plan is no place."""
    for name in env:
        if name in ("TMPDIR", "PARIBUS_SEED", "PARIBUS_RANK"):
            fix = f'set it in a wrapper: wrap = ["env", "{name}=..."]'
            place.refuse(f"env.{name}", None, "Paribus gives each launch its own", fix)
        if _SECRET.search(name) and name != "PWD":
            place.refuse(
                f"env.{name}",
                None,
                "looks like a secret, and Paribus would store it in plan.json",
                f"take it out, and export {name} before `paribus run`: launches inherit it, and"
                " of what they inherit no secret is stored",
            )


def selections_of(
    top: Place, folder: Path, notify: Callable[[str], None] | None
) -> tuple[tuple[Selection, ...], Mapping[str, Any]]:
    """Return the benchmarks of a study file, and the fields of Study that keys of lenses give."""
    read = partial(_selection, folder=folder, tools=_tools(top), notify=notify)
    of_lenses = [keys.study(top, folder) for keys in keys_of(top, "study")]
    adds = [table for one in of_lenses for table in one.adds]
    if adds:  # such as replays of a profile
        tables: list[Any] = top.read("benchmarks", fields.items, [])
    else:
        tables = top.need("benchmarks", fields.items, '[[benchmarks]]\n  name = "latency"')
    if not (tables or adds):
        top.refuse("benchmarks", None, "is empty", "name at least one benchmark")
    each = next((one.each for one in of_lenses if one.each), lambda place, read: (read(place),))
    found: list[Selection] = []
    for index, table in enumerate((*tables, *adds)):
        if top.full:
            break
        with top.noting():
            found += each(top.within(f"benchmarks[{index}]", table), read)
    labels = [one.label for one in found]
    if twice := next((one for one in labels if labels.count(one) > 1), None):
        fix = 'give one of them another name: label = "..."'
        top.refuse("benchmarks", None, f"two benchmarks are called {twice!r}", fix)
    values = {key: value for one in of_lenses for key, value in one.values.items()}
    fields_of_study = values.keys() & Study.__dataclass_fields__.keys()
    others = {key: value for key, value in values.items() if key not in fields_of_study}
    return tuple(found), {**{key: values[key] for key in fields_of_study}, "asked": others}


def _tools(top: Place) -> Mapping[str, str]:
    """Return the paths of the suites that the table [tools] names, by suite."""
    from paribus import benchmarks

    place = top.within("tools", top.table.get("tools", {}))
    place.only(benchmarks.SUITES)
    known = (key for key in place.table if key in benchmarks.SUITES)
    return {key: place.read(key, fields.text, "") for key in known}


def _selection(
    place: Place, folder: Path, tools: Mapping[str, str], notify: Callable[[str], None] | None
) -> Selection:
    from paribus import benchmarks

    file: Path | None = None
    digest: str | None = None
    if "file" in place.table:
        if "name" in place.table:
            place.refuse(
                "name",
                None,
                "`file` already says which benchmark this is",
                'remove one of them; `label = "..."` names the benchmark in the report',
            )
        from paribus.benchmarks.files import file_digest, load_file

        file = (folder / place.read("file", fields.text, "")).absolute()
        benchmark, digest = load_file(file, notify), file_digest(file)
        if taken := sorted(benchmark.parameters.keys() & set(_BENCHMARK_KEYS)):
            place.refuse(
                "file",
                str(file),
                f"its parameter {taken[0]!r} has the name of a key that every benchmark has",
                "rename that parameter",
            )
    else:
        name = place.need("name", fields.text, 'name = "latency"')
        if name not in benchmarks.BENCHMARKS:
            close = get_close_matches(name, benchmarks.BENCHMARKS, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            place.refuse("name", name, "no such benchmark", f"{hint}`paribus list` shows all")
        benchmark = benchmarks.get(name)
        locate(place, folder, benchmark, tools.get(benchmarks.suite_of(name)))
    problems = len(place.problems or ())
    place.only((*_BENCHMARK_KEYS, *benchmark.parameters))
    parameters = _parameters(place, benchmark)
    label = place.read("label", fields.text, benchmark.name)
    if not _NAME.fullmatch(label):
        place.refuse("label", label, "is not a usable name", "use letters, digits, '-', '_', '.'")
    ranks = place.read("ranks", fields.whole(1, 1_000_000), benchmark.ranks)
    endpoints = place.read("endpoints", fields.endpoints, fields.ENDPOINTS)
    samples = 1 if benchmark.name == "command" else parameters.get("samples")
    if file is None and samples and samples < (least := LEAST_SAMPLES[endpoints[0]]):
        cause = f"the first takes {least} samples of a launch, and there are {samples}"
        place.refuse("endpoints", None, cause, 'let the first be "median" or "min"')
    if file is None and len(place.problems or ()) == problems:
        _check_command(place, benchmark, Request(parameters, ranks))
    return Selection(
        label=label,
        benchmark=benchmark.name,
        ranks=ranks,
        parameters=parameters,
        timeout_s=place.read("timeout", parse_seconds, None),
        file=str(file) if file else None,
        file_sha256=digest,
        endpoints=endpoints,
    )


def _parameters(place: Place, benchmark: Benchmark) -> dict[str, Any]:
    """Return the values of all parameters; notes or raises StudyError for what is missing."""
    for key, parameter in benchmark.parameters.items():
        if parameter.required and key not in place.table:
            with place.noting():
                needs = f"{benchmark.name} needs it: {parameter.help}"
                place.refuse(key, None, "is missing", needs)
    found = {key: _parameter(place, key, one) for key, one in benchmark.parameters.items()}
    for key, one in benchmark.parameters.items():
        if key not in place.table and found.get(one.unless) is not None:
            found[key] = None
        if key in place.table and one.needs and found[one.needs[0]] != one.needs[1]:
            with place.noting():
                cause = f"changes nothing beside {one.needs[0]} = {found[one.needs[0]]!r}"
                place.refuse(key, None, cause, "remove one of the two")
    return found


def _parameter(place: Place, key: str, parameter: Parameter) -> Any:
    """Return the value of a parameter; "?", by which a study asks for one, is refused."""
    if place.table.get(key) != "?":
        return place.read(key, parameter.read, parameter.default)
    with place.noting():
        fix = f"name it: {parameter.help}; `paribus new NAME` writes a copy of the study to edit"
        cause = f"this study has none of its own for {place.table.get('name')}"
        place.refuse(key, None, cause, fix)
    return parameter.default


def _check_command(place: Place, benchmark: Benchmark, request: Request) -> None:
    """Refuse what no command line can be made of, such as one rank of a benchmark for two."""
    try:
        program = benchmark.command(request)
    except UserError as error:
        where = f"{place.file}: {place.path}: {error.place}"
        raise StudyError(error.cause, place=where, fix=error.fix) from error
    if not program.mpi and request.ranks not in (benchmark.ranks, 1 + bool(program.server)):
        cause = f"{benchmark.name} is not started with MPI"
        place.refuse("ranks", request.ranks, cause, "remove it")


def _check_container(top: Place, arm: Arm, selection: Selection) -> None:
    if arm.container is None:
        return
    from paribus import containers

    hosts = hosts_for(arm.container, selection.ranks, arm.ranks_per_host)
    if reason := containers.refusal(arm.container, hosts, on_hosts=arm.hosts is not None):
        top.refuse(f"arms.{arm.name}.container", None, *reason)


def _check_whole(top: Place, study: Study) -> None:
    """Note what contradicts itself between arms, benchmarks and plan."""
    settings = study.settings
    arms = [Place(top.file, "", table) for table in top.table["arms"].values()]
    of_arms = [keys for arm in arms for keys in keys_of(arm, "arm")]
    for keys in dict.fromkeys((*keys_of(top, "study"), *of_arms)):
        with top.noting():
            keys.check(top, study)
    top.finish()
    with top.noting():
        if settings.same_nodes:
            from paribus.studyfile.hosts import check_same_nodes

            check_same_nodes(top, study)
    with top.noting():
        check_design(top, study)
    with top.noting():
        check_argv(top, study.arms, study.benchmarks)
    with top.noting():
        check_builds(top, study)
    with top.noting():
        _check_mpi(top, study)
    design = design_of(study)
    each = design.session + 1 if design.session else 1
    launches = (
        settings.blocks * each * sum(len(design.holds(one.label, 1)) for one in study.benchmarks)
    )
    for arm in study.arms:
        for selection in study.benchmarks:
            with top.noting():
                _check_ranks(top, arm, selection)
            with top.noting():
                _check_container(top, arm, selection)
    with top.noting():
        if launches > MOST_LAUNCHES and design.has_end:
            top.refuse(
                "plan.blocks",
                settings.blocks,
                f"this study would need up to {launches:,} launches",
                f"lower blocks (60 is usual), arms or benchmarks to stay under {MOST_LAUNCHES:,}",
            )
        try:
            design.looks()
        except ValueError as error:
            top.refuse("plan.blocks", settings.blocks, str(error), "60 blocks are usual")


_OF_MPI = ("mpi", "transport", "network", "order", "ranks_per_host")


def _check_mpi(top: Place, study: Study) -> None:
    """Refuse keys of arms that say how MPI starts ranks, if no benchmark is started with it."""
    arms = top.table["arms"].items()
    keys = [f"arms.{name}.{key}" for name, table in arms for key in _OF_MPI if key in table]
    asked = ((benchmark_of(one), Request(one.parameters, one.ranks)) for one in study.benchmarks)
    if keys and not any(benchmark.command(request).mpi for benchmark, request in asked):
        fix = "remove it, or give the benchmark `command` ranks"
        top.refuse(keys[0], None, "no benchmark is started with MPI", fix)


def _check_ranks(top: Place, arm: Arm, selection: Selection) -> None:
    """Refuse more ranks than the hosts of an arm take."""
    arm = arm_at(arm, selection)
    if arm.hosts:
        try:
            nodes_of_ranks(arm.hosts, selection.ranks, arm.ranks_per_host)
        except UserError as error:
            cause = f"{selection.label}: {error.cause}"
            top.refuse(f"arms.{arm.name}.hosts", None, cause, error.fix)
