"""What the layers of a study predict for one application: its profile weighs their ratios.

Expected time / reference = sum over parts of share x ratio, for a part that takes the share w of
the time and whose layer's ratio is r takes w r afterwards. The ends of the intervals are summed in
the same way: if every interval holds, so does the sum, hence (Bonferroni) with a confidence of at
least 1 - sum of what each may be wrong (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Kind,
    Prediction,
    Profile,
    Study,
    Weighed,
    Word,
)

MARGIN = 0.02
"""Of a study that sets none: the margin of times."""

_MESSAGES = (Kind.LATENCY, Kind.BANDWIDTH)
_COLLECTIVES = (Kind.SMALL_COLLECTIVES, Kind.LARGE_COLLECTIVES)
KINDS: Mapping[str, tuple[Kind, ...]] = {
    "messages_small": (Kind.LATENCY,),
    "messages_middle": _MESSAGES,
    "messages_large": (Kind.BANDWIDTH,),
    "collectives_small": (Kind.SMALL_COLLECTIVES,),
    "collectives_middle": _COLLECTIVES,
    "collectives_large": (Kind.LARGE_COLLECTIVES,),
    "one_sided": (),
    "storage": (Kind.STORAGE,),
    "waiting": (*_MESSAGES, *_COLLECTIVES),
    "other": _COLLECTIVES,
    "outside": (Kind.MEMORY, Kind.COMPUTE),
}
"""The kinds between which the ratio of a part lies, all of which must be measured; () for none.
Middle sizes are between latency and bandwidth, time outside MPI between memory and compute."""


def predicted(judgement: Judgement, profile: Profile) -> Judgement:
    """Return `judgement` with what its kinds of application predict for `profile`, by arm."""
    margin = judgement.study.settings.margin
    found = []
    for arm in judgement.study.arms[1:]:
        own = {f.benchmark: f for f in judgement.profiles if f.arm == arm.name}
        known = {kind: c for kind, f in own.items() if (c := usable(f)) is not None}
        one = weigh(profile, known, arm.name, MARGIN if margin is None else margin)
        found.append(replace(one, programs=_others(judgement.study, profile)))
    study = replace(judgement.study, profile=profile)
    return replace(judgement, study=study, predictions=tuple(found))


def weigh(profile: Profile, kinds: Mapping[str, Comparison], arm: str, margin: float) -> Prediction:
    """Return the prediction for `profile` from the ratios of times of `kinds`.

    Where a part is not measured, ratio and interval are those of the whole time if that part
    stays as it is, and there is no word.
    """
    parts = tuple(_part(part, w, kinds) for part, w in profile.shares.items() if w > 0)
    measured = [part for part in parts if part.ratio is not None]
    rest = math.fsum(part.share for part in parts if part.ratio is None)
    ratio, low, high = (
        rest + math.fsum(part.share * getattr(part, end) for part in measured)
        for end in ("ratio", "low", "high")
    )
    used = {kind for part in measured for kind in part.kinds}
    wrong = math.fsum(1 - kinds[kind].level for kind in used)
    return Prediction(
        arm=arm,
        application=profile.name,
        command=profile.command,
        parts=parts,
        ratio=ratio,
        low=low,
        high=high,
        level=max(1 - wrong, 0.0),
        word=None if len(measured) < len(parts) else word_of(low, high, margin),
    )


def _part(part: str, share: float, kinds: Mapping[str, Comparison]) -> Weighed:
    """Return a part with the ratio of its kind, or the range of the kinds that it is between."""
    of = KINDS[part]
    if not of or not all(kind in kinds for kind in of):
        return Weighed(part, share, tuple(of))
    some = [kinds[kind] for kind in of]
    middle = math.exp(math.fsum(math.log(one.ratio) for one in some) / len(some))
    low, high = min(one.low for one in some), max(one.high for one in some)
    return Weighed(part, share, tuple(of), middle, low, high)


def usable(finding: Finding) -> Comparison | None:
    """Return the ratio of a kind, None where it has no interval or must not be relied on."""
    known = finding.comparison
    held = finding.verdict.word in (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
    if known is None or held or not finding.verdict.size_known:
        return None
    return known if 0 < known.low <= known.high < math.inf else None


def word_of(low: float, high: float, margin: float) -> Word:
    """Return the word for an interval of time, as for headlines (docs/statistics.md)."""
    least, most = 1 / (1 + margin), 1 + margin
    if low > most:
        return Word.SLOWER
    if high < least:
        return Word.FASTER
    return Word.EQUIVALENT if least <= low and high <= most else Word.UNDECIDED


def _others(study: Study, profile: Profile) -> tuple[str, ...]:
    """Return the user's programs that the study starts, where the profile names none of them."""
    argvs: list[Sequence[str]] = [arm.argv for arm in study.arms if arm.argv]
    argvs += [one.parameters["argv"] for one in study.benchmarks if one.parameters.get("argv")]
    programs = dict.fromkeys(Path(str(argv[0])).name for argv in argvs)
    words = {Path(word).name for word in profile.command.split()}
    return () if words & programs.keys() else tuple(programs)
