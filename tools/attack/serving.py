"""`paribus serve` under attack: by neighbours, by other applications, by the author of a study."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attack.arena import Arena
from attack.ground import write_study
from attack.hostile import HOSTILE, as_user, execute_as, stop
from attack.victim import Victim, ends, paribus, start

if TYPE_CHECKING:
    from attack.stranger import Scene

WITHIN_S = 1.0
"""Seconds within which the user has the next page under any attack; the best of TRIES counts."""

TRIES = 3
IDLE = 700
STREAMS = 520


@dataclass(slots=True)
class Bench:
    """A server of the victim's, and the session of its user."""

    victim: Victim
    port: int
    link: str
    shared: str
    cookie: str = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, str]:
        """Return status, body and cookie of an answer; status 0 where there is none."""
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {"Cookie": self.cookie, **{k.replace("_", "-"): v for k, v in headers.items()}}
        with contextlib.closing(asking):
            try:
                asking.request(method, path, b"" if method == "POST" else None, given)
                answer = asking.getresponse()
                cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
                return answer.status, answer.read(), cookie
            except (OSError, http.client.HTTPException) as error:
                return 0, str(error).encode(), ""

    def act(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Return status and body of what a button sends."""
        found = re.search(rb'name="csrf" content="([^"]+)"', self.ask("/")[1])
        token = found[1].decode() if found else ""
        return self.ask(path, "POST", X_Paribus_CSRF=token, **headers)[:2]

    def study(self) -> str:
        """Return the address of the only study."""
        table = json.loads(self.ask("/studies.json")[1])
        return f"/studies/{table['studies'][0]['id']}"

    def seconds(self) -> float:
        """Return how long the user's page takes at best, or "infinity" where it does not come."""
        best = float("inf")
        for _ in range(TRIES):
            begin = time.monotonic()
            if self.ask("/")[0] == 200:
                best = min(best, time.monotonic() - begin)
        return best


@contextlib.contextmanager
def served(arena: Arena, folder: Path, uid: int | None = None) -> Iterator[Bench | None]:
    """Serve `folder`, the user signed in; None, and a fault, where that does not work."""
    victim = start(arena, "serve", folder, "--share", "1 h", uid=uid)
    said = victim.said[1]
    try:
        there = victim.until(lambda: "look only: " in said.read_text(), 60)
        if not arena.expect(there, f"serve does not begin: {said.read_text()[-300:]}"):
            yield None
            return
        links = re.findall(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", said.read_text())
        bench = Bench(victim, int(links[0][0]), links[0][1], links[1][1])
        bench.cookie = bench.ask(bench.link)[2]
        yield bench
    finally:
        if victim.running():
            victim.signal(signal.SIGTERM)
        victim.end(20)


def connections(scene: Scene) -> None:
    """Hold connections that ask nothing, or only half of a request."""
    half = scene.arena.random.choice((b"", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n\r\n"))
    _flooded(scene, lambda bench: [(half, IDLE)], f"{IDLE} connections, each with {half!r}")


def streams(scene: Scene) -> None:
    """Open streams without end with a link that is for looking only, by one session or many."""
    sessions = scene.arena.random.choice((1, 13))

    def requests(bench: Bench) -> list[tuple[bytes, int]]:
        path = f"{bench.study()}/events"
        cookies = [bench.ask(bench.shared)[2] for _ in range(sessions)]
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{bench.port}\r\nCookie: "
        return [(f"{head}{one}\r\n\r\n".encode(), STREAMS // sessions) for one in cookies]

    _flooded(scene, requests, f"{STREAMS} streams of {sessions} sessions of a shared link")


def _flooded(scene: Scene, requests: Callable[[Bench], list[tuple[bytes, int]]], when: str) -> None:
    """Let the hostile user hold connections with `requests`; expect the user's page in time."""
    arena, folder = scene.arena, scene.arena.folder / "studies"
    shutil.copytree(arena.ground.sample, folder / "s")
    scene.own()
    with served(arena, folder, scene.uid) as bench:
        if bench is None:
            return
        held, ready = requests(bench), scene.open / "ready"

        def hold() -> None:
            several = []
            for request, number in held:
                for _ in range(number):
                    one = socket.create_connection(("127.0.0.1", bench.port), 20)
                    one.sendall(request)
                    several.append(one)
            ready.touch()
            time.sleep(300)

        socket.getaddrinfo("127.0.0.1", 1)  # what it imports, another user may not be able to read
        hostile = execute_as(HOSTILE, hold)
        try:
            held_all = bench.victim.until(ready.exists, 60)
            arena.expect(held_all, f"{when}: the attack itself broke")
            took = bench.seconds()
            arena.expect(took < WITHIN_S, f"{when}: the user's page takes {took:.1f} s")
        finally:
            stop(hostile)


def pid_in_lock(scene: Scene) -> None:
    """Hold the lock of a study that others may write to, in the name of a process of the victim."""
    arena = scene.arena
    folder = scene.open / "studies"
    shutil.copytree(arena.ground.sample, folder / "s")
    for path in (folder, folder / "s"):
        path.chmod(0o777)
    bystander = subprocess.Popen(["sleep", "300"], preexec_fn=lambda: as_user(scene.uid))
    names = arena.random.choice((str(bystander.pid), "-1", str(os.getpid())))
    lock = folder / "s" / "progress.lock"
    lock.unlink(missing_ok=True)
    held = scene.open / "held"

    def hold() -> None:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            print(names, os.uname().nodename, file=file, flush=True)
            held.touch()
            time.sleep(300)

    hostile = execute_as(HOSTILE, hold)
    try:
        with served(arena, folder, scene.uid) as bench:
            if bench is None or not bench.victim.until(held.exists, 20):
                return
            status, said = bench.act(f"{bench.study()}/act/stop")
            when = f"pid_in_lock: victim {scene.uid}, pid {names}"
            arena.expect(status == 409, f"{when}: Stop says {status}: {said[:100]!r}")
            time.sleep(0.2)
            arena.expect(bystander.poll() is None, f"{when}: Stop ended another process")
            arena.expect(bench.victim.running(), f"{when}: Stop ended the server")
    finally:
        stop(hostile)
        bystander.kill()
        bystander.wait()


def unpacked(arena: Arena) -> None:
    """Resume a study that came in a zip: nothing of its author's executes before one is asked."""
    ran, home = arena.folder / "ran", arena.folder / "author"
    arms = f'[arms.a]\nbefore = "touch {ran}"\nafter = "true"\n[arms.b]\n'
    at = arena.folder / "unpacked" / "theirs.study"
    at.mkdir(parents=True)
    inside = arena.random.random() < 0.5
    study = write_study(at if inside else at.parent, arms=arms.replace(str(ran), str(ran) + "0"))
    study.write_text(study.read_text().replace('factor = "nothing"', 'factor = "x"'))
    began = paribus(arena, "run", study, "--out", arena.out, env={"HOME": str(home)})
    if not ends(arena, began, "the study of an author", (0, 3)):
        return
    Path(f"{ran}0").unlink()
    for path in arena.out.iterdir():
        path.rename(at / path.name)
    file = study.with_name("shell.py")
    how = arena.random.choice(("as it is", "another benchmark file", "another study file"))
    if how == "another benchmark file":
        file.write_text(f"open({str(ran)!r}, 'w').close()\n{file.read_text()}")
    if how == "another study file":
        study.write_text(study.read_text().replace(f"{ran}0", str(ran)))
    when = f"a study of somebody else, {how}, {'inside' if inside else 'beside'}"
    words = ("run", study, "--out", at, "--resume")
    for trust in ((), ("--trust", "0" * 64)):
        arena.strikes += 1
        ended = paribus(arena, *words, *trust)
        if ends(arena, ended, f"{when}: --resume", (2,)):
            arena.expect("--trust" in ended.err, f"{when}: --resume says {ended.last()}")
    with served(arena, at.parent) as bench:
        if bench is not None:
            arena.strikes += 1
            for query in ("", "?trust=x"):
                status, said = bench.act(f"{bench.study()}/act/resume{query}")
                arena.expect(status == 409, f"{when}: Resume says {status}: {said[:100]!r}")
            time.sleep(0.5)
    left = [path for path in (ran, Path(f"{ran}0")) if path.exists()]
    arena.expect(not left, f"{when}: a command of its author ran")


def cookies(arena: Arena) -> None:
    """Send what other applications on this host set, and origins that are not the server's."""
    draw = arena.random
    with served(arena, arena.ground.sample.parent) as bench:
        if bench is None:
            return
        others = (
            'prefs={"theme": "dark"}', "a", "=", 'b="', "c=d;;e", "\xff=\xe9", "$Version=1",
            "".join(map(chr, (draw.randrange(33, 127) for _ in range(40)))).replace("=", ""),
            f"{bench.cookie.partition('=')[0]}=guess",
        )  # fmt: skip
        for _ in range(20):
            mixed = [*draw.sample(others, 3), bench.cookie]
            draw.shuffle(mixed)
            arena.strikes += 1
            status, *_ = bench.ask("/", Cookie="; ".join(mixed))
            arena.expect(status == 200, f"cookies: {mixed[:-1]!a} make a sign-in fail: {status}")
        for origin in ("null", "file://", "http://[", "http://127.0.0.1", "", "http://evil"):
            status, _ = bench.act(f"{bench.study()}/act/stop", Origin=origin)
            arena.expect(status == 403, f"cookies: the origin {origin!r} may act: {status}")


OF_NEIGHBOURS = (connections, streams, pid_in_lock)
OF_AUTHORS = (unpacked, cookies)
