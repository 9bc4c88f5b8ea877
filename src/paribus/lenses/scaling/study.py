"""The table [scaling] of a study file: each benchmark at several numbers of hosts, or of ranks.

`hosts = [2, 4]` makes of the benchmark "cg" the selections "cg on 2 hosts" and "cg on 4 hosts".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from paribus.benchmarks import benchmark_of
from paribus.border import Place, fields
from paribus.core import (
    Asked,
    Keys,
    Request,
    Scaling,
    Selection,
    Study,
    StudyError,
    UserError,
    count,
    parse_share,
)
from paribus.designs import design_of

TABLE = ("hosts", "ranks", "kind", "bound")
OWN = "scaling"
"""The key of a benchmark with other sizes than those of the study, such as square numbers."""

MOST = 1_000_000
"""The largest size."""


def sizes_of(top: Place, folder: Path) -> Asked:
    """Return how the study scales, and the function that makes a benchmark several selections."""
    place = top.within("scaling", top.table["scaling"])
    place.only(TABLE)
    over = [key for key in ("hosts", "ranks") if key in place.table]
    if len(over) != 1:
        cause = "names hosts and ranks" if over else "names no sizes"
        place.refuse("", None, cause, "give one of them: hosts = [2, 4, 8], or ranks = [1, 2, 4]")
    scaling = Scaling(
        over="hosts" if over == ["hosts"] else "ranks",
        kind=place.read("kind", fields.one_of("strong", "weak"), "strong"),
        bound=place.read("bound", parse_share, 0.5),
    )
    sizes = place.need(over[0], ascending, "hosts = [2, 4, 8]")
    return Asked({"scaling": scaling}, partial(at_sizes, scaling.over, sizes))


def ascending(value: Any) -> tuple[int, ...]:
    """Return `value` as sizes: two or more whole numbers, each larger than the one before."""
    sizes = tuple(map(fields.whole(1, MOST), fields.items(value)))
    if len(sizes) < 2:
        raise ValueError("name two sizes or more: one alone is compared with nothing")
    if any(one >= other for one, other in pairwise(sizes)):
        raise ValueError("name the sizes in ascending order, each once")
    return sizes


def at_sizes(
    over: str, of_study: tuple[int, ...], place: Place, read: Callable[[Place], Selection]
) -> Iterator[Selection]:
    """Yield the selection of the benchmark at `place` for each of its sizes, else `of_study`.

    `read` reads one. Of a value that is a table by size, such as { 2 = 100, 4 = 200 }, each takes
    its own. Raises StudyError for a benchmark that cannot be started at one of the sizes.
    """
    if over == "ranks" and "ranks" in place.table:
        fix = "remove one of them"
        place.refuse("ranks", None, "[scaling] says how many ranks there are", fix)
    sizes = place.read(OWN, ascending, of_study)
    each = place.read("ranks", fields.whole(1, MOST), 1)
    noted = len(place.problems or ())
    for size in sizes:
        table = {
            key: _at(place, key, value, size, sizes)
            for key, value in place.table.items()
            if key != OWN
        }
        ranks = size * each if over == "hosts" else size
        one = place.within(place.path, {**table, "ranks": ranks})
        try:
            found = read(one)
            _check_starts(place, found)
        except UserError as error:
            raise StudyError(
                f"at {size} {over}: {error.cause}", place=error.place, fix=error.fix
            ) from error
        if len(place.problems or ()) > noted:  # the other sizes have the same problems
            return
        yield replace(
            found,
            label=f"{found.label} on {count(size, over[:-1])}",
            of=found.label,
            hosts=size if over == "hosts" else 0,
        )


def _at(place: Place, key: str, value: Any, size: int, sizes: Sequence[int]) -> Any:
    """Return the value of `key` at `size`: of a table whose keys are sizes the one for it."""
    if not (isinstance(value, Mapping) and value and all(one.isdecimal() for one in value)):
        return value
    if value.keys() != set(map(str, sizes)):
        fix = f"give one for each of {', '.join(map(str, sizes))}"
        place.refuse(key, None, "does not have a value for each size", fix)
    return value[str(size)]


def _check_starts(place: Place, found: Selection) -> None:
    """Refuse a program that is not started with MPI: it has one or two processes at any size."""
    benchmark = benchmark_of(found)
    if not benchmark.command(Request(found.parameters, found.ranks)).mpi:
        fix = "leave it to a study that does not scale"
        place.refuse("", None, f"{found.label} is not started with MPI, so it has no size", fix)


def check(top: Place, study: Study) -> None:
    """Refuse a plan, hosts or ranks per host that contradict the sizes."""
    settings = study.settings
    assert study.scaling is not None
    with top.noting():
        endless = not design_of(study).has_end
        if endless or settings.decides != "headline":
            key = "monitor" if endless else "decides"
            fix = "remove it, or [scaling]"
            top.refuse(f"plan.{key}", None, "a study that scales is decided by its headlines", fix)
    most = max((one.size for one in study.benchmarks), default=0)
    for arm in study.arms if study.scaling.over == "hosts" else ():
        with top.noting():
            if arm.hosts is None:
                fix = "give it hosts, or scale over ranks: [scaling] ranks = [1, 2, 4]"
                top.refuse(f"arms.{arm.name}", None, "has no hosts to scale over", fix)
            if (there := len(arm.hosts.names)) < most:
                fix = f"name {most} hosts or more, or smaller sizes"
                top.refuse(
                    f"arms.{arm.name}.hosts", None, f"{there} hosts, and sizes up to {most}", fix
                )
            if arm.ranks_per_host:
                cause = (
                    "`ranks` of each benchmark counts the ranks of a host in a study that scales"
                )
                top.refuse(f"arms.{arm.name}.ranks_per_host", None, cause, "remove it")


KEYS = Keys(study=sizes_of, check=check)
