"""Nothing is left behind however a launch in containers ends, and what forbids them is named."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from containers.fabrics import ENGINES, EngineName, Launch, namespaces, nothing_left, traces
from paribus import containers
from paribus.core import Container
from paribus.launch.local import Captured, capture

# --- the end -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["term", "kill-group", "kill-outermost", "kill-starter"])
def test_nothing_is_left_however_it_ends(
    how: str, engine: EngineName, identity: list[str], folder: Path
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

    def confined(argv: Sequence[str], *, timeout_s: float = 60.0) -> Captured:
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
def test_the_setting_that_forbids_namespaces_is_named(setting: str, engine: EngineName) -> None:
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
    engine: EngineName = "podman" if missing in ("podman", "runc") else "namespace"

    without = partial(capture, env={"PATH": str(tmp_path)})
    said = containers.check(Container(engine), without) or "works"
    assert missing in said
    assert "install" in said


@pytest.mark.installed
def test_programs_are_asked_for_only_where_something_uses_them(tmp_path: Path) -> None:
    """Without a network of its own a container needs what makes namespaces, and no more."""
    for tool in ("sh", "cat", "mount", "unshare", "true"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool}"))

    without = partial(capture, env={"PATH": str(tmp_path)})
    for each, on_hosts in (("rank", False), ("host", True)):
        one = Container("namespace", each=each, network="host")  # type: ignore[arg-type]
        assert containers.check(one, capture, on_hosts=on_hosts) == containers.check(
            one, without, on_hosts=on_hosts
        )
    assert "`nsenter` is not installed" in (containers.check(Container("namespace"), without) or "")
    (tmp_path / "mount").unlink()
    assert "`mount` is not installed" in (containers.check(one, without, on_hosts=True) or "")


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

    def answer(argv: Sequence[str], *, timeout_s: float = 60.0) -> Captured:
        return Captured(1, printed, said)

    sentence = containers.check(Container("namespace"), answer)
    assert sentence is not None
    assert expected in sentence
    assert "\n" not in sentence
