"""Profiles of applications as files: which parts of their time are what; docs/profile.md.

`paribus profile` writes them, and a study names one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from paribus.border import Place, read_toml, table, text, whole
from paribus.core import PARTS, Asked, Keys, Profile, StudyError

SCHEMA = "paribus.profile/1"

ROUNDED = 0.005
"""How far the shares of a file may be from 1 in all: those that people type are rounded."""

_TEXTS = ("taken", "machine", "library", "source")
_KEYS = ("schema", "name", "command", "ranks", *_TEXTS, "shares")
BESIDE = ("seconds", "own", "timed", "error", "cpu", "least", "most", "calls")
"""What `paribus profile` writes for people, and no study needs."""


def shipped() -> dict[str, Path]:
    """Return the profiles that ship, by name."""
    folder = Path(str(files("paribus") / "applications"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def profile_of(top: Place, folder: Path) -> Asked:
    """Return the profile that the key `profile` names."""
    with top.noting():
        if named := top.read("profile", text, ""):
            return Asked({"profile": read_profile(find_profile(named, folder))})
    return Asked({})


def find_profile(text: str, folder: Path) -> Path:
    """Return the file that `text` names, from `folder` on, else the profile of that name here."""
    own = folder / text
    return own if own.exists() else shipped().get(text, own)


def read_profile(path: Path) -> Profile:
    """Return the profile in the TOML file at `path`; raises StudyError with key and fix."""
    known = ", ".join(shipped())
    fix = f"give what `paribus profile -- CMD` wrote, or the name of one that ships: {known}"
    try:
        found = read_toml(path, "a profile")
    except OSError as error:
        raise StudyError(f"cannot be read: {error.strerror}", place=str(path), fix=fix) from error
    except ValueError as error:
        raise StudyError(str(error), place=str(path), fix=fix) from error
    place = Place(str(path), "", found)
    if found.get("schema") != SCHEMA:
        place.refuse("schema", found.get("schema"), f"is not a profile of schema {SCHEMA}", fix)
    place.only((*_KEYS, *BESIDE))
    return Profile(
        name=place.need("name", text, 'name = "solver"'),
        command=place.need("command", text, 'command = "mpirun -n 4 ./solver"'),
        ranks=place.need("ranks", whole(1, 100_000_000), "ranks = 4"),
        shares=_shares(place),
        **{key: place.read(key, text, "") for key in _TEXTS},
    )


def _shares(top: Place) -> dict[str, float]:
    place = top.within("shares", top.need("shares", table, "[shares]"))
    place.only(PARTS)
    found = {part: place.read(part, _share, 0.0) for part in PARTS}
    total = math.fsum(found.values())
    if abs(total - 1) > ROUNDED:
        fix = "the shares are of the whole time: they sum to 1"
        top.refuse("shares", None, f"sum to {total:.4g}", fix)
    return {part: share / total for part, share in found.items()}


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a share is a number from 0 to 1")
    return float(value)


def profile_text(profile: Profile, beside: Mapping[str, Any]) -> str:
    """Return the TOML file of a profile; `beside` has what BESIDE names, for people."""
    top = {"schema": SCHEMA, "name": profile.name, "command": profile.command}
    top |= {key: getattr(profile, key) for key in ("ranks", *_TEXTS) if getattr(profile, key)}
    top |= {key: value for key, value in beside.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    tables = {"shares": profile.shares} | {k: v for k, v in beside.items() if k not in top}
    for name, rows in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in rows.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a value of TOML: the texts and numbers of JSON are those of TOML too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    # JSON leaves DEL as it is, and TOML refuses it.
    return json.dumps(value).replace("\x7f", "\\u007f")


KEYS = Keys(study=profile_of)
