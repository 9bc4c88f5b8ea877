"""What all tests share: how Hypothesis draws, what is sampled, which tests are run alone.

`./dev test` starts two workers more than there are cores, four at most (pytest-xdist). Tests of one
module that share a costly set-up, and all tests that start MPI, stay on one worker: MODULES. Tests
that look at the whole machine wait until no other test that starts processes is running, and hold
those up: ALONE. Those that measure time, TIMED, hold up all others. These two are one group, which
comes when all else is done but for tests that start nothing, QUIET: so that few wait.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

import drawing

if TYPE_CHECKING:
    import browser

T = TypeVar("T")

# No time limits, because machines are shared; the same examples each time, so that what passed on
# one machine passes on the next.
settings.register_profile(
    "shared", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared")

os.environ["PARIBUS_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache" / "paribus")
"""What tests compile is kept from run to run, and not in the user's cache."""

STATE = tempfile.mkdtemp(prefix="paribus-tests-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = STATE
"""Which studies tests have begun: no business of the user's."""

SHARE = 8
"""Without --thorough, one in so many inputs of a test is tried, and at least FEWEST."""

FEWEST = 24

GROUPED = {
    # Ranks poll: two programs of MPI at a time would share two cores. Containers have names and
    # addresses that must not meet; they start MPI too.
    "mpi": (
        *("audit_live", "benchmarks_hpc", "doctor", "driven_imb", "kernels", "node_kernels", "npb"),
        *("launchers", "threads", "main_job", "gathering", "remote", "host_machine"),
        *("kernel_pairs", "profiler", "new", "probes_rank", "containers", "container_ends"),
        *("on_hosts", "images", "hosts_faults", "pocket", "pocket_ends", "pocket_links"),
    ),
    # These start ranks too, but for the most part they wait: for jobs, for ssh.
    "schedulers": ("slurm", "gridengine", "kubernetes"),
    "steps": ("srun", "slurm_faults", "detached"),
    "cluster": ("cluster", "cluster_up"),
    # Servers on ports that must be free, and name their hosts.
    "ssh": ("ssh",),
    # One browser for all of them.
    "browser": ("report_html", "serve"),
    # What one test has computed, or parsed, another checks again.
    "validation": ("validation",),
    # One build of the site.
    "site": ("site",),
    # One program of several seconds' compiling.
    "gpu": ("gpu",),
    "parsed": ("english", "layers", "reasons"),
}
MODULES = {f"test_{name}": group for group, names in GROUPED.items() for name in names}
"""Modules whose tests stay on one worker, in their order, by the name of their group."""

GROUPS = list(GROUPED)

ALONE = {
    "test_attack": "everything that an attacked Paribus leaves on the machine",
    "test_main_job": "everything that Paribus leaves on the machine",
    "test_containers": "everything that a container leaves on the machine",
    "test_container_ends": "everything that a container leaves on the machine",
    "test_pocket_ends": "everything that a pocket cluster leaves on the machine",
}
"""Tests, or modules of tests, beside which no other starts processes, and what they look at."""

TIMED = {
    "test_pocket_links": "times and rates between hosts on this machine",
    "test_benchmarks_wire": "servers and clients that poll, within seconds",
    "test_a_busy_process_is_seen_by_its_number": "the busiest processes of the machine",
    "test_processes_of_others_are_not_stopped": "the busiest processes of the machine",
    "test_a_share_of_delay_follows_the_case": "times of two ranks that poll",
    "test_times_that_are_drawn_agree_with_those_of_every_call": "times of two ranks that poll",
}
"""Tests, or modules of tests, that have the machine alone, and what they measure."""

QUIET = {
    *("test_benchmarks_contract", "test_docs_statistics", "test_goldens", "test_machines"),
    *("test_matrices", "test_probes_properties", "test_probes_stream", "test_report_export"),
    *("test_report_paper", "test_stats_betting", "test_stats_change", "test_stats_endpoints"),
    *("test_stats_family", "test_stats_matrix", "test_stats_planning"),
    *("test_slurm_text", "test_stats_probes"),
    *("test_topology", "test_topology_predict", "test_topology_show"),
    *("test_allocations", "test_dialects", "test_energy", "test_kubernetes_text"),
    "test_store_damage",
}
"""Modules whose tests start no process: this is seen to."""

INSTALLED = {
    *("test_adapters", "test_cluster", "test_containers", "test_doctor", "test_first_table"),
    *("test_host_machine", "test_hosts_faults", "test_kernel_start", "test_main_job"),
    *("test_on_hosts", "test_pocket", "test_pocket_links", "test_toolchain"),
}
"""Modules marked `installed`: their outcome depends on the MPI and the programs that are there, so
continuous integration runs them as on a machine without any, too."""

ALWAYS = {"test_english", "test_layers", "test_main_job", "test_reasons"}
"""Modules whose tests are tried in each run whatever they cost: any change may break them."""

APART = ("guests", "hub")
"""Marks of tests that are run by a command of their own, and only by it."""

_SEED = pytest.StashKey[int]()
_TRIED = pytest.StashKey[list[int]]()
_SLOW = pytest.StashKey[list[int]]()
_CHANGED = pytest.StashKey[tuple[str, dict[str, list[str]]]]()
_BEGUN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="try every damage, not a sample")
    parser.addoption(
        "--long", action="store_true", help="also what takes minutes, such as many kills"
    )
    parser.addoption(
        "--apart",
        choices=APART,
        help="only what needs more than a machine: ./dev test-vm, test-hub",
    )
    parser.addoption("--sample-seed", type=int, help="repeat the sample of an earlier run")
    parser.addoption(
        "--since",
        metavar="COMMIT",
        help="all slow tests whose own code has changed since then, instead of on this branch",
    )
    parser.addoption("--costs", action="store_true", help="write how long tests take: costs.txt")


