"""What a script prints between outputs, which says what the next one is of.

An echoed command, a host, a device, `KEY=VALUE`, `=== name ===`: a label, in force until another of
its form comes. What only counts or dates launches is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from paribus.probes.discreet import discreet
from paribus.probes.variables import apart
from paribus.readers.known import complaints
from paribus.readers.launches import exit_code, failed
from paribus.readers.text import line_at, within

MOST = 40
"""Lines above a title in which labels are looked for."""

FARTHEST = 1 << 15
"""Characters above a title in which its command is looked for, if it is not among its labels."""

LONGEST = 400
"""Characters of a label, and of what stands alone on a line."""

COMMAND = "command"
"""The form of a label that is an echoed command; that of one before it has its program as well."""

WORDS = "words"
"""The form of a label that is a line of a few words."""

_SHORT = 80
_WORDS = 8

_PROMPT = re.compile(
    r"(?:[\w.@:~/\[\]() -]{0,80}(?:\$|[\w\]~]#) |\++ (?![A-Z]\w* ))(?=[\w./~$({\"'])"
)
_PROMPT_ALONE = re.compile(r"(?:[\w.-]+@[\w.-]+:?[\w~/.-]*|[\w.-]+:[\w~/.-]*|\[[^]]+\]) ?[$#]|\$")
_LAUNCHERS = frozenset(
    (
        *("mpirun", "mpiexec", "mpiexec.hydra", "srun", "prun", "aprun", "jsrun", "ibrun"),
        *("flux", "orterun", "prterun", "mpirun_rsh"),
        *("horovodrun", "torchrun", "numactl", "taskset", "docker", "podman", "singularity"),
        *("apptainer", "ssh", "kubectl"),
    )
)
_SIGN = re.compile(r"(?:run|exec|exec\.hydra|run_rsh) ")
"""What is in each command of a launcher of ranks."""

_BEFORE = frozenset(("export", "env", "time", "sudo", "nohup", "&&", ";"))
_EDGES = "-=#*~+><"
_DECORATED = re.compile(rf"[{_EDGES}]{{2,}}(?=.*\w)|\[(?=[^\]]*\w[^\]]*\]$)")
_FENCE = "```"
_HEADING = re.compile(r"#+ +(?=\w)")
"""In Markdown: the output stands below a fence, and a heading above it."""

_COMMENT = re.compile(r"^#(?: +| ?(?=\w+ *[:=]))(?=\w)|(?<=\w)\s+#+$")
"""What a script puts around a line of a box, or before one that it prints as a comment."""

_MODULES = re.compile(r"(?:\d+\) [^\s()]+(?: [<(][\w:,]+[)>])*\s*)+|Loading requirement: .*")
"""What `module list` and `module load` print with blanks before it."""

_SET = re.compile(r"[A-Za-z_][\w.]*=")
_JOB = re.compile(r"(?P<said>\S.*?): \(g=\d+\): rw=.*")
_NAMED = re.compile(r"(?P<name>[A-Za-z][\w /.#()-]{0,40}?)\s*[:=]\s+(?P<said>\S.*)")

_BODY = re.compile(
    r"\#(?!\#| +\w| ?\w+ *[:=])|\# (?:All processes|Collective test|Out of bounds|Avg bus) "
    r"|\[incast |[|{}\]\",<]|\+-|iperf Done|Server output|Accepted connection|End of "
    r"|JOB DONE|Finished|Total wall time|-- finished|deallocating|destroying|SUM |[\w ]+::"
    r"|Solution Validates"
    r"|(?:LOCAL|REMOTE|THROUGHPUT|PROTOCOL|DIRECTION|ELAPSED|TRANSACTION|REQUEST|RESPONSE)[_=]"
    r"|(?:MEAN|P\d\d)_LATENCY="
    r"|paribus-throughput|(?:real|user|sys)\s+\d|\[ *\d+\] |\[(?:SUM|ID)\]|sockperf|DLL |Epoch"
    r"|\[titan\] |\[after training is done\]|\[exiting program "
    r"|SpMV call \[|Call \[|Pynamic: |Training time |METRICS OPERATOR|cxi\d+ [rt]x \d"
    r"|=+ \S+ End +=+|[-=#*+ ]*(?:(?:[\w-]+ )?END|End)(?:ing|ed|ED)?(?![\w-])"
    r"|\d+\.\d+user \d+\.\d+system |\d+inputs\+\d+outputs "
    r"|(?:NOTE|WARNING|Note|Warning): |sh: \d+: |(?:\d+\s+)+\d+$"
)
"""Lines of tools, mostly the last of an output, that nothing else distinguishes from labels."""

_DONE = frozenset(("done", "finished", "completed", "ended", "elapsed"))
_CLOSING = _DONE | {
    *("complete", "passed", "ok", "bye", "succeeded", "success", "successful", "successfully"),
    *("exited", "exiting", "terminated"),
}
"""What a script or a program says at its end: a line with such a last word, or one of the few above
as its first, names nothing that follows."""

_WORD = re.compile(r"[A-Za-z]+")
_FIGURE = re.compile(r"(?<![\w.:/-])\d+\.\d+(?![\w.])")
_RULE = re.compile(r"[-=#*+~_ .]{3,}")

_COUNTED = re.compile(
    r"(?i)(?<![a-z])(?:run|iter(?:ation)?|rep(?:eat|etition|lica)?|trial|round|attempt|launch|loop"
    r"|pass|sample|try|test|measurement|experiment|execution|repeat|(?:slurm_)?job(?:[ _]?id)?|pid"
    r"|seed|step)s?[\s:#=_.-]*\d+(?:\s*(?:/|of)\s*\d+)?|(?<![\w.])[ijk]=\d+"
    r"|(?:\b[\w ]+ )?\bid is \d{4,}\b|(?<![\w./])\d+ *(?:/|of) *\d+(?![\w./])"
)
_OF_RANKS = re.compile(
    r"(?i)\b(?:rank|process|proc|task|pe|worker|thread|gpu|device|node)[\s:#=]*$"
)
"""What stands before "3 of 8" where that says which rank wrote the lines below."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATED = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ ]\d\d[:-]?\d\d(?:[:-]?\d\d)?(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"
    r"|\b\d{8}[-_T]\d{4,6}\b|(?<![\w./])\d{1,2}([/.])\d{1,2}\1\d{4}(?![\w./])"
    rf"|\b{_DAY}(?=\s)|\b{_MONTH} +\d{{1,2}}\b,?|\b\d{{1,2}}\.? ?{_MONTH}(?=\s)"
    r"|(?<![\w:])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?(?![\w:])|\b1[4-9]\d{8}(?:\.\d+)?\b"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b|\b(?:UTC|GMT|[CE]E?S?T|[AP]M)\b")
