"""Containers for real: MPI over their bridge, and nothing left behind however a launch ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paribus import containers
from paribus.containers.fabric import MOST_HOSTS, address, hosts_file
from paribus.host import Captured, capture
from paribus.model import Command, Container

USER = 12345
ENGINES = ("namespace", "podman")
PROGRAM = """\
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, ranks;
  char host[64];
  static char buffer[1 << 20];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gethostname(host, sizeof host);
  for (int i = 0; i < 16; i++)
    MPI_Sendrecv_replace(buffer, sizeof buffer, MPI_CHAR, (rank + 1) % ranks, 0,
                         (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long received = -1;
  FILE *file = fopen("/sys/class/net/eth0/statistics/rx_bytes", "r");
  if (file && fscanf(file, "%ld", &received) != 1) received = -2;
  printf("rank %d of %d on %s received %ld\\n", rank, ranks, host, received);
  fflush(stdout);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
"""


# --- who, where, with what -----------------------------------------------------------------------


@dataclass(frozen=True)
class Mpi:
    family: str
    mpicxx: str
    mpirun: str


def find_mpis() -> list[Mpi]:
    """Return every MPI in reach: on the PATH, beside the interpreter, or named by the variable."""
    folders = [Path(p, "bin") for p in os.environ.get("PARIBUS_TEST_MPI", "").split(":") if p]
    folders.append(Path(sys.executable).parent)
    if on_path := shutil.which("mpicxx"):
        folders.append(Path(on_path).parent)
    found = {}
    for folder in folders:
        mpicxx, mpirun = folder / "mpicxx", folder / "mpirun"
        if mpicxx.exists() and mpirun.exists():
            said = capture([str(mpirun), "--version"]).stdout
            family = "openmpi" if "Open MPI" in said else "mpich" if "HYDRA" in said else ""
            if family:
                found.setdefault(family, Mpi(family, str(mpicxx), str(mpirun)))
    return list(found.values())


MPIS = find_mpis()


@pytest.fixture(params=["root", "user"])
def identity(request: pytest.FixtureRequest) -> list[str]:
    """What to put before a command so that root, or an ordinary user, carries it out."""
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("not root")
        return []
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed: the tests cannot become an ordinary user")
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that an ordinary user can reach, which pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="paribus-containers-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


class Launch:
    """A command in a container, prepared as host.py would, by whoever `identity` is."""

    def __init__(
        self, identity: list[str], folder: Path, engine: str, each: str, ranks: int = 2
    ) -> None:
        self.identity = identity
        self.mark = f"{engine}-{uuid.uuid4().hex[:12]}"
        self.scratch = folder / self.mark
        self.scratch.mkdir()
        self.scratch.chmod(0o777)
        self.engine, self.each, self.ranks = engine, each, ranks
        self.container = Container(
            engine, each=each, network="bridge" if each == "host" else "host"
        )
        self.env = {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "HOME": str(self.scratch),
            "PARIBUS_TEST_MARK": self.mark,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        forbidden = containers.check(self.container, self.capture)
        if forbidden:
            pytest.skip(forbidden)

    def capture(self, argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        """Carry out a command of `check`, whose files belong to whoever made them: root."""
        if self.identity:
            for path in Path(tempfile.gettempdir()).glob("paribus-check-*"):
                os.chown(path, USER, USER)
                for file in path.iterdir():
                    os.chown(file, USER, USER)
        return capture([*self.identity, *argv], timeout_s=timeout_s, env=self.env)

    def place(self) -> containers.Placement:
        return containers.placement(
            self.container, ranks=self.ranks, cores=(), scratch=str(self.scratch)
        )

    def prepare(self, command: Command) -> list[str]:
        """Write the files of `command` and return its argv."""
        for name, text in command.files.items():
            (self.scratch / name).write_text(text)
            (self.scratch / name).chmod(0o755)
        self.env |= command.env
        return [*self.identity, *command.argv]

    def wrapped(self, *argv: str) -> list[str]:
        return self.prepare(
            containers.wrap_launcher(
                Command(argv), self.container, ranks=self.ranks, scratch=str(self.scratch)
            )
        )

    def start(self, argv: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            argv,
            env=self.env,
            cwd=self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        with self.start(argv) as process:
            try:
                out, err = process.communicate(timeout=90)
            except subprocess.TimeoutExpired:
                self.end()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def launch(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.finish(self.wrapped(*argv))

    def in_container(self, name: str, command: str) -> str:
        """Return a shell command that carries `command` out in the container `name`."""
        return f'{self.place().agent} {name} "{command}"'

    def processes(self) -> dict[int, set[str]]:
        """Return the namespaces of every process of this launch, by pid."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if (
                    self.mark.encode()
                    in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                ):
                    found[int(entry.name)] = namespaces(entry)
            except OSError:
                continue
        return found

    def end(self) -> None:
        """Kill what a failed test would leave."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def namespaces(process: Path) -> set[str]:
    found = set()
    for link in (process / "ns").iterdir():
        try:
            found.add(str(link.readlink()))
        except OSError:
            continue
    return found


def traces() -> set[str]:
    """Return what podman, its plugins and MPI are known to leave on a machine, as it is now."""
    places = {
        "/run/netns": "*",
        "/run": "*libpod*",
        "/run/libpod": "*",
        "/var/lib/cni": "*/*",
        "/var/lib/containers": "*/*",
        "/etc/cni/net.d": "*",
        "/dev/shm": "*libpod*",
        "/tmp": "*pr[dt]e*",
        "/sys/fs/cgroup": "**/*libpod*",
    }
    found = {str(p) for place, what in places.items() for p in Path(place).glob(what)}
    # An ordinary user's files are these tests' own, unless a rank on this machine made them.
    for place in ("/tmp", "/var/tmp", "/run"):
        for path in Path(place).iterdir():
            try:
                if path.stat().st_uid == USER:
                    found.add(str(path))
            except OSError:
                continue
    found |= {f"interface {name}" for _, name in socket.if_nameindex()}
    found.add(f"ip_forward {Path('/proc/sys/net/ipv4/ip_forward').read_text()}")
    return found


def nothing_left(launch: Launch, before: set[str], seen: set[str]) -> None:
    """Demand that processes, namespaces, mounts and traces of `launch` are gone, within 5 s."""
    own = namespaces(Path("/proc/self"))
    deadline = time.monotonic() + 5
    while True:
        alive = launch.processes()
        spaces = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    spaces |= namespaces(entry)
                except OSError:
                    continue
        left = (seen - own) & spaces
        if not alive and not left:
            break
        assert time.monotonic() < deadline, (alive, left)
        time.sleep(0.02)
    assert launch.mark not in Path("/proc/self/mountinfo").read_text()
    new = {t for t in traces() - before if not t.startswith("interface ")}
    assert not new
    assert not {n for _, n in socket.if_nameindex()} & {"br0", "c1", "c2"}
    shutil.rmtree(launch.scratch)


# --- what is asked for ---------------------------------------------------------------------------


def test_one_container_per_rank_with_a_name_and_an_address() -> None:
    where = containers.placement(
        Container("namespace"), ranks=3, cores=(0, 1, 2), scratch="/scratch"
    )
    assert where.hosts == (("c1", 1), ("c2", 1), ("c3", 1))
    assert where.agent == "/scratch/agent.sh"
    assert where.network == "10.77.0.0/16"
    assert where.cores == (0, 1, 2)


def test_a_container_around_a_rank_leaves_the_placement_to_this_machine() -> None:
    rank = Container("namespace", each="rank", network="host")
    where = containers.placement(rank, ranks=2, cores=(0, 1), scratch="/scratch")
    assert (where.hosts, where.agent, where.network, where.cores) == ((), None, None, (0, 1))


def test_addresses_and_names_are_unique() -> None:
    addresses = [address(i) for i in range(1, MOST_HOSTS + 1)]
    assert len(set(addresses)) == MOST_HOSTS
    assert addresses[0] == "10.77.0.1"
    for text in addresses:
        socket.inet_aton(text)
        assert all(1 <= int(part) <= 250 for part in text.split(".")[3:])
    assert hosts_file(2).splitlines()[1:] == [
        "10.77.255.254 fabric",
        "10.77.0.1 c1",
        "10.77.0.2 c2",
    ]


@pytest.mark.parametrize(
    ("engine", "each", "network"),
    [
        ("namespace", "rank", "bridge"),
        ("namespace", "host", "host"),
        ("podman", "host", "host"),
        ("podman", "rank", "bridge"),
        ("podman", "rank", "host"),
    ],
)
def test_what_cannot_be_is_refused_with_the_mend(engine: str, each: str, network: str) -> None:
    container = Container(engine, each=each, network=network)
    with pytest.raises(ValueError, match="use"):
        containers.placement(container, ranks=2, cores=(), scratch="/s")
    with pytest.raises(ValueError, match="use"):
        containers.wrap_program(Command(("p",)), container, scratch="/s")
    with pytest.raises(ValueError, match="use"):
        containers.wrap_launcher(Command(("p",)), container, ranks=2, scratch="/s")
    assert "use" in (containers.check(container, capture) or "")


def test_a_wrapper_is_not_put_in_the_other_place() -> None:
    with pytest.raises(ValueError, match="around the launcher"):
        containers.wrap_program(Command(("p",)), Container("namespace"), scratch="/s")
    with pytest.raises(ValueError, match="around the program"):
        containers.wrap_launcher(
            Command(("p",)),
            Container("namespace", each="rank", network="host"),
            ranks=2,
            scratch="/s",
        )


def test_an_image_for_namespaces_is_refused() -> None:
    with pytest.raises(ValueError, match="podman"):
        containers.placement(
            Container("namespace", image="debian"), ranks=1, cores=(), scratch="/s"
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wrapped_command_keeps_its_own_words_environment_and_files(engine: str) -> None:
    command = Command(("mpirun", "a b", "$x"), env={"A": "1"}, files={"own": "text"})
    wrapped = [containers.wrap_launcher(command, Container(engine), ranks=2, scratch="/s")]
    if engine == "namespace":
        rank = Container(engine, each="rank", network="host")
        wrapped.append(containers.wrap_program(command, rank, scratch="/s"))
    for one in wrapped:
        assert one.argv[-3:] == command.argv
        assert one.env["A"] == "1"
        assert one.files["own"] == "text"


# --- inside --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_every_container_has_a_name_address_and_files_of_its_own(
    engine: str, identity: list[str], folder: Path
) -> None:
    launch = Launch(identity, folder, engine, "host")
    before = traces()
    look = (
        "hostname; hostname -I; tail -n1 /etc/hosts; pwd; ls /dev/shm \\$TMPDIR;"
        " touch /dev/shm/left.shm \\$TMPDIR/mine; ls -d /proc/[0-9]*"
    )
    text = f"{launch.in_container('c1', look)}; echo ---; {launch.in_container('c2', look)}; exit 7"
    done = launch.launch("/bin/sh", "-c", text)
    assert done.returncode == 7, done.stderr
    assert done.stderr == ""
    first, second = done.stdout.split("---\n")
    assert first.splitlines()[:2] == ["c1", "10.77.0.1 "]
    assert second.splitlines()[:2] == ["c2", "10.77.0.2 "]
    for part in (first, second):
        assert part.splitlines()[2:4] == ["10.77.0.2 c2", str(launch.scratch)]
        assert "mine" not in part
        assert ".shm" not in part
        assert f"/proc/{os.getpid()}" not in part.split()
    nothing_left(launch, before, set())


@pytest.mark.parametrize("engine", ENGINES)
def test_words_with_spaces_and_quotes_reach_the_launcher_whole(
    engine: str, identity: list[str], folder: Path
) -> None:
    launch = Launch(identity, folder, engine, "host", ranks=1)
    done = launch.launch("/bin/sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "'", '"', "$x")
    assert done.stdout == "a b|'|\"|$x|", done.stderr
    assert done.returncode == 0


def test_a_scratch_directory_with_a_space(identity: list[str], folder: Path) -> None:
    spaced = folder / "a b"
    spaced.mkdir(exist_ok=True)
    launch = Launch(identity, spaced, "namespace", "host", ranks=1)
    done = launch.launch(str(launch.scratch / "agent.sh"), "c1", "hostname; echo $TMPDIR")
    assert done.stdout.splitlines()[0] == "c1", done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_a_first_packet_is_never_lost(engine: str, identity: list[str], folder: Path) -> None:
    """A link that does not forward yet costs the first connection a second (see namespace.sh)."""
    listen = (
        "import socket; s = socket.create_server(('', 5000));"
        " c, _ = s.accept(); c.sendall(b'x'); c.recv(1)"
    )
    connect = """
import socket, sys, time
while True:
    begin = time.monotonic()
    try:
        socket.create_connection(('c2', 5000)).recv(1)
        break
    except ConnectionRefusedError:
        time.sleep(0.001)
print(time.monotonic() - begin)
"""
    for _ in range(10 if engine == "namespace" else 2):
        launch = Launch(identity, folder, engine, "host")
        (launch.scratch / "listen.py").write_text(listen)
        (launch.scratch / "connect.py").write_text(connect)
        for name in ("listen.py", "connect.py"):
            (launch.scratch / name).chmod(0o755)
        agent, python = launch.place().agent, "/usr/bin/env python3"
        done = launch.launch(
            "/bin/sh",
            "-c",
            f"{agent} c2 {python} {launch.scratch}/listen.py &"
            f" exec {agent} c1 {python} {launch.scratch}/connect.py",
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 0.5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change settings to be taken over")
@pytest.mark.parametrize("engine", ENGINES)
def test_containers_take_the_tcp_settings_of_the_machine(engine: str, folder: Path) -> None:
    launch = Launch([], folder, engine, "host", ranks=1)
    settings = {
        "tcp_congestion_control": "reno",
        "tcp_rmem": "4096\t70000\t700000",
        "tcp_sack": "0",
    }
    change = "; ".join(f"printf '{v}' >/proc/sys/net/ipv4/{k}" for k, v in settings.items())
    show = "cd /proc/sys/net/ipv4; cat " + " ".join(settings)
    argv = launch.wrapped(str(launch.place().agent), "c1", show)
    done = launch.finish(["unshare", "--net", "/bin/sh", "-c", f'{change}; exec "$@"', "sh", *argv])
    assert done.stdout.splitlines() == list(settings.values()), done.stderr
    assert done.stderr == ""


# --- MPI -----------------------------------------------------------------------------------------


@pytest.fixture(params=MPIS or [None], ids=lambda m: m.family if m else "no-mpi", scope="module")
def program(request: pytest.FixtureRequest, folder: Path) -> tuple[Mpi, str]:
    """The compiled test program and the MPI that it belongs to."""
    mpi: Mpi | None = request.param
    if mpi is None:
        pytest.skip("no MPI found: set PARIBUS_TEST_MPI to its prefix")
    source, binary = folder / "program.cpp", folder / f"program.{mpi.family}"
    source.write_text(PROGRAM)
    done = capture([mpi.mpicxx, "-O1", "-o", str(binary), str(source)])
    if done.exit_code:
        pytest.skip(f"{mpi.mpicxx} compiles nothing: {done.stderr}")
    return mpi, str(binary)


def reachable(launch: Launch, mpi: Mpi) -> None:
    if launch.capture([mpi.mpirun, "--version"]).exit_code:
        pytest.skip(f"{mpi.mpirun} is out of reach for an ordinary user")


def over_tcp(launch: Launch, mpi: Mpi, *argv: str) -> list[str]:
    """Return the launcher's argv, written by hand: as in docs/containers.md."""
    where = launch.place()
    hosts = ",".join(f"{name}:{ranks}" for name, ranks in where.hosts)
    if mpi.family == "mpich":
        own = ["-launcher", "rsh", "-launcher-exec", str(where.agent), "-hosts", hosts]
        own += ["-iface", "br0", "-ppn", "1", "-bind-to", "none"]
    else:
        own = ["-H", hosts, "--prtemca", "plm_ssh_agent", str(where.agent), "--bind-to", "none"]
        own += ["--prtemca", "prte_if_include", str(where.network)]
        own += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        own += ["--mca", "btl_tcp_if_include", str(where.network)]
    return [mpi.mpirun, "-n", str(launch.ranks), *own, *argv]


@pytest.mark.parametrize("engine", ENGINES)
def test_mpi_talks_over_the_bridge(
    engine: str, identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, engine, "host")
    reachable(launch, mpi)
    before = traces()
    done = launch.launch(*over_tcp(launch, mpi, binary))
    assert done.returncode == 0, done.stderr
    ranks = re.findall(r"rank (\d) of 2 on (c\d) received (\d+)", done.stdout)
    assert sorted((rank, host) for rank, host, _ in ranks) == [("0", "c1"), ("1", "c2")]
    for _, _, received in ranks:
        assert int(received) > 16 << 20
    nothing_left(launch, before, set())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_that_fails_fails_the_launch(
    engine: str, identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, engine, "host")
    reachable(launch, mpi)
    before = traces()
    done = launch.launch(*over_tcp(launch, mpi, binary, "3"))
    assert done.returncode == 3, (done.stdout, done.stderr)
    nothing_left(launch, before, set())


def test_a_container_around_every_rank(
    identity: list[str], folder: Path, program: tuple[Mpi, str]
) -> None:
    mpi, binary = program
    launch = Launch(identity, folder, "namespace", "rank")
    reachable(launch, mpi)
    before = traces()
    wrapped = containers.wrap_program(
        Command((binary,)), launch.container, scratch=str(launch.scratch)
    )
    argv = launch.prepare(wrapped)[len(identity) :]
    show = ["/bin/sh", "-c", 'readlink /proc/self/ns/mnt; exec "$@"', "sh", binary]
    argv[argv.index(binary) :] = show
    own = ["--oversubscribe", "--bind-to", "none"] if mpi.family == "openmpi" else ["-ppn", "2"]
    done = launch.finish([*identity, mpi.mpirun, "-n", "2", *own, *argv])
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert sorted(re.findall(r"rank (\d of 2) on", done.stdout)) == ["0 of 2", "1 of 2"]
    mounts = set(re.findall(r"mnt:\[\d+\]", done.stdout))
    assert len(mounts - namespaces(Path("/proc/self"))) == 2
    nothing_left(launch, before, set())


IMAGE = """\
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /var/lib
[ ! -d /etc/cni ] || mount -t tmpfs tmpfs /etc/cni
cd "$1"
mkdir -p root/bin store
for program in sh cat hostname env; do
    cp "$(readlink -f "$(command -v $program)")" root/bin/$program
done
for library in $(ldd root/bin/* "$2" "$3" | grep -o '[[:space:]]/[^ ]*' | sort -u); do
    case $library in /lib/* | /lib64/* | /usr/lib/*) ;; *) continue ;; esac
    mkdir -p "root${library%/*}"
    cp "$(readlink -f "$library")" "root$library"
done
touch root/from-the-image
tar -C root -c . |
    podman --root "$1/store" --runroot /run/x --storage-driver overlay import -q - localhost/paribus
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="images are tested in root's store")
@pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed")
def test_containers_from_an_image(folder: Path, program: tuple[Mpi, str]) -> None:
    mpi, binary = program
    launch = Launch([], folder, "podman", "host")
    before = traces()
    where = folder / f"image-{mpi.family}"
    where.mkdir()
    made = capture(
        ["unshare", "--mount", "/bin/sh", "-c", IMAGE, "sh", str(where), mpi.mpirun, binary],
        timeout_s=120,
    )
    assert made.exit_code == 0, made.stderr
    launch.container = Container("podman", image="localhost/paribus")
    text = f"hostname; cat /from-the-image && exec {binary}"
    argv = launch.wrapped(*over_tcp(launch, mpi, "/bin/sh", "-c", text, binary))
    # The machine's own store stays as it is: another is mounted in its place.
    machine = (
        'set -e; mkdir -p "$0/lib/containers/storage"; mount --bind "$0/lib" /var/lib'
        '; mount --bind "$0/store" /var/lib/containers/storage; exec "$@"'
    )
    done = launch.finish(["unshare", "--mount", "/bin/sh", "-c", machine, str(where), *argv])
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert sorted(re.findall(r"rank (\d of 2 on c\d)", done.stdout)) == [
        "0 of 2 on c1",
        "1 of 2 on c2",
    ]
    nothing_left(launch, before, set())


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["term", "kill-group", "kill-outermost", "kill-starter"])
def test_nothing_is_left_however_it_ends(
    how: str, engine: str, identity: list[str], folder: Path
) -> None:
    launch = Launch(identity, folder, engine, "host")
    before = traces()
    inside = launch.in_container("c1", "echo inside; sleep 600")
    other = launch.in_container("c2", "sleep 600")
    argv = launch.wrapped("/bin/sh", "-c", f"{other} & {inside} & wait")
    if how == "kill-starter":
        argv = ["/bin/sh", "-c", '"$@" & wait', "sh", *argv]
    process = launch.start(argv)
    try:
        end(how, launch, process, before)
    finally:
        launch.end()
        process.communicate()


def end(how: str, launch: Launch, process: subprocess.Popen[str], before: set[str]) -> None:
    """Wait until `launch` is in its container, end it, and demand that nothing is left."""
    assert process.stdout is not None
    assert process.stdout.readline() == "inside\n", process.stderr and process.stderr.read()
    running = launch.processes()
    seen = set().union(*running.values())
    assert len(seen - namespaces(Path("/proc/self"))) >= 5
    begin = time.monotonic()
    if how == "term":
        os.killpg(process.pid, signal.SIGTERM)
    elif how == "kill-group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    code = process.wait(timeout=5)
    assert time.monotonic() - begin < 10
    assert code in ((-signal.SIGTERM, 128 + signal.SIGTERM) if how == "term" else (-9,))
    nothing_left(launch, before, seen)


# --- where it is forbidden -----------------------------------------------------------------------


def forbidden_by(settings: str, container: Container) -> str:
    """Return what `check` says to someone without rights where `settings` were made."""
    ready = capture(["unshare", "--user", "--map-root-user", "true"])
    if ready.exit_code:
        pytest.skip(f"no user namespace to forbid things in: {ready.stderr}")

    def confined(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        return capture(
            [
                *["unshare", "--user", "--map-root-user", "/bin/sh", "-c"],
                *[f'{settings}\nexec "$@"', "sh"],
                *["setpriv", "--bounding-set=-all", "--inh-caps=-all", *argv],
            ],
            timeout_s=timeout_s,
        )

    return containers.check(container, confined) or "works"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("setting", ["user.max_user_namespaces", "user.max_net_namespaces"])
def test_the_setting_that_forbids_namespaces_is_named(setting: str, engine: str) -> None:
    path = "/proc/sys/" + setting.replace(".", "/")
    said = forbidden_by(f"echo 0 >{path}", Container(engine))
    assert f"{setting} is 0" in said
    assert f"sysctl {setting}=" in said


@pytest.mark.parametrize(
    "missing", ["unshare", "nsenter", "mount", "ip", "hostname", "podman", "runc"]
)
def test_a_missing_tool_is_named(missing: str, tmp_path: Path) -> None:
    if missing in ("podman", "runc") and not shutil.which("podman"):
        pytest.skip("podman is not installed")
    hidden = {missing, "crun"} if missing == "runc" else {missing}
    for place in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for tool in Path(place).iterdir():
            if tool.name not in hidden and not (tmp_path / tool.name).exists():
                (tmp_path / tool.name).symlink_to(tool)
    engine = "podman" if missing in ("podman", "runc") else "namespace"

    def without(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        return capture(argv, timeout_s=timeout_s, env={"PATH": str(tmp_path)})

    said = containers.check(Container(engine), without) or "works"
    assert missing in said
    assert "install" in said


@pytest.mark.parametrize(
    ("printed", "said", "expected"),
    [
        (
            "namespace\nuser/max_user_namespaces 1\nkernel/unprivileged_userns_clone 0\n",
            "unshare: unshare failed: Operation not permitted",
            "sysctl kernel.unprivileged_userns_clone=1",
        ),
        (
            "mount /proc\nkernel/apparmor_restrict_unprivileged_userns 1\n",
            "mount: /proc: permission denied.",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("namespace\n", "unshare: unshare failed: Operation not permitted", "CAP_SYS_ADMIN"),
        ("mount /proc\n", "mount: /proc: permission denied.", "unmask=ALL"),
        ("link bridge\n", "RTNETLINK answers: Operation not supported", "modprobe bridge"),
        ("old --kill-child\n", "", "2.32"),
    ],
)
def test_what_other_machines_forbid_is_named(printed: str, said: str, expected: str) -> None:
    """Answers that this machine cannot give, as their kernels give them."""

    def answer(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        return Captured(1, printed, said)

    sentence = containers.check(Container("namespace"), answer)
    assert sentence is not None
    assert expected in sentence
    assert "\n" not in sentence
