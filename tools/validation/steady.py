"""Check 32: which arm's launches are steadier inside, whatever the shapes of their steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paribus.lenses.steadiness import BET_ERROR, signs, steps_apart, won
from validation.figures import Check, Figure

STEPS, LOOKS = 10, (18, 27, 40, 60)
Noise = Callable[[np.random.Generator, int], np.ndarray]


def _followed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return steps of which each follows the one before it, with a correlation of 0.8."""
    found = rng.normal(0, 1, (n, STEPS))
    for step in range(1, STEPS):
        found[:, step] = 0.8 * found[:, step - 1] + 0.6 * found[:, step]
    return found


def _periodic(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 0.2, (n, STEPS)) + 1.5 * (np.arange(STEPS) % 5 == 0)


def _loud(share: float) -> Noise:
    """Return normal steps, eight times as far apart in a share of the launches."""
    return lambda rng, n: rng.normal(0, 1, (n, STEPS)) * np.where(rng.random((n, 1)) < share, 8, 1)


STEP_NOISE: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(0, 1, (n, STEPS)),
    "t3": lambda rng, n: rng.standard_t(3, (n, STEPS)),
    "skew": lambda rng, n: rng.exponential(1, (n, STEPS)),
    "contaminated": lambda rng, n: (
        rng.normal(0, 1, (n, STEPS)) * np.where(rng.random((n, STEPS)) < 0.1, 6, 1)
    ),
    "two states": lambda rng, n: (
        rng.normal(0, 0.2, (n, STEPS)) + 2 * (rng.random((n, STEPS)) < 0.5)
    ),
    "followed": _followed,
    "periodic": _periodic,
    "loud launches": _loud(0.15),
    "rarely loud": _loud(0.05),
}
STEADY = ("normal", "t3", "skew", "contaminated", "two states")
PAIRS = (
    *((one, one) for one in STEP_NOISE),
    *(("normal", one) for one in STEP_NOISE if one != "normal"),
    *(("contaminated", "skew"), ("contaminated", "two states")),
    *(("periodic", "loud launches"), ("periodic", "rarely loud")),
)


def _apart(noise: str, rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [steps_apart([steps]) for steps in STEP_NOISE[noise](rng, n)]


def _scale(pair: tuple[str, str]) -> float:
    """Return by what to divide the second noise so that steps of both lie equally far apart."""
    rng = np.random.default_rng([32, PAIRS.index(pair)])
    one, other = (_apart(noise, rng, 600) for noise in pair)
    low, high = -5.0, 5.0
    for _ in range(14):
        middle = (low + high) / 2
        above = signs(one, other, float(np.exp(middle))).mean() > 0
        low, high = (middle, high) if above else (low, middle)
    return float(np.exp((low + high) / 2))


def _seen(pair: tuple[str, str], studies: int, far: float, looks: tuple[int, ...]) -> float:
    """Return in which share of studies equal scatter is ruled out at any of the looks."""
    rng = np.random.default_rng([32, PAIRS.index(pair), int(10 * far)])
    scale = 1.0 if pair[0] == pair[1] else _scale(pair)
    found = 0
    for _ in range(studies):
        one, other = (_apart(noise, rng, looks[-1]) for noise in pair)
        each = signs(one, other, scale / far)
        found += any(won(each[:blocks]) * BET_ERROR >= 2 for blocks in looks)
    return found / studies


def steps_within_launches(studies: int) -> Check:
    """Check 32: words on the scatter of steps, in studies that stop whenever they like."""
    level = {" / ".join(dict.fromkeys(pair)): _seen(pair, studies, 1.0, LOOKS) for pair in PAIRS}
    power = {noise: _seen((noise, noise), studies, 2.0, (40,)) for noise in STEADY}
    return Check(
        32,
        "Steadiness within launches",
        f"{studies:,} studies for each pair of noises of the two arms, {STEPS} steps a launch, of"
        " which two lie as far apart in both: an arm is called steadier or less steady at any look"
        " from 18 to 60 blocks. Loud launches, 15 or 5 % of them, scatter eight times as far.",
        (
            Figure("equal scatter called unlike", level, "<=", 0.057),
            Figure("twice as far, seen after 40 blocks", power, ">=", 0.9),
        ),
    )
