"""Who may import whom: a core that imports downwards, and rooms around it that it loads by need.

The two tables are the architecture: what is not in them is forbidden. CONTRIBUTING has the map.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from parsed import parsed
from processes import ran

PACKAGE = Path(__file__).parent.parent / "src" / "paribus"

VALUES = "values that all rooms speak of"
BOUNDED = "what others wrote is read within bounds, what others may not read is written so"
FACTS = "what a node is"
STATS = "figures from launches"
BENCH = "a study names benchmarks"
PROSE = "sentences of codes and figures"
SHOWN = "prints as the other verbs do"
STARTS = "only launch starts processes"
DESIGN = "one object says how a study is planned, judged and described"

ARROWS: dict[str, dict[str, str]] = {
    "core": {},
    "border": {"core": VALUES},
    "stats": {"core": VALUES},
    "words": {"core": VALUES},
    "probes": {"core": VALUES, "border": BOUNDED},
    "readers": {"core": VALUES, "border": BOUNDED},
    "store": {"core": VALUES, "border": BOUNDED},
    "benchmarks": {
        "core": VALUES,
        "border": BOUNDED,
        "readers": "a benchmark has the reader of its output",
    },
    "audit": {
        "core": VALUES,
        "border": BOUNDED,
        "probes": FACTS,
        "readers": "facts that a tool's output holds",
        "store": "facts as they were stored",
    },
    "designs": {
        "core": VALUES,
        "stats": "how launches are drawn, looked at and tested",
        "words": "the sentences of each design",
    },
    "plan": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "benchmarks": BENCH,
        "stats": "how many blocks a look needs",
    },
    "judge": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "audit": "the audit can withhold a verdict",
        "plan": "what was planned",
        "probes": FACTS,
        "stats": STATS,
        "store": "launches as they were stored",
        "words": "the one sentence that the judgement as a whole has",
    },
    "studyfile": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "audit": "which facts a factor explains",
        "benchmarks": BENCH,
        "stats": "bounds of the settings",
    },
    "launch": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "audit": "the noise gate of each launch",
        "benchmarks": BENCH,
        "judge": "whether there is enough evidence after a block",
        "plan": "which launch is next",
        "probes": FACTS,
        "stats": STATS,
        "store": "every launch is stored",
        "studyfile": "how files that are run are written",
        "words": "what a dry run says of costs",
    },
    "report": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "audit": "differences as rows",
        "benchmarks": BENCH,
        "probes": "which variables are private",
        "stats": STATS,
        "words": PROSE,
    },
    "cli": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "audit": "verb audit",
        "benchmarks": BENCH,
        "judge": "verbs that judge",
        "launch": "verb run",
        "plan": "verb run",
        "probes": "verb record",
        "readers": "verb list",
        "report": SHOWN,
        "stats": "how many blocks ranges of sizes take",
        "store": "verb pack",
        "studyfile": "verb run",
        "words": PROSE,
    },
    "__init__": {
        "report": "paribus.load() is the package's face",
        "logs": "so is paribus.compare()",
    },
    "__main__": {"core": "errors", "cli": "the verbs"},
    # Optional rooms: the core imports none of them but by a door.
    "containers": {"core": VALUES},
    "hosts": {
        "core": VALUES,
        "border": BOUNDED,
        "launch": "a host is a station of launches",
        "probes": FACTS,
        "containers": "a pocket cluster is containers that stand for hosts",
    },
    "schedulers": {
        "core": VALUES,
        "border": BOUNDED,
        "launch": STARTS,
        "hosts": "nodes that a scheduler lends are hosts",
    },
    "tools": {
        "core": VALUES,
        "border": BOUNDED,
        "benchmarks": "a tool is a benchmark",
        "readers": "and has a reader",
    },
    "logs": {
        "core": VALUES,
        "border": BOUNDED,
        "audit": "facts that logs print are compared",
        "benchmarks": BENCH,
        "cli": SHOWN,
        "judge": "logs are judged as launches are",
        "plan": "studies beside studies",
        "probes": "recordings",
        "readers": "outputs of tools",
        "report": SHOWN,
        "stats": STATS,
        "store": "a study's own logs",
        "studyfile": "the study that would settle it",
        "words": PROSE,
    },
    "lenses": {
        "core": VALUES,
        "designs": DESIGN,
        "border": BOUNDED,
        "benchmarks": BENCH,
        "judge": "the launches as evidence",
        "launch": "the first table of a cluster is a matrix",
        "paper": "a table for papers",
        "plan": "what was planned",
        "probes": "facts that hold energy",
        "report": SHOWN,
        "stats": STATS,
        "store": "every launch costs",
        "words": PROSE,
    },
    "paper": {"core": VALUES, "designs": DESIGN, "report": "tables of reports", "words": PROSE},
    "topology": {
        "core": VALUES,
        "border": BOUNDED,
        "cli": SHOWN,
        "probes": "recorded /sys",
        "readers": "nvidia-smi topo -m",
        "report": SHOWN,
    },
    "bmc": {
        "core": VALUES,
        "border": BOUNDED,
        "cli": SHOWN,
        "launch": STARTS,
        "topology": "what is switched is the shape of a tree",
    },
    "cluster": {
        "core": VALUES,
        "border": BOUNDED,
        "cli": SHOWN,
        "hosts": "a cluster is hosts",
        "launch": STARTS,
        "probes": FACTS,
        "report": SHOWN,
        "studyfile": "hosts as study files write them",
        "topology": "the tree of each node",
    },
    "screen": {
        "core": VALUES,
        "border": BOUNDED,
        "audit": "in what a slow node differs from its peers",
        "benchmarks": BENCH,
        "cli": SHOWN,
        "cluster": "hosts as a command line names them",
        "hosts": "each node is a station of its own",
        "judge": "the figure of a launch",
        "launch": STARTS,
        "probes": "what was busy beside a launch",
        "report": SHOWN,
        "schedulers": "the nodes of a partition",
        "stats": STATS,
        "store": "every launch is stored",
        "studyfile": "benchmarks as study files name them",
    },
    "doctor": {
        "core": VALUES,
        "border": BOUNDED,
        "benchmarks": "a trial launches kernels",
        "containers": "which engines are fit",
        "launch": STARTS,
        "probes": FACTS,
        "report": SHOWN,
        "schedulers": "which schedulers answer",
        "stats": STATS,
    },
    "profile": {
        "core": VALUES,
        "border": BOUNDED,
        "launch": STARTS,
        "probes": FACTS,
        "report": SHOWN,
    },
    "web": {
        "core": VALUES,
        "border": BOUNDED,
        "benchmarks": "a form to make a study",
        "doctor": "how fit the hosts are",
        "judge": "of studies that go on",
        "launch": "starts and stops studies",
        "plan": "what is planned",
        "report": "pages are reports",
        "schedulers": "queues",
        "stats": "the median of a launch",
        "store": "lists studies",
        "studyfile": "a form to make a study",
        "words": PROSE,
    },
}
"""Room -> the rooms that it may import anywhere, each with the reason."""

DOORS: dict[str, dict[str, str]] = {
    "launch": {
        "containers": "an arm with a container",
        "hosts": "an arm with hosts",
        "schedulers": "an arm with a scheduler",
        "topology": "the tree of a node with PCI devices",
    },
    "studyfile": {
        "bmc": "before = { topology = ... }",
        "containers": "container = { ... }",
        "hosts": "link = { ... }",
        "schedulers": "scheduler = { ... }",
        "tools": "adapter = { ... }: the devices of perftest",
        "topology": "before = { topology = ... }",
    },
    "report": {
        "paper": "tables of the workbench as papers have them",
        "topology": "facts that hold a tree are drawn",
    },
    "cli": {
        "lenses": "--beside, --profile, --calibration, costs of a dry run",
        "logs": "run --against, history, pack --compare, audit of recordings",
        "paper": "--to latex, markdown, ipynb, openbenchmarking",
        "schedulers": "--detach; verb list",
        "screen": "--screen: which nodes of a study are slow",
    },
    "cluster": {"lenses": "the first table is a matrix"},
    "logs": {"lenses": "published figures", "studyfile": "the study that would settle it"},
    "profile": {"lenses": "a profile is what a lens reads"},
    "topology": {"bmc": "topology switch", "cluster": "the tree of a host"},
    "bmc": {"cluster": "the tree of a host"},
    "web": {"logs": "two studies beside each other"},
}
"""Room -> the rooms that its functions load when something asks for them, and what that is."""

# Private names that leave their room: these lists only shrink.
KNOWN: set[tuple[str, str]] = set()
TESTED = {
    # Caches that tests must empty: they take the compiler away, and change who is in a group.
    "paribus.launch.toolchain._compiler.cache_clear",
    "paribus.border.trust._own_group.cache_clear",
    # To forge a plan that is sealed.
    "paribus.plan.frozen._digest",
}
PRIVATE = re.compile(r"_(?!_)\w+")
LAZY_ONLY = {"numpy", "pyarrow", "rich", "vl_convert", "scipy"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """Return the room of a module: its folder below the package, or its own name."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def imported(path: Path) -> tuple[tuple[str, bool], ...]:
    return tuple(imports(parsed(path)[1]))


def imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield the dotted names that a module imports, and whether outside of functions.

    Type-checking blocks do not count.
    """
    inside, skipped = set(), set()
    for node in nodes:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped |= {id(child) for child in ast.walk(node)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside |= {id(child) for child in ast.walk(node)}
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) not in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", id(node) not in inside


def forbidden(of: str, names: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Yield what a module of room `of` imports from rooms that it may not import there."""
    for name, top in names:
        package, _, rest = name.partition(".")
        to = rest.partition(".")[0]
        if package != "paribus" or to in ("", of, "__version__") or to in ARROWS[of]:
            continue
        if top or to not in DOORS.get(of, {}):
            yield name


def test_rooms_import_what_they_may() -> None:
    found = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        for name in forbidden(room(path), imported(path))
    }
    assert found == set()


def test_every_room_is_in_the_table_and_needs_what_it_may() -> None:
    """What a room may import and does not is no arrow of the house."""
    used: dict[str, set[str]] = {}
    for path in MODULES:
        names = {name.split(".")[1] for name, _ in imported(path) if name[:8] == "paribus."}
        used.setdefault(room(path), set()).update(names)
    assert used.keys() == ARROWS.keys()
    idle = {
        f"{of} -> {to}"
        for table in (ARROWS, DOORS)
        for of, reasons in table.items()
        for to in reasons
        if to not in used[of]
    }
    assert idle == set()


