"""The entry point for jupyter-server-proxy, by which JupyterHub shows the workbench."""

from __future__ import annotations

import os
import sys
from typing import Any


def server() -> dict[str, Any]:
    """Return the entry of the workbench: the studies in $PARIBUS_STUDIES, else the home directory.

    It listens at a Unix socket, which only this user can open: on a port, every user of the machine
    would pass by the hub's login.
    """
    asked = os.environ.get("PARIBUS_STUDIES") or os.path.expanduser("~")  # noqa: PTH111
    folder = asked.replace("{", "{{").replace("}", "}}")  # the proxy fills in what braces name
    argv = [sys.executable, "-m", "paribus", "serve", folder, "--socket", "{unix_socket}"]
    return {
        "command": [*argv, "--sign-in", "socket"],
        "unix_socket": True,
        "timeout": 30,
        "launcher_entry": {"title": "Paribus"},
    }
