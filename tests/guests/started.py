"""Guests for tests: started by a process of their own, which takes them with it when it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from guests.controller import LACKS

CONTROLLER = Path(__file__).with_name("controller.py")


class Guests:
    """Guests vm1, vm2, ... and hyper1, which is this machine; use as a context manager.

    `options` are those of controller.py, such as "--memory", "768", "--modules", "all". `config`
    is the ssh_config that reaches them. Skips the caller, with the reason, where the machine lacks
    what guests need.
    """

    def __init__(self, folder: Path, count: int = 2, *options: str) -> None:
        self.folder = folder
        self.names = tuple(f"vm{number}" for number in range(1, count + 1))
        self.config = folder / "ssh_config"
        self.argv = [sys.executable, str(CONTROLLER), str(folder), "--guests", str(count), *options]

    def __enter__(self) -> Guests:
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            said = self.process.communicate()[1].strip()
            (pytest.skip if self.process.returncode == LACKS else pytest.fail)(said)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, name: str, script: str, timeout_s: float = 120.0) -> str:
        """Return what `script` prints on stdout of a guest; fails where it does."""
        done = subprocess.run(
            ["ssh", "-F", str(self.config), name, "/bin/sh", "-s"],
            input=script,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, (name, script, done.stdout, done.stderr)
        return done.stdout
