"""Pocket clusters held by a process of their own, which a test may kill, as root or as a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from containers.fabrics import namespaces
from paribus.launch.local import capture

HOLDER = """\
import json, os, subprocess, sys
from paribus.hosts.links import read_link
from paribus.launch.local import LocalStation
from paribus.hosts.pocket import Pocket
asked = json.loads(sys.argv[1])
def say(**what):
    print(json.dumps(what), flush=True)
with LocalStation() as station:
    directory = station.scratch + "/pocket"
    say(directory=directory, uid=os.geteuid())
    link = read_link(asked["link"]) if asked["link"] else None
    with Pocket(asked["hosts"], link=link, directory=directory) as pocket:
        say(pids=pocket.pids, controller=pocket.controller, crowded=pocket.crowded,
            cores=[node.cores for node in pocket.nodes], names=[host.name for host in pocket.hosts])
        for line in sys.stdin:
            asked = json.loads(line)
            argv = [*pocket.hosts[asked["host"]].shell, *asked["argv"]]
            done = subprocess.run(argv, input=asked["input"], capture_output=True, text=True)
            say(code=done.returncode, out=done.stdout, err=done.stderr)
"""

USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
"""Runs a command without the rights of root, who may read this Python."""


class Held:
    """A pocket cluster, entered by the process that made it."""

    def __init__(self, hosts: int, *, link: Any = None, identity: str = "root") -> None:
        if identity == "root" and os.geteuid() != 0:
            pytest.skip("not root")
        become = USER if identity == "user" and os.geteuid() == 0 else ()
        if become and capture([*become, "true"]).exit_code:
            pytest.skip("no user namespace: the tests cannot become an ordinary user")
        asked = json.dumps({"hosts": hosts, "link": link})
        self.process = subprocess.Popen(
            [*become, sys.executable, "-c", HOLDER, asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        first = self.answer()
        self.directory, self.uid = str(first["directory"]), int(first["uid"])
        self.about: dict[str, Any] = {}

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(self.process.communicate()[1])
        found: dict[str, Any] = json.loads(line)
        return found

    def __enter__(self) -> Held:
        self.about = self.answer()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def ask(self, host: int, script: str = "", argv: tuple[str, ...] = ()) -> None:
        """Start `script`, or a shell with these arguments, in a host."""
        self.process.stdin.write(json.dumps({"host": host, "input": script, "argv": argv}) + "\n")
        self.process.stdin.flush()

    def inside(self, host: int, script: str = "", argv: tuple[str, ...] = ()) -> str:
        """Return what it printed; fails where it does."""
        self.ask(host, script, argv)
        done = self.answer()
        assert done["code"] == 0, (script, done["out"], done["err"])
        return str(done["out"])

    def python(self, host: int, code: str, *arguments: str) -> str:
        """Return what Python code prints in a host, which sees this machine's Python."""
        argv = (sys.executable, "-I", "-S", "-c", code, *arguments)
        return self.inside(host, argv=("-c", 'exec "$@"', "sh", *argv))


def ticks() -> int:
    """Return the time as /proc counts starts of processes."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def spaces(until: int) -> set[str]:
    """Return the namespaces of the processes of this machine that started by `until`, in ticks.

    Those of later ones may bear numbers that have become free.
    """
    found: set[str] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                start = int((entry / "stat").read_text().rpartition(")")[2].split()[19])
                found |= namespaces(entry) if start <= until else set()
            except OSError:
                continue
    return found
