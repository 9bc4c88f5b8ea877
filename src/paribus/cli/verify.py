"""`paribus verify FILE.zip|DIR`: do the stored outputs give the stored figures and verdicts?

Nothing of the study is executed. A benchmark that is a Python file is its author's code, so its
outputs are not read.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import is_directory, is_file, printable
from paribus.core import ParibusError, Selection

if TYPE_CHECKING:
    from paribus.plan import Plan
    from paribus.store import Store
    from paribus.store.rows import Stored

EXAMPLE = """\
examples:
  paribus verify network-study.zip    # of a colleague or a journal: hashes, outputs, verdicts
  paribus verify network-study        # a study directory: outputs and verdicts
"""

MOST_SHOWN = 10
"""Lines of one kind of difference; the rest is counted."""

NOT_PROVED = """\
not proved: who measured, where and when, and that these programs printed these
  outputs; whoever packs a file can write all of it"""


@dataclass(slots=True)
class Reread:
    """The result of reading the outputs of all launches again.

    `agree`: how many gave the stored samples; `differ`: a line for each that did not; `left`: how
    many were not read, by the reason.
    """

    agree: int = 0
    differ: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check a study that was packed: each file has its hash, the stored outputs give the stored"
        " figures, and these give the stored verdicts. Executes nothing of the study."
    )
    parser.add_argument(
        "path", metavar="FILE.zip|DIR", type=Path, help="what `paribus pack` wrote, or a study"
    )
    parser.set_defaults(execute=verify)


def verify(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus verify`; raises StoreError for what is no whole study."""
    from paribus.core import count
    from paribus.store import pack as packs

    path: Path = arguments.path
    if is_directory(path):
        return _verified(path, [f"{printable(str(path))}: a directory, which has no hashes"])
    with tempfile.TemporaryDirectory(prefix="paribus-verify-") as folder:
        directory = Path(folder) / "study"
        number = packs.unpack(path, directory)
        files = count(number, "file")
        return _verified(directory, [f"{printable(str(path))}: {files}, each has its hash"])


def _verified(directory: Path, lines: list[str]) -> int:
    """Print what a study directory proves, below `lines`, and return the exit code."""
    from paribus.judge.conclude import conclude
    from paribus.plan import read_plan
    from paribus.report.export import to_json
    from paribus.store import Store

    plan = read_plan(directory)
    with Store(directory) as store:
        store.check_plan(plan.sha256)
        found = reread(plan, store)
        now = to_json(conclude(plan, store))
    lines += _of_outputs(found)
    of_verdicts, wrong = _of_verdicts(_stored(directory), now)
    print("\n".join([*map(printable, [*lines, *of_verdicts]), NOT_PROVED]))
    return int(bool(found.differ) or wrong)


# --- outputs -------------------------------------------------------------------------------------


def reread(plan: Plan, store: Store) -> Reread:
    """Read the output of every stored launch again, and return how it compares."""
    selections = {one.label: one for one in plan.study.benchmarks}
    own = {arm.name for arm in plan.study.arms if "OMP_NUM_THREADS" in arm.env}
    found = Reread()
    for one in store.launches(void=True):
        why = _unread(one, selections.get(one.launch.benchmark))
        if not why:
            selection = selections[one.launch.benchmark]
            threads = selection.parameters.get("threads")
            chosen = threads == "all" or (threads is not None and one.launch.arm in own)
            why = _differs(one, selection, store.directory / "logs", found, chosen=chosen)
        if why:
            found.left[why] += 1
    return found


def _unread(one: Stored, selection: Selection | None) -> str:
    """Return why the output of a launch is not read again, "" where it is."""
    from paribus.border import LEFT_OUT
    from paribus.core import State

    if one.outcome.state is not State.OK:
        return "failed, and have no figures"
    if one.outcome.facts.get(LEFT_OUT):
        return "are not whole: the middle was left out when they were stored"
    if selection is None:
        return "are of no benchmark of the plan"
    if selection.file is not None:
        return "are of a benchmark that is a Python file, which is not executed"
    return ""


def _differs(one: Stored, selection: Selection, logs: Path, found: Reread, *, chosen: bool) -> str:
    """Note in `found` whether the output of a launch gives its samples; return why it cannot say.

    `chosen`: the arm chose the number of threads. That is not stored, so that an output which is
    refused then is not counted as different.
    """
    from paribus.benchmarks import benchmark_of
    from paribus.core import ParseError, Request
    from paribus.launch.launching import printed_in
    from paribus.store.store import log_name

    name = log_name(one.launch, one.attempt)
    benchmark = benchmark_of(selection)
    request = Request(selection.parameters, selection.ranks, one.outcome.wall_s)
    files = [logs / f"{name}{end}" for end in (".out", ".err")[: 1 + benchmark.stderr]]
    if missing := [file.name for file in files if not is_file(file)]:
        found.differ.append(f"logs/{missing[0]}: is missing")
        return ""
    try:
        samples = benchmark.parse(printed_in(files), request).samples
    except ParibusError as error:
        if isinstance(error, ParseError) and chosen:
            return "have a number of threads that is not stored"
        found.differ.append(f"logs/{name}.out: {error}")
    except ValueError as error:
        found.differ.append(f"logs/{name}.out: {error}")
    else:
        if _plain(samples) == _plain(one.outcome.samples):
            found.agree += 1
        else:
            found.differ.append(f"logs/{name}.out: gives other figures than those stored")
    return ""


