"""Each reader on damaged outputs: it reads or refuses, quickly. `./dev fuzz [SECONDS] [NAME ...]`.

SECONDS (60) are for each reader. A pattern that backtracks without end shows as an input that takes
longer than LIMIT_S; anything but a Reading or a ParseError is a fault as well. What is found is
written to fuzz-NAME.txt, and the exit code is 1.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from paribus.benchmarks import BENCHMARKS, kernel_logs
from paribus.errors import ParseError
from paribus.model import Reading

FIXTURES = Path(__file__).parent / "fixtures"
LIMIT_S = 2.0
"""For one input, at least; per MB, where it is longer. Outputs of this size take milliseconds."""

SPECIAL = (
    *(
        "NaN",
        "inf",
        "-1",
        "0",
        "1e999",
        "1" * 400,
        "9" * 19,
        "\u0664",
        "\0",
        "\x1b[31m",
        "\r",
        "\t",
    ),
    *(
        " " * 3000,
        "\n" * 300,
        "#" * 2000,
        "0 " * 2000,
        "1.0 " * 2000,
        "a" * 5000,
        "{" * 500,
        "[" * 500,
    ),
    *("-" * 3000, "=" * 3000, ": " * 1000, "\n# Size", "Error", "%", "\U0001f600", "\ud800", ""),
)


class TooSlowError(Exception):
    """An input took longer than its limit."""


def readers() -> list[str]:
    """Return the names of what is fuzzed: every tool, and our kernels together."""
    return [name for name, b in BENCHMARKS.items() if b.read is not None] + ["kernels"]


def outputs(name: str) -> list[str]:
    """Return the recorded outputs of a tool, good and failed."""
    names = [n for n, b in BENCHMARKS.items() if b.read is None] if name == "kernels" else [name]
    found = [p for n in names for p in sorted((FIXTURES / n).glob("*.out"))]
    return [path.read_text(errors="replace") for path in found]


def mutated(text: str, others: list[str], draw: random.Random) -> str:
    """Return `text` with one to four damages: of lines, words, digits, and of its length."""
    for _ in range(draw.randint(1, 4)):
        lines = text.splitlines(keepends=True) or [""]
        i = draw.randrange(len(lines))
        match draw.randrange(11):
            case 0:
                lines[i] *= draw.choice((0, 2, 50))
            case 1:
                j = draw.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
            case 2:
                at = draw.randrange(len(lines[i]) + 1)
                lines[i] = lines[i][:at] + draw.choice(SPECIAL) + lines[i][at:]
            case 3:
                words = lines[i].split(" ")
                words[draw.randrange(len(words))] = draw.choice(SPECIAL)
                lines[i] = " ".join(words)
            case 4:
                lines[i] = lines[i].replace(" ", draw.choice(("", "\t", " " * 400)))
            case 5:
                lines = lines[: draw.randrange(len(lines) + 1)]
            case 6:
                other = draw.choice(others).splitlines(keepends=True)
                lines[i:i] = other[: draw.randrange(len(other) + 1)]
            case 7:
                lines[i] = lines[i].rstrip("\n")
            case 8:
                at = draw.randrange(len(lines[i]) + 1)
                lines[i] = lines[i][:at] + chr(draw.randrange(1, 0x2000)) + lines[i][at + 1 :]
            case 9:  # what takes quadratic time shows in a long run of one character
                at = draw.randrange(len(lines[i]) + 1)
                lines[i] = lines[i][:at] + draw.choice(" 0a.#-=:\t/%") * 60_000 + lines[i][at:]
            case _:
                block = lines[i : i + draw.randint(1, 40)]
                lines[i:i] = block * draw.choice((1, 5, 40))
        text = "".join(lines)[: 1 << 20]
    return text


def inputs(name: str, seed: int) -> Iterator[str]:
    """Yield damaged outputs without end, the same for the same seed."""
    draw = random.Random(f"{name} {seed}")
    texts = outputs(name)
    while True:
        yield mutated(draw.choice(texts), texts, draw)


def fault(name: str, text: str) -> str:
    """Return what is wrong with how a reader takes `text`, "" if nothing is."""
    read = kernel_logs.read if name == "kernels" else BENCHMARKS[name].read
    assert read is not None
    limit = LIMIT_S * max(1.0, len(text) / 1e6)

    def expired(signum: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        found = read(text)
    except ParseError as error:
        said = "" if error.cause and "\n" not in error.cause else f"says {error.cause!r}"
        return said if len(error.cause) < 500 else f"says {len(error.cause)} characters"
    except TooSlowError:
        return f"takes longer than {limit:g} s for {len(text)} characters"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return "" if isinstance(found, Reading) and found.samples else "reads nothing, without a word"


def main() -> int:
    """Fuzz the readers named, or all; return 1 if one has a fault."""
    words = sys.argv[1:]
    seconds = float(words.pop(0)) if words and words[0].replace(".", "").isdigit() else 60.0
    unknown = [name for name in words if name not in readers()]
    if unknown:
        print(f"no such reader: {', '.join(unknown)}", file=sys.stderr)
        return 2
    bad = 0
    for name in words or readers():
        begin = time.monotonic()
        for count, text in enumerate(inputs(name, int(time.time()))):
            if time.monotonic() - begin > seconds:
                print(f"{name:24} {count:8} inputs", flush=True)
                break
            if said := fault(name, text):
                Path(f"fuzz-{name}.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
                print(f"{name:24} {said} (fuzz-{name}.txt)", flush=True)
                bad += 1
                break
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
