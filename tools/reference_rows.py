"""Writes the tables of docs/benchmarks.md that follow from the code and from the recorded outputs.

Five of them: every benchmark, what each tool's output must show, what the readers rest on, the
files of harnesses, and what of an output does not matter.
"""

from __future__ import annotations

import re
from pathlib import Path

from paribus.benchmarks import BENCHMARKS
from paribus.readers import settings
from paribus.readers.known import harnesses

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
FIXTURES = ROOT / "tests" / "fixtures"
HEADINGS = (
    "| benchmark | layer |",
    "| tools | versions |",
    "| origin of the outputs | readers |",
    "| files of | versions |",
    "| settings of | keys |",
)
TOPOLOGIES = "published by others, topologies"


def benchmark_rows() -> list[str]:
    """Return a row for each benchmark: what it measures, in which units, with which parameters."""
    rows = []
    for name, benchmark in BENCHMARKS.items():
        metrics = ", ".join(f"`{m.name}` ({m.unit}, {m.better})" for m in benchmark.metrics)
        parameters = ", ".join(f"`{parameter}`" for parameter in benchmark.parameters)
        cells = (f"`{name}`", benchmark.layer, metrics, benchmark.summary, parameters)
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def proof_rows() -> list[str]:
    """Return what each tool's output must show and means; tools of which it is the same in one."""
    tools: dict[tuple[str, ...], list[str]] = {}
    for name, benchmark in BENCHMARKS.items():
        if benchmark.read is not None:
            said = (benchmark.versions, benchmark.proof, benchmark.means, benchmark.get)
            tools.setdefault(said, []).append(f"`{name}`")
    return [f"| {', '.join(names)} | {' | '.join(said)} |" for said, names in tools.items()]


def origin_rows() -> list[str]:
    """Return where the recorded outputs of each reader come from.

    A fixture whose name says neither "real" nor "handmade" was captured by us.
    """
    found: dict[str, list[str]] = {"captured by us": [], "published by others": []}
    found |= {"only by hand: these forms": [], "only by hand: every form": []}
    for name, benchmark in BENCHMARKS.items():
        if benchmark.read is None:
            continue
        stems = [path.stem for path in (FIXTURES / name).glob("*.out")]
        good = [stem for stem in stems if stem.startswith(("good-", "other-"))]
        hand = sorted(stem for stem in good if "handmade" in stem)
        real = [stem for stem in good if "real" in stem]
        if len(hand) + len(real) < len(good):
            found["captured by us"].append(f"`{name}`")
        if real:
            found["published by others"].append(f"`{name}`")
        if hand and len(hand) < len(good):
            forms = ", ".join(re.sub(r"^good-handmade[-_]", "", stem) for stem in hand)
            found["only by hand: these forms"].append(f"`{name}` ({forms})")
        elif hand:
            found["only by hand: every form"].append(f"`{name}`")
    return [f"| {origin} | {', '.join(names)} |" for origin, names in found.items() if names]


def harness_rows() -> list[str]:
    """Return of each harness whose files are read what a launch is, and what a file must show."""
    return [
        f"| `{name}` | {one.versions} | {one.launches} | {one.proof} |"
        for name, one in harnesses().items()
    ]


def setting_rows() -> list[str]:
    """Return of each file of readers how many settings are keys, and what does not matter, why."""
    every = settings.tables()
    common = set.intersection(*({*table.nothing} for table in every.values()))
    rows = []
    for name, table in every.items():
        own = [one for one in table.nothing if one not in common]
        patterns = (table.keys.pattern, table.options.pattern)
        keys = sum(_alternatives(one) for one in patterns if one != settings.NONE)
        why = "; ".join(one.why for one in own)
        rows.append(f"| `{name}` | {keys} | {sum(map(_kinds, own))} | {why} |")
    shared = [one for one in every["osu"].nothing if one in common]
    why = "; ".join(one.why for one in shared)
    return [*rows, f"| all of them | 0 | {sum(map(_kinds, shared))} | {why} |"]


def _kinds(row: settings.Silent) -> int:
    return _alternatives(row.lines)


def _alternatives(pattern: str) -> int:
    """Return how many alternatives a regular expression has, not counting those in groups."""
    plain = re.sub(r"\\.|\[[^\]]*\]", "", pattern)
    while "(" in plain:
        plain = re.sub(r"\([^()]*\)", "", plain)
    return plain.count("|") + 1


def page(text: str) -> str:
    """Return the page with its tables as they must be; what is around them stays."""
    lines = text.splitlines()
    for heading, rows in zip(
        HEADINGS,
        (benchmark_rows(), proof_rows(), origin_rows(), harness_rows(), setting_rows()),
        strict=True,
    ):
        (begin,) = (n for n, line in enumerate(lines, 2) if line.startswith(heading))
        end = next(n for n in range(begin, len(lines)) if not lines[n].startswith("|"))
        kept = [line for line in lines[begin:end] if line.startswith(f"| {TOPOLOGIES} |")]
        lines[begin:end] = [*rows, *kept]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
