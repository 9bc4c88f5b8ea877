"""Engines that make containers of images: their command lines, refusals, and real ranks in them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from containers.fabrics import namespaces, traces
from mpis import any_mpi, installations
from paribus import containers
from paribus.benchmarks import BENCHMARKS
from paribus.containers import images
from paribus.core import Arm, Command, Container, Engine, Mpi, Request, Selection, StudyError
from paribus.launch.arms import Ready, asked_of, compose
from paribus.launch.local import Captured, LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.toolchain import kernel_path
from paribus.studyfile.load import load_study
from processes import executable
from stations import launched
from studies import write_arms

HERE_NOW = str(Path.cwd())
PRINT = '#!/bin/sh\nprintf "%s\\n" "$@"\n'
DOCKER = Container("docker", network="host", each="rank", image="debian:12")
OPENMPI = Mpi("openmpi", (5, 0, 11), "/opt/mpi/bin/mpicxx", "/opt/mpi/bin/mpirun")


def started(container: Container, folder: Path, *, prefix: str = "", **env: str) -> list[str]:
    """Return the words with which an engine is started for `prog`, and what it puts before them.

    The engine prints them: neither docker's service nor apptainer is on the machines of the tests.
    """
    name = images.PROGRAMS[container.engine]
    executable(folder / name, PRINT)
    (folder / "prog").mkdir(exist_ok=True)
    given = {"PATH": f"{folder}:/usr/bin:/bin", "OMPI_RANK": "1", **env}
    wrapped = containers.wrap_program(
        Command((str(folder / "prog"), "a b"), env={"PATH_OF": "x"}),
        container,
        scratch=f"{folder}/sitting/1",
        prefix=prefix,
    )
    done = capture(["env", "-i", *(f"{k}={v}" for k, v in given.items()), *wrapped.argv])
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def limits() -> dict[str, str]:
    """Return soft:hard of each limit of this process, as engines take them."""
    found = {}
    for line in Path("/proc/self/limits").read_text().replace("unlimited", "-1").splitlines():
        words = line[26:].split()
        found[line[:26].strip()] = ":".join(words[:2])
    return found


def test_the_command_line_of_docker(tmp_path: Path) -> None:
    words = started(DOCKER, tmp_path, HOME="/nowhere", HOSTNAME="x")
    name = words.pop(words.index("--name") + 1)
    assert name.startswith("paribus-")
    own = ["run", "--rm", "--pull", "never", "--entrypoint", ""]
    own += ["--network", "host", "--pid", "host", "--ipc", "host"]
    own += ["--security-opt", "label=disable", "--name"]
    assert words[: len(own)] == own
    rest = words[len(own) :]
    had = limits()
    assert rest[:4] == ["--workdir", HERE_NOW, "--user", f"{os.getuid()}:{os.getgid()}"]
    given = [rest[i + 1] for i, word in enumerate(rest) if word == "--ulimit"]
    assert set(given) == {
        f"nofile={had['Max open files']}",
        f"memlock={had['Max locked memory']}",
        f"stack={had['Max stack size']}",
        f"nproc={had['Max processes']}",
    }
    # The launcher's variables, not the machine's places: the image has its own.
    assert [rest[i + 1] for i, word in enumerate(rest) if word == "--env"] == ["OMPI_RANK"]
    bound = [rest[i + 1] for i, word in enumerate(rest) if word == "--volume"]
    assert set(bound) == {f"{p}:{p}" for p in (f"{tmp_path}/sitting", f"{tmp_path}/prog", HERE_NOW)}
    assert rest[-3:] == ["debian:12", f"{tmp_path}/prog", "a b"]


def test_podman_takes_the_command_line_of_docker() -> None:
    podman = replace(DOCKER, engine="podman")
    assert images.own_words(podman) == images.own_words(DOCKER)


def test_the_command_line_of_apptainer(tmp_path: Path) -> None:
    container = Container(
        "apptainer", network="none", each="rank", image="/i.sif", gpu="nvidia",
        devices=("/dev/infiniband",), options=("--writable-tmpfs",),
    )  # fmt: skip
    words = started(container, tmp_path)
    begin = ["exec", "--net", "--network", "none", "--nv", "--bind", "/dev/infiniband", "--pwd"]
    assert words[: len(begin) + 1] == [*begin, HERE_NOW]
    assert words[-4:] == ["--writable-tmpfs", "/i.sif", f"{tmp_path}/prog", "a b"]
    place = f"{tmp_path}/sitting"
    assert words[words.index(f"{place}:{place}") - 1] == "--bind"


@pytest.mark.parametrize(
    ("gpu", "engine", "words"),
    [
        ("nvidia", "docker", ["--gpus", "all"]),
        ("nvidia", "podman", ["--device", "nvidia.com/gpu=all"]),
        ("amd", "docker", ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video"]),
        ("amd", "singularity", ["--rocm"]),
    ],
)
def test_gpus_are_the_engine_s_own_options(gpu: Any, engine: Engine, words: list[str]) -> None:
    container = replace(DOCKER, engine=engine, gpu=gpu)
    text = " ".join(images.own_words(container))
    assert " ".join(words) in text
    assert "--device /dev/uverbs0" in " ".join(
        images.own_words(replace(DOCKER, devices=("/dev/uverbs0",)))
    )


def test_the_mpi_of_the_machine_is_bound_in_or_kept_out(tmp_path: Path) -> None:
    mpi = tmp_path / "mpi"
    (mpi / "bin").mkdir(parents=True)
    leads = {"LD_LIBRARY_PATH": f"{mpi}/lib", "OPAL_PREFIX": str(mpi)}
    bound = started(DOCKER, tmp_path, prefix=str(mpi), **leads)
    assert f"{mpi}:{mpi}" in bound
    assert {"LD_LIBRARY_PATH", "OPAL_PREFIX"} <= set(bound)
    own = started(replace(DOCKER, bind_mpi=False), tmp_path, prefix=str(mpi), **leads)
    assert f"{mpi}:{mpi}" not in own
    assert not {"LD_LIBRARY_PATH", "OPAL_PREFIX"} & set(own)


def test_charliecloud_says_which_mount_point_an_image_lacks(tmp_path: Path) -> None:
    root = tmp_path / "image"
    root.mkdir()
    container = Container("charliecloud", "host", "rank", image=str(root))
    wrapped = containers.wrap_program(Command(("/bin/true",)), container, scratch="/var/lib/x/1")
    done = capture(["sh", "-c", 'cd / && exec "$@"', "sh", *wrapped.argv])
    assert done.exit_code == 125
    assert f"mkdir -p '{root}/var/lib/x'" in done.stderr


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('engine = "docker"', "docker needs an image"),
        ('engine = "apptainer", image = "a.sif", options = ["-e"]', "--cleanenv takes"),
        ('engine = "charliecloud", image = "a", gpu = "nvidia"', "ch-fromhost"),
        ('engine = "charliecloud", image = "a", network = "none"', "charliecloud cannot go with"),
        ('engine = "charliecloud"', 'add image = "./image"'),
        ('engine = "podman", image = "docker://debian"', "is not a name of the local store"),
        ('engine = "docker", image = "a", each = "host"', "or give the arm hosts"),
        ('engine = "docker", image = "a", network = "bridge"', "another address"),
        ('engine = "namespace", gpu = "amd"', "has no options"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        load_study(write_arms(tmp_path, b=f"container = {{ {text} }}", factor="container"))


def test_an_image_that_is_a_path_is_beside_the_study(tmp_path: Path) -> None:
    asked = 'container = { engine = "apptainer", image = "a.sif", devices = ["/dev/kfd"] }'
    path = write_arms(tmp_path, b=asked, factor="container")
    container = load_study(path).arms[1].container
    assert container == Container(
        "apptainer", "host", "rank", f"{tmp_path}/a.sif", devices=("/dev/kfd",)
    )
    facts = asked_of(load_study(path).arms[1], ())
    assert facts["container.mpi"] == "of the machine"
    assert facts["container.devices"] == "/dev/kfd"


def test_an_mpi_that_ranks_in_a_container_cannot_use_is_refused() -> None:
    system = replace(OPENMPI, mpirun="/usr/bin/mpirun")
    reason = containers.misfit(DOCKER, system)
    assert "bind_mpi = false" in reason.fix
    assert containers.misfit(replace(DOCKER, bind_mpi=False), system) is None
    assert containers.misfit(DOCKER, OPENMPI) is None
    mpich = replace(OPENMPI, family="mpich")
    assert "open socket" in containers.misfit(DOCKER, mpich).text
    assert containers.misfit(replace(DOCKER, engine="apptainer"), mpich) is None
    alone = replace(DOCKER, network="none")
    assert "reach their launcher" in containers.misfit(alone, OPENMPI).text


def test_an_engine_that_is_not_there_and_a_service_that_does_not_answer(tmp_path: Path) -> None:
    def asked(container: Container, said: str = "", code: int = 1) -> str | None:
        """Return the error about an engine whose program ends with `said` on its stderr."""
        name = images.PROGRAMS[container.engine]
        if said:
            executable(tmp_path / name, f"echo '{said}' >&2\nexit {code}")

        def ask(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
            return capture(argv, timeout_s=timeout_s, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})

        return containers.check(container, ask)  # type: ignore[arg-type]

    apptainer = Container("apptainer", "host", "rank", image=f"{tmp_path}/no.sif")
    assert "apptainer is not on the PATH" in (asked(apptainer) or "")
    assert f"there is no image {tmp_path}/no.sif" in (asked(apptainer, "x") or "")
    # As docker 28.2.2 without a service, and with one that lacks the image, prints it.
    down = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?"
    assert "docker does not answer (Cannot connect" in (asked(DOCKER, down) or "")
    lacking = "Error: No such image: debian:12"
    assert "`docker pull debian:12`" in (asked(DOCKER, lacking) or "")
    # As docker 28.2.2 prints the error of its service, with advice that follows.
    shell = 'docker: Error response from daemon: exec: "/bin/sh": no such file\n\nRun '
    shell += "'docker run --help' for more information"
    answers = iter((Captured(0, "", ""), Captured(0, "id", ""), Captured(125, "", shell)))
    said = containers.check(DOCKER, lambda *_, **__: next(answers))
    assert "here (docker: Error response from daemon: exec" in (said or "")
    assert "Run 'docker" not in (said or "")
    # As apptainer 1.4.5 prints it to root without all capabilities.
    (tmp_path / "there").mkdir()
    apptainer = replace(apptainer, image=f"{tmp_path}/there")
    refused = "INFO: x\n\x1b[91mERROR  : Requesting capability set 0x1ff\n\x1b[0m"
    assert "here (ERROR : Requesting capability set 0x1ff)" in (asked(apptainer, refused) or "")


def test_an_image_without_the_tools_of_the_facts_is_refused() -> None:
    """Without tr a node's answer could not be separated from other lines: no fact was known."""
    lacking = containers.check(DOCKER, lambda argv, **_: Captured(0, "tr\nhead\n", ""))
    assert "has no tr, head, which binding and facts need" in (lacking or "")
    tools = re.search(r"for tool in ([a-z ]+);", images.NEEDED)
    assert tools
    assert {"od", "awk", "grep", "sed", "tr", "head"} <= set(tools[1].split())