def _plain(samples: Sequence[Any]) -> list[tuple[Any, ...]]:
    return sorted(
        (one.metric, repr(one.case), one.batch, tuple(map(float, one.values))) for one in samples
    )


def _of_outputs(found: Reread) -> Iterator[str]:
    from paribus.core import count

    yield f"outputs: {count(found.agree, 'launch')} read again, same figures as stored"
    for why, number in sorted(found.left.items()):
        yield f"  not read again: {count(number, 'launch')} that {why}"
    yield from _some(found.differ)


def _some(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first MOST_SHOWN lines of differences, and how many more there are."""
    yield from (f"  DIFFERS {line}" for line in lines[:MOST_SHOWN])
    if len(lines) > MOST_SHOWN:
        yield f"  and {len(lines) - MOST_SHOWN} more"


# --- verdicts ------------------------------------------------------------------------------------


def _stored(directory: Path) -> Mapping[str, Any] | None:
    """Return the verdict.json of a study, None where it has none; raises StoreError."""
    from paribus.border import read_json
    from paribus.core import StoreError
    from paribus.report.stored import MOST_BYTES, NAME

    file = directory / NAME
    if not is_file(file):
        return None
    try:
        stored = read_json(file, MOST_BYTES, "a verdict")
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot be read: {error}", place=NAME, fix="ask for it anew") from error
    if not isinstance(stored, dict):
        raise StoreError("is no verdict of Paribus", place=NAME, fix="ask for the file anew")
    return stored


def _of_verdicts(
    stored: Mapping[str, Any] | None, now: Mapping[str, Any]
) -> tuple[list[str], bool]:
    """Return lines on the stored verdicts against this version's, and whether they are wrong.

    They are where the same version, or an unknown one, gave other verdicts.
    """
    if stored is None:
        return ["verdicts: none is stored"], False
    versions = stored.get("versions")
    by = versions.get("reported by", "?") if isinstance(versions, dict) else "?"
    this = now["versions"]["reported by"]
    differ = list(differing(stored, now))
    if not differ:
        return [f"verdicts: version {this} gives the same ones, with the same figures"], False
    of = "this version" if by == this else f"version {by}; this is {this}"
    return [f"verdicts: stored by {of}", *_some(differ)], by in (this, "?")


def differing(stored: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each headline and case whose word or figures differ.

    Figures are compared to ten digits: reports print at most four.
    """
    for key in ("headlines", "cases", "layers", "endpoints", "pairs"):
        was, is_now = ({_name(one): one for one in _rows(of, key)} for of in (stored, now))
        for name in {**was, **is_now}:
            if name not in was or name not in is_now:
                yield f"{name}: only {'stored' if name in was else 'in this judgement'}"
            elif (old := _figures(was[name])) != (new := _figures(is_now[name])):
                yield f"{name}: {_shown(old)}; now {_shown(new)}"


def _rows(judgement: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = judgement.get(key)
    return [one for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []


def _name(row: Mapping[str, Any]) -> str:
    case, metric = row.get("case"), row.get("metric")
    parts = [row.get("benchmark"), row.get("arm")]
    parts += [one.get("name") for one in (metric, case) if isinstance(one, dict)]
    return " ".join(str(one) for one in parts if one)


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the word and the figures of a row, without sentences."""
    verdict, comparison = (row.get(key) or {} for key in ("verdict", "comparison"))
    if not (isinstance(verdict, dict) and isinstance(comparison, dict)):
        return {"word": "not readable"}
    found = {key: verdict.get(key) for key in ("word", "code", "final", "blocks_needed")}
    found |= {key: row.get(key) for key in ("margin", "reference_value", "arm_value")}
    return {key: _rounded(value) for key, value in {**found, **comparison}.items()}


def _shown(row: Mapping[str, Any]) -> str:
    """Return a row of `_figures` as "slower, 1.05 [1.04, 1.06]"."""
    figures = [f"{row[key]:.4g}" if row.get(key) else "?" for key in ("ratio", "low", "high")]
    return f"{row['word']}, {figures[0]} [{figures[1]}, {figures[2]}]"


def _rounded(value: Any) -> Any:
    return float(f"{value:.10g}") if isinstance(value, float) else value
