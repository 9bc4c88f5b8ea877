"""Each parser of outputs on text that nobody has seen: it reads or refuses, and soon.

`./dev fuzz [SECONDS] [NAME ...]`: 60 s for each parser, on all cores. Inputs are recorded outputs
with damage, with a line or a piece of one swollen, and text made at random of their words. The time
limit finds patterns that backtrack without end. An input follows from parser, seed and number, so
that a find can be repeated; it is written to fuzz-PARSER-NUMBER.txt too, and the exit code is 1.

Benchmarks that share their code are one parser; each input is read by the benchmark of the output
that it was made of. `files` is what `paribus compare` does with a file: whose it is, where it is
to be cut, and when it was written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from types import FrameType

from paribus.benchmarks import BENCHMARKS
from paribus.core import ParseError, Reading
from paribus.logs.recognise import readings
from paribus.readers import kernel, nvidia_topo
from paribus.readers.harness import Measured
from paribus.readers.known import harnesses, readers
from paribus.readers.text import plain
from paribus.topology import nccl, stored
from paribus.topology.capacities import read_capacities, shipped
from paribus.topology.diff import difference
from paribus.topology.predict import forecasts
from paribus.topology.read import from_text
from paribus.topology.svg import svg, to_dot
from paribus.topology.words import of_difference

FIXTURES = Path(__file__).parent / "fixtures"
LIMIT_S = 1.0
"""CPU time for one input, at least; per MB, where it is longer. Recorded ones take milliseconds."""

MOST = 1 << 20
STATED = read_capacities(shipped())
LONG = 30_000
"""Characters of an input, and of what is swollen in it: quadratic time shows, linear does not."""

SPECIAL = (
    *("NaN", "inf", "-1", "-0.0", "0", "1e309", "1" * 400, "9" * 19, "\u0664", "\0", "\x1b[31m"),
    *("\r", "\t", " ", "#", '"', "{", "]", "%", "\xe9", "\U0001f600", "\ud800", "", "\n", "\n\n"),
    *("\n" * 300, "0 " * 2000, "1.0 " * 2000, "{" * 500, "[" * 500, "-" * 250, ": " * 1000),
    *("\n# Size", "Error", "[node0:4711] 1 more process has sent", "MPI_ABORT was invoked"),
)

Read = Callable[[str], object]


class TooSlowError(BaseException):
    """An input took longer than its limit."""


@dataclass(frozen=True, slots=True)
class Find:
    """An input that shows a fault: its number, the benchmark that read it, and what is wrong."""

    number: int
    name: str
    wrong: str
    text: str


@cache
def parsers() -> Mapping[str, Mapping[str, Read]]:
    """Return what is different code, by name: each benchmark that it reads, with its reader."""
    found: dict[str, dict[str, Read]] = {}
    for name, benchmark in BENCHMARKS.items():
        if benchmark.read is not None:
            found.setdefault(_code(name), {})[name] = benchmark.read
    own = [name for name, benchmark in BENCHMARKS.items() if benchmark.read is None]
    found["kernels"] = dict.fromkeys(own, kernel.READER.read)
    found |= {name: {name: harness.read} for name, harness in harnesses().items()}
    found["nvidia_topo"] = {"nvidia_topo": nvidia_topo.read}
    found["topology"] = {"topology": _tree}
    found["files"] = dict.fromkeys((n for reads in found.values() for n in reads), _file)
    return found


def _code(name: str) -> str:
    """Return the module that holds the reader of a tool, below what all have in common."""
    read = readers()[name].of_plain
    while isinstance(read, partial):
        read = read.func
    return str(read.__module__).rpartition(".")[2]


def _tree(text: str) -> object:
    """Read a tree, and do with it all that `paribus topology` does."""
    tree = from_text(text)
    if stored.read(json.dumps(stored.to_json(tree))) != tree:
        raise RuntimeError("the tree is another after JSON")
    svg(tree)
    to_dot(tree)
    list(of_difference(difference(tree, tree)))
    if all(gpu.address for gpu in tree.gpus):
        again = nccl.read(nccl.to_nccl(tree))
        if len(again.gpus) != len(tree.gpus):
            raise RuntimeError("GPUs are lost in XML for NCCL")
    if 2 <= len(tree.gpus) <= 16:
        forecasts([tree], ("p2p", "ring-allreduce", "host-to-device"), STATED)
    return None


def _file(text: str) -> object:
    text = plain(text)
    for problem in readings(text).problems:
        if ": not understood (" in problem.detail:
            raise RuntimeError(problem.detail)
    return None


@cache
def outputs(parser: str) -> tuple[tuple[str, str], ...]:
    """Return the recorded outputs of a parser, good and failed, each with its benchmark's name."""
    return tuple(
        (name, path.read_text(errors="replace"))
        for name in parsers()[parser]
        for path in sorted((FIXTURES / name).iterdir())
        if path.suffix in (".out", ".xml", ".txt")
    )


