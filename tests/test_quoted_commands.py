"""Every command that a message, a help text or a page quotes is one that the parser takes."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paribus.cli import VERBS, parser_of
from paribus.core import StudyError
from paribus.launch.launchers import LAUNCHERS, NEVER_RUN
from paribus.schedulers.known import DIALECTS
from paribus.studyfile.load import load_study

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PAGES += sorted((ROOT / "src").rglob("*.toml")) + sorted((ROOT / "studies").glob("*.toml"))
MODULES = sorted((ROOT / "src" / "paribus").rglob("*.py"))
QUOTED = re.compile(r"`(paribus(?: [^`]*)?)`")
BARE = re.compile(rf"(?<![`\w])(paribus (?:{'|'.join(VERBS)}) [^`;\n]*)")
"""A command of Paribus that no quotation marks end: up to a full stop, a comma or a parenthesis."""
LINE = re.compile(r"^ *(?:\$ )?(paribus [a-z-].*)$", re.M)
FENCED = re.compile(r"^```(?:sh|bash|console)?\n(.*?)^```", re.M | re.S)


@cache
def parsed(path: Path) -> list[ast.AST]:
    """Return all that is in a module."""
    return list(ast.walk(ast.parse(path.read_text())))


def strings(path: Path, *, every: bool = False) -> Iterator[str]:
    """Yield the strings of a module that names commands; what a f-string fills in is VALUE.

    With `every`, those of any module.
    """
    inside: set[int] = set()
    for node in parsed(path) if every or "paribus " in path.read_text() else ():
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE"
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield node.value if isinstance(node.value, str) else ""


def quoted() -> Iterator[tuple[str, str]]:
    """Yield each quoted command, with the file that it is in."""
    for path in MODULES:
        for text in strings(path):
            for command in QUOTED.findall(text):
                yield path.name, " ".join(command.split())
            for command in BARE.findall(text) if "\n" not in text.strip() else ():
                yield path.name, re.split(r"[,.)](?: |$)| \(|<|: ", command)[0]
            examples = LINE.findall(text) if "\n" in text else []
            yield from ((path.name, command) for command in examples)
    for path in PAGES:
        text = path.read_text()
        commands = QUOTED.findall(FENCED.sub("", text))
        commands += [line for block in FENCED.findall(text) for line in LINE.findall(block)]
        yield from ((path.name, " ".join(command.split())) for command in commands)


def refused(words: list[str], capture: pytest.CaptureFixture[str]) -> str:
    """Return why the parser refuses `words`, "" if it takes them."""
    try:
        parser_of(words).parse_args(words)
    except SystemExit as end:
        return capture.readouterr().err if end.code else ""
    return ""


def options_of(verb: str) -> set[str]:
    """Return the options of a verb and of its actions."""

    def below(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
        for one in parser._actions:  # argparse has no other list
            yield one
            if isinstance(one, argparse._SubParsersAction):
                yield from (action for sub in one.choices.values() for action in below(sub))

    every = parser_of([verb])._actions
    verbs = next(one for one in every if isinstance(one, argparse._SubParsersAction))
    return {word for one in below(verbs.choices[verb]) for word in one.option_strings}


def wrong_with(part: str, capture: pytest.CaptureFixture[str]) -> str:
    """Return why a quoted command is none, "" for one that the parser takes."""
    one = re.sub(r"(?<=\w)\|\S+", "", part).replace(" TIME", " 8h")  # of `check|up`, the first
    words = shlex.split(one.removesuffix(" &").partition(" > ")[0], comments=True)[1:]
    if words and words[0] in ("VERB", "ARGV"):
        return ""
    if len(words) == 1 and words[0] in VERBS:  # the verb is named
        return ""
    if "[" in part:
        if words[0] not in VERBS:
            return "no verb"
        unknown = set(re.findall(r"--[a-z-]+", part)) - options_of(words[0])
        return f"no options: {unknown}" if unknown else ""
    why = refused(words, capture)
    for more in (["VALUE"], ["VALUE"] * 2, ["VALUE", "VALUE", "--through", "VALUE"]):
        if "arguments are required" in why:  # the command is named, not given
            why = refused([*words, *more], capture)
    return why


def test_a_quoted_command_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        f"{file}: {part}": why
        for file, command in set(quoted())
        for part in command.replace("\\|", "|").split(" && ")
        if (why := wrong_with(part, capsys))
    }
    assert wrong == {}


def hints(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each text of a module that is made as it goes: its values as V0, V1 and what these are.

    Not what says where an error is: that shows what was given.
    """
    keywords = [one for one in parsed(path) if isinstance(one, ast.keyword)]
    places = {id(one.value) for one in keywords if one.arg == "place"}
    for node in parsed(path):
        if isinstance(node, ast.JoinedStr) and id(node) not in places:
            text = ""
            values: dict[str, str] = {}
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    values[name := f"V{len(values)}V"] = ast.unparse(part.value)
                    text += name
                else:
                    text += str(part.value) if isinstance(part, ast.Constant) else ""
            yield text, values