_DIGITS = re.compile(r"\d{1,18}")
_PART = re.compile(r"#\d+$")
_LAST_NUMBER = re.compile(r"\d+(\D*)$")
_BETWEEN = " -_."
_FILE = re.compile(r"\S*\.(?:log|json|txt|out|err|csv)\b")
_REST = re.compile(r"(?:\d?>|\|).*")


class Label(NamedTuple):
    """A line that says what the next outputs are of: its form, and its words.

    `counts` is what it says of the number of a launch; that and dates are no part of `said`.
    """

    form: str
    said: str
    counts: str = ""


class Above(NamedTuple):
    """What stands above an output: its labels, and the characters at the end that hold them.

    `commands` of these are the commands directly above it, which are its own.
    """

    labels: tuple[Label, ...] = ()
    characters: int = 0
    commands: int = 0


def above(lines: Sequence[str], deeper: int) -> Above:
    """Return the labels in the lines above an output, of which `deeper` are the blanks before all.

    They end where the output before them does: at a row of figures, or at what stands deeper.
    """
    found: list[Label] = []
    count = held = own = fences = lost = 0
    for line in reversed(lines[-MOST:]):
        said = line.strip()
        count += len(line) + 1
        fences += said.startswith(_FENCE)
        if fences > 1:
            break
        if fences and (heading := _HEADING.match(said)):
            found.append(counted(heading[0].strip(), said[heading.end() :]))
            held = count - 1
            continue
        if not said or len(said) > LONGEST or _RULE.fullmatch(said):
            continue
        ended = exit_code(said) is not None
        if ended or _failed(said):  # of this launch, after its command, or of one before it
            lost = lost or ended or bool(found)
            held = count - 1 if lost else held
            continue
        label = _own_form(said)
        if label is None and (len(line) - len(line.lstrip()) > max(deeper, 0) or _ends(said)):
            break
        if _PROMPT_ALONE.fullmatch(said):  # the shell waits: it belongs to nobody
            held = count - 1
            continue
        label = label or _label(_COMMENT.sub("", said))
        if label is None:
            break
        if label.form == COMMAND and any(one.form == COMMAND for one in found):
            label = label._replace(form=f"{COMMAND} {label.said.partition(' ')[0]}")
        own = count - 1 if own == held and _command(said) else own
        held = count - 1
        if (label.said or label.counts) and not lost:
            found.append(label)
    return Above(tuple(found[::-1]), held, own)


