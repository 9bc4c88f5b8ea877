"""A machine behind a shell: the same answers as this one, kernels compiled there, lies refused."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus.benchmarks import BENCHMARKS
from paribus.border import why_not
from paribus.core import Arm, Program, UserError
from paribus.hosts import host_machine
from paribus.hosts.host_machine import HostMachine, ask, send
from paribus.hosts.reached import Host
from paribus.launch.loaded import libraries_path
from paribus.launch.machine import HERE, Machine
from paribus.launch.programs import check_there, find_mpi_for
from paribus.launch.toolchain import (
    find_mpi,
    kernel_identity,
    kernel_path,
    mpi_of_library,
)
from processes import executable, gone, processes_with

NAMES = (
    *("plain", "with space", "it's", 'a "quote"', "a\nnewline", "-n", "$HOME", "a=b", "*", "\\"),
    "é",
)


def machine(home: Path, *shell: str, name: str = "node1", **env: str) -> HostMachine:
    """Return a machine behind a shell of this one that has another home directory."""
    added = [f"{key}={value}" for key, value in {"HOME": str(home), **env}.items()]
    unset = ["-u", "PARIBUS_CACHE", "-u", "XDG_CACHE_HOME"]
    return HostMachine(Host(name, ("env", *unset, *added, *(shell or ("/bin/sh",)))))


def with_mpi(home: Path, name: str = "node1") -> HostMachine:
    """Return a machine that has the MPI of this one on its PATH."""
    return machine(home, name=name, PATH=f"{Path(any_mpi().mpicxx).parent}:{os.environ['PATH']}")


@pytest.fixture(params=("/bin/sh", "dash", "bash --posix", "busybox sh"))
def shell(request: pytest.FixtureRequest) -> str:
    if not shutil.which(request.param.split()[0]):
        pytest.skip(f"no {request.param}")
    return str(request.param)


@pytest.fixture
def node(tmp_path: Path) -> HostMachine:
    return machine(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[HostMachine, Path]:
    """Return a machine with the kernel that was compiled there."""
    node = with_mpi(tmp_path_factory.mktemp("home of node1"))
    return node, kernel_path("barrier", find_mpi(None, node), node)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return executable(path, text)


def replaced(line: str, answer: str) -> HostMachine:
    """Return a machine whose shell gives another answer to questions that match `line`."""
    shell = ("sh", "-c", 'sed -u "$0" | /bin/sh', f"s#{line}#{answer}#")
    return HostMachine(Host("node7", shell))


# --- questions ------------------------------------------------------------------------------------


def test_every_shell_gives_the_answers_of_this_machine(tmp_path: Path, shell: str) -> None:
    node = machine(tmp_path, *shell.split())
    programs = [script(tmp_path / f"{name}.d" / name, f"echo {i}") for i, name in enumerate(NAMES)]
    plain = tmp_path / "plain file"
    plain.write_text("")
    asked = [tmp_path, plain, *programs, tmp_path / "nowhere"]
    assert node.executables(asked) == HERE.executables(asked) == programs
    for i, program in enumerate(programs):
        found = node.capture([str(program)])
        assert (found.exit_code, found.stdout) == (0, f"{i}\n")
        assert node.find_program(program.name, str(program.parent)) == str(program)
        assert node.resolved(program) == program
    said = node.capture(["sh", "-c", 'echo out; echo "$A" >&2; exit 3'], env={"A": "it's\n$HOME"})
    assert (said.exit_code, said.stdout, said.stderr) == (3, "out\n", "it's\n$HOME\n")
    assert node.capture(["/nowhere/at/all"]).exit_code == 127
    assert node.capture(["cat"]).stdout == ""
    begin = time.monotonic()
    assert node.capture(["sh", "-c", "sleep 30 & wait"], timeout_s=0.2).exit_code == 124
    assert time.monotonic() - begin < 10
    assert [node.is_directory(path) for path in asked[:3]] == [True, False, False]
    readable = [node.readable(path) for path in ("plain file", plain, asked[-1])]
    assert readable == [False, True, False]
    assert node.architecture == HERE.architecture == os.uname().machine


def test_a_host_answers_every_question_itself() -> None:
    assert {name for name in vars(Machine) if name[0] != "_"} <= vars(HostMachine).keys()


def test_a_name_with_nul_is_no_question(node: HostMachine) -> None:
    with pytest.raises(UserError, match="NUL"):
        node.executables([Path("/bin/sh\0")])


def test_programs_are_found_in_absolute_places_of_the_path_there(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "strange", "echo strange")
    node = machine(
        tmp_path, "sh", "-c", 'cd "$0/bin" && exec /bin/sh', str(tmp_path), PATH=".:/bin:"
    )
    assert node.places() == [Path("/bin")]
    assert node.find_program("strange") is None
    assert node.find_program("bin/strange", str(tmp_path)) is None
    assert node.capture(["strange"]).exit_code == 127
    assert node.capture(["strange"], env={"PATH": ".:"}).exit_code == 127
    assert node.capture(["strange"], env={"PATH": f"{tmp_path}/bin"}).stdout == "strange\n"


def test_where_the_cache_is(tmp_path: Path) -> None:
    assert machine(tmp_path).cache() == tmp_path / ".cache" / "paribus"
    assert machine(tmp_path, XDG_CACHE_HOME="/xdg").cache() == Path("/xdg/paribus")
    assert machine(tmp_path, PARIBUS_CACHE="/chosen").cache() == Path("/chosen")
    assert machine(tmp_path, PARIBUS_CACHE="chosen").cache() == tmp_path / "chosen"
    assert machine(tmp_path).absolute("~/mpi") == tmp_path / "mpi"
    with pytest.raises(UserError, match="node1: HOME is not set"):
        machine(Path("nowhere")).cache()


# --- lies -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("echo Welcome to node7; exec /bin/sh", "prints before it answers: Welcome to node7"),
        ("printf '\\033]0;x\\007'; exec /bin/sh", "prints before it answers"),
        ("/bin/sh | head -c 40", "its answer is not whole"),
        ("cat >/dev/null", "no answer within 2 s"),
        ("exec sleep 30", "no answer within 2 s"),
        ("echo Connection refused >&2; exit 255", "exit code 255: Connection refused"),
        ("exit 0", "its answer is not whole"),
        ("kill -9 $$", "exit code -9"),
        ("yes", "it prints more than 1048576 bytes"),
        ("yes >&2", "it prints more than 1048576 bytes"),
        ("exec /nowhere/sh", "exit code 127: .*nowhere"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_the_host(shell: str, said: str) -> None:
    begin = time.monotonic()
    with pytest.raises(UserError, match=f"^node7: .*{said}") as caught:
        ask(Host("node7", ("sh", "-c", shell)), "heard true", timeout_s=2.0)
    assert time.monotonic() - begin < 10
    assert caught.value.fix


@pytest.mark.parametrize("answer", ["say more", "say x; say y", "say; say 0", "heard true; say x"])
def test_an_answer_to_another_question_is_refused(answer: str) -> None:
    lying = replaced("^heard .*", answer)
    with pytest.raises(UserError, match=r"^node7: it answered something else than was asked"):
        lying.capture(["true"])
    lying = replaced("^look .*", answer)
    with pytest.raises(UserError, match=r"^node7: it answered something else than was asked"):
        lying.executables([Path("/bin/sh"), Path("/bin/cat")])


def test_a_shell_that_is_not_there() -> None:
    node = HostMachine(Host("node7", ("/nowhere/ssh", "node7")))
    with pytest.raises(UserError, match="node7: /nowhere/ssh cannot be started"):
        node.places()


def test_what_prints_to_standard_error_is_heard_and_not_taken_for_an_answer(
    node: HostMachine,
) -> None:
    noisy = HostMachine(Host("node1", ("sh", "-c", "echo warning >&2; /bin/sh; echo bye >&2")))
    assert noisy.capture(["sh", "-c", "echo mine >&2"]).stderr == "mine\n"


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ("say distrusted; say because", "others could change what launches execute: because"),
        ("say unwritable; say because", "cannot be written: because"),
        ("say failed; say 9; say 1; say out; say err", "something else"),
        ("say failed; say x; say 1; say out; say err", "something else"),
        ("say ../../evil; say lies", "something else"),
        ("say evil; say lies", "something else"),
        ("say there", "something else"),
    ],
)
def test_lies_of_files_are_refused(answer: str, raised: str) -> None:
    lying = replaced("^trusted .*\\|^show .*", f"{answer}; finish")
    with pytest.raises(UserError, match=raised) as caught:
        lying.digests(Path("/tmp/x"))
    assert str(caught.value).startswith("node7: ")
    with pytest.raises(UserError, match="node7: "):
        lying.contents(Path("/tmp/x"))
    if answer != "say there":
        with pytest.raises(UserError, match="node7: "):
            lying.build(Path("/tmp/x"), {}, [["true"]], {})


# --- which MPI ------------------------------------------------------------------------------------

OPENMPI = 'echo "mpicxx: Open MPI 5.0.3 (Language: C++) for $HOME"'


def fake_mpi(folder: Path) -> Path:
    script(folder / "bin" / "mpirun", "echo 'mpirun (Open MPI) 5.0.3'")
    (folder / "lib").mkdir()
    (folder / "lib" / "libmpi.so.40").write_text("")
    return script(folder / "bin" / "mpicxx", OPENMPI).parent


@pytest.mark.slow
def test_the_mpi_of_this_machine_is_found_through_a_shell(
    compiled: tuple[HostMachine, Path],
) -> None:
    node, kernel = compiled
    mpi = find_mpi(None, HERE)
    assert find_mpi(None, node) == mpi
    assert find_mpi(mpi.family, node) == find_mpi(mpi.family, HERE)
    assert find_mpi(str(Path(mpi.mpicxx).parent.parent), node) == mpi
    assert kernel_identity("barrier", mpi, node) == kernel_identity("barrier", mpi, HERE)
    arm = Arm("a")
    assert find_mpi_for(arm, [Program((str(kernel),))], "here", node) == mpi


def test_errors_of_a_host_name_it(node: HostMachine, tmp_path: Path) -> None:
    bare = machine(tmp_path, PATH="/nowhere")
    with pytest.raises(UserError, match=r"^node1: PATH: no MPI compiler") as caught:
        find_mpi(None, bare)
    assert "into this Python" not in caught.value.fix
    with pytest.raises(UserError, match=r"^node1: mpi = 'mpich': no compiler of mpich"):
        find_mpi("mpich", bare)
    with pytest.raises(UserError, match=r"^node1: /nowhere/at/all: is not a directory"):
        find_mpi("/nowhere/at/all", node)
    with pytest.raises(UserError, match=f"^node1: {tmp_path}: has no bin/mpicxx"):
        find_mpi("~/", node)
    script(tmp_path / "mpicxx", "echo 'mpicxx: Open MPI 5.0.3 (Language: C++)'")
    with pytest.raises(UserError, match=f"^node1: {tmp_path}/mpicxx: Open MPI.* no launcher"):
        find_mpi("~/", node)
    qe = BENCHMARKS["qe"]
    with pytest.raises(UserError, match=r"^node1: here: no program on the PATH called nowhere-app"):
        check_there(Arm("a"), qe, Program(("nowhere-app",), mpi=False), "here", node)
    with pytest.raises(
        UserError, match=r"^node1: here: no file that can be read at /nowhere/input"
    ):
        check_there(Arm("a"), qe, Program(("sh",), needs=("/nowhere/input",)), "here", node)
    script(tmp_path / "bin" / "app", "")
    arm = Arm("a", env={"PATH": f"{tmp_path}/bin"})
    check_there(arm, qe, Program(("app",), needs=("/etc/passwd",), mpi=False), "here", node)


def test_what_is_known_of_one_machine_is_not_taken_for_another(tmp_path: Path) -> None:
    """The same path is another compiler there."""
    fake_mpi(tmp_path / "mpi")
    (tmp_path / "mpi" / "bin" / "away").mkdir()
    one = machine(tmp_path / "one", name="node1")
    two = machine(tmp_path / "two", name="node2")
    mpi = find_mpi(str(tmp_path / "mpi"), one)
    first, second = (kernel_identity("barrier", mpi, node) for node in (one, two))
    assert f"{tmp_path}/one" in first
    assert f"{tmp_path}/two" in second
    assert first.split()[1] != second.split()[1]
    library = tmp_path / "mpi" / "lib" / "libmpi.so.40"
    assert mpi_of_library(library, one) == mpi
    (tmp_path / "mpi" / "bin" / "mpirun").unlink()
    assert mpi_of_library(library, one) == mpi
    assert mpi_of_library(library, two) is None


# --- what is compiled there -----------------------------------------------------------------------


def test_a_kernel_is_compiled_there_once(compiled: tuple[HostMachine, Path]) -> None:
    node, kernel = compiled
    home = Path(node.variable("HOME"))
    assert kernel.parent == home / ".cache" / "paribus" / "kernels"
    assert list(kernel.parent.iterdir()) == [kernel]
    assert stat.S_IMODE(kernel.stat().st_mode) == 0o755
    assert "needs 2 ranks" in HERE.capture([str(kernel)]).stderr
    made = kernel.stat().st_ino
    again = with_mpi(home, name="again")
    assert kernel_path("barrier", find_mpi(None, again), again) == kernel
    assert kernel.stat().st_ino == made


def test_several_make_the_same_libraries_at_once(tmp_path: Path) -> None:
    mpi = any_mpi()
    nodes = [machine(tmp_path, name=f"node{i}") for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda node: libraries_path(3, 4, mpi, node), nodes))
    assert len(set(made)) == 1
    assert sorted(path.name for path in made[0].iterdir()) == [
        f"libparibus_{i:04d}.so" for i in range(3)
    ]
    assert list(made[0].parent.iterdir()) == [made[0]]
    assert made[0].name == libraries_path(3, 4, mpi, HERE).name


def test_no_compiler_there(tmp_path: Path) -> None:
    mpi = any_mpi()
    for program in Path("/usr/bin").iterdir():
        if not any(word in program.name for word in ("g++", "gcc", "c++", "cc", "clang", "cpp")):
            (tmp_path / program.name).symlink_to(program)
    node = machine(tmp_path, PATH=str(tmp_path))
    with pytest.raises(UserError, match=f"^node1: {mpi.mpicxx}: the C.. compiler behind") as caught:
        kernel_path("barrier", mpi, node)
    assert "g++" in caught.value.fix


def test_a_command_that_fails_is_said_with_the_log_there(node: HostMachine, tmp_path: Path) -> None:
    target = tmp_path / "cache" / "kernels" / "thing-1"
    failing = ["sh", "-c", "echo tried; echo 'x.cpp:2: error: no x' >&2; exit 1"]
    with pytest.raises(
        UserError, match=r"^node1: thing: does not compile with sh: x.cpp:2"
    ) as caught:
        node.build(target, {"common/x.hpp": b"\0\xff"}, [["cat", "common/x.hpp"], failing], {})
    log = target.with_name("thing-1.log")
    assert caught.value.fix == f"the full log is node1: {log}"
    assert "tried\nx.cpp:2: error" in log.read_text()
    assert list(log.parent.iterdir()) == [log]


def test_a_build_whose_paribus_is_killed_ends_there_and_leaves_nothing(
    tmp_path: Path, shell: str
) -> None:
    code = (
        "import sys; from pathlib import Path; from paribus.hosts.reached import Host;"
        "from paribus.hosts.host_machine import HostMachine;"
        "slow = ['sh', '-c', 'sleep 300.25; true', sys.argv[1]];"
        "node = HostMachine(Host('node1', tuple(sys.argv[2:])));"
        "node.build(Path(sys.argv[1]), {}, [slow], {})"
    )
    target = tmp_path / "kernels" / "slow-1"
    with subprocess.Popen([sys.executable, "-c", code, str(target), *shell.split()]) as process:
        while not list(target.parent.glob(".building-*/build.out")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    assert gone(str(target))
    deadline = time.monotonic() + 10
    while list(target.parent.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(target.parent.iterdir()) == []
    assert gone("300.25")


def test_a_signal_before_the_number_of_a_step_is_known_ends_the_step(shell: str) -> None:
    """The shell is interrupted between the start of a step and the line after it."""
    functions = Path(host_machine.__file__).parent / "sh" / "machine.sh"
    script = f". {functions}; job=starting; sleep 298.75 & kill $$; sleep 60"
    with subprocess.Popen(
        [*shell.split(), "-c", f"token=t last=l; {script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:  # while somebody listens
        assert process.wait(30) == 1
    try:
        assert gone("298.75")
    finally:
        for pid in processes_with("298.75"):
            os.kill(pid, signal.SIGKILL)


def test_a_draft_that_lost_its_shell_is_removed_after_a_day(
    node: HostMachine, tmp_path: Path
) -> None:
    new, old = tmp_path / ".building-new", tmp_path / ".building-old"
    for draft in (new, old):
        draft.mkdir()
        (draft / "made").write_text("")
    os.utime(old, (0, 0))
    node.build(tmp_path / "made", {"a": b"text"}, [["cp", "a", "made"]], {})
    assert sorted(tmp_path.iterdir()) == [new, tmp_path / "made"]


def changed(path: Path, how: str) -> Callable[[], None]:
    """Change `path` as `how` says; returns what undoes it."""
    before = path.stat()
    if how == "owner":
        os.chown(path, 65534, 65534)
    elif how == "group":
        os.chown(path, -1, 65534)
        path.chmod(stat.S_IMODE(before.st_mode) | 0o020)
    else:
        path.chmod(stat.S_IMODE(before.st_mode) | int(how, 8))

    def undo() -> None:
        os.chown(path, before.st_uid, before.st_gid)
        path.chmod(stat.S_IMODE(before.st_mode))

    return undo


@pytest.mark.parametrize("how", ["0002", "0020", "1002", "group", "owner"])
def test_a_cache_that_others_can_change_is_refused_as_here(how: str, tmp_path: Path) -> None:
    if how in ("group", "owner") and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    node = machine(tmp_path)
    real, link = tmp_path / "real", tmp_path / "link"
    folder = real / "deep"
    target = link / "deep" / "libraries" / "lib-1"
    folder.mkdir(parents=True)
    link.symlink_to("../" + tmp_path.name + "/./real")
    make = ["sh", "-c", "mkdir made && echo x >made/x.so"]
    node.build(target, {}, [make], {})
    inside = folder / "libraries" / "lib-1"
    for path in (real, folder, inside.parent, inside, inside / "x.so"):
        undo = changed(path, how)
        here = why_not(path if path == inside / "x.so" else target)
        try:
            if not here:
                node.build(target, {}, [make], {})
                assert node.digests(target)
                continue
            for question in (
                lambda: node.build(target, {}, [make], {}),
                lambda: node.digests(target),
            ):
                with pytest.raises(
                    UserError, match=f"^node1: {target}: others could change"
                ) as caught:
                    question()
                assert str(path.name) in caught.value.cause
                assert "PARIBUS_CACHE" in caught.value.fix
        finally:
            undo()
    node.build(target, {}, [make], {})


def test_in_a_user_namespace_what_is_root_s_belongs_to_nobody(shell: str) -> None:
    """So it is for an ordinary user on pocket hosts: a cache below such files is the user's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        become = []
        if os.geteuid() == 0:
            become = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
            os.chown(folder, 12345, 12345)
        become += ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*become, "true"], check=False).returncode:
            pytest.skip("no user namespaces for ordinary users here")
        node = machine(Path(folder), *become, *shell.split())
        target = Path(folder, "cache", "made")
        node.build(target, {}, [["touch", "made"]], {})
        assert node.executables([target]) == [target]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    node = machine(tmp_path, PARIBUS_CACHE=str(tmp_path / "file" / "cache"))
    with pytest.raises(
        UserError, match=f"^node1: {tmp_path}/file/cache/kernels: .*cannot be written"
    ):
        node.build(node.cache() / "kernels" / "x-1", {}, [["true"]], {})


