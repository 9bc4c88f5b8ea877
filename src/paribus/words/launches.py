"""What is said of single launches."""

from __future__ import annotations

from collections.abc import Sequence


def flag(outlying: float | None, disturbed: Sequence[str]) -> str:
    """Return what is unusual about a launch, "" if nothing is.

    `outlying` is its level in times the usual one of its arm, `disturbed` why it lies outside the
    noise gate.

    >>> flag(1.25, ["stolen time"]), flag(None, [])
    ("outlying: 1.25 times this arm's usual level; disturbed: stolen time", '')
    """
    told = [f"outlying: {outlying:.3g} times this arm's usual level"] if outlying else []
    told += [f"disturbed: {'; '.join(disturbed)}"] if disturbed else []
    return "; ".join(told)
