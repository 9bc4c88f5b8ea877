"""The rows of launches.db: launches and facts as columns and back, with checksums.

`launches.content` is the CRC-32 of a launch's rows in `samples`, so that a lost sample is noticed
as well as a changed one; `launches.checksum` and `gathered.checksum` are those of all other
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
(ID, NUMBER, ATTEMPT, BLOCK, BENCHMARK, ARM, PLACE, SEED, STATE, STARTED) = range(10)
(WALL_S, EXIT_CODE, ARGV, FACTS, ERROR, VOID, CONTENT, CHECKSUM) = range(10, 18)
SAMPLE = "metric, parameters, batch, count, data"
GATHERED = "id, arm, node, at, facts, checksum"

_DECODER = json.JSONDecoder()

WORTHWHILE = 0.9
"""Samples are compressed only if that leaves at most this share of their bytes."""

UNREADABLE = (
    *(ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError),
    zlib.error,
)
"""What parsing a damaged row may raise."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An attempt at a launch, as it stands in the store."""

    launch: Launch
    attempt: int  # from 0
    outcome: Outcome
    void: str | None  # why it does not count; None: it does


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts of one node of an arm, `at` seconds since the epoch, seen from inside the arm."""

    arm: str
    node: str
    at: float
    facts: Facts


def pack(values: Sequence[float]) -> bytes:
    """Return `values` as little-endian doubles in zlib's format.

    Values that compression makes little smaller are stored uncompressed in that format: reading
    them then takes a tenth of the time.
    """
    numbers = array.array("d", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    plain = numbers.tobytes()
    packed = zlib.compress(plain, 1)
    return packed if len(packed) <= WORTHWHILE * len(plain) else zlib.compress(plain, 0)


def unpack(data: bytes, *, arrays: bool = False) -> Sequence[float]:
    """Return the values that `pack` packed: as a tuple, or with `arrays` as an array of doubles."""
    numbers = array.array("d", zlib.decompress(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers if arrays else tuple(numbers)


def checksum(values: Sequence[object]) -> int:
    """Return the CRC-32 of columns, which after damage may be of any type."""
    return zlib.crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def content(samples: Sequence[Row]) -> int:
    """Return the CRC-32 of a launch's sample rows (columns SAMPLE) in order; 0 of none."""
    names = [
        f"{metric}\0{parameters}\0{batch}\0{count}"
        for metric, parameters, batch, count, _ in samples
    ]
    crc = zlib.crc32("\0".join(names).encode())
    for *_, data in samples:
        crc = zlib.crc32(data, crc)
    return crc


def sealed(row: Sequence[object]) -> Row:
    """Return a row with its checksum added as the last column."""
    return (*row, checksum(row))


def is_sealed(row: Row) -> bool:
    """Return whether the last column of a row is the checksum of the others."""
    return bool(row[-1] == checksum(row[:-1]))


def sample_rows(samples: Iterable[Sample]) -> list[Row]:
    """Return the columns SAMPLE of each of `samples`."""
    return [(s.metric, s.case.to_json(), s.batch, len(s.values), pack(s.values)) for s in samples]


def launch_row(
    number: int, launch: Launch, attempt: int, outcome: Outcome, samples: Sequence[Row]
) -> Row:
    """Return the columns LAUNCH of an attempt, for row `number`; it is not void.

    `samples` are the columns SAMPLE of its samples.
    """
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
    """Return the row of a launch, marked as not counting for `reason`."""
    return sealed((*row[:VOID], reason, *row[VOID + 1 : CHECKSUM]))


@lru_cache(4096)
def _case(parameters: str) -> Case:
    """Return the case of a row: a study has few, and each launch has them all."""
    return Case.from_json(parameters)


def _is_flat(text: str) -> bool:
    """Return whether `text`, which ends at its first "]", is a whole list without inner lists.

    The bracket could also stand within a text of the list: not if quotation marks are paired.
    """
    quotes_even = "\\" not in text and text.count('"') % 2 == 0
    return text.startswith("[") and quotes_even and text.rfind("[") == 0


@lru_cache(256)
def _shared(text: str) -> list[Any]:
    """Return a list of JSON; equal texts, such as the hosts of all launches, share one object."""
    found: list[Any] = json.loads(text)
    return found


def read_facts(text: str) -> Facts:
    """Return the facts of which json.dumps made `text`; equal lists of many rows are one object.

    A launch of 1,000 ranks has lists of 57 kB, nearly all of which is the same in every launch.
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
    *((column, int) for column in (NUMBER, ATTEMPT, BLOCK, PLACE, SEED)),
    *((column, str) for column in (BENCHMARK, ARM, ERROR)),
    (EXIT_CODE, (int, type(None))),
    (VOID, (str, type(None))),
)
_MOST_S = 1e11
"""Seconds since the epoch, or of a launch: no clock shows as many."""


def _check(row: Row) -> None:
    """Raise ValueError for columns that no launch has, even where the checksum agrees."""
    sound = all(isinstance(row[column], kind) for column, kind in _KINDS)
    if not sound or not all(0 <= float(row[column]) < _MOST_S for column in (STARTED, WALL_S)):
        raise ValueError("a column is not what a launch has")


def _facts(found: Any) -> Facts:
    if not isinstance(found, dict):
        raise ValueError("its facts are no table")
    return found


def stored(row: Row, samples: Iterable[Row], *, arrays: bool = False) -> Stored:
    """Return the launch that a row (columns LAUNCH) holds; raises one of UNREADABLE for nonsense.

    The values of its samples (rows with columns SAMPLE) are tuples, or `arrays` of doubles.
    """
    _check(row)
    return Stored(
        Launch(row[NUMBER], row[BLOCK], row[BENCHMARK], row[ARM], row[SEED], row[PLACE]),
        row[ATTEMPT],
        Outcome(
            State(row[STATE]),
            row[STARTED],
            row[WALL_S],
            row[EXIT_CODE],
            tuple(json.loads(row[ARGV])),
            tuple(
                Sample(metric, _case(parameters), unpack(data, arrays=arrays), batch)
                for metric, parameters, batch, _, data in samples
            ),
            _facts(read_facts(row[FACTS])),
            row[ERROR],
        ),
        row[VOID],
    )


def gathered_row(number: int, one: Gathered) -> Row:
    """Return the columns GATHERED of the facts of a node, for row `number`."""
    return sealed((number, one.arm, one.node, float(one.at), json.dumps(one.facts)))


def gathered(row: Row) -> Gathered:
    """Return the facts in a row (columns GATHERED); raises one of UNREADABLE for nonsense."""
    if not (isinstance(row[1], str) and isinstance(row[2], str) and 0 <= float(row[3]) < _MOST_S):
        raise ValueError("a column is not what a node has")
    return Gathered(row[1], row[2], row[3], _facts(json.loads(row[4])))
