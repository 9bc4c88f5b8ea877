"""Divide a text into the outputs in it, in one pass over the beginnings of its lines.

In goes the text of a file, such as the log of a job that ran OSU twice and then IMB; out comes an
`Output` for each known title, with its lines. What a script prints between two outputs becomes
labels of the second. Lines that libraries print among those of a program, as in the error stream
of a batch job, are taken out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from paribus.logs.labels import (
    COMMAND,
    FARTHEST,
    MOST,
    WORDS,
    Above,
    Label,
    above,
    command_above,
    says_what,
)
from paribus.logs.output import Output, Title, set_beside
from paribus.readers.harness import Harness
from paribus.readers.heads import BRACES, FIRST, UNREAD, Head
from paribus.readers.known import every
from paribus.readers.launches import says_failed
from paribus.readers.reader import Reader
from paribus.readers.text import HEAD, line_at, within

DEEPEST = 64
"""Blanks before a document, at most: those of a list in a page are fewer."""

WIDEST = 4096
"""Characters above an output in which labels are looked for."""

MOST_FRAMED = 40
"""Lines between two rules of a message of Open MPI, at most."""

_LIBRARY = re.compile(
    r"\[\d+\.\d+\] \[[^]\n]+\] (?:[^\n]*UCX +(?:WARN|INFO|DIAG|DEBUG|TRACE) | +[+|])"
    r"|\[[\w.-]+:\d+\] (?!\*\*\*)|\[\d+\] MPI startup\(\)|lib(?:ibverbs|fabric|rdmacm): "
    r"|mlx[45]\w*: |srun: |slurmstepd: |salloc: |OMP: (?:Info|Warning) #"
    r"|NCCL version |== CALIPER: |MPICH Slingshot Network Summary: "
)
"""Lines of UCX, Open MPI, Intel MPI, rdma-core, Slurm, OpenMP, NCCL, Caliper and Cray MPICH, such
as "[1795238066.241355] [node0:30236:0]     ucp_context.c:1014 UCX  WARN  transport 'ib' is ..." or
"srun: job 4711 queued"."""

_OF_LIBRARIES = "[lmsONM="
"""The first characters of these lines."""

_NCCL = re.compile(r"[^\n]* NCCL (?:INFO|WARN|TRACE) ")
"""A line of NCCL_DEBUG, such as "node1:77:91 [0] NCCL INFO Bootstrap ..."."""

_FRAME = re.compile(
    rf"(?:-{{74}}\n(?:(?!-{{74}}\n|[#{{])[^\n]*\n){{1,{MOST_FRAMED}}}-{{74}}"
    r"|={60,}\n(?:=   [^\n]*\n){1,9}={60,})(?=\n|\Z)"
)
"""A message of Open MPI between two rules of 74 dashes, or of Hydra in a box."""

_NOISY = (
    *("libi", "libf", "libr", "mlx5", "mlx4", "srun", "slur", "sall", "OMP:", "NCCL", "----"),
    *("== C", "MPIC", "===="),
)
"""How lines of libraries begin that no head of a reader finds."""


def titles(text: str) -> list[Title]:
    """Return the title of every output in a text that is `plain`, in order."""
    return list(_without_inner(text, _titles(text, _candidates(text))))


def divided(text: str) -> list[Output]:
    """Return the outputs in a text that is `plain`, in order.

    An output begins with the command above it and what may stand above its title, and ends where
    the next begins, or where the labels of the next do. A text with one title is one output as a
    whole; if the title stands far below the beginning, the output begins not far above the title.
    """
    lines = _candidates(text)
    numbers: Sequence[int] = range(1, text.count("\n") + 2)
    noise = _noise(text, lines)
    if noise:
        whole = text.split("\n")
        numbers = [number for number in numbers if number not in noise]
        text = "\n".join([whole[number - 1] for number in numbers])
        lines = _candidates(text)
    found = list(_without_inner(text, _titles(text, lines)))
    starts, between, least = [], [], 0
    for title in found:
        starts.append(title.head.start(text, title.line, least))
        between.append(_above(text, least, starts[-1], title))
        least = text.find("\n", title.at) + 1 or len(text)
    named = _labels(between, text[max(least, len(text) - WIDEST) :], found)
    begins = [start - one.commands for start, one in zip(starts, between, strict=True)]
    if len(found) == 1:
        begins = [_line_near(text, starts[0])]
    ends = [start - one.characters for start, one in zip(starts, between, strict=True)]
    spans = zip(begins, [*ends[1:], len(text)], [*begins[1:], len(text)], strict=False)
    outputs: list[Output] = []
    first = before = 0
    for title, labels, (begin, end, after) in zip(found, named, spans, strict=False):
        first += text.count("\n", before, begin)
        before = begin
        lines_of_it, tail = _outdented(text[begin:end], text[end:after], title, title.line - begin)
        upper = text.count("\n", begin, title.line)
        at = sum(len(line) + 1 for line in lines_of_it.split("\n", upper)[:upper])
        readers = _readers_of(title, lines_of_it, at)
        one = Output(lines_of_it, readers, title, at, numbers, first, tail, labels=labels)
        outputs += _as_read(one, noise)
    if outputs:
        set_beside(outputs)
    return outputs


def _readers_of(title: Title, text: str, at: int) -> list[Reader | Harness]:
    """Return the readers of an output: of several tools with one title those whose marks it has.

    Of an output that ended before it named its benchmark that is the first tool, which refuses it.
    """
    mine: list[Reader | Harness] = [every()[name] for name in title.tools]
    if len(mine) < 2:
        return mine
    marked = [one for one in mine if within(one.marks, text[: at + HEAD])]
    return marked or ([] if title.head.names in text else mine[:1])


def _as_read(one: Output, noise: Mapping[int, str]) -> list[Output]:
    """Return an output as its reader wants it.

    A reader that needs the lines of a library gets them from `noise`, above the output. One whose
    outputs hold several launches under one title gets each launch as an output of its own.
    """
    reader = one.readers[0] if one.readers else None
    if not isinstance(reader, Reader):
        return [one]
    if reader.library and noise:
        last = one.first + one.text.count("\n")
        stop = one.numbers[last] if last < len(one.numbers) else max(noise) + 1
        inside = range(one.numbers[one.first], stop)
        needed = {n: noise[n] for n in inside if reader.library in noise.get(n, "")}
        moved = "".join(f"{line}\n" for line in needed.values())
        one.numbers = [*needed, *one.numbers[one.first : last + 1]]
        one.text, one.at, one.first = moved + one.text, one.at + len(moved), 0
    title, numbers = one.title, one.numbers
    begins = reader.several(one.text) if reader.several and title else ()
    if not title or len(begins) < 2:
        return [one]
    first, *others = pairwise([*begins, len(one.text)])
    own = one.text[: first[1]]
    found = [Output(own, one.readers, title, one.at, numbers, one.first, labels=one.labels)]
    heading = one.text[: first[0]]
    for begin, end in others:
        labels = above(found[-1].text.split("\n"), title.deeper).labels
        own = heading + one.text[begin:end]
        # The heading stands elsewhere: its lines count as the first of the launch.
        line = one.first + one.text.count("\n", 0, begin)
        below = one.numbers[line : line + one.text.count("\n", begin, end) + 1]
        numbers = [*[below[0]] * heading.count("\n"), *below]
        found.append(Output(own, one.readers, title, numbers=numbers, labels=labels))
    found[-1].tail = one.tail
    return found


def _line_near(text: str, start: int) -> int:
    """Return where the only output of a text begins: at 0, or not far above its `start`.

    Readers, and the search for settings, look at the first HEAD characters of an output only.
    """
    if start <= HEAD // 2:
        return 0
    return text.find("\n", start - WIDEST, start) + 1 or start


def _above(text: str, least: int, start: int, title: Title) -> Above:
    """Return what stands above the output of a title: from `least`, where the title before ends.

    The output begins at `start`; labels in its own lines above the title are found as well.
    """
    if title.line == least:
        return Above()
    lines = text[max(least, start - WIDEST) : start].rsplit("\n", MOST)
    outside = above(lines[1:] if least else lines, title.deeper)
    if all(label.form != COMMAND for label in outside.labels):
        command = command_above(text[max(least, start - FARTHEST) : start])
        outside = outside._replace(labels=(*command, *outside.labels))
    own_lines = [line for line in text[start : title.line].split("\n") if says_what(line)]
    inside = above(own_lines, title.deeper)
    return outside._replace(labels=(*outside.labels, *inside.labels))


def _labels(between: Sequence[Above], last: str, found: Sequence[Title]) -> list[tuple[Label, ...]]:
    """Return the labels of each output, without those that only close the output before.

    A line below the last output, in the text `last`, names no output. So it names none where it
    stands between two others, unless it stands above the first as well. Commands are kept: one may
    be that of a program that printed nothing. Lines on the whole job stand above the first output:
    of the labels of a form there only those next to it count, as many as another output has, if
    one has any; so also below a launch that failed, whose message may have more lines.
    """
    named = [one.labels for one in between]
    if len(named) < 2:
        return named
    below = above(last.rsplit("\n", MOST)[1:], found[-1].deeper).labels
    closing = {one for one in below if not one.form.startswith(COMMAND)} - set(named[0])
    most: Counter[str] = Counter()
    for of in [one.labels for one in between[1:] if not one.below] or named:
        most |= Counter(label.form for label in of if label.words or label.counts)
    return [tuple(o for o in _nearest(one, most) if o not in closing) for one in between]


def _nearest(one: Above, most: Mapping[str, int]) -> tuple[Label, ...]:
    """Return the labels nearest to an output: of each form as many as `most` says another has.

    Of a form that no other has all are left, but no words and names below a launch that failed.
    """
    forms = [label.form for label in one.labels]
    near = []
    for n, (form, words, _) in enumerate(one.labels):
        of_message = one.below and (words.startswith(f"{form} ") or (form == WORDS and words))
        if forms[n:].count(form) <= (most[form] or (0 if of_message else len(forms))):
            near.append(one.labels[n])
    return tuple(near)


def _outdented(own: str, tail: str, title: Title, line: int) -> tuple[str, str]:
    """Return an output, and what stands below, without blanks that stand before all their lines.

    Such as those of an output that was pasted into a list of Markdown. The line of the title begins
    at `line`.
    """
    deeper = title.deeper
    if title.head.indent is None:
        below = [line for line in own[line:].split("\n", 24)[:24] if line.strip()]
        deeper = min(len(line) - len(line.lstrip()) for line in below)
    if deeper <= 0:
        return own, tail
    blanks = re.compile(rf"(?m)^[ \t]{{1,{deeper}}}")
    return blanks.sub("", own), blanks.sub("", tail)


# --- titles ----------------------------------------------------------------------------------


def _without_inner(text: str, found: Iterable[Title]) -> Iterator[Title]:
    """Yield the titles at which an output begins, without those of parts of the output before.

    Such are titles within a JSON document, those of another tool whose output a tool contains
    (Head.holds), a title that is printed twice, and the next of several blocks (Head.block).
    """
    last: Title | None = None
    contained: list[str] = []  # titles of other tools that the output may still contain
    end, marks = 0, set[str]()  # where the last document or block ends, and the marks of its blocks
    ends = dict[str, int]()
    for title in found:
        if last is not None:
            if title.at < end and (last.head.block or title.deeper > last.deeper):
                continue
            if title.head.first in contained:
                contained.remove(title.head.first)
                continue
            if title.head is last.head and _is_repeated(text, last, title):
                continue
        block = title.head.block_at(text, title.at)
        of_last = last is not None and title.tools == last.tools
        if block and of_last and block.mark not in marks and not text[end : title.line].strip():
            end = block.end
            marks.add(block.mark)
            continue
        last, contained = title, list(title.head.holds)
        end, marks = (
            (block.end, {block.mark}) if block else (_document_end(text, title, ends), set())
        )
        yield title


def _is_repeated(text: str, last: Title, title: Title) -> bool:
    """Return whether a title is the line above once more: osu_mbw_mr 7.1 prints its own twice."""
    line = line_at(text, title.at).strip()
    if not line.startswith("#") or title.line - last.line > WIDEST:
        return False
    return text[last.line : title.line].strip() == line


def _document_end(text: str, title: Title, ends: dict[str, int]) -> int:
    """Return where a JSON document ends, by its last brace; 0 for any other output.

    `ends` keeps where the next brace behind so many blanks is: it is not searched for again.
    """
    if not title.head.document or title.at - title.line > DEEPEST:
        return 0
    last = text[title.line : title.at] + BRACES[title.head.first]
    if ends.get(last, 0) <= title.at:
        at = text.find(f"\n{last}", title.at)
        ends[last] = at if at >= 0 else len(text)
    return max(text.find("\n", title.at), ends[last] % len(text))


def _titles(text: str, lines: Iterable[tuple[int, int]]) -> Iterator[Title]:
    """Yield all titles in a text, also those that stand in an output of another tool.

    `lines` are the candidates: where each line begins, and its first character that is no blank.
    """
    known = _heads()
    for line, at in lines:
        first = text[at : at + FIRST]
        heads = known.get(first, {})
        if first[0] in BRACES and _any_document(first[0]).match(text, at):
            heads = {**heads, **known[first[0]]}
        if matching := [head for head in heads if head.begins(text, at)]:
            tools = dict.fromkeys(name for head in matching for name in heads[head])
            head = next((one for one in matching if heads[one]), matching[0])
            yield Title(at, line, head, tuple(tools))


@cache
def _heads() -> Mapping[str, Mapping[Head, tuple[str, ...]]]:
    """Return, by the first characters of a line, the heads that may begin so, with their tools."""
    found: dict[str, dict[Head, tuple[str, ...]]] = {}
    for one in every().values():
        for head in one.heads:
            alike = found.setdefault(head.first[:FIRST], {})
            alike[head] = (*alike.get(head, ()), one.name)
    for head in UNREAD:
        found.setdefault(head.first[:FIRST], {})[head] = ()
    return found


@cache
def _any_document(brace: str) -> re.Pattern[str]:
    """Return one pattern of all documents with a brace: of many lines with one, few begin one."""
    return re.compile(rf"\{brace}\s*(?:{'|'.join(head.form for head in _heads()[brace])})")


# --- lines -----------------------------------------------------------------------------------


def _candidates(text: str) -> list[tuple[int, int]]:
    """Return where each line begins that may be a title or noise, and its first non-blank.

    A search for each title would take thirty times as long.
    """
    form = _candidate()
    first = form.match(f"\n{text[:WIDEST]}")
    found = [(0, first.end(1) - 1)] if first else []
    return found + [(one.start() + 1, one.end(1)) for one in form.finditer(text)]


@cache
def _candidate() -> re.Pattern[str]:
    """Return the pattern of a line that may be a title or noise, with the blanks before it."""
    rests: dict[str, list[str]] = {"{": [""], "[": [""]}
    for word in (*_heads(), *_NOISY):
        rests.setdefault(word[0], []).append(re.escape(word[1:FIRST]))
    firsts = "".join(map(re.escape, rests))
    words = "|".join(f"{re.escape(one)}(?:{'|'.join(more)})" for one, more in rests.items())
    return re.compile(rf"\n([ \t]*+)(?=[{firsts}])(?:{words})")


def _noise(text: str, lines: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Return the lines of libraries by their numbers, without those on a launch that failed."""
    found: dict[int, int] = {}  # where such lines begin and end
    for line, at in lines:
        if text[at] in "-=" and (frame := _FRAME.match(text, at)):
            found.setdefault(line, frame.end() + 1)
        elif text[at] in _OF_LIBRARIES and _LIBRARY.match(text, at):
            found[line] = text.find("\n", at) + 1 or len(text)
    at = text.find("NCCL")  # its lines begin with the name of a host
    while at >= 0:
        begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at) + 1 or len(text)
        if _NCCL.match(text, begin):
            found[begin] = end
        at = text.find("NCCL", end)
    noise: dict[int, str] = {}
    at, number, passed = 0, 1, 0
    for begin, end in sorted(found.items()):
        if begin < passed:
            continue
        passed = end
        number += text.count("\n", at, begin)
        several = enumerate(text[begin:end].removesuffix("\n").split("\n"), number)
        noise |= {n: line for n, line in several if not says_failed(line)}
        at = begin
    return noise
