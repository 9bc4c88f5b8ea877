"""A machine that is reached through a shell: questions about it, and programs compiled there.

A question is a call of functions in sh/machine.sh, such as `look '/usr/bin/mpirun'`; the answer is
values framed by a random token, so that a banner or half an answer is never taken for one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from paribus.border import search_path
from paribus.core import UserError
from paribus.hosts.reached import Host
from paribus.hosts.session import Session, SessionError
from paribus.launch.local import Captured
from paribus.launch.machine import BUILD_S, MADE, Machine, distrusted, not_built, of_each
from paribus.launch.station import Node
from paribus.probes.archive import Archive, Unknown
from paribus.probes.processors import CORE_FILES, CPU, cores_of
from paribus.probes.values import ranges

ANSWER_S = 60.0
"""Seconds that a host may take for a question that needs no time by itself."""

MOST = 2**20
"""Bytes of the longest answer, unless more are allowed."""

END_S = 3.0
"""Seconds that a shell has to end what it began, once its input is closed."""


class Answer(NamedTuple):
    """The values of an answer, and what each command in it wrote to standard error, in order."""

    values: list[str]
    errors: list[str]


def ask(host: Host, question: str, *, timeout_s: float = ANSWER_S, most: int = MOST) -> Answer:
    """Return the answer of `host` to `question`, lines that call functions of sh/machine.sh.

    Raises UserError, naming the host, where it cannot be reached, does not answer in time, or
    answers anything but values: a banner, half an answer, more than `most` bytes.
    """
    token, last = secrets.token_hex(16), secrets.token_hex(16)
    script = f"{{\ntoken={token} last={last}\n{_functions()}\n{question}\nfinish\n}}\n"
    session, why = Session(host, timeout_s, most), ""
    try:
        session.start()
    except SessionError as error:
        reason = error.stderr.removeprefix(f"{host.shell[0]}: ")
        raise _error(host, f"{host.shell[0]} cannot be started: {reason}") from None
    try:
        session.send(script)
        session.hear(last)
    except SessionError as error:
        wrong = {"silent": f"no answer within {timeout_s:g} s"}
        wrong["flood"] = f"it prints more than {most} bytes"
        why = wrong.get(error.kind, "")
    finally:
        session.end(END_S)
    out, err = (text.decode("utf-8", "surrogateescape") for text in (session.out, session.err))
    answer, whole, _ = out.partition(last)
    before, *values = answer.split(token)
    last_error = _short(err.replace(token, " ").strip().rpartition("\n")[2])
    if why:
        raise _error(host, f"{why}{f': {last_error}' if last_error else ''}")
    if session.code and not (values or whole):
        raise _error(host, f"its shell ended with exit code {session.code}: {last_error}")
    if before:
        raise _error(
            host,
            f"it prints before it answers: {_short(before)}",
            "let start-up files of its shell (.bashrc, .profile) print only where [ -t 0 ]",
        )
    if not whole:
        text = _short(last_error or out.replace(token, " "))
        raise _error(host, f"its answer is not whole: {text}")
    return Answer(values, err.split(token)[1::2])


def not_understood(host: Host, values: list[str]) -> UserError:
    """Return the error for values of `host` that do not answer the question."""
    return _error(host, f"it answered something else than was asked: {_short(' '.join(values))}")


def quoted(*words: str) -> str:
    """Return `words` quoted for sh; raises UserError for a NUL character.

    >>> print(quoted("a b", "$HOME", ""))
    'a b' '$HOME' ''
    """
    if any("\0" in word for word in words):
        raise UserError("holds a NUL character", place=_short(" ".join(words)), fix="remove it")
    return shlex.join(words)


@cache
def _functions() -> str:
    return (resources.files("paribus.hosts") / "sh" / "machine.sh").read_text()


def _error(host: Host, cause: str, fix: str = "") -> UserError:
    command = f"echo 'echo there' | {shlex.join(host.shell)}"
    return UserError(
        cause, place=host.name, fix=fix or f"this must print nothing but there: {command}"
    )


def _short(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())[:200]


MOST_OF_A_FILE = 2**27
"""Bytes of files, in base64, that are fetched from a host."""

_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH", "PARIBUS_CACHE", "XDG_CACHE_HOME")


class HostMachine(Machine):
    """The machine behind a Host, by the interface of Machine. Every question is one round trip.

    Each method raises UserError, naming the host, where it cannot be reached or its answer does not
    fit the question (`ask`).
    """

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def architecture(self) -> str:
        return self._known["architecture"]

    def at(self, place: str) -> str:
        return f"{self.host.name}: {place}"

    def capture(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 60.0
    ) -> Captured:
        """Return what `argv` printed there, and its exit code: 127 not found, 124 out of time."""
        call = _within(timeout_s, argv, env or {})
        values, errors = ask(self.host, f"heard {call}", timeout_s=timeout_s + ANSWER_S)
        if len(values) != 2 or len(errors) != 1 or not re.fullmatch(r"\d{1,3}", values[1]):
            raise not_understood(self.host, values)
        return Captured(int(values[1]), _replaced(values[0]), _replaced(errors[0]))

    def executables(self, paths: Iterable[Path]) -> list[Path]:
        asked = list(paths)
        letters = self._look(*map(str, asked))
        return [path for path, is_ in zip(asked, letters, strict=True) if is_ in ("fx", "frx")]

    def find_program(self, name: str, path: str | None = None) -> str | None:
        places = search_path(self.variable("PATH") if path is None else path).split(":")
        if "/" in name:
            places = [""] if name.startswith("/") else []
        found = self.executables(Path(place, name) for place in places if name)
        return str(found[0]) if found else None

    def readable(self, path: str | Path) -> bool:
        return str(path).startswith("/") and "r" in self._look(str(path))[0]

    def is_directory(self, path: str | Path) -> bool:
        return "d" in self._look(str(path))[0]

    def resolved(self, path: Path) -> Path:
        """Return `path` without symbolic links, or `path` where it does not exist."""
        found = self._paths(f'say "$(readlink -f -- {quoted(str(path))})"', 1)[0]
        return Path(found) if found else path

    def absolute(self, path: str) -> Path:
        """Return `path` as an absolute one; ~ and relative paths begin at the home directory."""
        return self._home / (path[1:].lstrip("/") if path.split("/")[0] == "~" else path)

    def variable(self, name: str) -> str:
        return self._known[name]

    def places(self) -> list[Path]:
        """Return the absolute entries of the PATH there, then the host's other places."""
        return [*map(Path, search_path(self.variable("PATH")).split(":")), *self.host.places]

    def cache(self) -> Path:
        """Return the cache of Paribus on the host, chosen as border/drafts.py chooses it here."""
        if chosen := self.variable("PARIBUS_CACHE"):
            return self.absolute(chosen)
        return self.absolute(self.variable("XDG_CACHE_HOME") or ".cache") / "paribus"

    def build(
        self,
        target: Path,
        files: Mapping[str, bytes],
        commands: Sequence[Sequence[str]],
        env: Mapping[str, str],
    ) -> None:
        """Make `target` unless it is there; see Machine. Compilers end when Paribus does."""
        at = quoted(str(target))
        if self._made(target, f"trusted {at}; if [ -e {at} ]; then say there; else say no; fi"):
            return
        steps = [f"step {_within(BUILD_S, argv, env)}" for argv in commands]
        lines = [f"trusted {at}", f"begin {at}", *_puts(files), *steps, f"keep {at}", "say there"]
        self._made(target, "\n".join(lines), commands, BUILD_S * len(commands) + ANSWER_S)

    def node(self) -> Node:
        """Return the host with the cores that its shell is allowed to use."""
        files = " ".join(f"{CPU}cpu[0-9]*/topology/{name}" for name in CORE_FILES)
        look = quoted(f"grep -s '' {files}")
        allowed, topology, _ = self._paths(
            "while read -r key value; do\n"
            '    case $key in Cpus_allowed_list:) say "$value" ;; esac\n'
            "done </proc/self/status\n"
            f"heard /bin/sh -c {look}",
            3,
        )
        spans = ranges(allowed)
        if isinstance(spans, Unknown) or not spans:
            raise not_understood(self.host, [allowed])
        cpus = [cpu for first, last in spans for cpu in range(first, last + 1)]
        lines = (line.partition(":") for line in topology.splitlines())
        archive = Archive({path: text for path, _, text in lines})
        return Node(self.host.name, tuple(cores_of(archive, cpus)))

    def contents(self, path: Path) -> dict[str, bytes]:
        """Return the bytes of the file `path`, or of all files in the directory, by name."""
        found = self._shown(path, f"show {quoted(str(path))} contents", 3, MOST_OF_A_FILE)
        files = {}
        for name, digest, text in found:
            try:
                files[name] = base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                raise not_understood(self.host, [name]) from None
            if hashlib.sha256(files[name]).hexdigest() != digest:
                raise not_understood(self.host, [name, digest])
        return files

    def digests(self, path: Path) -> dict[str, str]:
        """Return the SHA-256 of the file `path`, or of all in the directory; {} if there is none.

        Raises UserError where others can change it.
        """
        at = quoted(str(path))
        return {row[0]: row[1] for row in self._shown(path, f"trusted {at}; show {at} ''", 2)}

    def put(self, path: Path, files: Mapping[str, bytes], *, directory: bool) -> None:
        """Place `files` at `path`, executable: its own contents, or those of the directory.

        Raises UserError where that cannot be written, or others can change it.
        """
        at = quoted(str(path))
        named = {f"{MADE}/{name}" if directory else MADE: data for name, data in files.items()}
        lines = [f"trusted {at}", f"begin {at}", *_puts(named), f"keep {at}", "say there"]
        self._made(path, "\n".join(lines))

    @cached_property
    def _known(self) -> dict[str, str]:
        """The values of _VARIABLES, and the architecture, asked once."""
        names = (*_VARIABLES, "architecture")
        lines = [f'say "${{{name}-}}"' for name in _VARIABLES]
        return dict(
            zip(names, self._paths("\n".join([*lines, 'say "$(uname -m)"']), 6), strict=True)
        )

    @property
    def _home(self) -> Path:
        home = Path(self.variable("HOME"))
        if not home.is_absolute():
            raise UserError("HOME is not set there", place=self.host.name, fix="set PARIBUS_CACHE")
        return home

    def _paths(self, question: str, count: int) -> list[str]:
        """Return the values of an answer that must have so many, none with a NUL character."""
        values = ask(self.host, question).values
        if len(values) != count or any("\0" in value for value in values):
            raise not_understood(self.host, values)
        return values

    def _look(self, *paths: str) -> list[str]:
        """Return letters for each path: d or f (a directory, a file), r readable, x executable."""
        values = ask(self.host, f"look {quoted(*paths)}").values
        if len(values) != len(paths) or not all(re.fullmatch("[df]?r?x?", v) for v in values):
            raise not_understood(self.host, values)
        return values

    def _made(
        self,
        target: Path,
        question: str,
        commands: Sequence[Sequence[str]] = (),
        timeout_s: float = ANSWER_S,
    ) -> bool:
        """Return whether `target` is there after `question`; raises UserError where that failed.

        `commands`: those that the question runs, of which the answer names one that failed.
        """
        values = ask(self.host, question, timeout_s=timeout_s).values
        self._refuse(target, values)
        match values:
            case ["there"]:
                return True
            case ["no"] if not commands:
                return False
            case ["failed", step, code, out, err]:
                if re.fullmatch(r"\d{1,6} \d{1,3}", f"{step} {code}") and int(step) <= len(
                    commands
                ):
                    printed = Captured(int(code), _replaced(out), _replaced(err))
                    raise not_built(self, target, commands[int(step) - 1], printed)
        raise not_understood(self.host, values)

    def _refuse(self, path: Path, values: Sequence[str]) -> None:
        """Raise UserError if the answer says that `path` is not to be trusted, or not writable."""
        match values:
            case ["distrusted", reason]:
                raise distrusted(self.at(str(path)), _replaced(reason))
            case ["unwritable", reason]:
                raise UserError(
                    f"the cache cannot be written: {' '.join(_replaced(reason).split())}",
                    place=self.at(str(path.parent)),
                    fix="set PARIBUS_CACHE there to a directory with space that you may write to,"
                    " the same on all hosts",
                )

    def _shown(
        self, path: Path, question: str, each: int, most: int = 2**20
    ) -> list[tuple[str, ...]]:
        """Return the rows of an answer, `each` values long: name, hash, and what else was asked."""
        values = ask(self.host, question, most=most).values
        self._refuse(path, values)
        rows = [tuple(values[i : i + each]) for i in range(0, len(values), each)]
        found = []
        for name, digest, *rest in (row if len(row) == each else ("", "") for row in rows):
            hashed = re.fullmatch(r"([0-9a-f]{64})(?: .*)?", digest)
            if not hashed or "/" in name or not name.strip("."):
                raise not_understood(self.host, values[:2])
            found.append((name, hashed[1], *rest))
        return found


