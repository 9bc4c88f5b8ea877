"""Splitting a command that is written as one text into its words, and quoting words as one text.

Paribus starts no shell: of `echo 3 > file` the program echo would get the words `>` and `file`.
So what only a shell understands is refused, with the command that starts one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

# What is quoted: \x, 'x', or "x", whose inside is the group.
_QUOTED = re.compile(r"""\\[^\n]|'[^']*'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_EXPANDED = r"\$[\w({@#!?$*-]"  # $HOME, ${X}, $(date), $?
# What shells expand even within double quotation marks, and shlex leaves as it is.
_INSIDE = re.compile(rf"\\[$`\n]|{_EXPANDED}|`")
# What means something to a shell outside of quotation marks: | > *.txt $X ~ #comment [ab].
_SHELL = re.compile(rf"[|&;<>()`*?\n]|{_EXPANDED}|\\[$`\n]|(?:^|\s)[~#]|\[[^\]\s]+\]")
_VARIABLE = re.compile(r"\s*\w+=")  # OMP_NUM_THREADS=4 ./solver
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|da|k|z)?sh")
_COMMAND = re.compile(r"-\w*c")  # the option of a shell before its command: -c, -lc
_OF_A_SHELL = frozenset(
    {
        *("cd", "pushd", "popd", "ulimit", "umask", "export", "unset", "set", "shopt", "source"),
        *(".", "alias", "eval", "exec", "trap", "module", "ml"),
    }
)
"""Commands that change the shell itself (POSIX and bash; Environment Modules and Lmod define
`module` and `ml` as functions). Other commands that shells have built in are programs as well."""


def typed(words: Iterable[object]) -> str:
    r"""Return the command of these words as it is typed into a shell: quoted where needed.

    >>> typed(["paribus", "report", "my study"])
    "paribus report 'my study'"
    """
    return shlex.join(map(str, words))


class NotSplitError(ValueError):
    """A text is no command by itself; the message says why.

    `shell` is the command that would start a shell for it, "" where `fix` says what to do instead;
    `variable` is how the assignment begins that the text begins with ("X="), or "".
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
    # In place of what is quoted stands NUL, not a space: a `~` after it does not begin a word.
    bare = _QUOTED.sub(lambda found: f"\0{_for_a_shell(found[1] or '', words)}", text)
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


def _for_a_shell(inside: str, words: tuple[str, ...]) -> str:
    """Return those signs between double quotation marks that only a shell understands.

    In `sh -c "echo $X"` the shell that the command starts gets `$X` as it stands, which is right.
    """
    signs = _INSIDE.findall(inside)
    if any(_SHELLS.fullmatch(one) and _COMMAND.fullmatch(two) for one, two in pairwise(words)):
        signs = [one for one in signs if one.startswith("\\")]
    return "".join(signs)


def instead_of(file: Path) -> str:
    """Return the advice for `file`, which was given as a study directory and is none."""
    made = Path(f"{file.stem}.study")
    if file.suffix in (".toml", "") and (made / "plan.json").exists():
        return f"`{typed(('paribus', 'report', made))}` shows what the study measured"
    if file.suffix == ".toml":
        return f"`{typed(('paribus', 'run', file))}` measures a study; report its directory"
    if file.suffix == ".zip":
        return f"`{typed(('paribus', 'pack', '--open', file))}` unpacks a study that was packed"
    return "give the directory that `paribus run` made (its --out); `paribus compare` reads logs"