def test_a_launch_has_the_image_that_the_facts_are_about() -> None:
    """A name may get another image while a study goes on; the facts keep the name."""
    known = {"container.image_digest": "sha256:1f"}
    parameters = {key: one.default for key, one in BENCHMARKS["command"].parameters.items()}
    selection = Selection("command", "command", 1, {**parameters, "argv": ["true"]})
    for container, words in (
        (DOCKER, "docker sha256:1f"),
        (replace(DOCKER, engine="podman"), "podman sha256:1f"),
        (replace(DOCKER, engine="podman", each="host", network="bridge"), "sha256:1f\n"),
        (Container("apptainer", "host", "rank", image="/i.sif"), "apptainer /i.sif"),
    ):
        ready = Ready(Arm("a", container=container), OPENMPI, (), container=known)
        made = compose(ready, selection, BENCHMARKS["command"], seed=1, scratch="/tmp/s/1")
        assert words in (made.files.get("image") or " ".join(made.argv))
        assert asked_of(ready.arm, [ready.arm])["container.image"] == container.image


def test_the_trial_of_a_host_s_container_has_the_image_by_its_id() -> None:
    """An ordinary user's podman finds "debian:12" in its store, and in a fabric only the id."""
    tried: list[str] = []

    def ask(argv: Sequence[str], *, timeout_s: float = 60.0) -> Captured:
        files = [Path(word).with_name("image") for word in argv if word.endswith("/start.sh")]
        tried.extend(one.read_text() for one in files)
        return Captured(0, "1f\n" if "inspect" in argv else "", "")

    assert containers.check(Container("podman", "bridge", "host", image="debian:12"), ask) is None
    assert tried == ["sha256:1f\n"]


