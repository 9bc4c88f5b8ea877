"""How the emulated BMC answers requests: DSP0266 with strict authentication and ETags.

In go method, path, headers and body of an HTTP request, out comes an `Answer`: `Bmc.answer`. A
write to the server becomes a `Change` first, so that a fault can keep it from taking effect.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from paribus.bmc.emulator.accounts import ROLES, Account, Accounts, wrong_password
from paribus.bmc.emulator.faults import FAULTS, Fault, FaultPlan
from paribus.bmc.emulator.hardware import ATTRIBUTE, GPUS, HOSTS, SHAPES, Hardware
from paribus.bmc.emulator.resources import (
    ACCOUNTS,
    BIOS,
    ENDPOINTS,
    FABRIC,
    OEM,
    RESET,
    SESSIONS,
    SYSTEM,
    TASKS,
    V1,
    ZONES,
    Json,
    resources,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A write that is possible: `execute(wired)` makes it, `slow` ones are answered with a task.

    Without `wired` only the BMC believes it. `resource` is what it changes; `tags` are the ETags
    that the body gives, by resource. `guarded`: without an ETag it is refused.
    """

    resource: str
    execute: Callable[[bool], None]
    slow: bool = False
    guarded: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)

    def check_tags(self, if_match: str | None, now: Callable[[str], str]) -> None:
        """Raise Refusal for an ETag that is missing (428) or no longer right (412, 428).

        `now` returns the ETag of a resource at this moment. That wrong ETags in the body are
        answered with 428 is the standard's (Zone 1.6.3, AddEndpoint).
        """
        if if_match is None and not self.tags and self.guarded:
            raise Refusal(428, "send the ETag of the resource")
        if if_match not in (None, "*", now(self.resource)):
            raise Refusal(412, "the resource is no longer as the request has it")
        for path, tag in self.tags.items():
            if tag != now(path):
                raise Refusal(428, f"{path} is no longer as the request has it")


def change(
    hardware: Hardware, dialect: str, method: str, path: str, table: Json, shown: Mapping[str, Json]
) -> Change:
    """Return what a write would change; raises Refusal for one that the server does not take."""
    if method == "POST" and path == RESET:
        return _power(hardware, table)
    if method == "POST" and path.startswith(f"{ZONES}/") and dialect == "actions":
        return _moved(hardware, path, table)
    if method == "PATCH" and path in shown and path.startswith(f"{ZONES}/"):
        if dialect != "patch":
            raise Refusal(400, "Links.Endpoints is read-only", code="PropertyNotWritable")
        return _patched(hardware, path, table)
    if method == "PATCH" and path == f"{BIOS}/Settings" and dialect == "bios":
        shape = table.get("Attributes", {}).get(ATTRIBUTE)
        return Change(path, lambda _: hardware.settings.update({ATTRIBUTE: _known(shape)}))
    if method == "POST" and path == OEM and dialect == "oem":
        _off(hardware)
        shape = _known(table.get("Topology"))
        return Change(FABRIC, lambda wired: _set(hardware, shape, wired), slow=True, guarded=False)
    if path not in shown:
        raise Refusal(404, "this is not there")
    raise Refusal(405, f"{method} is not for this")


def _set(hardware: Hardware, shape: str, wired: bool) -> None:
    """Give the server a shape; without `wired` the BMC only believes it."""
    before = {host: list(ends) for host, ends in hardware.wires.items()}
    hardware.set_shape(shape)
    if not wired:
        hardware.wires = before


def _known(shape: Any) -> str:
    """Return a shape that the server can have; raises Refusal for another."""
    if shape not in SHAPES:
        raise Refusal(400, f"use one of {', '.join(SHAPES)}")
    return str(shape)


def _off(hardware: Hardware) -> None:
    """Raise Refusal unless the server is off."""
    if hardware.power != "Off":
        raise Refusal(409, "the server is on: power it off first")


def _power(hardware: Hardware, table: Json) -> Change:
    """Return what ComputerSystem.Reset changes."""
    kind = table.get("ResetType")
    if kind not in ("On", "ForceOff", "GracefulShutdown"):
        raise Refusal(400, "use On, ForceOff or GracefulShutdown")
    act = hardware.start if kind == "On" else hardware.stop
    return Change(SYSTEM, lambda _: act(), guarded=False)


