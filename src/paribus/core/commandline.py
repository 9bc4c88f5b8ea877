"""The words of a command that is written as one text, and what in it only a shell understands.

No shell is started, so `echo 3 > file` would print `3 > file`, and do nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

_QUOTED = re.compile(r"""\\[^\n]|'[^']*'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_EXPANDED = r"\$[\w({@#!?$*-]"
_INSIDE = re.compile(rf"\\[$`\n]|{_EXPANDED}|`")
"""What a shell, and shlex not, takes otherwise between double quotation marks."""
_SHELL = re.compile(rf"[|&;<>()`*?\n]|{_EXPANDED}|\\[$`\n]|(?:^|\s)[~#]|\[[^\]\s]+\]")
_VARIABLE = re.compile(r"\s*\w+=")
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|da|k|z)?sh")
_COMMAND = re.compile(r"-\w*c")
_OF_A_SHELL = frozenset(
    {
        *(
            "cd",
            "pushd",
            "popd",
            "ulimit",
            "umask",
            "export",
            "unset",
            "set",
            "shopt",
            "source",
            ".",
        ),
        *("alias", "eval", "exec", "trap", "module", "ml"),
    }
)
"""Commands that a shell runs in itself (POSIX and bash; Environment Modules and Lmod define
`module` and `ml` as functions); what else shells have built in is a program as well."""


def typed(words: Iterable[object]) -> str:
    """Return a command of these words, such as a path, as it is typed into a shell.

    >>> typed(["paribus", "report", "my study"])
    "paribus report 'my study'"
    """
    return shlex.join(map(str, words))


class NotSplitError(ValueError):
    """Says why a text is no command by itself, and the `fix` where that is not to write `shell`.

    `shell` is the command that starts a shell for it, and `variable` the beginning of the
    assignment that it begins with, or "".
    """

    def __init__(self, cause: str, fix: str = "", *, shell: str = "", variable: str = "") -> None:
        super().__init__(cause)
        self.fix = fix
        self.shell = shell
        self.variable = variable


def split(text: str) -> tuple[str, ...]:
    """Return the words of a command, as a shell splits it.

    Raises NotSplitError for no words, and for what only a shell understands.

    >>> split("./solver -n '4 5'")
    ('./solver', '-n', '4 5')
    """
    text = text.strip()
    try:
        text.encode()
        words = tuple(shlex.split(text))
    except UnicodeEncodeError:
        raise NotSplitError("is not UTF-8", "put it into a script") from None
    except ValueError:
        raise NotSplitError("has a quotation mark without its counterpart", "close it") from None
    # What is quoted is no space: a `~` after it does not begin a word.
    bare = _QUOTED.sub(lambda found: f"\0{_left(found[1] or '', words)}", text)
    for kind in (_SHELL.search, _VARIABLE.match):
        if found := kind(bare):
            sign = found[0].strip() or "a new line"
            raise NotSplitError(
                f"{sign!r} is for a shell, and none is started",
                shell=f"sh -c {shlex.quote(text)}",
                variable=sign if kind == _VARIABLE.match else "",
            )
    if not words or not words[0]:
        raise NotSplitError("names no command", "name a program, such as ./solver -n 4")
    if words[0] in _OF_A_SHELL:
        raise NotSplitError(
            f"{words[0]!r} changes the shell that runs it, and none is started",
            "put it before the program into one script"
            + ", or say in `mpi` and `env` what it sets" * (words[0] in ("module", "ml")),
        )
    return words


def _left(inside: str, words: tuple[str, ...]) -> str:
    """Return what is for a shell between double quotation marks.

    A shell that the command starts by itself gets `$X` as it stands, and knows what it means.
    """
    left = _INSIDE.findall(inside)
    if any(_SHELLS.fullmatch(one) and _COMMAND.fullmatch(two) for one, two in pairwise(words)):
        left = [one for one in left if one.startswith("\\")]
    return "".join(left)


def instead_of(file: Path) -> str:
    """Return what to give instead of `file`, which is no study directory."""
    made = Path(f"{file.stem}.study")
    if file.suffix in (".toml", "") and (made / "plan.json").exists():
        return f"`{typed(('paribus', 'report', made))}` shows what the study measured"
    if file.suffix == ".toml":
        return f"`{typed(('paribus', 'run', file))}` measures a study; report its directory"
    if file.suffix == ".zip":
        return f"`{typed(('paribus', 'pack', '--open', file))}` unpacks a study that was packed"
    return "give the directory that `paribus run` made (its --out)"