def send(path: Path, source: HostMachine, targets: Sequence[HostMachine]) -> None:
    """Copy the file, or the files of the directory, at `path` on `source` to the same path on
    `targets`.

    Launchers start the same path on all hosts. Hosts that have it already, by its SHA-256, are left
    alone: they may share a directory. Raises UserError for the first host on which it fails.
    """
    wanted = source.digests(path)
    if not wanted:
        raise UserError("is not there any more", place=source.at(str(path)), fix="run it again")
    found = of_each(targets, lambda target: target.digests(path))
    lacking = [
        target
        for target, there in zip(targets, found, strict=True)
        if any(there.get(name) != digest for name, digest in wanted.items())
    ]
    if lacking:
        files = source.contents(path)
        of_each(lacking, partial(_place, path, files, wanted, source.is_directory(path)))


def _place(
    path: Path,
    files: Mapping[str, bytes],
    wanted: Mapping[str, str],
    directory: bool,
    target: HostMachine,
) -> None:
    """Put `files` at `path` of a host; raises UserError unless they then have digests `wanted`."""
    target.put(path, files, directory=directory)
    if not wanted.items() <= target.digests(path).items():
        raise UserError(
            "what was sent there is not what lies there now",
            place=target.at(str(path)),
            fix="another study may use the same path: set PARIBUS_CACHE there to another one",
        )


def _within(timeout_s: float, argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the command line that runs `argv` with `env` for `timeout_s` at most (124 if longer).

    `env` is before `timeout`, whose program may have a "=" in its path, which env would take for a
    variable.
    """
    full = {**env, **({"PATH": search_path(env["PATH"])} if "PATH" in env else {})}
    added = quoted("env", *(f"{name}={value}" for name, value in full.items()))
    return f'{added} "$within" -k 5 {timeout_s:g} {quoted(*argv)}'


def _puts(files: Mapping[str, bytes]) -> list[str]:
    return [f"put {quoted(name)} {base64.b64encode(data).decode()}" for name, data in files.items()]


def _replaced(text: str) -> str:
    """Return `text` with bytes that are not UTF-8 replaced, as local.capture does."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
