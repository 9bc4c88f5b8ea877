"""Who may use the emulated BMC: accounts with roles and passwords, and sessions.

A request proves its account by the token of a session (X-Auth-Token) or by name and password.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Any

ROLES = {
    "Administrator": [
        "Login",
        "ConfigureManager",
        "ConfigureUsers",
        "ConfigureSelf",
        "ConfigureComponents",
    ],
    "Operator": ["Login", "ConfigureSelf", "ConfigureComponents"],
    "ReadOnly": ["Login", "ConfigureSelf"],
}
"""Roles with their privileges (DSP0266, 13.2.9)."""

SHORTEST, LONGEST = 8, 64


@dataclass(slots=True)
class Account:
    """A user of the BMC."""

    name: str
    password: str
    role: str = "Administrator"
    enabled: bool = True

    def may(self, privilege: str) -> bool:
        """Return whether the account's role has a privilege."""
        return privilege in ROLES[self.role]


@dataclass(slots=True)
class Accounts:
    """The accounts by their ids, and the sessions: id -> (token, account id)."""

    users: dict[str, Account] = field(default_factory=dict)
    sessions: dict[str, tuple[str, str]] = field(default_factory=dict)
    count: int = 0

    def next_id(self) -> str:
        """Return an id that no account and no session has had."""
        self.count += 1
        return str(self.count)

    def by_password(self, name: Any, password: Any) -> str:
        """Return the id of the enabled account with this name and password, "" if there is none."""
        for key, account in self.users.items():
            if isinstance(name, str) and isinstance(password, str) and account.name == name:
                same = hmac.compare_digest(account.password.encode(), password.encode())
                return key if same and account.enabled else ""
        return ""

    def by_headers(self, headers: Any) -> str:
        """Return the id of the account that a request's headers prove, "" for none."""
        if token := headers.get("X-Auth-Token"):
            for known, owner in self.sessions.values():
                if hmac.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                    return owner
            return ""
        scheme, _, coded = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return ""
        try:
            name, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return ""
        return self.by_password(name, password)

    def open_session(self, owner: str) -> tuple[str, str]:
        """Return the id and the token of a new session for the account `owner`."""
        key, token = self.next_id(), secrets.token_urlsafe(24)
        self.sessions[key] = token, owner
        return key, token

    def remove(self, owner: str) -> None:
        """Remove an account with its sessions."""
        del self.users[owner]
        self.sessions = {k: v for k, v in self.sessions.items() if v[1] != owner}


def wrong_password(password: Any) -> bool:
    """Return whether an account cannot have this password."""
    return not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST
