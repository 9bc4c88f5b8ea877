"""A headless Chromium that is driven over a pipe: enough to open a page and ask what it did."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)


@dataclass
class Opened:
    """What opening a page gave: complaints of the console, requests, and the page's answers.

    `seconds` are those of scripts and of layout until every figure was drawn.
    """

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Browser:
    """One browser process with an empty profile; ends with the `with` block."""

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._count = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        assert PROGRAM is not None
        there, self._write = os.pipe()
        self._read, back = os.pipe()

        def place() -> None:
            """Put the pipes where the browser looks for them: 3 to read, 4 to write."""
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (there, back)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [PROGRAM, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            close_fds=False,
            preexec_fn=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
        finally:
            os.close(self._write)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            os.close(self._read)

    def open(
        self,
        page: Path,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        ask: dict[str, str] | None = None,
        screenshot: Path | None = None,
        pdf: Path | None = None,
    ) -> Opened:
        """Return what happened on `page`; `ask` maps names to expressions evaluated at the end.

        Waits until the page says that every figure is drawn, for at most 30 s.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

        def call(method: str, **parameters: Any) -> Any:
            return self.call(method, session, **parameters)

        for domain in ("Runtime", "Log", "Network", "Page", "Performance"):
            call(f"{domain}.enable")
        call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        self._events.clear()
        call("Page.navigate", url=page.as_uri())
        end = time.monotonic() + 30
        while not self._value(call, "document.documentElement.dataset.drawn || ''"):
            assert time.monotonic() < end, f"{page.name} is not drawn: {self._opened().complaints}"
            time.sleep(0.05)
        time.sleep(0.2)
        spent = {m["name"]: m["value"] for m in call("Performance.getMetrics")["metrics"]}
        opened = self._opened({k: self._value(call, v) for k, v in (ask or {}).items()})
        opened.seconds = spent["ScriptDuration"] + spent["LayoutDuration"]
        if screenshot is not None:
            shot = call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
            screenshot.write_bytes(base64.b64decode(shot["data"]))
        if pdf is not None:
            call("Emulation.setEmulatedMedia", media="", features=[scheme])
            made = call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
            pdf.write_bytes(base64.b64decode(made["data"]))
        self.call("Target.closeTarget", targetId=target)
        return opened

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], 60)
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _value(self, call: Any, expression: str) -> Any:
        result = call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    def _opened(self, answers: dict[str, Any] | None = None) -> Opened:
        opened = Opened(answers=answers or {})
        for event in self._events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                opened.complaints.append(str(said["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
                opened.complaints.append(str([a.get("value") for a in said["args"]]))
            elif method == "Log.entryAdded":
                opened.complaints.append(said["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                opened.requests.append(said["request"]["url"])
        return opened
