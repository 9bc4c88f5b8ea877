"""Two hundred folders of logs whose truth is known: each report is true, in every form.

Real outputs, scaled by a known factor and noise: one to twelve launches of each arm, several tools,
in turns or one arm after the other, with and without dates, with copies, failures and other
settings. What is taken away (dates, names, order) never makes a word stronger.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from log_folders import FIXTURES, write
from paribus.__main__ import main
from paribus.core import Finding, Judgement, UserError, Word
from paribus.logs.imported import Answers
from paribus.logs.log import Log
from paribus.logs.logged import judge_logs
from paribus.logs.logs import find_logs
from paribus.logs.pairing import pair_logs
from paribus.report.effects import too_few
from paribus.report.export import to_json
from paribus.report.html import write_html
from paribus.report.markup import prose
from paribus.report.terminal import print_report
from paribus.words.study import summary
from paribus.words.values import reason_of

FOLDERS = 200
SAID = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
PHRASES = {
    Word.FASTER: "{} is faster in ",
    Word.SLOWER: "{} is slower in ",
    Word.EQUIVALENT: "{} is equivalent in ",
    Word.UNDECIDED: "{} is undecided in ",
    Word.WITHHELD: "no verdict for {} in ",
}


# --- outputs ------------------------------------------------------------------------------------


def _scaled(row: str, rate: bool, *, to: str = "{:.2f}") -> Callable[[str, float], str]:
    """Return what scales the second group of each match of `row`: a time, or its inverse."""

    def scale(text: str, slower: float) -> str:
        factor = 1 / slower if rate else slower
        return re.sub(
            row,
            lambda m: m[1] + to.format(float(m[2]) * factor),
            text,
            flags=re.M,
        )

    return scale


def _hpl(text: str, slower: float) -> str:
    text = _scaled(r"^(WR\S+(?: +\d+){4} +)([\d.]+)", rate=False, to="{:.2f}")(text, slower)
    return _scaled(r"^(WR\S+(?: +\d+){4} +[\d.]+ +)(\S+)", rate=True, to="{:.4e}")(text, slower)


def _imb(text: str, slower: float) -> str:
    def scale(row: re.Match[str]) -> str:
        took = float(row[3]) * slower
        return f"{row[1]}{took:12.2f}{int(row[2]) / took:12.2f}"

    return re.sub(r"^( +(\d+) +\d+) +([\d.]+) +[\d.]+$", scale, text, flags=re.M)


def _stream(text: str, slower: float) -> str:
    def scale(row: re.Match[str]) -> str:
        rate, *times = map(float, row[2].split())
        return f"{row[1]}{rate / slower:12.1f}" + "".join(f"  {slower * t:11.6f}" for t in times)

    return re.sub(r"^((?:Copy|Scale|Add|Triad): )(.*)$", scale, text, flags=re.M)


@dataclass(frozen=True)
class Tool:
    """An output, what scales its times, a failed launch of it, and where its date stands."""

    name: str
    fixture: str
    scale: Callable[[str, float], str]
    cut: str
    other: tuple[str, str]
    date: str = ""
    many: bool = False
    """Whether so many figures prove a copy."""

    @property
    def text(self) -> str:
        return (FIXTURES / self.name / f"good-{self.fixture}.out").read_text()


OSU = r"^(\d+ +)([\d.]+)"
CHAR = ("Datatype: MPI_CHAR", "Datatype: MPI_FLOAT")
TOOLS = (
    Tool("osu_latency", "tcp", _scaled(OSU, rate=False), "# Size", CHAR, many=True),
    Tool("osu_bw", "c_shm", _scaled(OSU, rate=True), "# Size", CHAR, many=True),
    Tool("hpl", "handmade-2_3", _hpl, "||Ax-b||", ("10000", "20000"), "start time (.*)"),
    Tool("imb_pingpong", "msglen", _imb, "# All proc", ("MPI_BYTE", "MPI_INT"), "# Date  .*: (.*)"),
    Tool(
        "stream",
        "handmade-2_threads",
        _stream,
        "Solution Validates",
        ("Number of Threads counted = 2", "Number of Threads counted = 4"),
    ),
)


# --- folders ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What a folder is made of: the times of arm b are `slower` times those of arm a.

    All times grow by the share `drift` from the first launch to the last.
    """

    tools: tuple[Tool, ...]
    slower: float
    noise: float
    launches: tuple[int, int]
    in_turns: bool
    drift: float
    times: str
    names: tuple[str, str]
    fault: str

    def __str__(self) -> str:
        tools = ", ".join(tool.name for tool in self.tools)
        return f"{replace(self, tools=())!r} of {tools}"