def test_arrows_make_no_circle() -> None:
    TopologicalSorter({of: set(to) for of, to in ARROWS.items()}).prepare()


ROOMS = sorted({*ARROWS} - {"__init__", "__main__"})


@pytest.mark.parametrize("of", ROOMS)
def test_a_planted_import_is_seen(of: str) -> None:
    """Between each two rooms, at the top and in a function: the checker proves itself."""
    for to in (one for one in ROOMS if one != of):
        top, inside, typed = (
            imports([*ast.walk(ast.parse(text))])
            for text in (
                f"from paribus.{to} import something\n",
                f"def f() -> None:\n    import paribus.{to}.x\n",
                f"if TYPE_CHECKING:\n    from paribus.{to} import X\n",
            )
        )
        assert bool([*forbidden(of, top)]) is (to not in ARROWS[of]), to
        door = to in ARROWS[of] or to in DOORS.get(of, {})
        assert bool([*forbidden(of, inside)]) is not door, to
        assert not [*forbidden(of, typed)]


def test_a_report_starts_nothing() -> None:
    """What is stored can be reported where nothing can be launched, without loading how."""
    code = (
        "import sys; import paribus.cli.report, paribus.cli.outputs, paribus.logs.verb;"
        "import paribus.report.terminal, paribus.report.html;"
        "print(*sorted(m for m in sys.modules"
        " if m.startswith(('paribus.launch', 'paribus.hosts', 'paribus.schedulers'))))"
    )
    done = ran([sys.executable, "-c", code], code=0)
    assert done.stdout.split() == []