def _gpu(reference: Any) -> str:
    """Return the GPU that a reference leads to; raises Refusal for one that cannot be moved."""
    path = reference.get("@odata.id") if isinstance(reference, dict) else None
    name = path.rpartition("/")[2] if isinstance(path, str) else ""
    if path != f"{ENDPOINTS}/{name}" or name not in (*GPUS, *HOSTS):
        raise Refusal(400, "no such endpoint")
    if name in HOSTS or name in GPUS[:4]:
        raise Refusal(409, f"{name} is wired to its port and cannot be moved")
    return name


def _moved(hardware: Hardware, path: str, table: Json) -> Change:
    """Return what Zone.AddEndpoint or Zone.RemoveEndpoint changes."""
    zone, _, action = path.removeprefix(f"{ZONES}/").partition("/Actions/Zone.")
    if zone not in HOSTS or action not in ("AddEndpoint", "RemoveEndpoint"):
        raise Refusal(404, "this is not there")
    name = _gpu(table.get("Endpoint"))
    _off(hardware)
    at = next((host for host in HOSTS if name in hardware.zones[host]), "")
    tags = {
        place: table[key]
        for key, place in (("ZoneETag", f"{ZONES}/{zone}"), ("EndpointETag", f"{ENDPOINTS}/{name}"))
        if isinstance(table.get(key), str)
    }
    if action == "AddEndpoint":
        if at:
            raise Refusal(409, f"{name} is in zone {at}")
        return Change(
            f"{ZONES}/{zone}", lambda wired: hardware.add(zone, name, wired=wired), True, tags=tags
        )
    if at != zone:
        raise Refusal(400, f"{name} is not in this zone")
    return Change(
        f"{ZONES}/{zone}", lambda wired: hardware.remove(zone, name, wired=wired), tags=tags
    )


def _patched(hardware: Hardware, path: str, table: Json) -> Change:
    """Return what a PATCH of a zone's list of endpoints changes."""
    zone = path.rpartition("/")[2]
    asked = table.get("Links", {}).get("Endpoints")
    if not isinstance(asked, list):
        raise Refusal(400, "write Links.Endpoints")
    prefix = f"{ENDPOINTS}/"
    names = [str(one.get("@odata.id", "")).removeprefix(prefix) for one in asked]
    fixed = [end for end in hardware.zones[zone] if end in HOSTS or end in GPUS[:4]]
    if not set(fixed) <= set(names) or not set(names) <= {*HOSTS, *GPUS}:
        raise Refusal(400, "an endpoint is not there, or is wired to its port")
    _off(hardware)
    new = [name for name in names if name not in hardware.zones[zone]]
    for name in new:
        _gpu({"@odata.id": prefix + name})
        if any(name in ends for ends in hardware.zones.values()):
            raise Refusal(409, f"{name} is in another zone")
    old = [name for name in hardware.zones[zone] if name not in names]

    def execute(wired: bool) -> None:
        for name in old:
            hardware.remove(zone, name, wired=wired)
        for name in new:
            hardware.add(zone, name, wired=wired)

    return Change(path, execute)


TEXT = {"Content-Type": "application/json;charset=utf-8"}

_CODES = {
    400: "PropertyValueError",
    401: "NoValidSession",
    403: "InsufficientPrivilege",
    404: "ResourceMissingAtURI",
    405: "OperationNotAllowed",
    409: "ResourceInUse",
    412: "PreconditionFailed",
    428: "PreconditionRequired",
    501: "ActionNotSupported",
    503: "ServiceTemporarilyUnavailable",
}


class Refusal(Exception):  # noqa: N818 -- an answer, not an error of the emulator
    """A request that is refused: status, message, and headers of the answer."""

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, code: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.code = code or _CODES.get(status, "GeneralError")


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body (None for an empty one) and headers; `how`: its fault, "" for none."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    how: str = ""


def allow(allowed: bool) -> None:
    """Raise Refusal unless the account may do this."""
    if not allowed:
        raise Refusal(403, "the account has not the privilege for this")


