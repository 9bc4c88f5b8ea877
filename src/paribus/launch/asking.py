"""One launch in which each node runs the script of facts, and the answers that arrived whole.

A launcher forwards what ranks print in pieces that end anywhere, so lines of nodes that print at
the same time run into each other. Each line therefore begins and ends with its numbers: "MARK
3.0.17.text|3.0.17" is line 17 of answer 0 of rank 3. A line without its end is not read.
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
"""The most bytes that are kept of answers: facts.sh prints far less."""

NODE_BYTES = 256 << 10
"""Bytes that are kept beyond that for every node: twice those of one with hundreds of cores."""

LOUDEST_BYTES = 512 << 20
"""Bytes after which reading stops; until then answers are picked out of all that is printed."""

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
"""What every rank executes; the rank whose turn it is prints, or all do.

The others read the facts as well: Open MPI 5.0.11 hung in 15 % of launches in which one rank ended
at once, in none of 80 in which all took the same time. The mark comes in two halves, and the nonce
is made on the node, because Open MPI puts a program's arguments into its environment, which is read
too. `+` marks a line that goes on, `.` the end of one, `!` that of the answer. Pieces stay below
half of the 4095 bytes that a launcher reads of a terminal at once; cat writes each as a whole, awk
would cut it at 1024 bytes.
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """What nodes answered, by rank."""

    texts: Mapping[int, tuple[str, ...]]  # whole answers only: a text for each program
    why: str  # why the launch failed, "" if it did not
    parts: Mapping[int, str]  # what answers that are not whole lack
    nothing: str  # what to report of a rank without any answer

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
    """Return what the ranks of one launch print of their nodes; with `turn`, only that rank prints.

    With the first of `programs` all facts are read, with the others only those of files and of the
    program's libraries. Raises LaunchError for a launch that could not be started, MachineError
    if this machine lacks what it needs.
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
    """Return why a launch failed, "" if it did not."""
    if out.size > out.most:
        return f"an answer of more than {out.most >> 20} MiB"
    if done.timed_out:
        return f"no answer within {limit_s:g} s"
    if done.exit_code == 0:
        return ""
    lines = [*_text(out.start).strip().splitlines()[-1:], *_text(err.start).strip().splitlines()]
    return f"exit code {done.exit_code}{': ' + lines[-1][:200] if lines else ''}"


def answers_of(
    printed: bytes, mark: str, answers: int
) -> tuple[dict[int, tuple[str, ...]], dict[int, str]]:
    """Return the texts of the ranks whose `answers` are all whole, and what the others lack.

    Both are by rank. A line counts if it has the same numbers at both ends.
    """
    lines: dict[tuple[int, int], dict[int, tuple[bytes, bytes]]] = {}  # sign and text, by number
    for part in printed.split(f"{mark} ".encode())[1:]:
        if found := _LINE.match(part):
            rank, answer, number = (int(found[i]) for i in (1, 2, 3))
            lines.setdefault((rank, answer), {})[number] = (found[4], found[5])
    texts: dict[int, tuple[str, ...]] = {}
    wrong: dict[int, str] = {}
    for rank in sorted({rank for rank, _ in lines}):
        of_rank = [lines.get((rank, answer), {}) for answer in range(answers)]
        lacks = next(filter(None, map(_lack, of_rank)), "")
        if lacks:
            wrong[rank] = lacks
        else:
            texts[rank] = tuple(map(_joined, of_rank))
    return texts, wrong


# RANK.ANSWER.NUMBER, a sign (see ANSWER), the text, and the same numbers again.
_LINE = re.compile(rb"([0-9]{1,7})\.([0-9]{1,4})\.([0-9]{1,7})([+.!])(.*)\|\1\.\2\.\3\r?\n")


def _lack(lines: Mapping[int, tuple[bytes, bytes]]) -> str:
    """Return what an answer lacks to be whole, "" if it is."""
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
    """Make a directory for the context if it is missing, as a study may mount something over it."""
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
    """What a launch writes into `path`: of lines with `mark` at most `most` bytes are `kept`.

    `start` is the beginning of all output, and `size` its bytes. A file would grow without bound.
    It is a named pipe, as a path in /proc may mean another file where the launch is run. Use as a
    context manager.
    """

    def __init__(self, path: str, mark: str, most: int) -> None:
        self.path = path
        self.most, self.size = most, 0
        self.start, self.kept = b"", bytearray()
        self._mark, self._rest = mark.encode(), b""

    def __enter__(self) -> _Pipe:
        os.mkfifo(self.path, 0o600)
        # Not blocking until the launch opens the other end; ours keeps the pipe from ending early.
        self._from = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._into = os.open(self.path, os.O_WRONLY)
        os.set_blocking(self._from, True)
        # A daemon: after Ctrl-C the launch has its end open until its station is closed.
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        into, self._into = self._into, -1
        if into >= 0:
            os.close(into)
            Path(self.path).unlink()

    def finish(self) -> None:
        """Read what is left, after the launch has ended."""
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
