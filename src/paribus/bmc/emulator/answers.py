"""Answers of the emulated BMC, and refusals in the words of the standard's message registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """A status, a body (None for an empty one) and headers; `how` it goes wrong, "" for not."""

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
