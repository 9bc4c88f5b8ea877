"""A headless Chromium: enough to open a page and ask what it did."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    *("--disable-dev-shm-usage", "--disable-extensions"),
)
ALONE = "--host-resolver-rules=MAP * ~NOTFOUND"

_drivers: list[Any] = []


@contextmanager
def driving() -> Iterator[Any]:
    """Yield what drives browsers: the one that is there, for a process can have only one."""
    if _drivers:
        yield _drivers[0]
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        _drivers.append(driver)
        try:
            yield driver
        finally:
            _drivers.clear()


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
    """One browser that reaches no network; ends with the `with` block."""

    def __enter__(self) -> Browser:
        self._driving = driving()
        chromium = self._driving.__enter__().chromium
        self._browser = chromium.launch(executable_path=PROGRAM, args=[*FLAGS, ALONE])
        return self

    def __exit__(self, *error: Any) -> None:
        self._browser.close()
        self._driving.__exit__(*error)

    def open(
        self,
        page: Path,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        ask: dict[str, str] | None = None,
        pdf: Path | None = None,
    ) -> Opened:
        """Return what happened on `page`; `ask` maps names to expressions evaluated at the end.

        Waits until the page says that every figure is drawn, for at most 30 s.
        """
        opened = Opened()
        window = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            is_mobile=width < 600,
        )
        tab = window.new_page()
        tab.on("pageerror", lambda error: opened.complaints.append(str(error)))
        tab.on("console", lambda said: _complain(opened, said))
        tab.on("request", lambda request: opened.requests.append(request.url))
        direct = window.new_cdp_session(tab)  # evaluates whatever the page's policy is
        direct.send("Performance.enable")

        def value(expression: str) -> Any:
            asked = {"expression": expression, "returnByValue": True}
            return direct.send("Runtime.evaluate", asked)["result"].get("value")

        tab.goto(page.as_uri())
        end = time.monotonic() + 30
        while not value("document.documentElement.dataset.drawn || ''"):
            assert time.monotonic() < end, f"{page.name} is not drawn: {opened.complaints}"
            tab.wait_for_timeout(50)
        tab.wait_for_timeout(200)
        metrics = direct.send("Performance.getMetrics")["metrics"]
        spent = {one["name"]: one["value"] for one in metrics}
        opened.seconds = spent["ScriptDuration"] + spent["LayoutDuration"]
        opened.answers = {name: value(expression) for name, expression in (ask or {}).items()}
        if pdf is not None:
            tab.pdf(path=pdf, prefer_css_page_size=True)
        window.close()
        return opened


def _complain(opened: Opened, said: Any) -> None:
    if said.type in ("error", "warning"):
        opened.complaints.append(said.text)