def in_force(new: Iterable[Label], before: Mapping[str, str]) -> dict[str, str]:
    """Return what labels say below the new ones: each until another of its form is there."""
    found: dict[str, str] = {}
    for label in new:
        if label.said:
            found[label.form] = f"{found.get(label.form, '')} {label.said}".strip()
    return {**before, **found}


def command_above(text: str) -> tuple[Label, ...]:
    """Return the last command of a launcher in a text above an output, if there is one.

    What its program says before the title, such as the version of a library, is no label.
    """
    for sign in reversed([*_SIGN.finditer(text)]):
        line = line_at(text, sign.start())
        words = _command(line.strip()).split() if len(line) <= LONGEST else ()
        if any(word.rpartition("/")[2] in _LAUNCHERS for word in words):
            label = _label(line.strip())
            return (label,) if label else ()
    return ()


def _ends(said: str) -> bool:
    """Return whether a line is one of an output, or follows one."""
    if _BODY.match(said):
        return True
    words = _WORD.findall(_DATED.sub("", said).lower())
    closing = words and (
        words[-1] in _CLOSING or words[0] in _DONE or words[:2] == ["exit", "code"]
    )
    return bool(closing) and not _command(said)


def starts(line: str, forms: Collection[str]) -> bool:
    """Return whether a launch begins below a line: an echoed command, a prompt, or a heading.

    A heading is one of the `forms` of labels.
    """
    said = line.strip() if len(line) <= LONGEST else ""
    edge = _DECORATED.match(said)
    return bool(_command(said) or _PROMPT_ALONE.fullmatch(said) or (edge and edge[0][:2] in forms))