def pytest_configure(config: pytest.Config) -> None:
    # Where the tests are a background job, SIGINT is ignored, and would be in all that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Under nohup it is SIGHUP. A handler is not inherited, and these processes survive it.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    config.addinivalue_line("markers", "xdist_group(name): tests that stay on one worker")
    asked = config.getoption("--sample-seed")
    config.stash[_SEED] = getattr(config, "workerinput", {}).get(
        "sample_seed", drawing.this_turn() if asked is None else asked
    )
    if (handed := getattr(config, "workerinput", {}).get("changed")) is None:
        since, files = drawing.changed(config.getoption("--since"))
        handed = since, drawing.concerned(files)
    config.stash[_CHANGED] = handed
    config.stash[_TRIED] = [0, 0]
    config.stash[_SLOW] = [0, 0]


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning: programs that tests start have the name as a variable."""
    if isinstance(val, str | bytes) and len(val) > 1000:
        return f"{val[:20]!r}..."
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed, and what has changed, to a worker of pytest-xdist."""
    node.workerinput["sample_seed"] = node.config.stash[_SEED]
    node.workerinput["changed"] = node.config.stash[_CHANGED]


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which slow tests are tried, and why."""
    if config.getoption("--thorough"):
        return ["slow tests: all (--thorough)"]
    shares = ", ".join(f"1 in {share} from {least:g} s" for least, share in drawing.SHARES)
    lines = [f"slow tests: drawn by --sample-seed {config.stash[_SEED]}, {shares}"]
    since, own = config.stash[_CHANGED]
    for name, files in sorted(own.items()):
        others = f" and {len(files) - 3} more" if len(files) > 3 else ""
        lines.append(f"  more of {name}: changed since {since}: {', '.join(files[:3])}{others}")
    return lines


def _apart(item: pytest.Item) -> str | None:
    return next((name for name in APART if item.get_closest_marker(name)), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules of which no test is `installed` where only those are wanted."""
    wanted = str(config.getoption("markexpr", "")).startswith("installed")
    if wanted and collection_path.match("test_*.py") and collection_path.stem not in INSTALLED:
        return "mark.installed" not in collection_path.read_text() or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--apart")
    left_out = {item for item in items if _apart(item) != wanted}
    if not config.getoption("--long"):
        left_out |= {item for item in items if item.get_closest_marker("long")}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if not config.getoption("--thorough"):
        left_out = _not_drawn(items, config)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        group = "alone" if _is_of(item, ALONE, TIMED) else MODULES.get(item.path.stem)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
        if item.path.stem in INSTALLED:
            item.add_marker(pytest.mark.installed)
        if not _is_of(item, QUIET):
            # It measures, or waits for, a machine that others use too. The summary names each.
            item.add_marker(pytest.mark.flaky(reruns=1))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: _turn(item, slow))


