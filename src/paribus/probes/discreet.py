"""Command lines, and what logs say, without what looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from paribus.probes.variables import NOT_SHOWN, apart, looks_secret

_OPTION = re.compile(r"""(['"]?-{0,2}[A-Za-z0-9_.-]*)([=:]?)(.*)""", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?[A-Za-z]{0,3}")
_SCHEMES = frozenset(("Basic", "Bearer", "Token"))  # between "Authorization:" and its value
_USERS = ("-u", "--user", "--proxy-user")  # of curl, with a password behind the name
_NAME_AND_SECRET = re.compile(r"[^:]+:.*\D.*")
_SECRET_NAME = re.compile("(?i)passw|passphrase|secret|token|api.?key|credential|bearer")


def discreet(words: Iterable[str], hidden: Callable[[str], str] = lambda _: NOT_SHOWN) -> list[str]:
    """Return a command's words without what looks like a secret: `--token X`, `PASSWORD=X`, URLs.

    `-u me:X` of curl is one, and `-p X` of sshpass. `hidden` makes what stands in the place of one.
    A number is a setting, as in `--max-tokens 512`, but behind the name of a password.
    """
    found: list[str] = []
    before = secret = ""  # the word before; the name, if the next word is the value
    for word in words:
        match = _OPTION.fullmatch(before + word if word in ("=", ":") else word)
        name, sign, value = match.groups() if match else ("", "", word)
        last, secret, previous, before = secret, "", before, word
        if last and word in _SCHEMES:
            found.append(word)
            secret = last
        elif (last and not _is_number(last, word)) or _is_login(previous, word):
            found.append(hidden(word))
        elif sign and value and looks_secret(name, word):
            found.append(word if _is_number(name, value) else f"{name}{sign}{hidden(value)}")
        elif not sign and looks_secret("", word):
            found.append(hidden(word))
        else:
            found.append(word)
            expected = (word.startswith("-") and not sign) or (sign and not value)
            secret = name if expected and looks_secret(name) else ""
            secret = "PASSWORD" if word == "-p" and previous.endswith("sshpass") else secret
    return found


def discreet_value(name: str, value: str) -> str:
    """Return what a log says of `name`, without what looks like a secret.

    Of the names that variables have, "key" and "pass" are other things in a log.
    """
    if value.startswith("//"):  # of "Cloning from https://me:pw@host" the part behind ":"
        return "".join(discreet([f":{value}"], apart)).removeprefix(":")
    before = f"{name.rpartition(' ')[2]}:" if _SECRET_NAME.search(name) else ""
    return " ".join(discreet([before, *value.split(" ")], apart)[1:])


def _is_login(option: str, word: str) -> bool:
    """Return whether a word holds a name with its password: of a URL, or behind curl's `-u`."""
    return ("://" in word and looks_secret("", word)) or (
        option in _USERS and _NAME_AND_SECRET.fullmatch(word) is not None
    )


def _is_number(name: str, value: str) -> bool:
    return "PASS" not in name.upper() and _NUMBER.fullmatch(value) is not None