def test_the_version_of_docker_is_that_of_its_service(tmp_path: Path) -> None:
    of_both = (
        "case $* in *Server*) echo 20.10.24+dfsg1 ;; *version) echo 28.2.2 ;; *) false ;; esac"
    )
    executable(tmp_path / "docker", f"#!/bin/sh\n{of_both}\n")

    def ask(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        return capture(argv, timeout_s=timeout_s, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})

    found = images.described(DOCKER, ask)  # type: ignore[arg-type]
    assert found == {"container.engine_version": "20.10.24"}


# --- for real ------------------------------------------------------------------------------------

PODMAN = Container("podman", network="host", each="rank")
root = pytest.mark.skipif(os.geteuid() != 0, reason="podman keeps its state in a private /run")
podman = pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed")
charliecloud = pytest.mark.skipif(not shutil.which("ch-run"), reason="charliecloud is missing")

COPY = """\
set -e
root=$1 mpirun=$2 kernel=$3
cd "$root"
mkdir -p bin usr/bin tmp proc sys dev etc root home run mnt "$root$4"
: | tee etc/passwd etc/group etc/hosts etc/resolv.conf
for program in sh cat env od awk sleep taskset sed grep tr head uname hostname; do
    cp -L "$(command -v $program)" bin/
done
lib=$(ldd "$kernel" | sed -n 's|.*=> \\(/.*\\)/libmpi[.]so.*|\\1|p')
lib=$(readlink -f "$lib")
plugins=$(find -H "$lib/openmpi" "$lib/pmix" "$lib"/pmix2 -name '*.so' 2>/dev/null || :)
for one in $plugins; do mkdir -p "$root${one%/*}"; cp -L "$one" "$root$one"; done
for one in /etc/openmpi /usr/share/openmpi /usr/share/pmix; do
    [ ! -d $one ] || { mkdir -p "$root${one%/*}"; cp -aL $one "$root$one"; }
done
# shellcheck disable=SC2086 # paths without spaces
for one in $(ldd bin/* "$mpirun" "$kernel" $plugins 2>/dev/null | grep -o '[[:space:]]/[^ ]*'); do
    mkdir -p "$root${one%/*}"
    cp -L "$one" "$root$one"
done
touch from-the-image
"""


