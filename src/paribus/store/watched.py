"""Watching a study from outside: the state in its progress.json, and whether its process lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.border import read_bounded, read_json
from paribus.store.damage import ABSENT, unreadable
from paribus.store.lock import held
from paribus.store.standing import LOCK, NAME, Doing, Effect, Standing

MOST_BYTES = 4 << 20
"""The most bytes of a state: an effect has about 150, one for each arm in each benchmark."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds progress.lock, on its machine."""

    pid: int
    host: str


def read_standing(directory: Path) -> Standing | None:
    """Return the state in `directory`, None where it is missing or damaged.

    Raises StoreError if it is no regular file, or cannot be read.
    """
    try:
        table = read_json(directory / NAME, MOST_BYTES, "a state")
        effects = tuple(Effect(**one) for one in table["effects"])
        read = Standing(**{**table, "effects": effects, "doing": _doing(table.get("doing"))})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise unreadable(error, directory / NAME) from error
    numbers = (read.planned, read.failures, *([] if read.code is None else [read.code]))
    texts = (read.text, read.job, *(f for one in read.effects for f in (one.word, one.better)))
    figures = (f for one in read.effects for f in (one.ratio, one.low, one.high) if f is not None)
    sound = all(isinstance(one, str) for one in texts) and all(type(one) is int for one in numbers)
    return read if sound and all(isinstance(one, int | float) for one in figures) else None


def _doing(table: Mapping[str, Any] | None) -> Doing | None:
    """Return the value of `doing`; raises ValueError, TypeError or AttributeError for nonsense."""
    if table is None:
        return None
    read = Doing(**table)
    numbers = (read.number, read.block, read.look, *read.blocks.values())
    texts = (read.benchmark, read.arm, *read.blocks)
    seconds = (read.since, read.elapsed_s, read.look_s or 0.0, read.left_s or 0.0)
    whole = all(type(one) is int for one in numbers) and all(isinstance(one, str) for one in texts)
    if not (whole and all(isinstance(one, int | float) and abs(one) < 1e12 for one in seconds)):
        raise ValueError("not a launch")
    return read


def alive(directory: Path) -> bool:
    """Return whether the `paribus run` of `directory` lives, on whichever machine.

    Raises StoreError if its lock is no regular file, or cannot be opened.
    """
    try:
        return held(directory / LOCK)
    except OSError:
        return False


def read_holder(directory: Path) -> Holder | None:
    """Return the process that took the lock of `directory` last, None if that is not known."""
    try:
        pid, host = read_bounded(directory / LOCK, 4096, "a lock").decode().split()
        return Holder(int(pid), host)
    except (OSError, ValueError):
        return None
