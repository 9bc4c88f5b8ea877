"""Labels: lines that a script prints between outputs, and that say what the next one is of.

Such are an echoed command, a host, a device, `KEY=VALUE` and `=== name ===`. Each has a form, and
is in force until another of its form comes. Numbers of launches and dates are no part of it: of
"=== np=16 run 3, Mon Nov 30 ===" the form is "==", what it says "np=16", what it counts "run 3".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from paribus.probes.discreet import discreet
from paribus.probes.variables import apart
from paribus.readers.known import complaints
from paribus.readers.launches import MEASURES_NOTHING, exit_code, failed, not_started, says_failed
from paribus.readers.text import line_at

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
"""Characters, and words but for dates, of a line without any other form that is a label."""

# The lines of a script and of a shell.

_PROMPT = re.compile(
    r"(?:[\w.@:~/\[\]() -]{0,80}(?:\$|[\w\]~]#) |\++ (?![A-Z]\w* ))(?=[\w./~$({\"'])"
)
"""What stands before a command: "user@node1:~$ ", "[user@node1 run]$ ", "$ ", "+ " of `set -x`."""

_PROMPT_ALONE = re.compile(r"(?:[\w.-]+@[\w.-]+:?[\w~/.-]*|[\w.-]+:[\w~/.-]*|\[[^]]+\]) ?[$#]|\$")
"""A prompt without a command behind it."""

_FLOW = re.compile(r"\++ (?:for|select|case|let|:|'?\[\[?'?|\(\()(?= |$)")
"""What `set -x` shows of loops and conditions, some of them in the first round only."""

_LAUNCHERS = frozenset(
    (
        *("mpirun", "mpiexec", "mpiexec.hydra", "srun", "prun", "aprun", "jsrun", "ibrun"),
        *("flux", "orterun", "prterun", "mpirun_rsh"),
        *("horovodrun", "torchrun", "numactl", "taskset", "docker", "podman", "singularity"),
        *("apptainer", "ssh", "kubectl"),
    )
)
_LAUNCHER_END = re.compile(r"(?:run|exec|exec\.hydra|run_rsh) ")
"""The end of the name of a launcher of ranks in a command: "mpirun ", "mpiexec ", "srun ", ...