def drawn(number: int) -> Truth:
    draw = random.Random(f"folder {number}")
    most = 12 if draw.random() < 0.3 else 8
    first = draw.choice((draw.randint(1, 12), most))
    in_turns = draw.random() < 0.5
    return Truth(
        tools=tuple(draw.sample(TOOLS, draw.choice((1, 1, 2, 3)))),
        slower=draw.choice((1.0, 1.004, 0.8, 1.1, 1.3, 3.0)),
        noise=draw.choice((0.005, 0.01)),
        launches=(first, first if draw.random() < 0.7 else draw.randint(1, 12)),
        in_turns=in_turns,
        drift=draw.choice((0.0, 0.0, 0.4)) if in_turns else 0.0,
        times=draw.choice(("dates", "files", "dates and files", "none")),
        names=draw.choice((("run{}.log", "run{}.log"), ("lat_{}.txt", "run{:02}/x"))),
        fault=draw.choice(("", "", "", "copy", "failures", "settings")),
    )


def made(folder: Path, truth: Truth, number: int) -> list[Path]:
    draw = random.Random(f"figures {number}")
    arms = []
    for place, (arm, launches) in enumerate(zip("ab", truth.launches, strict=True)):
        texts: dict[str, str] = {}
        times: list[float] = []
        for tool in truth.tools:
            mine = []
            for i in range(launches):
                level = (truth.slower if place else 1.0) * draw.lognormvariate(0, truth.noise)
                level *= 1 + truth.drift * i / launches
                turn = (
                    2 * i + (place ^ (draw.random() < 0.5)) if truth.in_turns else i + 100 * place
                )
                at = 1.76e9 + 60 * (turn if truth.in_turns else 2 * turn)
                said = f"{datetime.fromtimestamp(at, UTC):%a %b %d %H:%M:%S %Y}"
                text = tool.scale(tool.text, level)
                for date in re.findall(tool.date, text) if tool.date else ():
                    text = text.replace(
                        date, said if "dates" in truth.times else "Sat Nov 21 04:39:20 2026"
                    )
                if place and truth.fault == "failures" and i < math.ceil(0.3 * launches):
                    text = text[: text.index(tool.cut)]
                if place and truth.fault == "settings":
                    text = text.replace(*tool.other)
                mine.append(text)
                times.append(at if "files" in truth.times else 1.76e9)
            if place and truth.fault == "copy":
                mine[-1] = mine[0]
            name = truth.names[place]
            texts |= {f"{tool.name}/{name.format(i)}": text for i, text in enumerate(mine, 1)}
        arms.append(write(folder / arm, texts, times))
    return arms


# --- what is true -------------------------------------------------------------------------------


def wrong(truth: Truth, tool: Tool, head: Finding) -> str:
    """Return what is not true of a headline, "" if all is."""
    word, found = head.verdict.word, head.comparison
    first, second = truth.launches
    good = second - math.ceil(0.3 * second) * (truth.fault == "failures")
    copied = truth.fault == "copy" and second > 1
    shown = tool.many or (tool.date and "dates" in truth.times)
    if truth.fault == "failures" or (copied and shown):
        return "" if word is Word.WITHHELD else "is not withheld"
    if copied and word is Word.WITHHELD:
        return ""
    known = "files" in truth.times or ("dates" in truth.times and tool.date)
    fewest, pairs = min(first, good), bool(truth.in_turns and known)
    if word in SAID and fewest < (6 if pairs else 8):
        return "is said of too few launches"
    if word is not Word.WITHHELD and max(first, good) == 1:
        return "is said of one launch each"
    right = Word.SLOWER if truth.slower > 1.02 else Word.FASTER
    if abs(math.log(truth.slower)) < math.log(1.02):
        right = Word.EQUIVALENT
    if word in SAID and word is not right and not (truth.drift and first != second):
        return "is wrong"
    known_pairs = pairs and first == second
    powered = fewest >= 8 and (known_pairs or not truth.drift)
    if powered and right is not Word.EQUIVALENT and word is not right:
        return f"is not {right.value}"
    if word in SAID and ("unless" in head.verdict.figures) != (not pairs) and first == second:
        return "has a condition, or none, against what is known of the times"
    effect = truth.slower if head.metric.better == "lower" else 1 / truth.slower
    if found is None or abs(math.log(found.ratio / effect)) > 5 * truth.noise + 0.01 + truth.drift:
        return "has a ratio far from the truth"
    return ""


