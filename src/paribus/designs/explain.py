"""Which of the changes between two arms makes the difference: combinations of them in each block.

A station is a combination: the reference with some changes of the arm. It is an int whose bit n is
set if change n is switched: 0 is the reference, and with all bits set it is the arm. A block holds
both arms and the stations between that stats/parts.py draws, each launched once, in random order.
The whole has the exact intervals of the standard design, and so have the parts of up to three
changes: the effect of a change that does nothing has a random sign, whatever the others do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

from paribus.core import (
    Arm,
    Comparison,
    Metric,
    Reason,
    Study,
    StudyError,
    Verdict,
    Word,
    count,
    grouped,
)
from paribus.core.changes import (
    MOST,
    WHERE,
    Part,
    changes,
    combined,
    confidence_of,
    divisible,
    implied_needs,
    of_variable,
    parts_of,
    plain_name,
    within_of,
)
from paribus.designs.standard import Design, Said, Series
from paribus.stats import parts as stats
from paribus.stats.estimate import compare
from paribus.stats.looks import LOOKS, Looks
from paribus.stats.opposites import Opposed, Unit
from paribus.stats.schedule import Place, Randomiser
from paribus.stats.verdict import blocks_needed, judge
from paribus.words.designs.explain import ExplainWords

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence

LONGEST = 80
"""The most characters of a station's name, which files have: beyond, changes have numbers."""

_NAME = re.compile(r"[A-Za-z0-9 ._-]+")
"""A name that files may have."""


@dataclass(frozen=True, slots=True)
class Logs:
    """Log ratios by block: of each part, and the interaction of each pair of parts."""

    parts: Sequence[Mapping[int, float]]
    pairs: Mapping[tuple[int, int], Mapping[int, float]]

    def compared(self, blocks: Sequence[int], level: float) -> list[Comparison | None]:
        """Return the comparison of each part over these blocks; None if no block has it."""
        rows = [[one[block] for block in blocks if block in one] for one in self.parts]
        return [stats.compare(row, level, len(rows)) if row else None for row in rows]

    def acting(self, blocks: Sequence[int], level: float) -> dict[tuple[int, int], Comparison]:
        """Return the interactions: how much more one change does where another is switched."""
        rows = {pair: [one[n] for n in blocks if n in one] for pair, one in self.pairs.items()}
        return {pair: compare(row, level) for pair, row in rows.items() if row}


def needed_by_part(logs: Logs | Opposed, margin: float, level: float) -> list[int | None]:
    """Return about how many blocks a verdict on each part needs, None from fewer than four."""
    return [blocks_needed(list(one.values()), margin, level, fewest=LOOKS[1]) for one in logs.parts]