def table_of(headers: Any, body: bytes) -> dict[str, Any]:
    """Return the body of a request; raises Refusal for one that is no JSON object."""
    if not headers.get("Content-Type", "").startswith("application/json"):
        raise Refusal(415, "send application/json")
    try:
        table = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON", code="MalformedJSON") from None
    if not isinstance(table, dict):
        raise Refusal(400, "the body is not an object", code="MalformedJSON")
    return table


def refusal_of(refusal: Refusal) -> Answer:
    """Return the answer that a refusal is (DSP0266, 8.6)."""
    note = {
        "@odata.type": "#Message.v1_2_1.Message",
        "MessageId": f"Base.1.18.{refusal.code}",
        "Message": refusal.message,
        "Severity": "Critical",
    }
    code = f"Base.1.18.{refusal.code}"
    body = {"error": {"code": code, "message": refusal.message, "@Message.ExtendedInfo": [note]}}
    about = {"WWW-Authenticate": 'Basic realm="BMC"'} if refusal.status == 401 else {}
    about |= {"Allow": "GET, HEAD"} if refusal.status == 405 else {}
    return Answer(refusal.status, body, TEXT | about | refusal.headers)


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
    """Return the answer to a write by the account with the id `user` to sessions or accounts."""
    account = accounts.users[user]
    key = path.rsplit("/", 1)[-1]
    if method == "POST" and path == ACCOUNTS:
        allow(account.may("ConfigureUsers"))
        return _new_account(accounts, table, shown)
    if shown(path) is None:
        raise Refusal(404, "this is not there")
    if path.startswith(f"{SESSIONS}/") and method == "DELETE":
        allow(account.may("ConfigureManager") or accounts.sessions[key][1] == user)
        del accounts.sessions[key]
        return Answer(204)
    if not path.startswith(f"{ACCOUNTS}/") or method not in ("PATCH", "DELETE"):
        raise Refusal(405, f"{method} is not for this")
    allow(account.may("ConfigureUsers") or (user == key and method == "PATCH"))
    if method == "DELETE":
        accounts.remove(key)
        return Answer(204)
    _change_account(accounts.users[key], table)
    return Answer(200, shown(path), TEXT)


def _new_account(accounts: Accounts, table: Json, shown: Shown) -> Answer:
    """Return the answer to a POST of an account."""
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
    """Change an account; raises Refusal for what it cannot have."""
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


def odata(found: Mapping[str, Json]) -> Json:
    """Return the service document (DSP0266, 8.4.2)."""
    links = {key: one for key, one in found[V1].items() if isinstance(one, dict)}
    listed = {key: one["@odata.id"] for key, one in links.items() if "@odata.id" in one}
    listed = {"Service": V1 + "/"} | listed
    value = [{"name": name, "kind": "Singleton", "url": url} for name, url in listed.items()]
    return {"@odata.context": f"{V1}/$metadata", "value": value}


def metadata(found: Mapping[str, Json]) -> str:
    """Return the document that says where each type of resource is defined (DSP0266, 8.4.1)."""
    kinds = sorted({table["@odata.type"][1:].rpartition(".")[0] for table in found.values()})
    root = found[V1]["@odata.type"][1:].rpartition(".")[0]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">'
        f"{''.join(map(_reference, kinds))}<edmx:DataServices>"
        '<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">'
        f'<EntityContainer Name="Service" Extends="{root}.ServiceContainer"/>'
        "</Schema></edmx:DataServices></edmx:Edmx>"
    )


def _reference(kind: str) -> str:
    name = kind.partition(".")[0]
    return (
        f'<edmx:Reference Uri="http://redfish.dmtf.org/schemas/v1/{name}_v1.xml">'
        f'<edmx:Include Namespace="{name}"/><edmx:Include Namespace="{kind}"/></edmx:Reference>'
    )


Dialect = Literal["actions", "patch", "bios", "oem"]
"""How zones are changed: by the standard's actions, PATCH of a vendor, a BIOS setting, or OEM."""

