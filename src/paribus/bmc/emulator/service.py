"""How the emulated BMC answers requests: DSP0266 with strict authentication and ETags."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Any, Literal

from paribus.bmc.emulator.accounts import Account, Accounts
from paribus.bmc.emulator.answers import TEXT, Answer, Refusal, allow, refusal_of, table_of
from paribus.bmc.emulator.changes import change
from paribus.bmc.emulator.documents import metadata, odata
from paribus.bmc.emulator.faults import BEFORE, FaultPlan
from paribus.bmc.emulator.hardware import Hardware
from paribus.bmc.emulator.resources import ACCOUNTS, SESSIONS, TASKS, V1, Json, resources
from paribus.bmc.emulator.users import change_users, log_in

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
    """A write that was taken: polls until it ends, how it ends, and what is still to be done."""

    polls: int
    state: str = "Completed"
    lost: bool = False


class Bmc:
    """The state of the emulated BMC. `requests` are those that it has seen, for tests and logs."""

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
        """Return the ETag of a resource: of what it says, and how often it was touched."""
        text = json.dumps([table, self.touched.get(path, 0)], sort_keys=True)
        return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'

    def _read(self, path: str, headers: Any) -> Answer:
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
        """Answer a write to the server itself: what the fault plan strikes."""
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
        if how in ("busy", "error", "conflict"):
            raise _FAILURES[how]
        if how == "late":
            timer = threading.Timer(_LATE_S, self._later, [make.carry_out])
            timer.daemon = True
            timer.start()
        elif how not in BEFORE:
            make.carry_out(how != "half")
        if how in ("busy-after", "error-after"):
            raise _FAILURES[how.removesuffix("-after")]
        as_task = make.slow or how in (
            *("exception", "exception-after", "lost-task", "endless-task", "late", "elsewhere"),
        )
        if not as_task:
            return Answer(204, how=how)
        key = self.accounts.next_id()
        failed = how in ("exception", "exception-after")
        polls = 1 << 30 if how == "endless-task" else _POLLS
        state = "Exception" if failed else "Completed"
        self.tasks[key] = Task(polls, state, lost=how == "lost-task")
        place = f"{V1}/TaskService/TaskMonitors/{key}"
        place = f"https://127.0.0.9{place}" if how == "elsewhere" else place
        shown = self.shown()[f"{TASKS}/{key}"]
        return Answer(202, shown, TEXT | {"Location": place, "Retry-After": "0"}, how)

    def _later(self, carry_out: Any) -> None:
        with self.lock:
            carry_out(True)


_FAILURES = {
    "busy": Refusal(503, "busy", {"Retry-After": "0"}),
    "error": Refusal(500, "internal error"),
    "conflict": Refusal(409, "another change is under way"),
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