class Explain(ExplainWords, Design):
    """Blocks of both arms and of combinations of their changes; each change has its part."""

    def settled(self, study: Study) -> Study:
        """Return `study` with its parts; raises StudyError if its arms have none to explain."""
        if design := _other_design(study):
            raise StudyError(
                "explains launches with an end, one size and no sessions or duets",
                place=study.path,
                fix=f"remove {design}, or do not explain it",
            )
        if parts_of(study):
            return study
        names = [arm.name for arm in self.study.arms]
        arms = tuple(arm for arm in study.arms if arm.name in names)
        if len(arms) != 2:
            raise StudyError(
                f"has {count(len(arms), 'arm')} to explain, not two",
                place=study.path,
                fix="name two: paribus explain STUDY --reference ARM --arm ARM",
            )
        study = replace(study, arms=arms)
        for name in (within := within_of(self.study)):
            study = _within(study, name)
        if within:
            study = replace(study, asked={**study.asked, "within": list(within)})
        found = _resolved(study)
        asked = {**study.asked, "parts": [_as_json(part) for part in found]}
        variables = (key for part in found for key in part.keys if key.startswith("env."))
        explains = tuple(dict.fromkeys((*study.explains, *variables)))
        settings = replace(study.settings, design="explain")
        return replace(study, asked=asked, explains=explains, settings=settings)

    def stages(self) -> tuple[Arm, ...]:
        """Return both arms and every station of the plan; without a seed only the arms.

        Raises ValueError for more blocks than any plan has.
        """
        reference, arm = self.study.arms
        seed = self.settings.seed
        if seed is None:
            return reference, arm
        if self.settings.blocks > self.most_blocks:
            raise ValueError(f"more blocks than {self.most_blocks}")
        names = self._names
        used = {
            one
            for selection in self.study.benchmarks
            for block in range(self.settings.blocks + 1)
            for one in self._stations(selection.label, block)
        }
        between = sorted(used - {0, len(names) - 1}, key=lambda one: (one.bit_count(), one))
        return (
            reference,
            arm,
            *(combined(reference, arm, self._keys(one), names[one]) for one in between),
        )

    def holds(self, label: str, block: int) -> tuple[str, ...]:
        return tuple(self._names[one] for one in self._stations(label, block))

    def places(
        self, stages: Sequence[str], labels: Sequence[str], seed: int, even: int
    ) -> Iterator[Place]:
        """Yield block after block, each benchmark once in random order, its stations shuffled."""
        for block in range(self.settings.blocks + 1):
            for label in Randomiser(seed, f"benchmarks of round {block}").shuffled(labels):
                draw = Randomiser(seed, f"stations of {label} in block {block}")
                for group in draw.shuffled(self._groups(label, block)):
                    for one in draw.shuffled(group):
                        yield block, label, self._names[one], 0

    def looks(self) -> Looks:
        """Return the looks, at which all parts share the error.

        Raises ValueError for fewer blocks than an exact verdict on each part needs.
        """
        confidence = confidence_of(self.study, self.parts)
        return stats.looks(len(self.parts), self.settings.blocks, confidence)

    # --- the verdict ---

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Logs | Opposed | None:
        """Return the log ratios of the parts; None for several benchmarks together (a layer).

        The blocks of several benchmarks have different stations.
        """
        if len(of) != 1:
            return None
        ((label, metric),) = of
        cells = evidence.cells_of(label, metric.name)
        blocks = evidence.complete(label, arms)
        levels = {name: self.levels(evidence, label, name, metric) for name in self._names}
        if stats.opposed(self._needs):
            units = (
                Unit(block, pair[0], *(levels[self._names[n]].get(block, math.nan) for n in pair))
                for block in (blocks if cells else ())
                for pair in self._groups(label, block)
            )
            return Opposed(len(self.parts), tuple(units))
        several: list[dict[int, float]] = [{} for _ in self.parts]
        pairs: dict[tuple[int, int], dict[int, float]] = {}
        for block in blocks if cells else ():
            order = stats.order(self._needs, self.settings.seed or 0, label, block)
            stations = self._stations(label, block)
            logs = {one: levels[self._names[one]].get(block, math.nan) for one in stations}
            for n, part in enumerate(stats.parts(logs, order, self._needs)):
                several[n] |= {} if math.isnan(part) else {block: part}
            for pair, more in stats.interplay(logs, order, self._needs).items():
                pairs.setdefault(pair, {}).update({} if math.isnan(more) else {block: more})
        return Logs(tuple(several), pairs)

    def look(self, series: Series, looks: Sequence[int], *, last: bool) -> Said:
        """Return verdict and comparison of the whole; final only if every part is decided too."""
        verdict, comparison = super().look(series, looks, last=last)
        if not verdict.final or last or series.logs is None:
            return verdict, comparison
        blocks = series.blocks[: looks[-1]]
        undecided = sum(
            found is None
            or not judge(found, better=series.better, margin=series.margin, last=False).final
            for found in series.logs.compared(blocks, series.level)
        )
        if not undecided:
            return verdict, comparison
        figures = {**verdict.figures, "open": undecided, "parts": len(self.parts)}
        code = Reason.PARTS_UNDECIDED
        return Verdict(Word.UNDECIDED, code, final=False, figures=figures), comparison

    def needed(self, series: Series, blocks: int) -> int | None:
        """Return about how many blocks verdicts on the whole and on every part need."""
        first = super().needed(series, blocks)
        if first is None or series.logs is None:
            return first
        each = needed_by_part(series.logs, series.margin, series.level)
        return max([first, *(one for one in each if one is not None)])

    # --- stations ---

    def switched(self, name: str) -> tuple[str, ...]:
        """Return the names of the parts that are switched in launches of this name."""
        return tuple(p.name for n, p in enumerate(self.parts) if self._names.index(name) >> n & 1)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the study: from its plan, else by the changes between its arms."""
        return parts_of(self.study) or _resolved(self.study)

    @cached_property
    def _needs(self) -> stats.Needs:
        return tuple(part.needs for part in self.parts)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        reference, arm = (one.name for one in self.study.arms)
        return _station_names(reference, arm, tuple(part.name for part in self.parts))

    def _keys(self, station: int) -> tuple[str, ...]:
        """Return the keys that are switched at a station, in an order for `combined`."""
        switched = (part for n, part in enumerate(self.parts) if station >> n & 1)
        keys = (key for part in switched for key in part.keys)
        # A container, or hosts, come before their own fields.
        return tuple(sorted(keys, key=lambda key: "." in key))

    def _groups(self, label: str, block: int) -> tuple[tuple[int, ...], ...]:
        return stats.groups(self._needs, self.settings.seed or 0, label, block)

    def _stations(self, label: str, block: int) -> tuple[int, ...]:
        return tuple(sorted(one for group in self._groups(label, block) for one in group))


def explained(
    study: Study, reference: str = "", arm: str = "", within: Sequence[str] = ()
) -> Study:
    """Return `study` as one that explains `arm` against `reference`, by default its only two.

    `within` names a group of changes: then each of these is explained, and all others are as in the
    reference. Of several names, each is a group within the one before it.
    Raises StudyError for an arm that the study does not have, and as Explain.settled does.
    """
    named = {one.name: one for one in study.arms}
    wanted: tuple[str, ...] = (reference or study.arms[0].name, arm or study.arms[-1].name)
    for name in wanted:
        if name not in named:
            raise StudyError(
                f"has no arm {name!r}", place=study.path, fix=f"arms: {', '.join(named)}"
            )
    if not (reference or arm) and len(named) > 2:
        wanted = tuple(named)
    settings = replace(study.settings, design="explain")
    chosen = tuple(named[name] for name in dict.fromkeys(wanted))
    asked = {**study.asked, **({"within": list(within)} if within else {})}
    one = replace(study, arms=chosen, settings=settings, asked=asked)
    return Explain(one).settled(one)


@lru_cache(maxsize=64)
def _station_names(reference: str, arm: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all stations in their order: "a", "a+mpi", "a+X", ..., "b"."""
    mark = "." if arm.startswith(f"{reference}+") else "+"  # a station must not be called `arm`
    fits = len(mark.join((reference, *names))) <= LONGEST and all(map(_NAME.fullmatch, names))
    short = names if fits else tuple(str(n + 1) for n in range(len(names)))
    found = [
        mark.join((reference, *(name for n, name in enumerate(short) if one >> n & 1)))
        for one in range(1 << len(names))
    ]
    return (reference, *found[1:-1], arm)


