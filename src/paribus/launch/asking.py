"""One launch that asks nodes what they are, and what is heard of each: whole, or not at all.

A launcher forwards what ranks print in pieces that end anywhere, so lines of nodes that speak at
the same time run into each other. Each line therefore begins and ends with the number of its rank,
its answer and itself: what was broken into lacks its end, and is never read.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paribus import probes
from paribus.core import Completed, MachineError, Program, count
from paribus.launch.arms import Ready, compose_ours
from paribus.launch.space import fault_of
from paribus.launch.station import Station

MOST_BYTES = 20 << 20
"""Bytes that are kept of answers: facts.sh stops far below. More of other things is too much."""

NODE_BYTES = 256 << 10
"""Bytes that are kept beyond that for every node: twice what one of hundreds of cores says."""

LOUDEST_BYTES = 512 << 20
"""Bytes after which whoever still writes is refused: until then others' answers are picked out."""

PAUSE_S = 0.01
"""Seconds between two pieces of an answer where several nodes answer at the same time.

A launcher that has read a piece before the next one comes does not cut it: see ANSWER.
"""

ANSWER = r"""
rank=${PARIBUS_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}}
mark=$1$2 turn=$3 pause=$4 facts=$5 answer=0 depth=all
shift 5
[ "$turn" = all ] || [ "$turn" = "$rank" ] || exec >/dev/null
[ -z "$pause" ] || sleep 0.3
for program do
    nonce=$(od -An -N8 -tx8 /dev/urandom) nonce=n${nonce##* }
    program=$(command -v "$program" || printf %s "$program")
    /bin/sh -c "$facts" paribus-facts "$nonce" "$depth" "$program" |
    LC_ALL=C awk -v mark="$mark" -v who="$rank.$answer" -v pause="$pause" '
        function put(sign, text) {
            text = mark " " who "." ++number sign text "|" who "." number "\n"
            if (length(piece) + length(text) > 2000) say()
            piece = piece text
        }
        function say() {
            if (pause) {
                out = "cat; sleep " pause
                printf "%s", piece | out
                close(out)
            } else
                printf "%s", piece
            piece = ""
        }
        {
            for (text = $0; length(text) > 900; text = substr(text, 901))
                put("+", substr(text, 1, 900))
            put(".", text)
        }
        END { put("!", ""); say() }'
    answer=$((answer + 1)) depth=files
done
"""
"""What every rank executes; the one whose turn it is prints, or all do.

The others read as well: Open MPI 5.0.11 hung in 15 % of launches in which one left at once, in none
of 80 in which all took alike. The mark comes in two halves, and the nonce is made there, because
Open MPI puts a program's arguments into its environment, which is read. `+` marks a line that goes
on, `.` the end of one, `!` that of the answer. Pieces stay below half of the 4095 bytes that a
launcher reads of a terminal at once; cat writes each as a whole, awk would cut it at 1024 bytes.
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """What nodes answered, by rank: a text for each program, or why there is none.

    `texts` hold whole answers only. `why` is what became of the launch if it did not end well, and
    `parts` what is wrong with the answers that are not whole.
    """

    texts: Mapping[int, tuple[str, ...]]
    why: str
    parts: Mapping[int, str]
    nothing: str

    def wrong(self, rank: int) -> str:
        """Return why there is no answer of `rank`."""
        return self.why or self.parts.get(rank, self.nothing)


def ask(
    ready: Ready,
    station: Station,
    ranks: int,
    programs: Sequence[str],
    *,
    turn: int | None,
    limit_s: float,
    scratch: str,
) -> Heard:
    """Return what the ranks of one launch show of their nodes; with `turn`, that rank alone speaks.

    Of the first of `programs` everything is asked, of the others what the files of the system and
    their libraries say. Raises LaunchError for a launch that could not be started, MachineError
    where this machine lacks what it needs.
    """
    halves = secrets.token_hex(6), secrets.token_hex(6)
    speaking = ranks if turn is None else 1
    words = (
        *("/bin/sh", "-c", ANSWER, "paribus-answer", *halves),
        *("all" if turn is None else str(turn), f"{PAUSE_S:g}" if speaking > 1 else ""),
        *(probes.script(), *programs),
    )
    command = compose_ours(ready, Program(words, mpi=ready.mpi is not None), ranks, scratch)
    mark = "".join(halves)
    most = MOST_BYTES + speaking * NODE_BYTES
    with (
        _present(Path(station.here)),
        _Pipe(f"{station.here}/answers.out", mark, most) as out,
        _Pipe(f"{station.here}/answers.err", mark, most) as err,
    ):
        done = station.run(
            command, stdout=out.path, stderr=err.path, timeout_s=limit_s, scratch=scratch
        )
        out.finish()
        err.finish()
    if done.exit_code and (lacked := fault_of((), done.exit_code, _text(err.start))):
        raise MachineError(
            f"{lacked} when its facts were asked for",
            place=station.here,
            fix="fix this, then continue with --resume: every stored launch is kept",
        )
    texts, parts = answers_of(bytes(out.kept), mark, len(programs))
    start = _text(out.start).strip()[:60]
    nothing = f"no facts in the output of the node: {start!r}" if start else "no answer"
    return Heard(texts, _why(done, out, err, limit_s), parts, nothing)


def _why(done: Completed, out: _Pipe, err: _Pipe, limit_s: float) -> str:
    """Return what became of a launch that did not end well, "" of one that did."""
    if out.size > out.most:
        return f"an answer of more than {out.most >> 20} MiB"
    if done.timed_out:
        return f"no answer within {limit_s:g} s"
    if done.exit_code == 0:
        return ""
    lines = [*_text(out.start).strip().splitlines()[-1:], *_text(err.start).strip().splitlines()]
    return f"exit code {done.exit_code}{': ' + lines[-1][:200] if lines else ''}"


def answers_of(
    said: bytes, mark: str, answers: int
) -> tuple[dict[int, tuple[str, ...]], dict[int, str]]:
    """Return the texts of the ranks that gave all `answers`, and what the others' lack, by rank.

    A line counts if it carries the same numbers at both ends, with no other line's in between.
    """
    lines: dict[tuple[int, int], dict[int, tuple[bytes, bytes]]] = {}
    for part in said.split(f"{mark} ".encode())[1:]:
        if found := _LINE.match(part):
            rank, answer, number = (int(found[i]) for i in (1, 2, 3))
            lines.setdefault((rank, answer), {})[number] = (found[4], found[5])
    texts: dict[int, tuple[str, ...]] = {}
    wrong: dict[int, str] = {}
    for rank in sorted({rank for rank, _ in lines}):
        mine = [lines.get((rank, answer), {}) for answer in range(answers)]
        lacks = next((lack for one in mine if (lack := _lack(one))), "")
        if lacks:
            wrong[rank] = lacks
        else:
            texts[rank] = tuple(map(_joined, mine))
    return texts, wrong


_LINE = re.compile(rb"([0-9]{1,7})\.([0-9]{1,4})\.([0-9]{1,7})([+.!])(.*)\|\1\.\2\.\3\r?\n")


def _lack(lines: Mapping[int, tuple[bytes, bytes]]) -> str:
    """Return what an answer lacks to be whole, "" for nothing."""
    last = max(lines, default=0)
    missing = next((number for number in range(1, last) if number not in lines), 0)
    if missing:
        return f"line {missing} of its answer is missing"
    ended = bool(lines) and lines[last][0] == b"!"
    return "" if ended else f"its answer stops after {count(last, 'line')}"


def _joined(lines: Mapping[int, tuple[bytes, bytes]]) -> str:
    ordered = [lines[number] for number in sorted(lines)]
    return _text(b"".join(text + b"\n" if sign == b"." else text for sign, text in ordered))


@contextmanager
def _present(directory: Path) -> Iterator[None]:
    """Make a directory for as long as it is needed, where a study mounted something over it."""
    made = not directory.is_dir()
    if made:
        directory.mkdir(mode=0o700)
    try:
        yield
    finally:
        if made:
            with suppress(OSError):
                directory.rmdir()


class _Pipe:
    """What a launch writes into `path`: lines with `mark` are `kept`, of all else the `start`.

    A file would take all that a node prints until its time is up; this takes memory for `most`
    bytes. A named pipe, which whoever runs the launch finds with another /proc as well. Use
    as a context manager.
    """

    def __init__(self, path: str, mark: str, most: int) -> None:
        self.path = path
        self.most, self.size = most, 0
        self.start, self.kept = b"", bytearray()
        self._mark, self._rest = mark.encode(), b""

    def __enter__(self) -> _Pipe:
        os.mkfifo(self.path, 0o600)
        # Without waiting for the launch to open the other end; our own keeps it from ending early.
        self._from = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._into = os.open(self.path, os.O_WRONLY)
        os.set_blocking(self._from, True)
        # A daemon: after Ctrl-C the launch still holds its end, until its station is closed.
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        into, self._into = self._into, -1
        if into >= 0:
            os.close(into)
            Path(self.path).unlink()

    def finish(self) -> None:
        """Take in what is left, when the launch has ended."""
        self.__exit__()
        self._thread.join()

    def _read(self) -> None:
        try:
            while self.size < LOUDEST_BYTES and (data := os.read(self._from, 1 << 16)):
                self._take(data)
        finally:
            os.close(self._from)

    def _take(self, data: bytes) -> None:
        self.size += len(data)
        self.start += data[: 4096 - len(self.start)]
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        for line in (whole + newline).splitlines(keepends=True):
            at = line.find(self._mark)
            if at >= 0 and len(self.kept) + len(line) <= self.most:
                self.kept += line[at:]
        at = rest.rfind(self._mark)
        self._rest = rest[at if at >= 0 else -len(self._mark) :][: 1 << 16]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
