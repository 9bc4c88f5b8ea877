"""A `paribus serve` of its own process for tests, and the browser that visits it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

from browser import FLAGS, PROGRAM, driving

LINK = re.compile(r"(http://127\.0\.0\.1:\d+/\?token=\S+)")


@dataclass
class Served:
    """A server that runs: its process, its port, and the lines that it prints."""

    process: subprocess.Popen[str]
    port: int = 0
    cookie: str = ""
    lines: list[str] = field(default_factory=list)
    links: Queue[str] = field(default_factory=Queue)
    looking: Queue[str] = field(default_factory=Queue)

    def link(self) -> str:
        """Return the newest link that signs in once."""
        try:
            return self.links.get(timeout=20)
        except Empty:
            raise AssertionError(self.lines) from None

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: Any) -> Any:
        """Return the answer to one request: status, headers and `data`."""
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            asking.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = asking.getresponse()
            answer.data = answer.read()  # type: ignore[attr-defined]
            return answer
        finally:
            asking.close()

    def page(self, path: str) -> str:
        """Return a page as its owner sees it."""
        answer = self.ask(path, Cookie=self.cookie)
        assert answer.status == 200, answer.data
        return str(answer.data.decode())

    def ident(self, name: str) -> str:
        """Return the id of a study."""
        table = json.loads(self.page("/studies.json"))
        return next(str(one["id"]) for one in table["studies"] if one["name"] == name)

    def enter(self, link: str | None = None) -> str:
        """Return the cookie of a session."""
        address = urlsplit(link or self.link())
        answer = self.ask(f"/?{address.query}")
        assert answer.status == 303, answer.data
        return str(answer.headers["set-cookie"]).partition(";")[0]


@contextmanager
def served(
    folder: Path, *words: str, prefix: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Serve `folder` until the end of the block; `prefix` leads to where that is."""
    argv = [*prefix, sys.executable, "-m", "paribus", "serve", *words]
    process = subprocess.Popen(argv, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    one = Served(process)
    reader = threading.Thread(target=_read, args=(one,), daemon=True)
    reader.start()
    try:
        if "--port" in words:
            one.port = int(words[words.index("--port") + 1])
        elif "--socket" not in words:
            first = one.link()
            one.port = urlsplit(first).port or 0
            one.links.put(first)
        yield one
    finally:
        process.terminate()
        process.wait(20)
        reader.join(20)
        assert process.stderr is not None
        process.stderr.close()


def _read(one: Served) -> None:
    assert one.process.stderr is not None
    for line in one.process.stderr:
        one.lines.append(line)
        if found := LINK.search(line):
            (one.looking if line.startswith("to look") else one.links).put(found[1])


@contextmanager
def visiting(program: str | Path | None = PROGRAM, **options: Any) -> Iterator[Any]:
    """Yield a page of a new browser; `complaints` of it are what its console said."""
    with driving() as driver:
        browser = driver.chromium.launch(executable_path=program, args=[*FLAGS])
        given = {"viewport": {"width": 1200, "height": 900}, **options}
        page: Any = browser.new_context(**given).new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: (
                page.complaints.append(f"{said.text} {said.location.get('url')}")
                if said.type == "error"
                else None
            ),
        )
        try:
            yield page
        finally:
            browser.close()