def _turn(item: pytest.Item, slow: Container[Path]) -> int:
    """Return when a test comes: what takes long before what fills the gaps that are left then.

    Groups in the order of MODULES, which begins with the longest; then modules with `slow` tests.
    """
    if _is_of(item, ALONE, TIMED):
        return len(GROUPS) + 2
    if _is_of(item, QUIET):
        return len(GROUPS) + 3
    if group := MODULES.get(item.path.stem):
        return GROUPS.index(group)
    return len(GROUPS) + (item.path not in slow)


def _not_drawn(items: Sequence[pytest.Item], config: pytest.Config) -> set[pytest.Item]:
    """Return the slow tests that this run does not try: tests/drawing.py.

    Those of a module that have the same value of the marker's parameter are drawn together.
    """
    units: dict[str, list[pytest.Item]] = {}
    changed, costs = config.stash[_CHANGED][1], drawing.costs()
    for item in items:
        slow = item.get_closest_marker("slow")
        costly = costs.get(_named(item.nodeid), 0.0) >= drawing.DRAWN
        if slow or (costly and item.path.stem not in ALWAYS):
            same = item.callspec.params.get(*slow.args) if slow and slow.args else None  # type: ignore[attr-defined]
            units.setdefault(f"{item.path}: {same}" if same else item.nodeid, []).append(item)
    seconds = {
        unit: sum(costs.get(_named(item.nodeid), drawing.UNMEASURED) for item in several)
        for unit, several in units.items()
    }
    mine = {unit: s for unit, s in seconds.items() if _in_tree(units[unit][0]) in changed}
    tried = set(mine) if config.getoption("--since") else drawing.own(mine)
    others = {unit: s for unit, s in seconds.items() if unit not in tried}
    left_out = set(others) - drawing.drawn(others, config.stash[_SEED])
    config.stash[_SLOW][:] = [len(units) - len(left_out), len(units)]
    return {item for unit in left_out for item in units[unit]}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEGUN] = sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the last report of a test the processor seconds of it and of its children."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append(("processor", sum(os.times()[:4]) - item.stash[_BEGUN]))
    return report


def _named(nodeid: str) -> str:
    """Return file and name of a test, without its case and its group."""
    return nodeid.partition("[")[0].partition("@")[0].rpartition("/")[2]


def _in_tree(item: pytest.Item) -> str:
    """Return the file of a test, as git names it."""
    return item.path.relative_to(Path(__file__).parents[1]).as_posix()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Carry a test out beside those of other workers, or without them."""
    worker = getattr(item.config, "workerinput", None)
    if worker is None:
        return (yield)
    starting, measuring = _locks(worker["testrunuid"])
    with ExitStack() as stack:
        if _is_of(item, QUIET):
            stack.enter_context(_held(measuring, fcntl.LOCK_SH))
            stack.enter_context(_starting_nothing())
        else:
            alone = _is_of(item, ALONE, TIMED)
            stack.enter_context(_held(starting, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        if _is_of(item, TIMED):
            stack.enter_context(_held(measuring, fcntl.LOCK_EX))
        return (yield)


@contextmanager
def _held(name: Path, kind: int) -> Iterator[None]:
    """Hold a lock; whoever waits for it alone holds the gate, so that no other test gets it."""
    with Path(f"{name}.gate").open("w") as gate, name.open("w") as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, kind)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@contextmanager
def _starting_nothing() -> Iterator[None]:
    """Refuse processes: beside a test of what Paribus leaves behind, they would be found."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test of QUIET starts a process: remove its module from there")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        patch.setattr(os, "fork", refuse)
        yield