LOOKS = re.compile(r"sched_getaffinity|shutil\.which|gettempdir|\bcapture\(|[\"']/proc|/dev/shm")
"""How code looks at the machine that it happens to execute on."""


def test_only_some_rooms_look_at_a_machine() -> None:
    """An arm's machine may be another than ours; these rooms are about one."""
    looks = {"launch", "hosts", "schedulers", "containers", "cluster", "probes", "doctor"}
    looks |= {"topology", "bmc", "profile", "screen"}
    files = {"record.py", "trust.py", "peers.py"}
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in MODULES
        if room(path) not in looks and path.name not in files
        for line in path.read_text().splitlines()
        if LOOKS.search(line)
    ]
    assert found == []


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    heavy = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        for name, top in imported(path)
        if top and name.split(".")[0] in LAZY_ONLY
    }
    assert heavy == set()


def test_the_version_needs_nothing_heavy() -> None:
    code = (
        "import sys; from paribus.__main__ import main; main(['--version']);"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in"
        " {'numpy', 'rich', 'argparse', 'sqlite3', 'tomllib', 'vl_convert'}))"
    )
    done = ran([sys.executable, "-c", code], code=0)
    assert done.stdout.splitlines()[-1] == "[]"


def test_files_and_functions_stay_short() -> None:
    """A file holds one subject, in 700 lines at most; a function has less than 60."""
    sizes = {str(p.relative_to(PACKAGE)): len(p.read_text().splitlines()) for p in MODULES}
    assert {name for name, lines in sizes.items() if lines > 700} == set()
    long_functions = {
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path in MODULES
        for node in parsed(path)[1]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    }
    assert long_functions == set()


def head_of(node: ast.expr) -> str:
    """Return the name that a chain of attributes begins with; empty where it is no chain."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def private_names(path: Path, own: str) -> set[str]:
    """Return the names with an underscore that a module takes from rooms other than `own`.

    Imported ones, and attributes of what it imports; of what is behind a private name its first.
    """
    nodes = parsed(path)[1]
    named: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            named |= {a.asname: a.name for a in node.names if a.asname}
            named |= {n: n for a in node.names if not a.asname for n in a.name.split(".")[:1]}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    taken = set(named.values())
    for node in nodes:
        if isinstance(node, ast.Attribute) and head_of(node) in named:
            head, _, rest = ast.unparse(node).partition(".")
            taken |= {f"{named[head]}.{rest}"}
    private = set()
    for name in taken:
        parts = name.split(".")
        first = next((i for i, part in enumerate(parts) if PRIVATE.fullmatch(part)), None)
        if parts[0] == "paribus" and parts[1:2] != [own] and first is not None:
            private.add(".".join(parts[: first + 2]))
    # A module that is imported only to take names from it is not counted beside them.
    return {n for n in private if not any(other.startswith(f"{n}.") for other in private)}


def test_private_names_stay_in_their_room() -> None:
    taken = {
        (str(path.relative_to(PACKAGE)), name)
        for path in MODULES
        for name in private_names(path, room(path))
    }
    assert taken == KNOWN


@pytest.mark.parametrize("folder", ["tests", "tools"])
def test_tests_and_tools_use_what_is_public(folder: str) -> None:
    """Nobody can rely on a private name; what a test needs of a room is public, or listed."""
    taken = {
        name
        for path in sorted((PACKAGE.parents[1] / folder).rglob("*.py"))
        for name in private_names(path, folder)
    }
    assert taken == (TESTED if folder == "tests" else set())


def test_a_private_name_is_seen_however_it_is_taken(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import paribus.core\nfrom paribus import store as kept\n"
        "from paribus.benchmarks._tool import plain\nfrom paribus.judge import plan\n"
        "from paribus import __version__\n"
        "def f():\n    return kept._PLACE, paribus.core._scaled(1), plan.read, plan._order.x\n"
    )
    assert private_names(module, "compare") == {
        "paribus.store._PLACE",
        "paribus.core._scaled",
        "paribus.benchmarks._tool.plain",
        "paribus.judge.plan._order.x",
    }
    assert "paribus.judge.plan._order.x" not in private_names(module, "judge")