A text is searched for it because that is fast: few lines have it.
"""

_BEFORE = frozenset(("export", "env", "time", "sudo", "nohup", "timeout", "nice", "&&", ";"))
"""Words that may stand before a launcher in its command; so may numbers."""

_EDGES = "-=#*~+><"
_DECORATED = re.compile(rf"[{_EDGES}]{{2,}}(?=.*\w)|\[(?=[^\]]*\w[^\]]*\]$)")
"""How a heading of a script begins: "=== 16 ranks ===", ">>> eth0", "[ib0]"."""

_FENCE = "```"
_HEADING = re.compile(r"#+ +(?=\w)")
"""In Markdown: the output stands below a fence, and a heading above it."""

_COMMENT = re.compile(r"^#(?: +| ?(?=\w+ *[:=]))(?=\w)|(?<=\w)\s+#+$")
"""What a script puts around a line of a box, or before one that it prints as a comment."""

_MODULES = re.compile(r"(?:\d+\) [^\s()]+(?: [<(][\w:,]+[)>])*\s*)+|Loading requirement: .*")
"""What `module list` and `module load` print with blanks before it."""

_SET = re.compile(r"[A-Za-z_][\w.]*=")
_JOB = re.compile(r"(?P<name>\S.*?): \(g=\d+\): rw=.*")
"""The line in which fio names a job: "randread-4k: (g=0): rw=randread, bs=..."."""

_NAMED = re.compile(r"(?P<name>[A-Za-z][\w /.#()-]{0,40}?)\s*[:=]\s+(?P<value>\S.*)")
"""A name and its value: "Number of nodes: 4", "Device = mlx5_0"."""

_BODY = re.compile(
    r"\#(?!\#| +\w| ?\w+ *[:=])|\# (?:All processes|Collective test|Out of bounds|Avg bus|Size +) "
    r"|\[incast |[|{}\]\",<]|\+-|iperf Done|Server output|Accepted connection|End of "
    r"|JOB DONE|Finished|Total wall time|-- finished|deallocating|destroying|SUM |[\w ]+::"
    r"|Solution Validates|build: \w+ \(\d+\)"
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

_DONE = frozenset(("done", "finished", "completed", "ended", "elapsed", "progress"))
_CLOSING = _DONE | {
    *("complete", "passed", "ok", "bye", "succeeded", "success", "successful", "successfully"),
    *("exited", "exiting", "terminated"),
}
"""What a script or a program says at its end: a line with such a last word, or one of the few above
as its first, names nothing that follows."""

_CLOSE = (["exit", "code"], ["timed", "out"])
_WARM = re.compile(r"(?i)\bwarm(?:ing)?[-_ ]?up\b")
"""What says that the launch below is to be ignored: it names none of those that are counted."""

_WORD = re.compile(r"[A-Za-z]+")
_FIGURE = re.compile(r"(?<![\w.:/-])\d+\.\d+(?![\w.])")
_RULE = re.compile(r"[-=#*+~_ .]{3,}")

# What counts launches, or dates them.

_COUNTED = re.compile(
    r"(?i)(?<![a-z])(?:run|iter(?:ation)?|rep(?:eat|etition|lica)?|trial|round|attempt|launch|loop"
    r"|pass|sample|try|test|measurement|experiment|execution|repeat|(?:slurm_)?job(?:[ _]?id)?|pid"
    r"|(?:\w+_)?array[ _](?:task|job|index)(?:[ _]id)?|sge_task_id|lsb_jobindex|seed|step)s?"
    r"(?: (?:number|no))?[\s:#=_.-]*\d+(?:\s*(?:/|of)\s*\d+)?|(?<![\w.])[ijk]=\d+|(?<![\w#])#\d+\b"
    r"|(?:\b[\w ]+ )?\bid is \d{4,}\b|(?<![\w./])\d+ *(?:/|of) *\d+(?![\w./])"
)
"""A number of a launch: "run 3", "iteration 2 of 10", "ARRAY_TASK_ID=4", "i=3", "#3", "3/8"."""

_OF_RANKS = re.compile(
    r"(?i)\b(?:rank|process|proc|task|pe|worker|thread|gpu|device|node|case|config(?:uration)?"
    r"|variant|option|host|port|rail|nic|hca|numa|disk|socket|core)[\s:#=]*$"
)
"""What stands before "3 of 8", or "#3", where that says which rank wrote, or what is measured."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATED = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T_ ]\d\d[:-]?\d\d(?:[:-]?\d\d)?(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"
    r"|\b\d{8}[-_T]\d{4,6}\b|(?<![\w./])\d{1,2}([/.])\d{1,2}\1\d{4}(?![\w./])"
    rf"|\b{_DAY}(?=\s)|\b{_MONTH} +\d{{1,2}}\b,?|\b\d{{1,2}}\.? ?{_MONTH}(?=\s)"
    r"|(?<![\w:])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?(?![\w:])|\b1[4-9]\d{8}(?:\.\d+)?\b"
)
"""A part of a date: "2026-11-30T08:30:00Z", "20261130-0830", "30.11.2026", "Mon", "Nov 30",
"08:30:00 PM"; or seconds since 1970, "1795363068"."""

_YEAR = re.compile(r"\b(?:19|20)\d\d\b|\b(?:UTC|GMT|[CE]E?S?T|[AP]M)\b")
"""What is left of a date: its year, and the zone."""

_DIGITS = re.compile(r"\d{1,18}")
_PART = re.compile(r"#\d+$")
"""The number of an output in its file, behind the file's name."""

_LAST_NUMBER = re.compile(r"\d+(\D*)$")
_TWICE = re.compile(r"(?<![^/])([^/]+)/\1$")
_BETWEEN = " -_."
"""What stands between the words of a file's name."""

_FILE = re.compile(r"\S*\.(?:log|json|txt|out|err|csv)\b")
"""A file into which a command writes: it may count launches."""

_REDIRECTION = re.compile(r"(?:\d?>|\|).*")
"""The end of a command that says where its output goes."""


class Label(NamedTuple):
    """A line that says what the next outputs are of.

    `form` is how such lines are alike: COMMAND, the name in `NAME: VALUE`, the edge of a heading,
    WORDS. `words` are its words, without dates and without `counts`: what it says of the number of
    a launch.
    """

    form: str
    words: str
    counts: str = ""


class Above(NamedTuple):
    """What stands above an output: its labels, from the first line to the last.

    `characters` is how many characters directly above the output hold them; the last `commands` of
    these are the commands directly above it, which belong to the output. `below` is whether some
    may be of the message of a launch that failed.
    """

    labels: tuple[Label, ...] = ()
    characters: int = 0
    commands: int = 0
    below: bool = False