_OPEN = ("/redfish", V1, f"{V1}/odata", f"{V1}/$metadata")
_HEADERS = {
    "OData-Version": "4.0",
    "Cache-Control": "no-cache",
    "Link": f"<{V1}/$metadata>; rel=describedby",
}
_WRITES = ("POST", "PATCH", "PUT", "DELETE")
_YEAR_S = 365 * 86_400.0
_LATE_S = 0.1
_POLLS = 2
"""Answers of a task monitor that say "still running"."""


@dataclass(slots=True)
class Task:
    """A write that was accepted: the polls until it ends, its state then; `lost`: forgotten."""

    polls: int
    state: str = "Completed"
    lost: bool = False


class Bmc:
    """The state of the emulated BMC.

    `touched` counts, by resource, the changes by somebody else (the fault "stale"). `skew_s`:
    seconds that its clock is ahead. `requests` are those that it has seen, for tests and logs.
    """

    def __init__(
        self, hardware: Hardware, user: str, password: str, dialect: Dialect = "actions"
    ) -> None:
        self.hardware = hardware
        self.dialect = dialect
        self.accounts = Accounts({"admin": Account(user, password)})
        self.faults = FaultPlan({})
        self.tasks: dict[str, Task] = {}
        self.touched: dict[str, int] = {}
        self.skew_s = 0.0
        self.requests: list[tuple[str, str, bytes]] = []
        self.lock = threading.Lock()

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> Answer:
        """Return the answer to a request."""
        with self.lock:
            self.requests.append((method, path, body))
            try:
                found = self._answer(method, path, headers, body)
            except Refusal as refusal:
                found = refusal_of(refusal)
        return Answer(found.status, found.body, _HEADERS | dict(found.headers), found.how)

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        """Return the answer to a request; raises Refusal for one that is refused."""
        path, _, query = target.partition("?")
        path = path.rstrip("/")
        if headers.get("OData-Version", "4.0") != "4.0":
            raise Refusal(412, "the OData-Version is 4.0")
        if query.startswith("$"):
            raise Refusal(501, "no query parameters are supported")
        if method in ("GET", "HEAD"):
            if path not in _OPEN:
                self._user(headers)
            return self._read(path, headers)
        if method not in _WRITES:
            raise Refusal(501, f"the method {method[:20]} is not known")
        if path in _OPEN:
            raise Refusal(405, f"{method} is not for this")
        if method == "POST" and path in (SESSIONS, f"{SESSIONS}/Members"):
            return log_in(self.accounts, table_of(headers, body), self._at)
        user = self._user(headers)
        table = table_of(headers, body) if method != "DELETE" else {}
        if not path.startswith((SESSIONS, ACCOUNTS)):
            return self._change_server(method, path, table, headers, user)
        tag, found = headers.get("If-Match"), self._at(path)
        if found and tag not in (None, "*", self.etag(path, found)):
            raise Refusal(412, "this is no longer as the request has it")
        return change_users(self.accounts, method, path, table, user, self._at)

    def _user(self, headers: Any) -> str:
        """Return the id of the account that a request proves; raises Refusal for none."""
        user = self.accounts.by_headers(headers)
        if not user:
            raise Refusal(401, "no valid session and no valid password")
        return user

    def _at(self, path: str) -> Json | None:
        return self.shown().get(path)

    def shown(self) -> dict[str, Json]:
        """Return all resources by their paths."""
        found = resources(self.hardware, self.accounts, self.dialect, self.skew_s)
        members = []
        for key, task in self.tasks.items():
            path = f"{TASKS}/{key}"
            members.append({"@odata.id": path})
            state = task.state if task.polls <= 0 else "Running"
            found[path] = {
                "@odata.id": path,
                "@odata.type": "#Task.v1_7_4.Task",
                "Id": key,
                "Name": "A change",
                "TaskState": state,
                "TaskStatus": "OK" if state in ("Completed", "Running") else "Critical",
                "TaskMonitor": f"{V1}/TaskService/TaskMonitors/{key}",
            }
        found[TASKS] = {
            "@odata.id": TASKS,
            "@odata.type": "#TaskCollection.TaskCollection",
            "Name": "Task collection",
            "Members": members,
            "Members@odata.count": len(members),
        }
        return found

    def etag(self, path: str, table: Json) -> str:
        """Return the ETag of a resource: of its contents, and how often it was touched."""
        text = json.dumps([table, self.touched.get(path, 0)], sort_keys=True)
        return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'

    def _read(self, path: str, headers: Any) -> Answer:
        """Return the answer to a GET or HEAD."""
        if path == "/redfish":
            return Answer(200, {"v1": f"{V1}/"}, TEXT | {"Allow": "GET, HEAD"})
        found = self.shown()
        if path == f"{V1}/odata":
            return Answer(200, odata(found), TEXT | {"Allow": "GET, HEAD"})
        if path == f"{V1}/$metadata":
            kind = {"Content-Type": "application/xml;charset=utf-8", "Allow": "GET, HEAD"}
            return Answer(200, metadata(found), kind)
        if path.startswith(f"{V1}/TaskService/TaskMonitors/"):
            return self._monitor(path)
        if path not in found:
            raise Refusal(404, f"{path[:80]} is not there")
        table = found[path]
        about = {"ETag": self.etag(path, table), "Allow": _allowed(path, table, self.dialect)}
        if headers.get("If-None-Match") == about["ETag"]:
            return Answer(304, None, about)
        return Answer(200, table | {"@odata.etag": about["ETag"]}, TEXT | about)

    def _monitor(self, path: str) -> Answer:
        """Return the answer to a GET of a task monitor, which counts as one poll."""
        key = path.rsplit("/", 1)[-1]
        task = self.tasks.get(key)
        if task is None or task.lost:
            raise Refusal(404, "this task is not there")
        task.polls -= 1
        table = self.shown()[f"{TASKS}/{key}"]
        if task.polls > 0:
            return Answer(202, table, TEXT | {"Location": path, "Retry-After": "0"})
        return Answer(200, table, TEXT)

    def _change_server(
        self, method: str, path: str, table: Json, headers: Any, user: str
    ) -> Answer:
        """Answer a write to the server itself, with the fault that is planned for it."""
        found = self.shown()
        make = change(self.hardware, self.dialect, method, path, table, found)
        allow(self.accounts.users[user].may("ConfigureComponents"))
        how = self.faults.next()
        if how == "stale":
            self.touched[make.resource] = self.touched.get(make.resource, 0) + 1
        if how == "unauthorized":
            self.accounts.sessions.clear()
            raise Refusal(401, "this session has ended")
        make.check_tags(headers.get("If-Match"), lambda at: self.etag(at, self.shown()[at]))
        if how == "skew":
            self.skew_s = _YEAR_S
        fault = FAULTS.get(how, Fault(""))
        if how == "late":
            timer = threading.Timer(_LATE_S, self._later, [make.execute])
            timer.daemon = True
            timer.start()
        elif fault.does:
            make.execute(how != "half")
        if fault.status:
            raise _FAILURES[fault.status]
        if not (make.slow or fault.task):
            return Answer(204, how=how)
        key = self.accounts.next_id()
        polls = 1 << 30 if how == "endless-task" else _POLLS
        self.tasks[key] = Task(polls, fault.task or "Completed", lost=how == "lost-task")
        place = f"{V1}/TaskService/TaskMonitors/{key}"
        place = f"https://127.0.0.9{place}" if how == "elsewhere" else place
        shown = self.shown()[f"{TASKS}/{key}"]
        return Answer(202, shown, TEXT | {"Location": place, "Retry-After": "0"}, how)

    def _later(self, execute: Any) -> None:
        with self.lock:
            execute(True)


_FAILURES = {
    503: Refusal(503, "busy", {"Retry-After": "0"}),
    500: Refusal(500, "internal error"),
    409: Refusal(409, "another change is under way"),
}


def _allowed(path: str, table: Json, dialect: str) -> str:
    """Return the methods that a resource takes, for the header Allow."""
    if path in (SESSIONS, ACCOUNTS):
        return "GET, HEAD, POST"
    if path.startswith(f"{SESSIONS}/"):
        return "GET, HEAD, DELETE"
    if path.startswith(f"{ACCOUNTS}/"):
        return "GET, HEAD, PATCH, DELETE"
    zone = dialect == "patch" and table["@odata.type"].startswith("#Zone.v")
    return "GET, HEAD, PATCH" if zone or path.endswith("/Bios/Settings") else "GET, HEAD"