def _is_of(item: pytest.Item, *several: Container[str]) -> bool:
    """Return whether a test, or its module, is one of those named."""
    names = (getattr(item, "originalname", None) or item.name, item.path.stem)
    return any(name in one for one in several for name in names)


def _locks(run: str) -> tuple[Path, Path]:
    """Return the locks of starting processes and of measuring time."""
    place = Path(tempfile.gettempdir())
    return place / f"paribus-tests-{run}.starting", place / f"paribus-tests-{run}.measuring"


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Callable[..., list[T]]:
    """A function that returns those of several inputs that this run tries, in their order.

    All with --thorough, or so many as `most` says where they are costly; then all with --long. How
    many were tried of how many is in the last lines of the run.
    """

    def chosen(several: Iterable[T], most: int | None = None) -> list[T]:
        inputs = list(several)
        tried, count = inputs, len(inputs)
        if not request.config.getoption("--thorough"):
            count = min(len(inputs), max(FEWEST, -(-len(inputs) // SHARE)))
        elif most is not None and not request.config.getoption("--long"):
            count = min(len(inputs), most)
        if count < len(inputs):
            draw = random.Random(f"{request.config.stash[_SEED]} {request.node.name.split('@')[0]}")
            tried = [inputs[i] for i in sorted(draw.sample(range(len(inputs)), count))]
        request.node.user_properties.append(("sampled", f"{len(tried)}/{len(inputs)}"))
        return tried

    return chosen


class _Counter:
    """What the tests of all workers say: how many inputs they tried, and how long they took."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        spent = dict(report.user_properties).get("processor", 0.0)
        self.processor[report.nodeid] = float(str(spent))
        if "slow" in report.keywords:
            self.slow.add(_named(report.nodeid))
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "sampled":
                tried, several = map(int, str(value).split("/"))
                self.counts[:] = self.counts[0] + tried, self.counts[1] + several


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Counter(session.config.stash[_TRIED]), "counter")
    elif connection := getattr(getattr(session.config, "failures_db", None), "sock", None):
        # pytest-rerunfailures 16.7 writes twice to the controller and then reads, before each test
        # that may be tried again: a delayed acknowledgement kept each waiting for 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over from a worker how many slow tests it knows of: all workers know the same ones."""
    node.config.stash[_SLOW][:] = getattr(node, "workeroutput", {}).get("slow", [0, 0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (said := getattr(session.config, "workeroutput", None)) is not None:
        said["slow"] = session.config.stash[_SLOW]
    if not hasattr(session.config, "workerinput"):
        run = getattr(session.config.pluginmanager.get_plugin("dsession"), "nodemanager", None)
        for name in _locks(run.testrunuid) if run else ():
            name.unlink(missing_ok=True)
            Path(f"{name}.gate").unlink(missing_ok=True)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what failed once, was sampled or skipped, just before pytest's closing line."""
    tried, several = config.stash[_TRIED]
    drawn, slow = config.stash[_SLOW]
    if again := terminalreporter.stats.get("rerun", []):
        terminalreporter.write_sep("-", "what failed at first and was tried once more")
        for report in again:
            crash = getattr(report.longrepr, "reprcrash", None)
            said = " ".join(str(crash.message if crash else report.longrepr).split())
            terminalreporter.write_line(f"{report.nodeid}: {said[:400]}")
    skipped = len(terminalreporter.stats.get("skipped", []))
    terminalreporter.write_sep("-", "what this run leaves out")
    if tried < several:
        terminalreporter.write_line(
            f"sampled: {tried:,} of {several:,} inputs, kills and simulated studies (--sample-seed"
            f" {config.stash[_SEED]} tries the same ones, --thorough all)"
        )
    elif several:
        terminalreporter.write_line(
            f"sampled: nothing; all {several:,} inputs, kills and simulated studies were tried"
        )
    if drawn < slow:
        terminalreporter.write_line(f"drawn: {drawn} of {slow} slow tests, by the same seed")
    terminalreporter.write_line(f"skipped: {skipped} tests, for what this machine lacks")
    passed = terminalreporter.stats.get("passed", [])
    noted = [pair for report in passed for pair in report.user_properties]
    if blocks := {k: sum(n for name, n in noted if name == k) for k, _ in noted if "blocks" in k}:
        said = ", ".join(f"{k.removeprefix('blocks ')} {n}" for k, n in sorted(blocks.items()))
        terminalreporter.write_line(f"console blocks of the tutorials: {said}")
    counter = config.pluginmanager.get_plugin("counter")
    seconds = counter.seconds
    terminalreporter.write_line(
        f"time: {sum(seconds.values()):,.0f} s in all workers together,"
        f" {sum(counter.processor.values()):,.0f} s of processor"
    )
    cases: dict[str, list[float]] = {}
    for nodeid, took in seconds.items():
        cost = drawing.cost(counter.processor[nodeid], took)
        cases.setdefault(_named(nodeid), []).append(cost)
    if (new := drawing.unknown(cases)) and sum(new.values()) > drawing.UNKNOWN_S:
        terminalreporter.write_line(
            f"always tried although costly, because tests/costs.txt lacks them: {', '.join(new)};"
            " `./dev test --costs` adds them"
        )
    if config.getoption("--costs"):
        drawing.write_costs(cases, counter.slow)


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    """Yield a browser for the pages of a module."""
    import browser

    if browser.PROGRAM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH")
    with browser.Browser() as one:
        yield one


@pytest.fixture(scope="session")
def five_studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of five studies: three have ended, one is interrupted, one would run."""
    from paribus.cli import outputs
    from paribus.judge.conclude import judged
    from paribus.store import Board, Effect
    from study_directories import write_directory

    here, now = tmp_path_factory.mktemp("list"), 1.8e9
    several: dict[str, tuple[dict[str, float], dict[str, Any]]] = {
        "may": ({"host": 1.0, "bridged": 1.3}, {"started": now - 9e6}),
        "june": ({"host": 1.0, "bridged": 1.1}, {"started": now - 6e6}),
        "kernels": ({"old": 1.0, "new": 0.8}, {"started": now, "factor": "kernel"}),
    }
    for name, (arms, more) in several.items():
        labels = ("latency", "barrier")
        write_directory(here / name, arms, blocks=8, labels=labels, sizes=(8, 512, 65536), **more)
        outputs.write_files(judged(here / name), here / name)
    for name in ("cut", "runs"):
        write_directory(here / name, {"a": 1.0, "b": 1.1}, blocks=3, started=now - 9e7)
    with Board(here / "cut") as board:
        board.say("x", [Effect("latency", "b", "undecided", "few", 0.5, better="higher")])
        board.code = 130
    return here


@pytest.fixture(scope="session")
def five_served(five_studies: Path) -> Iterator[Any]:
    """Yield a server of the five studies, of which one runs, with its owner signed in."""
    from paribus.store import Board
    from serving import served

    with Board(five_studies / "runs") as board, served(five_studies) as one:
        board.say("blocks 3 of 18", planned=38)
        one.cookie = one.enter()
        yield one