# --- other hosts ----------------------------------------------------------------------------------


def own_disk(tmp_path: Path, name: str, mount: str) -> HostMachine:
    """Return a machine that has its own file system at /PLACE, which `mount` puts there."""
    (tmp_path / name).mkdir()
    (tmp_path / "place").mkdir(exist_ok=True)
    enter = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    text = f"{mount} && exec /bin/sh"
    shell = (*enter, text, "sh", str(tmp_path / name), str(tmp_path / "place"))
    if subprocess.run([*shell], input=b"", capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces")
    return HostMachine(Host(name, shell))


BIND = 'mount --bind "$1" "$2"'


def test_a_kernel_is_sent_where_it_is_not(
    compiled: tuple[HostMachine, Path], tmp_path: Path
) -> None:
    _, kernel = compiled
    source = own_disk(tmp_path, "node1", BIND)
    others = [own_disk(tmp_path, f"node{i}", BIND) for i in range(2, 5)]
    path = tmp_path / "place" / "kernels" / kernel.name
    mine = tmp_path / "node1" / "kernels" / kernel.name
    mine.parent.mkdir()
    shutil.copy(kernel, mine)
    damaged = tmp_path / "node3" / "kernels" / kernel.name
    damaged.parent.mkdir()
    damaged.write_bytes(kernel.read_bytes()[:-1])
    shared = HostMachine(Host("shared", source.host.shell))
    before = mine.stat().st_ino
    send(path, source, [*others, shared])
    for i in range(2, 5):
        sent = tmp_path / f"node{i}" / "kernels" / kernel.name
        assert sent.read_bytes() == kernel.read_bytes()
        assert stat.S_IMODE(sent.stat().st_mode) == 0o755
        assert list(sent.parent.iterdir()) == [sent]
    assert mine.stat().st_ino == before
    there = {
        one: (tmp_path / one / "kernels" / kernel.name).stat().st_ino for one in ("node2", "node3")
    }
    send(path, source, others)
    assert {one: (tmp_path / one / "kernels" / kernel.name).stat().st_ino for one in there} == there
    assert source.digests(path) == {kernel.name: hashlib.sha256(kernel.read_bytes()).hexdigest()}


def test_a_directory_is_sent_too(tmp_path: Path) -> None:
    source, other = (own_disk(tmp_path, name, BIND) for name in ("node1", "node2"))
    path = tmp_path / "place" / "libraries" / "2x3"
    files = {f"{name}.so": os.urandom(200_000) for name in ("a", "it's b")}
    source.put(path, files, directory=True)
    for _ in range(2):
        send(path, source, [other])
        assert other.contents(path) == files
        (tmp_path / "node2" / "libraries" / "2x3" / "a.so").write_bytes(b"damaged")


def test_a_host_on_which_nothing_can_be_placed_is_named(tmp_path: Path) -> None:
    source = own_disk(tmp_path, "node1", BIND)
    full = own_disk(tmp_path, "full", 'mount -t tmpfs -o size=64k,mode=755 none "$2"')
    locked = own_disk(tmp_path, "locked", f'{BIND} && mount -o remount,bind,ro "$2"')
    path = tmp_path / "place" / "kernels" / "x-1"
    source.put(path, {"x-1": os.urandom(100_000)}, directory=False)
    with pytest.raises(UserError, match=r"^full: .*kernels: .*cannot be written: .*No space left"):
        send(path, source, [full])
    with pytest.raises(UserError, match=r"^locked: .*kernels: .*cannot be written: .*Read-only"):
        send(path, source, [locked])
    (tmp_path / "node1" / "kernels" / "x-1").unlink()
    with pytest.raises(UserError, match=r"^node1: .*x-1: is not there any more"):
        send(path, source, [full])
    with pytest.raises(UserError, match=r"^full: .*cannot be written: .*No space left"):
        full.build(path, {}, [["sh", "-c", "head -c 100000 /dev/zero >made"]], {})