def above(lines: Sequence[str], deeper: int) -> Above:
    """Return the labels in the lines above an output, whose lines begin with `deeper` blanks.

    They are searched from below, up to the end of the output before: a row of figures, a last line
    of a tool, or a line that is indented more.
    """
    found: list[Label] = []
    passed = characters = commands = fences = 0  # the first three are characters, from below
    lost = below = False  # whether the lines above are of a launch that failed
    for line in reversed(lines[-MOST:]):
        text = line.strip()
        passed += len(line) + 1
        fences += text.startswith(_FENCE)
        if fences > 1:
            break
        if fences and (heading := _HEADING.match(text)):
            found.append(counted(heading[0].strip(), text[heading.end() :]))
            characters = passed - 1
            continue
        if not text or len(text) > LONGEST or _RULE.fullmatch(text):
            continue
        if not_started(text) in MEASURES_NOTHING:
            continue
        ended = exit_code(text) is not None
        if ended or _failed(text):  # of this launch, after its command, or of one before it
            below = below or not (lost or ended)
            lost = lost or ended or bool(found)
            characters = passed - 1 if lost else characters
            continue
        label = _own_form(text)
        if label is None and (len(line) - len(line.lstrip()) > max(deeper, 0) or _ends(text)):
            break
        if _PROMPT_ALONE.fullmatch(text) or _FLOW.match(text):  # it belongs to no output
            characters = passed - 1
            continue
        label = label or _label(_COMMENT.sub("", text))
        if label is None:
            break
        if label.form == COMMAND and any(one.form == COMMAND for one in found):
            label = label._replace(form=f"{COMMAND} {label.words.partition(' ')[0]}")
        if commands == characters and _command(text):
            commands = passed - 1
        characters = passed - 1
        if (label.words or label.counts) and not lost:
            found.append(label)
    return Above(tuple(found[::-1]), characters, commands, below)


def in_force(new: Iterable[Label], before: Mapping[str, str]) -> dict[str, str]:
    """Return what is in force below `new` labels, by form: they replace those `before` them.

    New labels of one form are joined. One that only counts ends a warm-up of its form.

    >>> in_force([Label("host", "host node2")], {"host": "host node1", "==": "16 ranks"})
    {'host': 'host node2', '==': '16 ranks'}
    """
    found: dict[str, str] = {}
    for label in new:
        if label.words:
            found[label.form] = f"{found.get(label.form, '')} {label.words}".strip()
    for form in {label.form for label in new} - {*found}:
        found[form] = " ".join(_WARM.sub("", before.get(form, "")).split())
    return {form: words for form, words in {**before, **found}.items() if words}


def command_above(text: str) -> tuple[Label, ...]:
    """Return the last command of a launcher in a text above an output as its only label, or none.

    So a command is found above what its program prints before the title, such as the version of a
    library.
    """
    for end in reversed([*_LAUNCHER_END.finditer(text)]):
        line = line_at(text, end.start())
        words = _command(line.strip()).split() if len(line) <= LONGEST else ()
        if any(word.rpartition("/")[2] in _LAUNCHERS for word in words):
            label = _label(line.strip())
            return (label,) if label else ()
    return ()


def _ends(line: str) -> bool:
    """Return whether a line is one of an output, or says that its launch is over."""
    if _BODY.match(line):
        return True
    words = _WORD.findall(_DATED.sub("", line).lower())
    closing = words and (words[-1] in _CLOSING or words[0] in _DONE or words[:2] in _CLOSE)
    return bool(closing) and not _command(line)


def starts(line: str, forms: Collection[str]) -> bool:
    """Return whether a launch begins below a line: an echoed command, a prompt, or a heading.

    Only headings whose form is among `forms` count.
    """
    text = line.strip() if len(line) <= LONGEST else ""
    edge = _DECORATED.match(text)
    return bool(_command(text) or _PROMPT_ALONE.fullmatch(text) or (edge and edge[0][:2] in forms))


