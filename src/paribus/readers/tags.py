"""Remove what stands before each line: times, and tags that show which rank wrote it.

"[1,0]<stdout>:# OSU MPI Latency Test" of `mpirun --tag-output` becomes "# OSU MPI Latency Test".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

HEAD = 1 << 14
"""Characters at the beginning of a text in which tags are searched."""

WIDEST = 2048
"""Characters at the beginning in which a time before lines is searched."""

BANNER = 64
"""Lines without a tag that may stand around an output of few lines."""

_STREAM = "<stdout>:"
_NAMED = r"(?:\w{3} [\w :]{16,24})?(?:\[[^]\n]{1,80}\]){0,3}<std(?:out|err)>:"
"""`[1,0]<stdout>:` of Open MPI (`--tag-output`, `--timestamp-output`, `--output tag`, `rank`,
`tag-detailed`, `timestamp`) and of horovodrun."""

_NUMBERED = (
    ("0: ", re.compile(r"\n *+\d++: ?")),
    ("[0] ", re.compile(r"\n\[\d++\] ?")),
    ("0]:", re.compile(r"\n\[[a-z]++\d++\]:")),
)
"""The tag of the first rank, and that of every rank: `0: ` of Slurm (`srun --label`), `[0] ` of
Hydra (`mpiexec -l` of MPICH and Intel MPI), and `[default0]:` of torchrun (`--tee`)."""

_RANK = re.compile(r"[\[,a-z](\d+)\]|^ *(\d+):")
"""The rank in one of these tags."""

_STAMP = re.compile(
    r"\n\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: [0-9a-f]{2}[EO][ +]| [\w.-]+ [\w./-]+\[\d+\]: ?| |(?=\n))"
)
"""The time before each line of GitHub Actions, Jenkins, `kubectl logs --timestamps`, `ts`; with a
stream behind it GitLab's, with a host and a process that of journald."""

_PREFIXED = (
    ("[pod/", re.compile(r"\n\[pod/[\w./-]{1,200}\] ?")),
    (" | ", re.compile(r"\n[A-Za-z][\w.-]{0,79} +\| ?")),
    ("> ", re.compile(r"\n(?:> ?)+")),
)
"""`kubectl logs --prefix`, `docker compose`, and a message that quotes the lines."""

_LEAST = 4
"""Lines with tags in a row, at least, that are a run in a log whose other lines have none."""

_TAGS = (_STAMP, *(tag for _, tag in _NUMBERED), _PREFIXED[0][1])
_TAGGED = re.compile(rf"(?:{'|'.join(tag.pattern for tag in _TAGS)}|\n{_NAMED})[^\n]*+")
"""A line with a time, the number of a rank or the name of a pod before it."""

_VARIES = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]?|\d\d:\d\d:\d\d(?:[.,]\d+)?Z?|\b(?:INFO|WARNING|ERROR|DEBUG)\b"
    r"|^ *\d+(?:\.\d+)?|\.(?:cc|cpp|go|py|rs):\d+)++",
    re.M,
)
_END = re.compile(r'[^\w"]')
"""What differs in what a logger, pdsh or `cat -n` puts before each line, and how that may end: not
with a quote, which has another one at the end of the line. The name of a host or a worker does not
differ: lines of two are not of one output."""

_LONGEST = 160
"""Characters of what is put before a line, at most."""

_STAMPED = 8
"""First lines of a text of which one begins with a time, if every line does."""


def undated(text: str) -> str:
    """Return `text` without times and names of pods before its lines; as it is if it has none.

    Times are removed if most lines have one (`_on_most_lines`).
    """
    text = _without(_PREFIXED, text)
    begin = f"\n{text[:WIDEST]}".split("\n", _STAMPED)
    if any(_STAMP.match(f"\n{line}\n") for line in begin[1:]):
        head = f"\n{text[:HEAD]}"
        if _on_most_lines(_STAMP, head):
            text = _STAMP.sub("\n", f"\n{text}")[1:]
    return text


_PIECES = re.compile(r"(?m)^(\[\d+\] )(?=(?:.*?\1){2})(.*)")
"""A line with the same number of a rank before three pieces of it, or more."""


