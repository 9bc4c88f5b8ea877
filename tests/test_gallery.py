"""The pictures of pages: all there, small, and of pages that say today what they said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gallery
from browser import PROGRAM
from serving import visiting

MOST_BYTES = 1_500_000
FIRST = "document.querySelector('#now svg, #answer .forest').getBoundingClientRect().top"


def test_the_page_shows_a_picture_of_each_kind_with_what_it_shows() -> None:
    shown = re.findall(r"!\[([^]]+)\]\(\S+/gallery/([^)]+)\)", gallery.PAGE.read_text())
    wide = [gallery.name_of(kind, 1440, "light") for kind in gallery.KINDS]
    assert sorted(name for _, name in shown) == sorted(wide)
    assert min(len(text) for text, _ in shown) > 10


def test_every_picture_is_there_and_small() -> None:
    wanted = {
        gallery.name_of(kind, width, scheme): size
        for kind in gallery.KINDS
        for width, size in gallery.SIZES.items()
        for scheme in ("light", "dark")
    }
    pictures = {path.name: path.read_bytes() for path in gallery.FOLDER.glob("*.webp")}
    assert pictures.keys() == wanted.keys()
    assert sum(map(len, pictures.values())) <= MOST_BYTES
    for name, data in pictures.items():
        # RFC 9649: of a lossy picture the width stands behind the start code of its frame.
        assert (data[8:16], data[23:26]) == (b"WEBPVP8 ", b"\x9d\x01\x2a"), name
        assert int.from_bytes(data[26:28], "little") & 0x3FFF == wanted[name][1], name


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("kind", gallery.KINDS)
def test_a_page_says_what_it_said_when_its_picture_was_drawn(kind: str, tmp_path: Path) -> None:
    """After a wanted change: tools/gallery.py, and look at the pictures."""
    window = {"width": 1440, "height": 900}
    with gallery.ways(tmp_path, [kind]) as ways, visiting(viewport=window) as page:
        gallery.show(page, ways[kind]())
        assert page.complaints == []
        assert 0 < page.evaluate(FIRST) < 450
        assert gallery.says(page) == (gallery.FOLDER / f"{kind}.txt").read_text()
