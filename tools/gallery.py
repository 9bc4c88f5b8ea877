"""Draw the pictures of docs/report.md: pages of studies that the tests have, in Chromium.

    python tools/gallery.py [KIND ...]     # tests/golden/gallery: pictures, and what pages say

Needs playwright and Pillow. Look at each picture afterwards: the tests hold what a page says to
those who cannot see it against the text that is written here, not the picture.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import judgements  # noqa: E402
import test_matrices  # noqa: E402
from paribus.core import Arm, Judgement, Selection  # noqa: E402
from paribus.report.html import write_html  # noqa: E402
from paribus.store import Board, Doing, Effect  # noqa: E402
from serving import served, visiting  # noqa: E402
from stored import Script, judged, nodes  # noqa: E402
from study_directories import write_directory  # noqa: E402

PAGE, FOLDER = ROOT / "docs" / "report.md", ROOT / "tests" / "golden" / "gallery"
SIZES = {1440: (900, 720), 1000: (1000, 450), 400: (800, 225)}
"""Heights of the windows by their widths, and the widths of the pictures."""

QUALITY = 70
SAYS = """[...document.querySelectorAll(
    '#progress, #now :is(li, p), #answer :is(h1, p, tr, summary), h2, [role=img]')]
    .filter(e => e.checkVisibility()).map(e => `${e.tagName.toLowerCase()}: `
    + (e.getAttribute('aria-label') ?? e.innerText).replace(/\\s+/g, ' ').trim())"""
"""What a page says first, its headings, and the texts of its pictures."""


@cache
def many() -> Judgement:
    """Return a study of nine benchmarks of four layers."""
    times = {
        "latency": 1.42, "bandwidth": 1.31, "message_rate": 1.55, "allreduce": 1.18, "bcast": 1.12,
        "alltoall": 1.06, "barrier": 1.27, "triad": 1.001, "ep": 0.999,
    }  # fmt: skip
    ratios = {name: {"bridged": one} for name, one in times.items()}
    script = replace(judgements.SCRIPT, ratios=ratios, samples=20)
    chosen = tuple(
        judgements.selection(name, parameters={}) if name == "ep" else judgements.selection(name)
        for name in times
    )
    asked = judgements.study((), benchmarks=chosen)
    return judged(asked, script, name="layers", facts=judgements.FACTS)


@cache
def gpu() -> Judgement:
    """Return a study of GPUs with another algorithm for sums."""
    arms = (Arm("auto"), Arm("ring", env={"NCCL_ALGO": "Ring"}))
    vectors = [1 << 10, 1 << 16, 1 << 20, 1 << 27]
    chosen = (
        Selection("gpu_allreduce", "gpu_allreduce", 1, {"bytes": vectors}, 60.0),
        Selection("gpu_stream", "gpu_stream", 1, {"bytes": [1 << 30]}, 60.0),
        Selection("gpu_copy", "gpu_copy", 1, {"bytes": [1 << 16, 1 << 20, 1 << 26]}, 60.0),
    )
    asked = judgements.study(
        (), arms, question="What does NCCL_ALGO=Ring cost on eight GPUs?", factor="env",
        benchmarks=chosen, path="studies/ring.toml",
    )  # fmt: skip
    script = Script(
        {"gpu_allreduce": {"ring": 1.24}, "gpu_stream": {}, "gpu_copy": {}},
        base={"gpu_stream": 358.0},
        scatter={"gpu_copy": 0.03},
        samples=20,
    )
    facts = [nodes(arm.name, judgements.MACHINE, arm_facts(arm)) for arm in arms]
    return judged(asked, script, name="ring", facts=facts)


def arm_facts(arm: Arm) -> dict[str, str]:
    """Return the variables of an arm as facts of its node."""
    return {f"env.{name}": value for name, value in arm.env.items()}


REPORTS: Mapping[str, Callable[[], Judgement]] = {
    "few": judgements.commands,
    "many": many,
    "gpu": gpu,
    "interrupted": judgements.incomplete,
    "failed": judgements.no_data,
    "no-verdict": judgements.withheld,
    "three-arms": judgements.three_arms,
    "pairs": lambda: test_matrices.with_matrices(test_matrices.matrices(8)),
    "cluster": judgements.scaling,
    "logs": judgements.logs,
}
KINDS = (*REPORTS, "running")


@contextmanager
def ways(folder: Path, kinds: Collection[str] = KINDS) -> Iterator[Mapping[str, Callable[[], Any]]]:
    """Yield what returns the addresses by which a browser comes to the page of each kind."""
    found: dict[str, Callable[[], Sequence[str]]] = {}
    with ExitStack() as open_:
        for kind in kinds:
            page = folder / f"{kind}.html"
            if kind in REPORTS:
                write_html(REPORTS[kind](), page)
                found[kind] = [page.as_uri()].copy
            else:
                found[kind] = open_.enter_context(_running(folder))
        yield found


@contextmanager
def _running(folder: Path) -> Iterator[Callable[[], Sequence[str]]]:
    """Yield the way to a study of which nine of sixty blocks are stored."""
    effects, labels = {"host": 1.0, "bridged": 1.02}, ("latency", "barrier", "allreduce")
    question = "What does bridged container networking cost MPI on one host?"
    directory = write_directory(
        folder / "bridged", effects, blocks=9, most=60, labels=labels, question=question,
        sizes=(8, 512, 65536), started=1.8e9, noise=0.04,
    )  # fmt: skip
    so_far = [Effect(label, "bridged", "undecided", "few", 1.02, 0.99, 1.05) for label in labels]
    done, since = dict.fromkeys(labels, 9), 1.8e9 + 61
    doing = Doing(61, 10, "barrier", "bridged", since, done, 12, 21.0, 61.0, 330.0)
    with Board(directory) as board, served(folder) as server:
        board.say("measuring", so_far, planned=366, doing=doing)
        server.cookie = server.enter()
        place = f"http://127.0.0.1:{server.port}/studies/{server.ident('bridged')}/"
        yield lambda: [server.link(), place]


def show(page: Any, addresses: Sequence[str]) -> None:
    """Bring the page of a kind onto the screen, all drawn."""
    for address in addresses:
        page.goto(address)
    page.wait_for_selector("html[data-drawn]")


def says(page: Any) -> str:
    """Return in lines what a page says to those who cannot see it."""
    return "\n".join(page.evaluate(SAYS)) + "\n"


def name_of(kind: str, width: int, scheme: str) -> str:
    """Return the name of a picture."""
    return f"{kind}-{width}-{scheme}.webp"


def draw(kinds: Collection[str]) -> None:
    """Draw pages of some kinds at all widths, light and dark, and keep what they say."""
    from PIL import Image

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made, ways(Path(made), kinds) as found:
        for width, (height, shown) in SIZES.items():
            for scheme in ("light", "dark"):
                window = {"width": width, "height": height}
                with visiting(viewport=window, color_scheme=scheme) as page:
                    for kind, way in found.items():
                        show(page, way())
                        if (width, scheme) == (1440, "light"):
                            (FOLDER / f"{kind}.txt").write_text(says(page))
                        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                        size = (shown, round(height * shown / width))
                        small = picture.resize(size, Image.Resampling.LANCZOS)
                        small.save(FOLDER / name_of(kind, width, scheme), quality=QUALITY, method=6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    asked = parser.parse_args().kinds
    if unknown := sorted({*asked} - {*KINDS}):
        parser.error(f"no kind of page: {', '.join(unknown)}")
    draw(asked or KINDS)
