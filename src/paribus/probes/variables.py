"""Which environment variables may be known by their values: those of a list of names, no other.

A name that only lacks the word "secret" proves nothing: UCX_PASS and SLURM_JWT lie among settings.
So a value is kept where its variable is a setting that its maker documents (variables.txt), and
never where the name, or the value itself, looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cache
from hashlib import sha256
from pathlib import Path

SECRET = (
    *("PASS", "PWD", "PASSPHRASE", "AUTH", "JWT", "TOKEN", "SECRET", "KEY", "CRED", "COOKIE"),
    *("SESSION", "BEARER", "PRIVATE", "CERT", "SIGNATURE", "UUID", "PSK", "SALT"),
)
"""Words in a name, in either case, by which the value is taken for a secret.

UUID is one of them: by the UUID of a job, as by a key, PSM and OPX distinguish jobs.
"""

_SECRET_VALUE = re.compile(
    r"://[^/@\s]+:[^/@\s]+@|eyJ[A-Za-z0-9_-]{8,}\.|AKIA[A-Z0-9]{12}|gh[pousr]_[A-Za-z0-9]{20}"
    r"|-----BEGIN|(?i:passw(or)?d|passphrase|secret|token|api_?key)\s*[=:]"
)


NOT_SHOWN = "(not shown)"

_OURS = ("PARIBUS_DELAY_US", "PARIBUS_DELAY_SHARE", "PARIBUS_DIRECTORY")
"""Settings of our kernels, which a study sets and no node has by itself."""


WITH_PATHS = (
    *("XLA_FLAGS", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"),
)
"""Settings whose values hold paths to files of a user."""

_PATH = re.compile(r"""(["'])[^"']*/[^"']*\1|[^\s=,:"']*/[^\s,:"']*""")
"""A word with a slash, or all between quotation marks."""


def shown(name: str, value: str) -> bool:
    """Return whether the value of a variable may leave the node and stand in a report."""
    setting = name in _OURS or _kept().fullmatch(name) is not None
    return setting and not looks_secret(name, value)


def reported(name: str, value: str) -> str | None:
    """Return the value of a variable as it may leave the node, None where it may not.

    In values of WITH_PATHS each path is replaced by a word of its own (`apart`).
    """
    if not shown(name, value):
        return None
    if name not in WITH_PATHS:
        return value
    if value.startswith(("/", "~", ".")):
        return apart(value)
    return _PATH.sub(lambda path: apart(path[0]), value)


def discreet_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` as it may leave the node, with NOT_SHOWN for every value that may be secret."""
    return {
        name: NOT_SHOWN if (v := reported(name, value)) is None else v
        for name, value in env.items()
    }


def looks_secret(name: str, value: str = "") -> bool:
    """Return whether a variable looks like a secret, by its name or by its value."""
    return any(word in name.upper() for word in SECRET) or _SECRET_VALUE.search(value) is not None


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def apart(secret: str) -> str:
    """Return a stand-in that differs from one secret to another: "hidden-kbfd".

    It is made of 16 bits of the secret's hash, which distinguish two of them and do not show what
    they are. It has letters only: texts in logs that differ in numbers alone may be taken for
    launches of one thing, 1, 2 and so on.
    """
    digest = sha256(secret.encode(errors="replace")).hexdigest()[:4]
    return f"hidden-{digest.translate(_LETTERS)}"


@cache
def prefixes() -> tuple[str, ...]:
    """Return how the names of settings begin, such as "OMP_": their names are facts."""
    return tuple(dict.fromkeys(prefix for prefix, _ in _rows()))


@cache
def kept() -> tuple[str, ...]:
    """Return the names in variables.txt; one with `*` at its end stands for all that begin so."""
    return tuple(prefix + name for prefix, names in _rows() for name in names)


@cache
def _kept() -> re.Pattern[str]:
    return re.compile("|".join(kept()).replace("*", "[A-Za-z0-9_]*"))


def of_session(name: str) -> bool:
    """Return whether a variable belongs to a login session, its shell or a job (sessions.txt)."""
    return _session().fullmatch(name) is not None


@cache
def _session() -> re.Pattern[str]:
    words = [word for line in _lines("sessions.txt") for word in line.split()]
    return re.compile("|".join(map(translate, words)))


@cache
def _rows() -> tuple[tuple[str, tuple[str, ...]], ...]:
    words = [line.split() for line in _lines("variables.txt")]
    return tuple((prefix, tuple(names)) for prefix, *names in words)


def _lines(name: str) -> list[str]:
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]