@pytest.fixture(scope="module")
def system() -> Mpi:
    """The machine's own Open MPI, which an image can have at the same place."""
    for mpi in installations():
        if mpi.family == "openmpi" and mpi.mpirun.startswith("/usr/"):
            return mpi
    pytest.skip("no Open MPI of the system that could be copied into an image")


@pytest.fixture(scope="module")
def image(system: Mpi) -> Iterator[Path]:
    """A root file system with an Open MPI of its own, copied from the machine's."""
    mpi = system
    folder = Path(tempfile.mkdtemp(prefix="paribus-image-"))
    made = folder / "root"
    made.mkdir()
    kernel = kernel_path("latency", mpi, HERE)
    done = capture(
        ["/bin/sh", "-c", COPY, "sh", str(made), mpi.mpirun, str(kernel), str(kernel.parent)]
    )
    assert done.exit_code == 0, done.stderr
    yield made
    shutil.rmtree(folder)


def latency(container: Container, mpi: Mpi, tmp_path: Path) -> tuple[Captured, list[str]]:
    """Return how a launch of two ranks ended, and the transports that they saw."""
    benchmark = BENCHMARKS["latency"]
    small = {"bytes": [8], "samples": 5, "iterations": 10}
    parameters = {key: one.default for key, one in benchmark.parameters.items()} | small
    selection = Selection("latency", "latency", 2, parameters)
    kernels = {"latency": (str(kernel_path("latency", mpi, HERE)),)}
    ready = Ready(Arm("a", container=container), mpi, (), kernels=kernels, share=2)
    out, err = tmp_path / "out", tmp_path / "err"
    with LocalStation() as station:
        scratch = f"{station.scratch}/launch"
        command = compose(ready, selection, benchmark, seed=1, scratch=scratch)
        done = station.run(
            command, stdout=str(out), stderr=str(err), timeout_s=100, scratch=scratch
        )
    said = Captured(done.exit_code, out.read_text(), err.read_text())
    if done.exit_code:
        return said, []
    return said, [
        str(benchmark.parse(said.stdout, Request(parameters, 2)).facts["mpi.transport_taken"])
    ]