def commands(text: str) -> list[tuple[int, int]]:
    """Return the begin and end of each line in which a text echoes a command, or shows a prompt."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        if starts(line, ()):
            found.append((at, at + len(line)))
        at += len(line)
    return found


def without_commands(text: str, title: int) -> list[str]:
    """Return an output, whose title is at `title`, without the commands below its title: two texts.

    One without these lines alone, since a shell may show its prompt among the lines of an output;
    one without all that follows the first, since there another output may begin. None if there are
    no commands.
    """
    inside = [span for span in commands(text) if span[0] > title]
    if not inside:
        return []
    edges = [0, *(place for span in inside for place in span), len(text)]
    kept = zip(edges[::2], edges[1::2], strict=True)
    return ["".join(text[begin:end] for begin, end in kept), text[: inside[0][0]]]


def without_command(text: str, title: int, longest: int) -> str:
    """Return an output without the commands above its title.

    Nor with lines after its first `longest` characters, unless that is 0.
    """
    cut = text.find("\n", longest - 1) if longest else -1
    text = text[:cut] if cut >= 0 else text
    for begin, end in reversed(commands(text[:title])):
        text = text[:begin] + text[end:]
    return text


def says_what(line: str) -> bool:
    """Return whether a line of an output is a label all the same: a command, or a job of fio."""
    text = line.strip()
    return len(text) <= LONGEST and bool(_command(text) or _JOB.fullmatch(text))


def of_files(names: Sequence[str]) -> list[str]:
    """Return names of files without endings, and without what counts and dates launches.

    Where a file has the name of its folder, as Ramble writes them, the name stands once.

    >>> of_files(["sweep/np16-run3.out", "sweep/np32-run1.log#2", "sweep/bw_8.1/bw_8.1.out"])
    ['sweep/np16', 'sweep/np32', 'sweep/bw_8.1']
    """
    parts = (_PART.sub("", name).rpartition(".") for name in names)
    stems = (_TWICE.sub(r"\1", stem or name) for stem, _, name in parts)
    return [counted("file", stem).words.strip(_BETWEEN) for stem in stems]


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
    """Return whether texts differ in one number only that counts them, such as a port.

    It has four digits or more, and no gaps: -np 1, 2 is a sweep.

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


def without_name(form: str, words: str) -> str:
    """Return what a label says without its name: of "Number of nodes 4" the 4."""
    return words.removeprefix(form).lstrip(" =")


# The last lines of a tool's outputs are alike, and are looked at for each of them.
@lru_cache(maxsize=1024)
def _command(line: str) -> str:
    """Return the command that a line echoes, "" for any other line."""
    if prompt := _PROMPT.match(line):
        return line[prompt.end() :]
    for word in line.split():
        if word.rpartition("/")[2] in _LAUNCHERS:
            return line
        if word not in _BEFORE and not _SET.match(word) and not word.lstrip("-").isdigit():
            break
    return ""


def _failed(line: str) -> bool:
    return failed(line) or says_failed(line, complaints())


def _own_form(line: str) -> Label | None:
    """Return the label in a line that may have blanks before it: a job of fio, or modules."""
    if job := _JOB.fullmatch(line):
        return Label("job", job["name"])
    modules = re.findall(r"\d+\) (\S+)", line)
    return Label("modules", " ".join(modules)) if _MODULES.fullmatch(line) else None


@lru_cache(maxsize=1024)
def _label(line: str) -> Label | None:
    """Return the label that a line is, None for figures of an output and for a failed launch."""
    if _failed(line):
        return None
    line = " ".join(discreet(line.split(), apart))
    if command := _FILE.sub("", _REDIRECTION.sub("", _command(line))):
        return _setting(command) or counted(COMMAND, command)
    if edge := _DECORATED.match(line):
        return counted(edge[0][:2], line.strip(f"{_EDGES}[] "))
    if _FIGURE.search(_DATED.sub("", line)):
        return None
    if setting := _setting(line):
        return setting
    if named := _NAMED.fullmatch(line):
        form = _COUNTED.sub("n", named["name"])  # "run 2: ..." follows upon "run 1: ..."
        return counted(form, f"{named['name']} {named['value']}")
    short = len(line) <= _SHORT and len(_DATED.sub("", line).split()) <= _WORDS
    return counted(WORDS, line) if short else Label(WORDS, "")


def _setting(line: str) -> Label | None:
    """Return the label of `KEY=VALUE`, whether a script prints it or a shell echoes it."""
    words = line.removeprefix("export ").removeprefix("set ").split()
    if not words or not all(map(_SET.match, words)):
        return None
    return counted(words[0].partition("=")[0], " ".join(words))


def counted(form: str, text: str) -> Label:
    """Return the label of a text: its dates are left out, and what counts launches is `counts`.

    >>> counted("==", "np=16 run 3, Mon Nov 30")
    Label(form='==', words='np=16', counts='run 3')
    """
    counts: list[str] = []

    def count(found: re.Match[str]) -> str:
        if _OF_RANKS.search(text, 0, found.start()):
            return found[0]
        counts.append(found[0])
        return " "

    rest = _COUNTED.sub(count, text)
    if _DATED.search(rest):
        rest = _YEAR.sub(" ", _DATED.sub(" ", rest))
    words = [word for word in rest.split() if any(map(str.isalnum, word))]
    if counts:  # of "osu-run-3" that is "osu"
        words = [word.rstrip("-_,;:") for word in words]
    return Label(form, " ".join(words), " ".join(counts))