def unprefixed(text: str) -> Iterator[str]:
    """Yield a text without what begins nine of ten lines in one form, for several such forms.

    The form of most lines is the first, and of two the shorter one: blanks behind it may be the
    tool's. Nothing but a title that it hides shows that it is no part of the lines.
    """
    lines = [line[:_LONGEST] for line in text[:HEAD].split("\n") if line]
    forms = [_VARIES.sub("\0", line) for line in lines]
    counts = Counter(form[: end.end()] for form in forms for end in _END.finditer(form))
    found = []
    for form in sorted((one for one, n in counts.items() if n >= _LEAST), key=len):
        begin = re.escape(form.rstrip(" ")).replace("\0", _VARIES.pattern)
        prefix = re.compile(rf"^{begin}{'(?: |$)' * form.endswith(' ')}", re.M)
        found.append((sum(map(bool, map(prefix.match, lines))), prefix))
    for number, prefix in sorted(found, key=lambda one: -one[0]):
        if number < 0.9 * len(lines):
            return
        bare, n = prefix.subn("", text)
        if n >= 0.9 * len(re.findall(r"\n.", f"\n{text}")):
            yield bare


def untagged(text: str) -> str:
    """Return an `undated` text without tags of ranks before its lines, if most lines have one."""
    if _STREAM in text:
        # Open MPI 5 puts a blank behind; version 4 does not, and lines without one show it.
        blank = "" if re.search(f"(?m)^{_NAMED}(?! )", text) else " "
        # A line that is written in pieces has the tag before each of them.
        form = f"(?m)^({_NAMED}{blank})(.*)"
        return re.sub(form, lambda one: one[2].replace(one[1], ""), text)
    bare = _without(_NUMBERED, text)
    if bare != text and _PIECES.search(text):  # so does Hydra
        return _without(
            _NUMBERED, _PIECES.sub(lambda one: one[1] + one[2].replace(one[1], ""), text)
        )
    return bare


def ranks(tagged: str, text: str) -> list[str]:
    """Return the number of the rank that wrote each line, "" for a line without a tag.

    `tagged` is the text with its tags, `text` the same without.
    """
    lines = zip(tagged.split("\n"), text.split("\n"), strict=True)
    tags = (old.removesuffix(new) for old, new in lines)
    return [
        found[found.lastindex or 0] if tag and (found := _RANK.search(tag)) else "" for tag in tags
    ]


def in_runs(text: str, titles: Callable[[str], int]) -> tuple[str, str]:
    """Return a log in which runs of lines have times or tags: without times, and without both.

    They are removed from runs in which they hide titles, which `titles` counts.
    """
    tagged, bare, end = [], [], 0
    for begin, stop in _runs(text):
        run = text[begin:stop]
        dateless = undated(run)
        if (without := untagged(dateless)) != run and titles(without) > titles(run):
            tagged += [text[end:begin], dateless]
            bare += [text[end:begin], without]
            end = stop
    return "".join([*tagged, text[end:]]), "".join([*bare, text[end:]])


def _runs(text: str) -> list[tuple[int, int]]:
    """Return begin and end of each run of lines that all have a tag, or a time, before them."""
    runs: list[tuple[int, int]] = []
    begin = end = 0
    for line in _TAGGED.finditer(f"\n{text}"):
        if line.start() != end:
            runs.append((begin, end))
            begin = line.start()
        end = line.end()
    runs.append((begin, end))
    return [(begin, end - 1) for begin, end in runs if text.count("\n", begin, end) >= _LEAST - 1]


def _without(tags: Sequence[tuple[str, re.Pattern[str]]], text: str) -> str:
    """Return a text without the first of `tags` that most lines have: marks, with patterns."""
    head = text[:HEAD]
    for of_first, tag in tags:
        if of_first in head and _on_most_lines(tag, f"\n{head}"):
            return tag.sub("\n", f"\n{text}")[1:]
    return text


def _on_most_lines(tag: re.Pattern[str], text: str) -> bool:
    """Return whether most lines from the first to the last tagged one are tagged, few others."""
    places = [found.start() for found in tag.finditer(text)]
    if not places or 2 * len(places) + BANNER < text.count("\n"):
        return False
    return 2 * len(places) > text.count("\n", places[0], places[-1]) + 1