def commands(text: str) -> list[tuple[int, int]]:
    """Return where lines begin and end in which a text echoes a command, or shows a prompt."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        if starts(line, ()):
            found.append((at, at + len(line)))
        at += len(line)
    return found


def without_commands(text: str, title: int) -> list[str]:
    """Return an output whose title is at `title` without commands below it, in each way there is.

    A shell may show its prompt between the lines, or a command may begin what is another's output.
    """
    inside = [span for span in commands(text) if span[0] > title]
    if not inside:
        return []
    edges = [0, *(place for span in inside for place in span), len(text)]
    kept = zip(edges[::2], edges[1::2], strict=True)
    return ["".join(text[begin:end] for begin, end in kept), text[: inside[0][0]]]


def without_command(text: str, title: int, longest: int) -> str:
    """Return an output without commands above its title, nor lines after its first `longest`
    characters (0: all of it).
    """
    cut = text.find("\n", longest - 1) if longest else -1
    text = text[:cut] if cut >= 0 else text
    for begin, end in reversed(commands(text[:title])):
        text = text[:begin] + text[end:]
    return text


def says_what(line: str) -> bool:
    """Return whether a line that belongs to an output says what it is of: a command, or a job."""
    said = line.strip()
    return len(said) <= LONGEST and bool(_command(said) or _JOB.fullmatch(said))


def of_files(names: Sequence[str]) -> list[str]:
    """Return what names of files say but what counts and dates launches; #2 is no part of them.

    >>> of_files(["sweep/np16-run3.out", "sweep/np32-run1.log#2"])
    ['sweep/np16', 'sweep/np32']
    """
    stems = (_PART.sub("", name).rpartition(".") for name in names)
    return [counted("file", stem or name).said.strip(_BETWEEN) for stem, _, name in stems]


def without_last_number(name: str) -> str:
    """Return a name without its last number: "all_reduce-16-256-3" is "all_reduce-16-256"."""
    return _LAST_NUMBER.sub(r"\1", name).strip(_BETWEEN)


def counted_up(names: Sequence[str]) -> bool:
    """Return whether the last numbers of names count up, without a gap.

    >>> counted_up(["osu-1", "osu-3", "osu-2"]), counted_up(["osu-2", "osu-4", "osu-8"])
    (True, False)
    """
    numbers = {int(found[-1]) for name in names if (found := _DIGITS.findall(name))}
    return bool(numbers) and max(numbers) - min(numbers) < len(numbers)


def only_numbered(texts: Sequence[str]) -> bool:
    """Return whether texts differ in one number only, of four digits or more, that counts them.

    >>> only_numbered(["server -p 5201", "server -p 5202"]), only_numbered(["-np 1", "-np 2"])
    (True, False)
    """
    if len({_DIGITS.sub("0", text) for text in texts}) > 1:
        return False
    columns = [{*map(int, one)} for one in zip(*map(_DIGITS.findall, texts), strict=True)]
    several = [one for one in columns if len(one) > 1]
    return len(several) == 1 and (
        min(several[0]) > 999 and max(several[0]) - min(several[0]) < len(several[0])
    )


def in_all(several: Sequence[str]) -> str:
    """Return the words that several labels have in common, in the order of the first."""
    if len({*several}) == 1:
        return several[0]
    common = set.intersection(*({*words.split()} for words in several))
    return " ".join(word for word in several[0].split() if word in common)


def said_of(form: str, words: str) -> str:
    """Return what a label says without its name: of "Number of nodes 4" the 4."""
    return words.removeprefix(form).lstrip(" =")


# The last lines of a tool's outputs are alike, and are looked at for each of them.
@lru_cache(maxsize=1024)
def _command(said: str) -> str:
    """Return the command that a line echoes, "" for any other line."""
    if prompt := _PROMPT.match(said):
        return said[prompt.end() :]
    for word in said.split():
        if word.rpartition("/")[2] in _LAUNCHERS:
            return said
        if word not in _BEFORE and not _SET.match(word):
            break
    return ""


def _failed(said: str) -> bool:
    return failed(said) or bool(within(complaints(), said))


def _own_form(said: str) -> Label | None:
    """Return the label in a line that may have blanks before it: a job of fio, or modules."""
    if job := _JOB.fullmatch(said):
        return Label("job", job["said"])
    modules = re.findall(r"\d+\) (\S+)", said)
    return Label("modules", " ".join(modules)) if _MODULES.fullmatch(said) else None


@lru_cache(maxsize=1024)
def _label(said: str) -> Label | None:
    """Return what a line says, None for figures of an output, and for a launch that failed."""
    if _failed(said):
        return None
    said = " ".join(discreet(said.split(), apart))
    if command := _FILE.sub("", _REST.sub("", _command(said))):
        return _setting(command) or counted(COMMAND, command)
    if edge := _DECORATED.match(said):
        return counted(edge[0][:2], said.strip(f"{_EDGES}[] "))
    if _FIGURE.search(_DATED.sub("", said)):
        return None
    if setting := _setting(said):
        return setting
    if named := _NAMED.fullmatch(said):
        return counted(named["name"], f"{named['name']} {named['said']}")
    short = len(said) <= _SHORT and len(said.split()) <= _WORDS
    return counted(WORDS, said) if short else Label(WORDS, "")


def _setting(said: str) -> Label | None:
    """Return what `KEY=VALUE` says, whether a script prints it or a shell echoes it."""
    words = said.removeprefix("export ").removeprefix("set ").split()
    if not words or not all(map(_SET.match, words)):
        return None
    return counted(words[0].partition("=")[0], " ".join(words))


def counted(form: str, said: str) -> Label:
    """Return a label without what only counts and dates launches."""
    counts: list[str] = []

    def count(found: re.Match[str]) -> str:
        if _OF_RANKS.search(said, 0, found.start()):
            return found[0]
        counts.append(found[0])
        return " "

    rest = _COUNTED.sub(count, said)
    if _DATED.search(rest):
        rest = _YEAR.sub(" ", _DATED.sub(" ", rest))
    words = [word for word in rest.split() if any(map(str.isalnum, word))]
    if counts:  # of "osu-run-3" that is "osu"
        words = [word.rstrip("-_") for word in words]
    return Label(form, " ".join(words), " ".join(counts))