# --- inputs ----------------------------------------------------------------------------------


def made(parser: str, seed: int, number: int) -> tuple[str, str]:
    """Return the input of that number, and the benchmark to read it; the same for the same seed."""
    draw = random.Random(f"{parser} {seed} {number}")
    name, text = draw.choice(outputs(parser))
    match draw.randrange(10):
        case 0:
            text = _anyhow(text, draw)
        case 1 | 2 | 3:
            text = _swollen(text, draw)
        case _:
            for _ in range(draw.choice((1, 1, 2, 4))):
                text = _damaged(text, draw.choice(outputs(parser))[1], draw)[:MOST]
    return name, text


def _anyhow(text: str, draw: random.Random) -> str:
    """Return words of `text` in any order, with what is special between them."""
    words = re.findall(r"\w+|\s+|\W", text) or [" "]
    return "".join(
        draw.choice(SPECIAL) if draw.random() < 0.05 else draw.choice(words)
        for _ in range(draw.randint(0, 2000))
    )


def _swollen(text: str, draw: random.Random) -> str:
    """Return `text` with a line, a piece of one, or a single character repeated very often."""
    lines = text.splitlines(keepends=True) or ["\n"]
    i = draw.choice(_telling(text))
    line = lines[i]
    a, b = sorted(draw.randrange(len(line) + 1) for _ in range(2))
    match draw.randrange(5):
        case 0:
            again, a = line, 0
        case 1:
            again = draw.choice(" 0a.#-=:\t/%")
        case 2:
            again = draw.choice((" 0", "0.", "a ", "0 1.00 ", "# ", "a=", ", ", "\n\n ", "\t-"))
        case 3:
            word = draw.choice(re.findall(r"\s+|\d+|\w+|\W", line))
            again, a = word, line.index(word)
        case _:
            again = line[a:b][:12] or " "
    lines[i] = line[:a] + again * (LONG // len(again)) + line[a:]
    return "".join(lines)


def _damaged(text: str, other: str, draw: random.Random) -> str:
    """Return `text` with one damage: to a line, a word, a character, or by a part of another."""
    lines = text.splitlines(keepends=True) or [""]
    i = draw.choice(_telling(text)) if draw.random() < 0.5 else draw.randrange(len(lines))
    at = draw.randrange(len(lines[i]) + 1)
    match draw.randrange(11):
        case 0:
            lines[i] *= draw.choice((0, 2, 50))
        case 1:
            j = draw.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
        case 2:
            lines[i] = lines[i][:at] + draw.choice(SPECIAL) + lines[i][at:]
        case 3:
            words = re.split(r"(\s+)", lines[i])
            words[draw.randrange(len(words))] = draw.choice(SPECIAL)
            lines[i] = "".join(words)
        case 4:
            lines[i] = lines[i].replace(" ", draw.choice(("", "\t", " " * 40)))
        case 5:
            lines = lines[:i] if draw.random() < 0.5 else lines[i:]
        case 6:
            lines[i:i] = other.splitlines(keepends=True)[: draw.randrange(len(other) + 1)]
        case 7:
            lines[i] = lines[i].rstrip("\n")
        case 8:
            lines[i] = lines[i][:at] + chr(draw.randrange(1, 0x2000)) + lines[i][at + 1 :]
        case 9:
            lines[i] = lines[i].swapcase()
        case _:
            lines[i:i] = lines[i : i + draw.randint(1, 40)] * draw.choice((1, 5, 40))
    return "".join(lines)


@lru_cache(maxsize=500)
def _forms(text: str) -> tuple[int, ...]:
    forms: dict[str, int] = {}
    for i, line in enumerate(text.splitlines()):
        forms.setdefault(re.sub(r"\d+", "0", line), i)
    return tuple(forms.values()) or (0,)


def _telling(text: str) -> Sequence[int]:
    """Return the first line of each form: most lines of a table are alike."""
    return _forms(text) if len(text) < MOST >> 2 else range(text.count("\n") or 1)


# --- reading ---------------------------------------------------------------------------------


def fault(name: str, read: Read, text: str) -> str:
    """Return what is wrong with how the reader of benchmark `name` takes `text`, "" if nothing."""
    limit = LIMIT_S * max(1.0, len(text) / 1e6)

    def expired(signum: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        return _wrong(name, read(text))
    except ParseError as error:
        if not error.cause or "\n" in error.cause or len(error.cause) >= 500:
            return f"says {error.cause[:80]!r}: no sentence, or of {len(error.cause)} characters"
    except TooSlowError:
        return f"takes longer than {limit:g} s for {len(text)} characters"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"[:500]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return ""


def _wrong(name: str, found: object) -> str:
    if isinstance(found, list):
        launches = (one for one in found if isinstance(one, Measured))
        said = (_strange(name, one.reading, {m.name for m in one.metrics}) for one in launches)
        return next(filter(None, said), "") if found else "reads nothing, without a word"
    if not isinstance(found, Reading):
        return ""
    return _strange(name, found, {metric.name for metric in BENCHMARKS[found.benchmark].metrics})


def _strange(name: str, found: Reading, known: set[str]) -> str:
    if not found.samples:
        return "reads nothing, without a word"
    strange = sorted({sample.metric for sample in found.samples} - known)
    return f"{name} reads {strange[0]}, which it does not measure" if strange else ""


def fuzz(parser: str, seed: int, numbers: Iterable[int], seconds: float) -> tuple[int, list[Find]]:
    """Return how many inputs a parser got in so many seconds, and a find for each kind of fault."""
    until = time.monotonic() + seconds
    finds: dict[str, Find] = {}
    tried = 0
    for number in numbers:
        if time.monotonic() > until:
            break
        name, text = made(parser, seed, number)
        tried += 1
        if wrong := fault(name, parsers()[parser][name], text):
            finds.setdefault(re.sub(r"\d+", "0", wrong), Find(number, name, wrong, text))
    return tried, list(finds.values())


def main() -> int:
    """Fuzz the parsers named, or all; return 1 if one has a fault."""
    asked = _asked()
    wanted = asked.names or list(parsers())
    if unknown := [name for name in wanted if name not in parsers()]:
        print(f"no parser {', '.join(unknown)}: {' '.join(parsers())}", file=sys.stderr)
        return 2
    inputs = finds = 0
    begun = time.monotonic()
    numbers = range(1 << 40) if asked.input is None else [asked.input]
    with ProcessPoolExecutor(asked.jobs) as pool:
        started = {
            pool.submit(fuzz, name, asked.seed, numbers, asked.seconds): name for name in wanted
        }
        for done in as_completed(started):
            name = started[done]
            tried, found = done.result()
            inputs, finds = inputs + tried, finds + len(found)
            covers = ", ".join(parsers()[name]) if name != "files" else "any of them"
            print(f"{name:14} {tried:7} inputs, {len(found)} finds: {covers}", flush=True)
            for find in found:
                _notify(name, asked.seed, find)
    print(
        f"{len(wanted)} parsers, {inputs} inputs, {finds} finds in"
        f" {time.monotonic() - begun:.0f} s, seed {asked.seed}"
    )
    return 1 if finds else 0


def _notify(parser: str, seed: int, find: Find) -> None:
    path = Path(f"fuzz-{parser}-{find.number}.txt")
    path.write_bytes(find.text.encode("utf-8", "surrogatepass"))
    print(f"  {find.name}: {find.wrong}\n  {path}; ./dev fuzz {parser}", end="")
    print(f" --seed {seed} --input {find.number} repeats it", flush=True)


def _asked() -> argparse.Namespace:
    given = argparse.ArgumentParser(prog="./dev fuzz", description=(__doc__ or "").split("\n")[0])
    given.add_argument("names", nargs="*", metavar="[SECONDS] NAME", help="parsers (all)")
    given.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time (all cores)")
    given.add_argument(
        "--seed", type=int, default=int(time.time()), help="of all inputs (the time)"
    )
    given.add_argument("--input", type=int, help="only the input of this number")
    asked = given.parse_args()
    first = asked.names[0] if asked.names else ""
    asked.seconds = float(asked.names.pop(0)) if re.fullmatch(r"\d+\.?\d*", first) else 60.0
    return asked


if __name__ == "__main__":
    sys.exit(main())
