"""Profiles of applications as TOML files: what share of the time each part has; docs/profile.md.

`paribus profile` writes them, and the key `profile` of a study names some. A profile with a
*skeleton*, the sequence of the application's MPI calls, becomes a benchmark that replays the calls.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from paribus.benchmarks import replay
from paribus.border import Place, fields, read_toml, table, text, whole
from paribus.core import PARTS, Asked, Keys, Profile, Skeleton, StudyError

SCHEMA = "paribus.profile/2"
OLDER = "paribus.profile/1"
"""The schema of a profile without a skeleton."""

ROUNDED = 0.005
"""How far the sum of a file's shares may be from 1: people type rounded ones."""

_TEXTS = ("taken", "machine", "library", "source")
_KEYS = ("schema", "name", "command", "ranks", *_TEXTS, "shares", "skeleton")
_SKELETON = ("calls", "sha256", "seconds", "computing", "spread")
_OF_CALLS = ("loop", "events", "whole", "late", "early", "off_node", "sizes")
"""Keys of the table [skeleton] that are for people, and no study reads."""
BESIDE = ("seconds", "own", "timed", "error", "cpu", "least", "most", "calls")
"""Keys of the file that `paribus profile` writes for people, and no study reads."""


def shipped() -> dict[str, Path]:
    """Return the files of the profiles that ship with Paribus, by name."""
    folder = Path(str(files("paribus") / "applications"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def profile_of(top: Place, folder: Path) -> Asked:
    """Return the benchmarks that replay the profiles which the key `profile` names.

    At most one may have no skeleton: it is the study's `profile`, and its shares are weighed.
    """
    with top.noting():
        no_names: tuple[str, ...] = ()
        named = top.read("profile", _names, no_names)
        found = [read_profile(find_profile(one, folder)) for one in named]
        older = [one for one in found if one.skeleton is None]
        if len(older) > 1:
            fix = "name one of them, or take new profiles: paribus profile -- CMD"
            top.refuse("profile", None, "two profiles have no skeleton", fix)
        values: dict[str, Any] = {"profile": older[0]} if older else {}
        adds = [_replay(one, one.skeleton) for one in found if one.skeleton]
        if adds:
            values["replays"] = [one["label"] for one in adds]
        return Asked(values, adds=adds)
    return Asked({})


def _names(value: Any) -> tuple[str, ...]:
    return fields.texts([value] if isinstance(value, str) else value)


def _replay(profile: Profile, skeleton: Skeleton) -> dict[str, Any]:
    """Return the [[benchmarks]] table of the benchmark that replays the calls of a profile."""
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", profile.name)
    of = {"ranks": profile.ranks, "application": profile.name, "machine": profile.machine}
    known = {key: getattr(skeleton, key) for key in ("calls", "seconds", "computing", "spread")}
    return {"name": replay.NAME, "label": f"{replay.NAME}-{label}", **of, **known}


def find_profile(text: str, folder: Path) -> Path:
    """Return the file `text`, relative to `folder`, else the profile of that name that ships."""
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
    if found.get("schema") not in (SCHEMA, OLDER):
        place.refuse("schema", found.get("schema"), f"is not a profile of schema {SCHEMA}", fix)
    place.only((*_KEYS, *BESIDE))
    return Profile(
        name=place.need("name", text, 'name = "solver"'),
        command=place.need("command", text, 'command = "mpirun -n 4 ./solver"'),
        ranks=place.need("ranks", whole(1, 100_000_000), "ranks = 4"),
        shares=_shares(place),
        skeleton=_skeleton(place) if found["schema"] == SCHEMA else None,
        **{key: place.read(key, text, "") for key in _TEXTS},
    )


def _shares(top: Place) -> dict[str, float]:
    """Return the share of each part of the time; refuses those that do not sum to 1."""
    place = top.within("shares", top.need("shares", table, "[shares]"))
    place.only(PARTS)
    found = {part: place.read(part, replay.share, 0.0) for part in PARTS}
    total = math.fsum(found.values())
    if abs(total - 1) > ROUNDED:
        fix = "the shares are of the whole time: they sum to 1"
        top.refuse("shares", None, f"sum to {total:.4g}", fix)
    return {part: share / total for part, share in found.items()}


def _skeleton(top: Place) -> Skeleton:
    place = top.within("skeleton", top.need("skeleton", table, "[skeleton]"))
    place.only((*_SKELETON, *_OF_CALLS))
    calls = place.need("calls", replay.calls, 'calls = "..."')
    if place.read("sha256", text, "") != digest(calls):
        fix = "take the profile again: paribus profile -- CMD"
        place.refuse("calls", None, "is not what was written: its hash differs", fix)
    seconds = place.need("seconds", replay.positive_time, "seconds = 1.5")
    share = place.need("computing", replay.share, "computing = 0.9")
    return Skeleton(calls, seconds, share, place.read("spread", replay.share, 0.0))


def digest(calls: str) -> str:
    """Return the SHA-256 of a skeleton's calls, by which a changed file is found."""
    return hashlib.sha256(calls.encode()).hexdigest()


def profile_text(
    profile: Profile, beside: Mapping[str, Any], of_calls: Mapping[str, Any] | None = None
) -> str:
    """Return the text of the TOML file of a profile.

    `beside` has the values of BESIDE, `of_calls` those that stand beside the skeleton, for people.
    """
    known = profile.skeleton
    schema = SCHEMA if known else OLDER
    top = {"schema": schema, "name": profile.name, "command": profile.command}
    top |= {key: getattr(profile, key) for key in ("ranks", *_TEXTS) if getattr(profile, key)}
    top |= {key: value for key, value in beside.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    tables = {"shares": profile.shares} | {k: v for k, v in beside.items() if k not in top}
    if known:
        tables["skeleton"] = {
            **(of_calls or {}),
            **{key: getattr(known, key) for key in ("seconds", "computing", "spread", "calls")},
            "sha256": digest(known.calls),
        }
    for name, rows in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in rows.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a value as TOML writes it: texts and numbers as in JSON, tables in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    # JSON leaves DEL as it is, and TOML refuses it.
    return json.dumps(value).replace("\x7f", "\\u007f")


KEYS = Keys(study=profile_of)
