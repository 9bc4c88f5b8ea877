"""Neighbours who hold connections to `paribus serve`: its user comes in all the same."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from paribus.web import connections
from paribus.web.connections import MOST_AT_ONCE, MOST_WAITING, Connection
from paribus.web.gate import Session
from paribus.web.peers import peers
from serving import Served, served
from study_directories import write_directory

IDLE = 700
"""Connections without a request: more than all that were once admitted."""

STREAMS = 520


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("studies")
    write_directory(here / "s", {"a": 1.0, "b": 1.1})
    return here


@contextmanager
def connected(port: int, number: int, request: bytes = b"") -> Iterator[list[socket.socket]]:
    """Yield so many connections, on each of which `request` is sent."""
    with ExitStack() as stack:
        several = []
        for _ in range(number):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
            one.sendall(request)
            several.append(one)
        yield several


def ended(one: socket.socket) -> bool:
    """Return whether the server has closed a connection, whatever is left to be read."""
    one.setblocking(False)
    try:
        while one.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def page(server: Served) -> int:
    return int(server.ask("/", Cookie=server.cookie).status)


@pytest.mark.parametrize("request_", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_connections_that_ask_nothing_make_room(folder: Path, request_: bytes) -> None:
    with served(folder) as one:
        one.cookie = one.enter()
        with connected(one.port, IDLE, request_) as several:
            assert page(one) == 200
            left = sum(not ended(connection) for connection in several)
            assert MOST_WAITING // 2 <= left <= MOST_WAITING
            assert page(one) == 200
        assert one.lines[-1].startswith("signed in"), "nothing went wrong"


def test_streams_of_a_shared_link_leave_the_user_alone(folder: Path) -> None:
    with served(folder, "--share", "1 h") as one:
        one.cookie = one.enter()
        link = one.looking.get(timeout=20)
        table = json.loads(one.ask("/studies.json", Cookie=one.cookie).data)
        path = f"/studies/{table['studies'][0]['id']}/events"
        with connected(one.port, 1, asking(one, path, one.cookie)) as [own], ExitStack() as stack:
            several = []
            for _ in range(STREAMS // 40):  # one link, many sessions
                request = asking(one, path, one.enter(link))
                several += stack.enter_context(connected(one.port, 40, request))
            assert page(one) == 200
            assert one.ask("/", Cookie=one.enter(link)).status in (200, 429)
            deadline = time.monotonic() + 30  # the server ends them one after the other
            while sum(not ended(connection) for connection in several) > MOST_AT_ONCE:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert not ended(own)


def asking(server: Served, path: str, cookie: str) -> bytes:
    host = f"127.0.0.1:{server.port}"
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode()


OTHER = """
import encodings.idna, os, socket, sys, time
os.setuid(12345)
several = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(600)]
print("connected", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_the_connections_of_another_user_go_first(folder: Path) -> None:
    with served(folder) as one, connected(one.port, 20) as own:
        argv = [sys.executable, "-c", OTHER, str(one.port)]
        other = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "connected\n"
            one.cookie = one.enter()
            assert not any(map(ended, own))
        finally:
            other.kill()
            other.communicate()


def test_who_is_at_the_other_end(tmp_path: Path) -> None:
    me = f"user {os.geteuid()}"
    with socket.create_server(("127.0.0.1", 0)) as server:
        with connected(server.getsockname()[1], 1) as [there], server.accept()[0] as here:
            assert peers([here, there, here]) == [me] * 3
        assert peers([here]) == [""]
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as there:
        server.bind(str(tmp_path / "s"))
        server.listen()
        there.connect(str(tmp_path / "s"))
        with server.accept()[0] as here:
            assert peers([here]) == [me]


def test_a_connection_that_asks_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never asks, asks half, does not read its refusal, or has had its answer."""
    monkeypatch.setattr(connections, "WAIT_S", 0.2)
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n"
    let = asyncio.Event()

    async def app(scope: Any, receive: object, send: Any) -> None:
        if scope["path"] == "/work":
            scope["session"] = Session("me", False, 0.0)
            await let.wait()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"x" * (30 << 20)})

    async def tried() -> None:
        config = uvicorn.Config(app, http=Connection)
        config.load()
        loop, state = asyncio.get_running_loop(), ServerState()

        def made() -> Connection:
            return Connection(config=config, server_state=state, app_state={})

        async with await loop.create_server(made, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]

            async def ask(text: bytes) -> asyncio.StreamReader:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(text)
                writers.append(writer)
                return reader

            writers: list[asyncio.StreamWriter] = []
            work = await ask(whole.replace(b"/ ", b"/work ") + b"\r\n")
            waiting = [await ask(text) for text in (b"", whole, whole + b"\r\n")]
            await asyncio.sleep(0)
            while len(state.connections) != 1:
                await asyncio.sleep(0.02)
            for one in waiting[:2]:
                assert await one.read() == b""
            let.set()
            assert (await work.readline()).startswith(b"HTTP/1.1 200")
            assert len(await work.read()) > 30 << 20
            assert not state.connections
            for writer in writers:
                writer.close()

    asyncio.run(asyncio.wait_for(tried(), 30))
