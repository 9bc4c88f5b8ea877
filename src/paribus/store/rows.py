"""The rows of launches.db: what a launch is there, and the checksums that say it is whole.

`launches.content` is the CRC-32 of a launch's rows in `samples`, so that a sample that is gone is
missed as one that changed is; `launches.checksum` and `gathered.checksum` are those of all other
columns of the row. A CRC-32 finds every burst of up to 32 bits, and of other damage all but one in
4 x 10^9 (Peterson and Brown, Proc. IRE 49, 1961); it costs about a twentieth of reading.
"""

from __future__ import annotations

import array
import json
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from paribus.core import Case, Facts, Launch, Outcome, Sample, State

Row = tuple[Any, ...]

LAUNCH = (
    "id, number, attempt, block, benchmark, arm, place, seed, state, started, wall_s, exit_code,"
    " argv, facts, error, void, content, checksum"
)
ID, NUMBER, WALL_S, VOID, CONTENT, CHECKSUM = 0, 1, 10, 15, 16, 17
SAMPLE = "metric, parameters, batch, count, data"
GATHERED = "id, arm, node, at, facts, checksum"

_DECODER = json.JSONDecoder()

WORTHWHILE = 0.9
"""The share of its bytes to which a sample is compressed if it is: clock readings repeat."""

UNREADABLE = (
    *(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError),
    zlib.error,
)
"""What the parsing of a row that is not whole may raise."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A launch as it stands in the store. `void` says why an attempt does not count."""

    launch: Launch
    attempt: int
    outcome: Outcome
    void: str | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts of one node of an arm, `at` seconds since the epoch, seen from inside the arm."""

    arm: str
    node: str
    at: float
    facts: Facts


def pack(values: Sequence[float]) -> bytes:
    """Return `values` as little-endian doubles in zlib's format.

    What compression makes little smaller is left as it is: to read it takes a tenth of the time.
    """
    numbers = array.array("d", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    plain = numbers.tobytes()
    packed = zlib.compress(plain, 1)
    return packed if len(packed) <= WORTHWHILE * len(plain) else zlib.compress(plain, 0)


def unpack(data: bytes, *, arrays: bool = False) -> Sequence[float]:
    """Return what `pack` packed: as a tuple, or as an array of doubles."""
    numbers = array.array("d", zlib.decompress(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers if arrays else tuple(numbers)


def checksum(values: Sequence[object]) -> int:
    """Return the CRC-32 of the columns `values`, of whatever types damage has made them."""
    return zlib.crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def content(samples: Sequence[Row]) -> int:
    """Return the CRC-32 of a launch's sample rows (columns SAMPLE) in order; 0 of none."""
    crc = zlib.crc32("\0".join([f"{m}\0{p}\0{b}\0{n}" for m, p, b, n, _ in samples]).encode())
    for row in samples:
        crc = zlib.crc32(row[4], crc)
    return crc


def sealed(row: Sequence[object]) -> Row:
    """Return a row with its checksum as the last column."""
    return (*row, checksum(row))


def is_sealed(row: Row) -> bool:
    """Return whether a row still has the checksum that its columns give."""
    return bool(row[-1] == checksum(row[:-1]))


def sample_rows(samples: Iterable[Sample]) -> list[Row]:
    """Return the columns SAMPLE of each of `samples`."""
    return [(s.metric, s.case.to_json(), s.batch, len(s.values), pack(s.values)) for s in samples]


def launch_row(
    number: int, launch: Launch, attempt: int, outcome: Outcome, samples: Sequence[Row]
) -> Row:
    """Return the columns LAUNCH of an attempt that is to be row `number`; it counts."""
    return sealed(
        (
            number,
            launch.number,
            attempt,
            launch.block,
            launch.benchmark,
            launch.arm,
            launch.place,
            launch.seed,
            outcome.state.value,
            # As the columns of type REAL give them back: the checksum is of what will be read.
            float(outcome.started),
            float(outcome.wall_s),
            outcome.exit_code,
            json.dumps(outcome.argv),
            json.dumps(outcome.facts),
            outcome.error,
            None,
            content(samples),
        )
    )


def voided(row: Row, reason: str) -> Row:
    """Return the row of a launch that does not count for `reason`."""
    return sealed((*row[:VOID], reason, *row[VOID + 1 : CHECKSUM]))


@lru_cache(4096)
def _case(parameters: str) -> Case:
    """Return the case of a row: a study has few, and each launch has them all."""
    return Case.from_json(parameters)


def _is_flat(text: str) -> bool:
    """Return whether a text up to its first "]" is a whole list: that ends no text in the list."""
    quotes_even = "\\" not in text and text.count('"') % 2 == 0
    return text.startswith("[") and quotes_even and text.rfind("[") == 0


@lru_cache(256)
def _shared(text: str) -> list[Any]:
    """Return a list of a row: thousands of launches have the same hosts, cores and libraries."""
    found: list[Any] = json.loads(text)
    return found


def read_facts(text: str) -> Facts:
    """Return what json.dumps made `text` of; lists that rows have in common are one object.

    Of 1,000 ranks a launch has lists of 57 kB, and nearly all of their text is the same each time.
    Raises ValueError as json.loads does.
    """
    found: dict[str, Any] = {}
    place = 0
    while text.startswith(', "' if place else '{"', place):
        key, place = _DECODER.raw_decode(text, place + (2 if place else 1))
        if not text.startswith(": ", place):
            break
        flat = text[place + 2 : text.find("]", place) + 1]
        if _is_flat(flat):
            found[key], place = _shared(flat), place + 2 + len(flat)
        else:
            found[key], place = _DECODER.raw_decode(text, place + 2)
    # Text of another form, or damaged, is left to json.
    facts: Facts = found if found and text[place:] == "}" else json.loads(text)
    return facts


_KINDS: Sequence[tuple[int, type | tuple[type, ...]]] = (
    *((at, int) for at in (1, 2, 3, 6, 7)),
    *((at, str) for at in (4, 5, 14)),
    *((at, (int, type(None))) for at in (11,)),
    *((at, (str, type(None))) for at in (VOID,)),
)
_MOST_S = 1e11
"""Seconds since the epoch, or of a launch: no clock shows more."""


def _check(row: Row) -> None:
    """Raise ValueError for columns that no launch has, whatever their checksum says."""
    sound = all(isinstance(row[at], kind) for at, kind in _KINDS)
    if not sound or not all(0 <= float(row[at]) < _MOST_S for at in (9, 10)):
        raise ValueError("a column is not what a launch has")


def _facts(found: Any) -> Facts:
    if not isinstance(found, dict):
        raise ValueError("its facts are no table")
    return found


def stored(row: Row, samples: Iterable[Row], *, arrays: bool = False) -> Stored:
    """Return the launch that a row holds; raises one of UNREADABLE if it makes no sense.

    The values of its samples are tuples, or `arrays` of doubles.
    """
    _check(row)
    return Stored(
        Launch(row[1], row[3], row[4], row[5], row[7], row[6]),
        row[2],
        Outcome(
            State(row[8]),
            row[9],
            row[10],
            row[11],
            tuple(json.loads(row[12])),
            tuple(
                Sample(metric, _case(parameters), unpack(data, arrays=arrays), batch)
                for metric, parameters, batch, _, data in samples
            ),
            _facts(read_facts(row[13])),
            row[14],
        ),
        row[VOID],
    )


def gathered_row(number: int, one: Gathered) -> Row:
    """Return the columns GATHERED of facts that are to be row `number`."""
    return sealed((number, one.arm, one.node, float(one.at), json.dumps(one.facts)))


def gathered(row: Row) -> Gathered:
    """Return the facts that a row holds; raises one of UNREADABLE if it makes no sense."""
    if not (isinstance(row[1], str) and isinstance(row[2], str) and 0 <= float(row[3]) < _MOST_S):
        raise ValueError("a column is not what a node has")
    return Gathered(row[1], row[2], row[3], _facts(json.loads(row[4])))
