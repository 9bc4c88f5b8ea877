"""Command lines, and values in logs, without what looks like a secret.

discreet(["run", "--token", "X", "-n", "4"]) is ["run", "--token", "(not shown)", "-n", "4"].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from paribus.probes.variables import NOT_SHOWN, apart, looks_secret

# "--token=X" or "PASSWORD: X": name, sign and value
_OPTION = re.compile(r"""(['"]?-{0,2}[A-Za-z0-9_.-]*)([=:]?)(.*)""", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?[A-Za-z]{0,3}")
_SCHEMES = frozenset(("Basic", "Bearer", "Token"))  # between "Authorization:" and its value
_USERS = ("-u", "--user", "--proxy-user")  # of curl, with a password behind the name
_NAME_AND_SECRET = re.compile(r"[^:]+:.*\D.*")
_SECRET_NAME = re.compile("(?i)passw|passphrase|secret|token|api.?key|credential|bearer")


def discreet(words: Iterable[str], hidden: Callable[[str], str] = lambda _: NOT_SHOWN) -> list[str]:
    """Return a command's words, each secret replaced by what `hidden` returns for it.

    Secrets are X in `--token X`, `PASSWORD=X`, `-u me:X` (curl), `-p X` (sshpass), and URLs with
    passwords. A number is a setting, as in `--max-tokens 512`, except for one behind the name of a
    password.
    """
    found: list[str] = []
    previous = ""  # the word before
    expected_by = ""  # the name whose secret value the next word is, if it is one
    for word in words:
        match = _OPTION.fullmatch(previous + word if word in ("=", ":") else word)
        name, sign, value = match.groups() if match else ("", "", word)
        named_by, expected_by = expected_by, ""
        if named_by and word in _SCHEMES:
            found.append(word)
            expected_by = named_by
        elif (named_by and not _is_number(named_by, word)) or _is_login(previous, word):
            found.append(hidden(word))
        elif sign and value and looks_secret(name, word):
            found.append(word if _is_number(name, value) else f"{name}{sign}{hidden(value)}")
        elif not sign and looks_secret("", word):
            found.append(hidden(word))
        else:
            found.append(word)
            value_follows = (word.startswith("-") and not sign) or (sign and not value)
            if word == "-p" and previous.endswith("sshpass"):
                expected_by = "PASSWORD"
            elif value_follows and looks_secret(name):
                expected_by = name
        previous = word
    return found


def discreet_value(name: str, value: str) -> str:
    """Return `value`, which a log states of `name`, without what looks like a secret.

    Names are judged by fewer words than those of variables: "key" and "pass" are other things in a
    log.
    """
    if value.startswith("//"):  # of "Cloning from https://me:pw@host" the part behind ":"
        return "".join(discreet([f":{value}"], apart)).removeprefix(":")
    before = f"{name.rpartition(' ')[2]}:" if _SECRET_NAME.search(name) else ""
    return " ".join(discreet([before, *value.split(" ")], apart)[1:])


def _is_login(option: str, word: str) -> bool:
    """Return whether `word` is a URL with a password, or NAME:PASSWORD behind curl's `-u`."""
    return ("://" in word and looks_secret("", word)) or (
        option in _USERS and _NAME_AND_SECRET.fullmatch(word) is not None
    )


def _is_number(name: str, value: str) -> bool:
    return "PASS" not in name.upper() and _NUMBER.fullmatch(value) is not None