@pytest.mark.slow
@root
@podman
def test_ranks_in_containers_of_podman_share_memory_and_leave_nothing(tmp_path: Path) -> None:
    before = traces()
    done, ways = latency(PODMAN, any_mpi(), tmp_path)
    assert (done.exit_code, ways) == (0, ["memory"]), done.stderr
    assert not {one for one in traces() - before if not one.startswith("interface ")}


@root
@podman
def test_what_a_rank_in_a_container_of_podman_has(tmp_path: Path) -> None:
    look = "readlink /proc/self/ns/pid /proc/self/ns/mnt; ulimit -n; pwd; echo $TOLD; exit 7"
    wrapped = containers.wrap_program(
        Command(("/bin/sh", "-c", look)), PODMAN, scratch=f"{tmp_path}/1"
    )
    done = capture(["env", "TOLD=a b", *wrapped.argv])
    assert done.exit_code == 7, done.stderr
    pid, mount, files, place, reported = done.stdout.splitlines()
    assert pid in namespaces(Path("/proc/self"))
    assert mount not in namespaces(Path("/proc/self"))
    assert files == limits()["Max open files"].split(":")[0]
    assert (place, reported) == (HERE_NOW, "a b")


@root
@podman
def test_an_image_that_podman_does_not_have_is_refused_before_the_first_launch() -> None:
    missing = replace(PODMAN, image="localhost/paribus-missing")
    stands = replace(missing, each="host", network="bridge")
    for one in (missing, stands):
        assert "`podman pull localhost/paribus-missing`" in (containers.check(one, capture) or "")
    facts = images.described(PODMAN, capture)
    assert facts["container.engine_version"].startswith(
        capture(["podman", "--version"]).stdout.split()[-1]
    )


STORE = """\
set -e
for place in /run /var/lib /var/cache; do mount -t tmpfs tmpfs $place; done
cd "$1"
mkdir -p root/bin
cp -L /bin/sh root/bin/
for library in $(ldd root/bin/* | grep -o '[[:space:]]/[^ ]*' | sort -u); do
    mkdir -p "root${library%/*}"
    cp -L "$library" "root$library"
done
tar -C root -c . |
    podman --root "$1/of its own" --runroot /run/x --storage-driver overlay import -q - there
"""


