"""A text divided into the outputs in it, in one pass over the beginnings of its lines.

Every line belongs to one output or to what stands between outputs; every title that is known is
that of one output, of whatever tool. Lines that libraries print among those of a program, as the
error stream of a batch job brings them, belong to nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from paribus.readers.heads import FIRST, UNREAD, Head
from paribus.readers.known import every
from paribus.readers.labels import Label, labels, tells
from paribus.readers.launches import FAILED
from paribus.readers.text import line_at, line_of, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places = NDArray[np.intp]

DEEPEST = 64
"""Blanks before a title, at most: those of a list in a page are fewer."""

WIDEST = 8192
"""Characters above an output in which labels are looked for."""

MOST_FRAMED = 40
"""Lines between two rules of a message of Open MPI, at most."""

_LIBRARY = re.compile(
    r"\[[\w.-]+:\d+\] (?!\*\*\*)|\[\d+\] MPI startup\(\)|lib(?:ibverbs|fabric|rdmacm): "
    r"|mlx[45]\w*: |srun: (?!error)|slurmstepd: (?!error)|salloc: |OMP: (?:Info|Warning) #"
    r"|NCCL version "
)
_WITHIN = (
    (" NCCL ", re.compile(r"[^\n]* NCCL (?:INFO|WARN|TRACE) ")),
    (" UCX ", re.compile(r"[^\n]* UCX +(?:WARN|INFO|DIAG|DEBUG|TRACE) ")),
)
_FRAME = re.compile(rf"-{{74}}\n(?:[^\n]*\n){{1,{MOST_FRAMED}}}?-{{74}}(?=\n|\Z)")
_NOISY = ("libi", "libf", "libr", "mlx5", "mlx4", "srun", "slur", "sall", "OMP:", "NCCL", "----")


class Title(NamedTuple):
    """The title of an output: where it stands, of which tools it is, none if nobody reads them.

    `at` is its first character but blanks, `line` where its line begins.
    """

    at: int
    line: int
    head: Head
    tools: tuple[str, ...]

    @property
    def deeper(self) -> int:
        """Return by how many blanks it is indented beyond those that the tool prints."""
        return self.at - self.line - (self.head.indent or 0)


class Part(NamedTuple):
    """One output of a text: its title, which stands at `at`, and its lines.

    `numbers` are those of the lines in the file, from 1; one alone is that of the first, and none
    was left out. `labels` stand above it, and `libraries` are the lines that were left out, with
    their numbers.
    """

    title: Title
    text: str
    at: int
    numbers: Sequence[int]
    labels: tuple[Label, ...] = ()
    libraries: Sequence[tuple[int, str]] = ()

    def number(self, line: int) -> int:
        """Return the number in the file of a line of the text, from 1."""
        if len(self.numbers) == 1:
            return self.numbers[0] + line - 1
        return self.numbers[min(line, len(self.numbers)) - 1]

    def after(self, word: str) -> Part:
        """Return the output after the lines of a library that name it."""
        said = [one for one in self.libraries if word in one[1]]
        if not said:
            return self
        text = "".join(line for _, line in said)
        numbers = [*(number for number, _ in said), *self.numbers]
        return self._replace(text=text + self.text, at=self.at + len(text), numbers=numbers)

    @property
    def said(self) -> tuple[str, int]:
        """Return the line of the title and its number in the file."""
        line = line_at(self.text, self.at).strip()
        return line, self.number(line_of(self.text, self.at))


class _Lines(NamedTuple):
    """Where the lines of a text begin, where their first characters but blanks stand, and the
    first four of each as one number.
    """

    starts: Places
    firsts: Places
    words: NDArray[np.uint32]
    text: str

    def at(self, number: int) -> int:
        """Return where a line begins, and where the text ends behind the last."""
        return int(self.starts[number]) if number < len(self.starts) else len(self.text)

    def of(self, first: Iterable[str]) -> NDArray[np.bool_]:
        """Return which lines begin with one of these words; one of them may be one character."""
        import numpy as np

        whole = [np.frombuffer(w.encode()[:FIRST], np.uint32)[0] for w in first if len(w) >= FIRST]
        found: NDArray[np.bool_] = np.isin(self.words, whole)
        for word in first:
            if len(word) == 1:
                found |= (self.words & 0xFF) == ord(word)
        return found


def titles(text: str) -> list[Title]:
    """Return the title of every output in a text that is `plain`, in order."""
    return list(_own(text, _titles(_lines(text))))


def divided(text: str) -> list[Part]:
    """Return the outputs in a text that is `plain`, in order; that of one alone is all of it.

    An output begins with what may stand above its title, and ends where the next begins.
    """
    lines = _lines(text)
    noise = _noise(lines)
    text, kept = _without(lines, noise) if noise else (text, None)
    found = list(_own(text, _titles(_lines(text) if noise else lines)))
    begins, above, least = [], [], 0
    for title in found:
        start = title.head.start(text, title.line, least)
        begins.append(start if len(found) > 1 else 0)
        above.append(_above(text, least, start, title))
        least = text.find("\n", title.at) + 1 or len(text)
    parts, first, end = [], 0, 0
    ends = pairwise([*begins, len(text)])
    for title, told, (begin, behind) in zip(found, above, ends, strict=True):
        own = text[begin:behind]
        first += text.count("\n", end, begin)
        part = Part(title, _outdented(own, title), title.line - begin, (first + 1,), told)
        parts.append(part if kept is None else _counted(part, own.count("\n"), kept, lines))
        end = begin
    return parts


def _above(text: str, least: int, start: int, title: Title) -> tuple[Label, ...]:
    """Return what stands between an output that begins at `start` and the one before: its labels.

    Some stand among its own lines as well.
    """
    if title.line == least:
        return ()
    lines = text[max(least, start - WIDEST) : start].split("\n")
    own = [line for line in text[start : title.line].split("\n") if tells(line)]
    return tuple(labels([*lines, *own], title.deeper))


def _counted(part: Part, ends: int, kept: Places, lines: _Lines) -> Part:
    """Return an output with the numbers in the file of its lines, and the lines left out of it."""
    first = part.numbers[0] - 1
    own = kept[first : first + ends + 1].tolist()
    last = int(kept[first + ends]) if first + ends < len(kept) else len(lines.starts)
    places = set(own)
    left_out = [
        (number + 1, lines.text[lines.at(number) : lines.at(number + 1)])
        for number in range(own[0], last)
        if number not in places
    ]
    return part._replace(numbers=[number + 1 for number in own], libraries=left_out)


def _outdented(text: str, title: Title) -> str:
    """Return an output without the blanks before all of its lines, as in a list of a page."""
    deeper = title.deeper
    if title.head.indent is None:
        below = [line for line in text.split("\n", 24)[:24] if line.strip()]
        deeper = min(len(line) - len(line.lstrip()) for line in below)
    if deeper <= 0:
        return text
    return re.sub(rf"(?m)^[ \t]{{1,{deeper}}}", "", text)


# --- titles ----------------------------------------------------------------------------------


def _own(text: str, found: Iterable[Title]) -> Iterator[Title]:
    """Yield the titles at which an output begins: not those of a part of the output before."""
    last: Title | None = None
    held: list[str] = []
    end, parts = 0, set[str]()
    for title in found:
        if last is not None:
            if title.at < end and last.head.document and title.deeper > last.deeper:
                continue
            if title.head.first in held:
                held.remove(title.head.first)
                continue
            if title.head is last.head and _twin(text, last, title):
                continue
            same = title.head.same(text, title.at)
            follows = title.tools == last.tools and not text[end : title.line].strip()
            if same and follows and same[1] not in parts:
                end = same[0]
                parts.add(same[1])
                continue
            if title.head.goes_on(text, title.head.start(text, title.line, last.line)):
                continue
        last, held = title, list(title.head.holds)
        end = _end(text, title)
        same = title.head.same(text, title.at)
        end, parts = (same[0], {same[1]}) if same else (end, set())
        yield title


def _twin(text: str, last: Title, title: Title) -> bool:
    """Return whether a title is the line above once more: osu_mbw_mr 7.1 prints its own twice."""
    if title.head.document:
        return False
    return text[last.line : title.line].strip() == text[title.line :].split("\n", 1)[0].strip()


def _end(text: str, title: Title) -> int:
    """Return where a document ends, by its last brace; 0 for any other output."""
    if not title.head.document:
        return 0
    line = text.find("\n", title.at)
    blanks = text[title.line : title.at]
    return max(line, text.find(f"\n{blanks}}}", title.at))


def _titles(lines: _Lines) -> Iterator[Title]:
    """Yield all titles in a text, also those that stand in an output of another tool."""
    import numpy as np

    text, known = lines.text, _known()
    for number in np.flatnonzero(lines.of(known)).tolist():
        at = int(lines.firsts[number])
        heads = known.get(text[at : at + FIRST]) or known.get(text[at : at + 1], {})
        if text[at] == "{" and not _document().match(text, at):
            heads = known.get(text[at : at + FIRST], {})
        begun = [head for head in heads if head.begins(text, at)]
        tools = dict.fromkeys(name for head in begun for name in heads[head])
        if begun:
            head = next((one for one in begun if heads[one]), begun[0])
            yield Title(at, int(lines.starts[number]), head, tuple(tools))


@cache
def _known() -> Mapping[str, Mapping[Head, tuple[str, ...]]]:
    """Return, by the first characters of a line, which heads may begin so, each with its tools."""
    found: dict[str, dict[Head, tuple[str, ...]]] = {}
    for one in every().values():
        for head in one.heads:
            alike = found.setdefault(head.first[:FIRST], {})
            alike[head] = (*alike.get(head, ()), one.name)
    for head in UNREAD:
        found.setdefault(head.first[:FIRST], {})[head] = ()
    return found


@cache
def _document() -> re.Pattern[str]:
    """Return the pattern of all documents: of many lines with a brace, few begin one."""
    return re.compile("|".join(f"(?:{head.form})" for head in _known()["{"]))


# --- lines -----------------------------------------------------------------------------------


def _lines(text: str) -> _Lines:
    """Return where the lines of a text begin: a search for each title takes ten times as long."""
    import numpy as np

    code = text.encode(errors="surrogatepass")
    raw = np.frombuffer(code + b"\n" * FIRST, dtype=np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(raw[: len(code)] == 10) + 1))
    firsts = starts.copy()
    blank = np.flatnonzero((raw[firsts] == 32) | (raw[firsts] == 9))
    for _ in range(DEEPEST):
        if not len(blank):
            break
        firsts[blank] += 1
        said = raw[firsts[blank]]
        blank = blank[(said == 32) | (said == 9)]
    words = raw[firsts].astype(np.uint32)
    for place in range(1, FIRST):
        words |= raw[firsts + place].astype(np.uint32) << np.uint32(8 * place)
    if len(code) > len(text):
        # Characters, not bytes, are counted in a text: those that go on with one are left out.
        passed = np.cumsum((raw & 0xC0) == 0x80)
        starts, firsts = starts - passed[starts], firsts - passed[firsts]
    return _Lines(starts, firsts, words, text)


def _noise(lines: _Lines) -> list[tuple[int, int]]:
    """Return which lines are those of libraries, as the first and the one behind the last.

    What says that a launch failed is kept.
    """
    import numpy as np

    text, found = lines.text, set[tuple[int, int]]()
    for number in np.flatnonzero(lines.of((*_NOISY, "["))).tolist():
        at = int(lines.firsts[number])
        if text[at] == "-":
            said = _FRAME.match(text, at)
            if said and not within(FAILED, said[0]):
                found.add((number, number + said[0].count("\n") + 1))
        elif _LIBRARY.match(text, at):
            found.add((number, number + 1))
    for word, form in _WITHIN:
        at = text.find(word)
        while at >= 0:
            begin = text.rfind("\n", 0, at) + 1
            if form.match(text, begin):
                number = int(np.searchsorted(lines.starts, begin))
                found.add((number, number + 1))
            end = text.find("\n", at)
            at = text.find(word, end) if end >= 0 else -1
    return sorted(one for one in found if not _says_failed(lines, one))


def _says_failed(lines: _Lines, noise: tuple[int, int]) -> bool:
    return bool(within(FAILED, lines.text[lines.at(noise[0]) : lines.at(noise[1])]))


def _without(lines: _Lines, noise: Iterable[tuple[int, int]]) -> tuple[str, Places]:
    """Return a text without some of its lines, and the numbers from 0 of those that are kept."""
    import numpy as np

    keep = np.ones(len(lines.starts), dtype=bool)
    pieces, at = [], 0
    for first, behind in noise:
        keep[first:behind] = False
        pieces.append(lines.text[at : lines.at(first)])
        at = max(at, lines.at(behind))
    return "".join([*pieces, lines.text[at:]]), np.flatnonzero(keep)
