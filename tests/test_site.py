"""The site that `./dev docs` builds, and `paribus docs`, which opens it."""

from __future__ import annotations

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import PROGRAM
from processes import ran
from serving import served, visiting
from studies import paribus

ROOT = Path(__file__).parent.parent
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""What a browser fetches by itself, by the element that names it."""


class Page(HTMLParser):
    """The links, anchors and files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site; a link to nowhere, or a page in no list, fails the build."""
    built = tmp_path_factory.mktemp("site") / "site"
    (line,) = [one for one in (ROOT / "dev").read_text().splitlines() if "-m sphinx" in one]
    words = line.partition("-m sphinx ")[2].split()
    words[words.index("out/doctrees")] = str(built.parent / "doctrees")
    argv = [sys.executable, "-m", "sphinx", *words[:-1], str(built)]
    ran(argv, cwd=ROOT, code=0)
    return built


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Return what every page of the site has."""
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_is_there(site: Path) -> None:
    wanted = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    assert {site / path.with_suffix(".html") for path in wanted} <= {*site.rglob("*.html")}
    assert (site / "index.html").is_file()


MOST_BYTES, WIDEST = 32_000, 200
"""Of a page that a person reads through, and of a cell of a table, in characters."""


def test_no_page_and_no_cell_is_too_long() -> None:
    sources = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert [path.name for path in sources if path.stat().st_size > MOST_BYTES] == []
    cells = [
        (path.name, cell.strip())
        for path in sources
        for line in path.read_text().splitlines()
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", line)
    ]
    assert len(cells) > 1000
    assert [one for one in cells if len(one[1]) > WIDEST] == []


def test_no_link_is_broken(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (parts.fragment and parts.fragment not in anchors):
                broken.append(f"{path.name}: {link}")
    assert sum(len(page.links) for page in pages.values()) > 1000
    assert broken == []


def test_nothing_is_fetched_from_outside(site: Path, pages: dict[Path, Page]) -> None:
    loads = {link for page in pages.values() for link in page.loads if urlsplit(link).netloc}
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    loads |= {*re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)", styles)}
    assert loads == set()


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")
def test_a_reader_searches_and_prints_without_a_server(site: Path) -> None:
    with visiting() as page:
        page.goto((site / "index.html").as_uri())
        page.fill("input[name=q]", "incast")
        page.keyboard.press("Enter")
        page.wait_for_selector("ul.search li")
        found = " ".join(page.locator("ul.search li").all_inner_texts())
        assert "kernels" in found
        page.goto((site / "docs" / "schedulers.html").as_uri())
        assert page.locator(".sidebar-drawer").is_visible()
        page.emulate_media(media="print")
        assert not page.locator(".sidebar-drawer").is_visible()
        assert page.complaints == []


def test_the_verb_names_the_page(tmp_path: Path) -> None:
    done = paribus("docs", "schedulers", cwd=tmp_path, DISPLAY="", WAYLAND_DISPLAY="", code=0)
    built = (ROOT / "site" / "docs" / "schedulers.html").as_uri()
    assert done.stdout.strip() == built or f"{ROOT}/docs/schedulers.md (Mark" in done.stdout
    wrong = paribus("docs", "scheduler", cwd=tmp_path, code=2)
    assert "others: schedulers" in wrong.stderr


def test_the_workbench_shows_it_to_who_may_come_in(site: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "paribus").symlink_to(ROOT / "src" / "paribus")
    (tmp_path / "site").symlink_to(site)
    with served(tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "src")}) as server:
        assert server.ask("/docs/index.html").status == 403
        server.cookie = server.enter()
        assert 'href="docs/index.html"' in server.page("/")
        assert "Nodes of a scheduler" in server.page("/docs/docs/schedulers.html")
        away = server.ask("/docs/..%2f..%2fpyproject.toml", Cookie=server.cookie)
        assert away.status == 404