@root
@podman
def test_images_are_where_storage_conf_says(tmp_path: Path) -> None:
    """The store itself is elsewhere, or one of several additional stores has the image."""
    made = capture(["unshare", "--mount", "/bin/sh", "-c", STORE, "sh", str(tmp_path)])
    assert made.exit_code == 0, made.stderr
    own, other = f"{tmp_path}/of its own", f"{tmp_path}/other"
    conf = tmp_path / "storage.conf"
    head = '# graphroot = "/no"\n[storage]\ndriver = "overlay"\nrunroot = "/run/x"\n'

    def ask(argv: list[str], *, timeout_s: float = 60.0) -> Captured:
        return capture(argv, timeout_s=timeout_s, env={"CONTAINERS_STORAGE_CONF": str(conf)})

    stands = Container("podman", "bridge", "host", image="localhost/there")
    ranks = replace(stands, network="host", each="rank")
    for text in (
        f"graphroot = '{own}'  # on a local disk\n",
        f'graphroot="{other}"\n[storage.options]\nadditionalimagestores = [\n"/no",\n"{own}",\n]\n',
    ):
        conf.write_text(head + text)
        assert images.lacking(ranks, ask) is None  # type: ignore[arg-type]
        # The image has no directory of this name, in which the trial is made.
        assert containers.check(stands, ask) is None  # type: ignore[arg-type]


@charliecloud
def test_ranks_with_the_mpi_of_an_image_by_charliecloud(
    tmp_path: Path, system: Mpi, image: Path
) -> None:
    container = Container("charliecloud", "host", "rank", image=str(image), bind_mpi=False)
    assert containers.check(container, capture, cache=str(HERE.cache())) is None
    done, ways = latency(container, system, tmp_path)
    assert (done.exit_code, ways) == (0, ["memory"]), done.stderr


SMALL = "--bytes 8 --samples 5 --iterations 10"
IMPORT = """\
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mkdir -p "$1/store/storage"
mkdir -p /var/lib/containers
mount --bind "$1/store" /var/lib/containers
tar -C "$2" -c . |
    podman --root "$1/store/storage" --runroot /run/x --storage-driver overlay \\
        import -q - localhost/paribus
shift 2
exec "$@"
"""


@root
@podman
def test_ranks_with_the_mpi_of_an_image_by_podman(tmp_path: Path, system: Mpi, image: Path) -> None:
    """The machine's own store stays as it is: another is mounted in its place."""
    container = replace(PODMAN, image="localhost/paribus", bind_mpi=False)
    mpi = system
    kernel = str(kernel_path("latency", mpi, HERE))
    wrapped = containers.wrap_program(
        Command(("/bin/sh", "-c", f"cat /from-the-image && exec {kernel} {SMALL}", kernel)),
        container,
        scratch=f"{tmp_path}/1",
        prefix="/usr",
    )
    argv = [mpi.mpirun, "-n", "2", "--oversubscribe", "--allow-run-as-root", *wrapped.argv]
    done = capture(
        ["unshare", "--mount", "/bin/sh", "-c", IMPORT, "sh", str(image.parent), str(image), *argv],
        timeout_s=100,
    )
    assert done.exit_code == 0, done.stderr
    assert '"kernel"' in done.stdout


@root
@podman
def test_a_launch_out_of_time_leaves_no_container_of_podman(tmp_path: Path) -> None:
    before = traces()
    with LocalStation() as station:
        scratch = f"{station.scratch}/launch"
        asleep = Command(("/bin/sh", "-c", "echo up; sleep 77"))
        done = launched(
            station,
            containers.wrap_program(asleep, PODMAN, scratch=scratch),
            tmp_path,
            1.5,
            scratch,
        )
    assert done.timed_out
    assert (tmp_path / "out").read_text() == "up\n", (tmp_path / "err").read_text()
    assert not capture(["pgrep", "-f", "^sleep 77"]).stdout
    assert not {one for one in traces() - before if not one.startswith("interface ")}


def test_a_container_of_docker_ends_with_its_launch(tmp_path: Path) -> None:
    """The client may be killed without its container: a service has that."""
    script = f'#!/bin/sh\necho "$1 $*" >>{tmp_path}/said\n[ "$1" = kill ] || exec sleep 5\n'
    executable(tmp_path / "docker", script)
    wrapped = containers.wrap_program(Command(("/bin/true",)), DOCKER, scratch=f"{tmp_path}/1")
    with LocalStation() as station:
        done = launched(
            station, replace(wrapped, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}), tmp_path, 1
        )
    assert done.timed_out
    first, second = (tmp_path / "said").read_text().splitlines()
    name = first.split()[first.split().index("--name") + 1]
    assert second == f"kill kill {name}"
