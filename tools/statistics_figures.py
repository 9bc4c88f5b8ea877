"""The figures of docs/statistics.md, printed.

python tools/statistics_figures.py [--studies 10000]
"""

from __future__ import annotations

import argparse

from validation.awkward import failures_called_different
from validation.controls import averaged_protocol_error, mean_against_median, peeking_error
from validation.errors import planned_share
from validation.families import family, three_arms
from validation.noise import NOISE
from validation.studies import (
    DECIDED,
    MARGIN,
    OTHER_MARGIN,
    any_look_error,
    covers,
    ended,
    right_word,
    study,
)

EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.05)
PLANNED = tuple((s / 100, e / 100) for s in (1, 2, 3) for e in (0, 1, 2, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the figures of docs/statistics.md.")
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    print("name         any-look  at margin  coverage least  |  effect: right word / mean blocks")
    for name in NOISE:
        least = min(covers(ended(name, studies, effect), effect) for effect in EFFECTS)
        cells = []
        for effect in (0.0, 0.01, 0.05, 0.10, 0.30):
            end = ended(name, studies, effect)
            wrong = set(DECIDED) - {right_word(effect)}
            cells.append(
                f"{effect:.0%}: {end.share(right_word(effect)):.3f} / {end.blocks.mean():.1f}"
                f" (wrong {end.share(*wrong):.4f})"
            )
        margins = (MARGIN, OTHER_MARGIN)
        at_margin = max(ended(name, studies, effect).share(*DECIDED) for effect in margins)
        print(
            f"{name:12s} {any_look_error(study(name, studies)):.4f}    {at_margin:.4f}     "
            f"{least:.4f}  |  " + "  ".join(cells),
            flush=True,
        )
    for name in ("N1", "N2", "Drift", "Sticky", "Steps"):
        errors = [averaged_protocol_error(name, 2000, n) for n in (10, 30, 100)]
        print(f"averaged, in sequence, Welch, 10 / 30 / 100 per arm, {name}: {errors}")
    print(f"six looks at 5 % each, N1: {peeking_error('N1', studies):.4f}")
    wider = ", ".join(f"{ratio:.1f}" for ratio in mean_against_median(2000))
    print(f"means wider than medians, shm then tcp (8 B, 4 KiB, 1 MiB, allreduce, triad): {wider}")
    print(f"arms that both fail in 10 %: {failures_called_different(0.10, studies):.4f}")
    print(f"three arms under drift: {any_look_error(three_arms(4000)):.4f}")
    print(f"ten cases (headline wrong, any case wrong, any excludes 1): {family(studies // 2)}")
    for sd, effect in PLANNED:
        share, n = planned_share(sd, effect)
        print(f"planned from 12 blocks, sd {sd:.0%}, effect {effect:.0%}: n {n:.0f}, {share:.3f}")


if __name__ == "__main__":
    main()