def reported(judgement: Judgement, head: Finding) -> bool:
    """Return whether the first sentence has a headline under its word, and under no other."""
    clauses = judgement.sentence.replace("No ", "no ", 1).rstrip(".").split("; ")
    mine = [c for c in clauses if re.search(rf"\b{head.benchmark}\b", c.partition(", if ")[0])]
    reserved = "unless" in head.verdict.figures
    phrase = PHRASES[head.verdict.word]
    if too_few(judgement, head):
        phrase = "{} has too few launches in "
    return (
        len(mine) == 1
        and mine[0].startswith(phrase.format(head.arm))
        and (", unless the machine changed between " in mine[0]) == reserved
    )


@pytest.mark.slow
def test_every_sentence_word_and_field_is_true(
    tmp_path: Path,
    sample: Callable[[Iterable[int]], list[int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in sample(range(FOLDERS)):
        truth = drawn(number)
        folders = made(tmp_path / str(number), truth, number)
        arms, logs, unread = find_logs(folders)
        code = main(["compare", *map(str, folders), "--json"])
        reported_user = capsys.readouterr()
        if truth.fault == "settings" or (truth.fault == "failures" and truth.launches[1] == 1):
            with pytest.raises(UserError, match=r"nothing to compare: .*none of b"):
                judge_logs(pair_logs(arms, logs, unread), Answers())
            assert (code, reported_user.out) == (2, ""), truth
            assert "nothing to compare: " in reported_user.err, truth
            continue
        judgement = judge_logs(pair_logs(arms, logs, unread), Answers())
        tools = {tool.name: tool for tool in truth.tools}
        assert sorted(tools) == sorted(head.benchmark for head in judgement.headlines), truth
        page = printed(judgement)
        data = json.loads(json.dumps(to_json(judgement), allow_nan=False))
        assert json.loads(reported_user.out) == data, truth
        assert code == 3 * any(h.verdict.word is Word.WITHHELD for h in judgement.headlines), truth
        assert data["sentence"] == judgement.sentence
        assert page.startswith(" ".join(judgement.sentence.split())), truth
        write_html(judgement, html := tmp_path / "report.html")
        short = summary(judgement.sentence, judgement.headlines)
        assert f"<h1>{prose(short)}</h1>" in html.read_text(), truth
        fields = [one for one in data["headlines"] if one.get("decides", True)]
        for head, field in zip(judgement.headlines, fields, strict=True):
            said = f"{truth}: {head.benchmark}: {head.verdict}: {head.comparison}"
            assert not (why := wrong(truth, tools[head.benchmark], head)), f"{why}: {said}"
            assert reported(judgement, head), f"{judgement.sentence}: {said}"
            assert field["verdict"]["word"] == head.verdict.word.value
            assert field["verdict"]["reason"] == reason_of(head.verdict)
            assert row_of(page, head.benchmark) == head.verdict.word.value, f"{page}: {said}"
        for less in taken_away(logs, number):
            weaker = judge_logs(pair_logs(arms, less, unread), Answers())
            assert not (more := stronger(weaker, judgement)), f"{truth}: {more}"


def row_of(page: str, benchmark: str) -> str:
    """Return the word in the row of a benchmark in the table of verdicts, "" without one."""
    rows = r"benchmark +a +b +times as slow +verdict +values(.*?)Times as slow:"
    (table,) = re.findall(rows, page)
    found = re.search(rf" {benchmark} +\S[^\]]*\] +([a-z]+) ", table)
    return found[1] if found else ""


def printed(judgement: Judgement) -> str:
    text = io.StringIO()
    print_report(judgement, Console(file=text, width=160))
    return " ".join(text.getvalue().replace("\N{NO-BREAK SPACE}", " ").split("\n")).strip()


def taken_away(logs: Sequence[Log], number: int) -> Iterable[list[Log]]:
    """Yield the logs without times, without their names, and without both and their order."""
    draw = random.Random(number)
    undated = [replace(log, at=1.7e9, written=1.7e9, date=None) for log in logs]
    named = [replace(log, name=f"{draw.random()}") for log in logs]
    both = [replace(log, name=one.name) for log, one in zip(undated, named, strict=True)]
    yield undated
    yield named
    yield sorted(draw.sample(both, len(both)), key=lambda log: log.arm)


def stronger(weaker: Judgement, whole: Judgement) -> list[str]:
    """Return the verdict, or a narrower one, with less than is known."""
    found = []
    known = {(f.benchmark, f.metric, f.case): f for f in (*whole.headlines, *whole.cases)}
    for less in (*weaker.headlines, *weaker.cases):
        more = known[less.benchmark, less.metric, less.case]
        if less.verdict.word in SAID and (
            less.verdict.word is not more.verdict.word
            or less.comparison != more.comparison
            or ("unless" in more.verdict.figures and "unless" not in less.verdict.figures)
        ):
            found.append(f"{less.benchmark} {less.case}: {less.verdict}, not {more.verdict}")
    return found
