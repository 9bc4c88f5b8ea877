"""Writes to the sessions and accounts of the emulated BMC."""

from __future__ import annotations

from collections.abc import Callable

from paribus.bmc.emulator.accounts import ROLES, Account, Accounts, wrong_password
from paribus.bmc.emulator.answers import TEXT, Answer, Refusal, allow
from paribus.bmc.emulator.resources import ACCOUNTS, SESSIONS, Json

Shown = Callable[[str], Json | None]
"""What a path shows now, None where nothing is."""


def log_in(accounts: Accounts, table: Json, shown: Shown) -> Answer:
    """Return the answer to a login: a session with its token."""
    owner = accounts.by_password(table.get("UserName"), table.get("Password"))
    if not owner:
        raise Refusal(401, "no such user with this password")
    key, token = accounts.open_session(owner)
    place = f"{SESSIONS}/{key}"
    return Answer(201, shown(place), TEXT | {"Location": place, "X-Auth-Token": token})


def change_users(
    accounts: Accounts, method: str, path: str, table: Json, user: str, shown: Shown
) -> Answer:
    """Return the answer to a write by the account `user` to sessions or accounts."""
    own = accounts.users[user]
    key = path.rsplit("/", 1)[-1]
    if method == "POST" and path == ACCOUNTS:
        allow(own.may("ConfigureUsers"))
        return _new_account(accounts, table, shown)
    if shown(path) is None:
        raise Refusal(404, "this is not there")
    if path.startswith(f"{SESSIONS}/") and method == "DELETE":
        allow(own.may("ConfigureManager") or accounts.sessions[key][1] == user)
        del accounts.sessions[key]
        return Answer(204)
    if not path.startswith(f"{ACCOUNTS}/") or method not in ("PATCH", "DELETE"):
        raise Refusal(405, f"{method} is not for this")
    allow(own.may("ConfigureUsers") or (user == key and method == "PATCH"))
    if method == "DELETE":
        accounts.remove(key)
        return Answer(204)
    _change_account(accounts.users[key], table)
    return Answer(200, shown(path), TEXT)


def _new_account(accounts: Accounts, table: Json, shown: Shown) -> Answer:
    name, role = table.get("UserName"), str(table.get("RoleId"))
    if not isinstance(name, str) or not name or wrong_password(table.get("Password")):
        raise Refusal(400, "an account needs a UserName and a Password of 8 to 64 characters")
    if role not in ROLES or any(one.name == name for one in accounts.users.values()):
        raise Refusal(400, "the role is not known, or the name is taken")
    key = accounts.next_id()
    on = table.get("Enabled", True) is True
    accounts.users[key] = Account(name, table["Password"], role, on)
    path = f"{ACCOUNTS}/{key}"
    return Answer(201, shown(path), TEXT | {"Location": path})


def _change_account(account: Account, table: Json) -> None:
    if all("@odata." in name for name in table):
        raise Refusal(400, "nothing is to be changed", code="NoOperation")
    if not set(table) <= {"Password", "RoleId", "Enabled"}:
        names = ", ".join(sorted(set(table) - {"Password", "RoleId", "Enabled"}))[:200]
        raise Refusal(400, f"{names} cannot be written", code="PropertyNotWritable")
    if "Password" in table and wrong_password(table["Password"]):
        raise Refusal(400, "a password has 8 to 64 characters")
    if table.get("RoleId", account.role) not in ROLES:
        raise Refusal(400, "the role is not known")
    account.password = table.get("Password", account.password)
    account.role = table.get("RoleId", account.role)
    account.enabled = table.get("Enabled", account.enabled) is True