def _other_design(study: Study) -> str:
    """Return the setting of a study that excludes explaining it, "" if there is none."""
    settings = study.settings
    set_here = {
        'unit = "session"': settings.unit == "session",
        "builds": settings.unit == "build",
        'layout = "duet"': settings.layout == "duet",
        "monitor": settings.monitor,
        "allocations": settings.allocations > 0,
        "[scaling]": study.scaling is not None,
        f'decides = "{settings.decides}"': settings.decides != "headline",
    }
    return next((name for name, is_set in set_here.items() if is_set), "")


def _as_json(part: Part) -> dict[str, Any]:
    return {"name": part.name, "keys": list(part.keys), "needs": list(part.needs)}


def _resolved(study: Study) -> tuple[Part, ...]:
    """Return the parts of a study: its changes, grouped, named and constrained by [parts].

    Raises StudyError if [parts] names what does not change, and for too few or too many parts.
    """
    reference, arm = study.arms
    keys, table = changes(reference, arm), study.asked.get("parts") or {}
    groups = [tuple(group) for group in table.get("together", ())]
    needs = {**implied_needs(reference, keys)}
    for key, others in table.get("needs", {}).items():
        needs[key] = (*needs.get(key, ()), *others)
    for key in (*(k for g in groups for k in g), *needs, *(k for s in needs.values() for k in s)):
        if key not in keys:
            raise _refused(
                study, f"{key} is no change between the arms", f"changes: {', '.join(keys)}"
            )
    groups += belonging(reference, arm, [k for k in keys if not any(k in g for g in groups)])
    groups += [(key,) for key in keys if not any(key in group for group in groups)]
    names = table.get("names", {})
    if len(groups) > MOST:
        groups = _merged(groups)
        names = {one[0]: f"{one[0][4:]} to {one[-1][4:]}" for one in _alike(groups)} | names
    groups.sort(key=lambda group: keys.index(group[0]))
    if not 2 <= len(groups) <= MOST:
        number = count(len(groups), "change")
        cause = f"{reference.name} and {arm.name} differ in {number} that can be switched"
        fix = 'group them: [parts] together = [["mpi", "env.LD_LIBRARY_PATH"]]'
        raise _refused(study, cause, fix if groups[MOST:] else "compare them: paribus run STUDY")
    at = {key: n for n, group in enumerate(groups) for key in group}
    found = []
    for n, group in enumerate(groups):
        wanted = {at[other] for key in group for other in needs.get(key, ())} - {n}
        found.append(Part(_name(group, names), group, tuple(sorted(wanted))))
    try:
        stats.order(tuple(part.needs for part in found), 0, "", 0)
    except ValueError as error:
        fix = "group those that need each other: [parts] together"
        raise _refused(study, f"{error}, so none comes first", fix) from error
    if twice := {part.name for part in found if [one.name for one in found].count(part.name) > 1}:
        raise _refused(study, f"two parts are called {min(twice)}", "name them: [parts] names")
    return tuple(found)