PROGRAM = re.compile(
    rf"(?:(?<=[`:;( ])|^)(?:paribus (?:{'|'.join(VERBS)})|chmod|chown|kill|scancel|ssh(?! with)"
    r"|ssh-keygen|sysctl|modprobe|nohup|pip install|ulimit|docker|podman pull|apptainer)"
    r" (?!emulate\n)[^\n`;)]*"
)
QUOTES = re.compile(r"(?:typed|shlex\.quote|shlex\.join|_quoted)\(")
PLAIN = {
    "unequal.py: path": "it was quoted",
    "unequal.py: first": "it was quoted",
    "unequal.py: second": "it was quoted",
    "first.py: least": "a number",
    "shipped.py: text": "the name of a benchmark",
    "checks.py: name": "a name of a setting of the kernel",
    "background.py: pid": "a number",
    "fitness.py: pids": "numbers",
    "now.py: holder.pid": "a number",
    "namespace.py: key": "a name of a setting of the kernel",
    "namespace.py: name": "a name of a module of the kernel",
    "detached.py: here[0].ident": "a number",
    "verb.py: port": "a number",
    "verb.py: _here()": "the names of this user and this machine",
    "space.py: limit": "an option of ulimit",
    "space.py: most >> 10": "a number",
    "ssh.py: name": "a name of a host, which is checked",
    "gathering.py: name": "a name of a host, which is checked",
    "toolchain.py: ' '.join(packages)": "names of packages",
}
"""Values in commands that hold nothing for a shell, and why they do not."""


def test_what_is_filled_into_a_command_is_quoted() -> None:
    """A path with a blank, or an arm called `it's`, made some of them syntax errors."""
    used = set()
    wrong = []
    for path in MODULES:
        for text, values in hints(path):
            for command in PROGRAM.findall(text):
                for name in re.findall(r"V[0-9]+V", command):
                    what = f"{path.name}: {values[name]}"
                    if what in PLAIN:
                        used.add(what)
                    elif not QUOTES.match(values[name]):
                        wrong.append(f"{what} in {command!r}")
    assert wrong == []
    assert used == set(PLAIN)


def test_what_stands_between_backquotes_is_no_syntax_error() -> None:
    """Each one with a blank, whatever it is: a command, options, or a line of a study."""
    texts = [text for path in MODULES for text in strings(path, every=True)]
    pairs = [one for text in texts if text.count("`") % 2 == 0 for one in text.split("`")[1::2]]
    python = re.compile(r"[\w.]+\(")
    lines = {one for one in pairs if " " in one and "\n" not in one and not python.match(one)}
    assert len(lines) > 60
    wrong = {}
    for line in lines:
        read = ["sh", "-n", "-c", f"echo; {line}"]
        done = subprocess.run(read, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong[line] = done.stderr
    assert wrong == {}


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    wrong = re.compile(r"pip install '?paribus")
    assert [path.name for path in (*PAGES, *MODULES) if wrong.search(path.read_text())] == []


def test_the_first_screen_of_the_readme_has_the_two_commands() -> None:
    first = (ROOT / "README.md").read_text().splitlines()[:24]
    assert [line.partition("    #")[0] for line in first if line.startswith("./dev ")] == [
        "./dev demo",
        "./dev test",
    ]


def test_the_study_of_the_readme_is_one_that_ships_in_twelve_lines() -> None:
    study = (ROOT / "README.md").read_text().split("```toml\n")[1].split("```")[0]
    assert (ROOT / "studies" / "container-network.toml").read_text().endswith(f"\n{study}")
    assert len(study.splitlines()) == 12


def test_the_status_of_the_readme_says_what_never_ran() -> None:
    status = (ROOT / "README.md").read_text().split("## Status")[1].split("\n## ")[0]
    rows = [line.split("|")[2:5] for line in status.splitlines() if line.startswith("| ")][1:]
    ran, never = (" ".join(row[column] for row in rows) for column in (0, 2))
    for one in DIALECTS.values():
        assert one.TITLE in (ran if one.RAN else never), one.TITLE
    assert "MS-MPI" in never
    assert set(LAUNCHERS) >= NEVER_RUN == {"msmpi"}


def test_a_key_for_later_is_refused(tmp_path: Path) -> None:
    study = (ROOT / "studies" / "same.toml").read_text()
    path = tmp_path / "simulate.toml"
    path.write_text(re.sub(r"^(\[arms\..*\])$", r'\1\nsimulate = "x"', study, count=1, flags=re.M))
    with pytest.raises(StudyError, match="is not supported yet"):
        load_study(path)


def test_commands_are_found_in_every_kind_of_place() -> None:
    commands = set(quoted())
    files = {file for file, _ in commands}
    assert {"README.md", "commands.md", "load.py", "run.py", "damage.py", "statistics.md"} <= files
    assert len(commands) > 60
