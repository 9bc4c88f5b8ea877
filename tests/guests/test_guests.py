"""The guests themselves: what they have, and that they end with their controller."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from guests.started import Guests
from processes import ended, processes_with

pytestmark = [pytest.mark.guests, pytest.mark.timeout(900)]


def test_guests_are_joined_and_end_with_their_controller(tmp_path: Path) -> None:
    with Guests(tmp_path / "rack", 2, "--modules", "all") as guests:
        kernels = {guests.ask(name, "uname -r; cat /etc/machine-id") for name in guests.names}
        assert len(kernels) == 2
        assert Path("/proc/sys/kernel/osrelease").read_text() not in "".join(kernels)
        banner = guests.ask("vm1", "bash -c 'exec 3<>/dev/tcp/10.79.0.2/22; head -n 1 <&3'")
        assert banner.startswith("SSH-2.0-")
        for name in guests.names:
            link = guests.ask(name, "rdma link add rxe0 type rxe netdev eth1 && rdma link")
            assert "state ACTIVE" in link
        emulated = processes_with(f"{guests.folder}/vm")
        assert len(emulated) == 2
    assert ended(emulated)


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with (
        Guests(tmp_path / "first", 1, "--off") as first,
        pytest.raises(pytest.fail.Exception, match=r"vm1 does not start: 127.0.0.1:\d+ is in use"),
        Guests(tmp_path / "other", 1, "--ports", f"{_free()},{_port(first)}"),
    ):
        pass


def _port(guests: Guests) -> str:
    """Return the port of hyper1, where a sshd answers already."""
    return guests.config.read_text().split()[3]


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