def _within(study: Study, name: str) -> Study:
    """Return `study` with arms that differ only in the changes of a group, each a part by itself.

    Raises StudyError if no group has this name.
    """
    groups = {part.name: part.keys for part in _resolved(study) if divisible(part)}
    if name not in groups:
        fix = f"groups: {', '.join(groups) or 'none'}"
        raise _refused(study, f"no group of changes is called {name!r}", fix)
    (reference, arm), keys = study.arms, groups[name]
    needs = (study.asked.get("parts") or {}).get("needs", {})
    table = {
        "together": [[key] for key in keys],
        "needs": {key: [one for one in needs.get(key, ()) if one in keys] for key in keys},
    }
    arms = (reference, combined(reference, arm, keys, arm.name))
    return replace(study, arms=arms, asked={**study.asked, "parts": table})


def _merged(groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return fewer groups, of which a second study can explain the one with an effect.

    All single variables are one group. If nothing else changes, they are grouped by the first word
    of their names (UCX_TLS, UCX_NET_DEVICES), or into three groups of neighbours.
    """
    single = [group for group in groups if len(group) == 1 and of_variable(group[0])]
    variables = [key for (key,) in single]
    if others := [group for group in groups if group not in single]:
        return [*others, *([tuple(variables)] if variables else [])]
    families = grouped((key.partition("_")[0], key) for key in variables)
    third = math.ceil(len(variables) / 3)
    thirds = [tuple(variables[at : at + third]) for at in range(0, len(variables), third)]
    return list(map(tuple, families.values())) if 2 <= len(families) <= MOST else thirds


def belonging(reference: Arm, arm: Arm, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the groups of changes that are switched as one: the hosts, and installations.

    An installation is a directory (`mpi`, CUDA_HOME) and each variable with a path below it, as an
    environment module sets them.
    """
    groups = {key: frozenset((key,)) for key in keys}
    pairs = [pair for pair in permutations(keys, 2) if set(pair) <= {*WHERE}]
    for side in (reference, arm):
        paths = {key: _paths(key, side) for key in keys}
        pairs += [
            (one, other)
            for one, other in permutations(keys, 2)
            for path in paths[other]
            if len(paths[one]) == 1 and f"{path}/".startswith(f"{paths[one][0]}/")
        ]
    for one, other in pairs:
        both = groups[one] | groups[other]
        groups |= dict.fromkeys(both, both)
    several = [group for group in dict.fromkeys(groups.values()) if len(group) > 1]
    return [tuple(key for key in keys if key in group) for group in several]


def _paths(key: str, arm: Arm) -> list[str]:
    """Return the directories in the value of a key, except those directly below the root."""
    value = arm.mpi if key == "mpi" else arm.env.get(of_variable(key))
    every = (one.rstrip("/") for one in (value or "").split(":"))
    return [one for one in every if one.startswith("/") and one.count("/") > 1]


def _alike(groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the groups of variables that have the same plain name as another."""
    several = [group for group in groups if of_variable(group[0])]
    plain = [plain_name(group) for group in several]
    return [one for one, name in zip(several, plain, strict=True) if plain.count(name) > 1]


def _name(group: Sequence[str], names: Mapping[str, str]) -> str:
    """Return the name of a group: that which [parts] gives any of its keys, else a plain one."""
    return next((names[key] for key in group if key in names), plain_name(group))


def _refused(study: Study, cause: str, fix: str) -> StudyError:
    return StudyError(cause, place=f"{study.path}: [parts]", fix=fix)
