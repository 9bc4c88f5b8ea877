"""Sentences about single launches."""

from __future__ import annotations

from collections.abc import Sequence


def flag(outlying: float | None, disturbed: Sequence[str]) -> str:
    """Return what is unusual about a launch, "" if nothing is.

    `outlying` is its level divided by the usual one of its arm, `disturbed` why it lies outside the
    noise gate.

    >>> flag(1.25, ["stolen time"]), flag(None, [])
    ('outlier: 1.25x the usual level of this arm; disturbed: stolen time', '')
    """
    said = [f"outlier: {outlying:.3g}x the usual level of this arm"] if outlying else []
    said += [f"disturbed: {'; '.join(disturbed)}"] if disturbed else []
    return "; ".join(said)
