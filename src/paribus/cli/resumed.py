"""Studies that somebody else may have begun: resumed, or unpacked and measured again, if trusted.

A plan has commands of its author. One that this user did not begin is refused until --trust names
the hash of the plan; a terminal shows what it would execute.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from paribus.border import Place, exists, under
from paribus.core import Arm, Study, StudyError
from paribus.launch.foreign import ForeignError, check_trusted, executed
from paribus.plan import Plan, read_plan
from paribus.plan.begun import note
from paribus.studyfile.hosts import hosts_of


def plan_to_resume(study: Path, out: Path | None, trusted: str) -> Plan:
    """Return the plan frozen in `out`, or in the last directory of the study file `study`.

    Raises ForeignError for one that this user did not begin and whose hash does not begin with
    `trusted`.
    """
    directory = out or _last(study.stem)
    plan = read_plan(directory)
    _check(plan, study, directory, trusted)
    return plan


def bundled(file: Path, hosts: Mapping[str, str], trusted: str) -> Study:
    """Return the study that `paribus pack` put into `file`, to be measured again on this machine.

    Its plan is kept, the seed too, but not its hosts: `hosts` names them by arm. Raises StoreError
    for what is no such file, ForeignError as `plan_to_resume`, and StudyError for an arm without
    hosts and for a benchmark whose Python file is not packed.
    """
    from paribus.store.pack import unpack

    with tempfile.TemporaryDirectory(prefix="paribus-run-") as folder:
        unpack(file, Path(folder, "study"))
        plan = read_plan(Path(folder, "study"))
    path = file.absolute()
    _check(plan, path, file, trusted)
    note(replace(plan, study=replace(plan.study, path=str(path))))
    if unpacked := [one for one in plan.study.benchmarks if one.file is not None]:
        raise StudyError(
            f"the benchmark {unpacked[0].label} is a Python file, which is not packed",
            place=str(file),
            fix="ask its author for the study file and what lies beside it",
        )
    top = Place(str(file), "", {"arms": {one.name: {} for one in plan.study.arms}})
    for name in hosts.keys() - top.table["arms"].keys():
        fix = f"the arms are {', '.join(top.table['arms'])}"
        top.refuse("arms", None, f"--hosts names an arm {name!r} that is not there", fix)
    arms = tuple(_placed(one, hosts.get(one.name, ""), top) for one in plan.study.arms)
    return replace(plan.study, arms=arms, path=str(path), hosts=hosts)


def _placed(arm: Arm, hosts: str, top: Place) -> Arm:
    """Return an arm on the hosts named for it, in place of those of its author."""
    if not hosts and not (arm.hosts and arm.hosts.addresses and not arm.hosts.scheduler):
        return arm
    place = top.within(f"arms.{arm.name}", {"hosts": hosts or "?"})
    found = hosts_of(place, Path())
    if found is None or arm.hosts is None:
        place.refuse("hosts", hosts, "this arm is measured without hosts", "leave it out")
    return replace(
        arm,
        hosts=replace(
            arm.hosts,
            **{key: getattr(found, key) for key in ("addresses", "pocket", "ssh", "link")},
            hypervisors=(),
            scheduler=None,
            launcher="",
        ),
    )


def _check(plan: Plan, file: Path, place: Path, trusted: str) -> None:
    """Raise ForeignError for a plan that is not trusted; a terminal shows what it would execute."""
    try:
        check_trusted(plan, file, place, trusted)
    except ForeignError:
        if under(sys.stderr).isatty():
            print(f"paribus: to run {place} executes:", file=sys.stderr)
            for at, text in executed(plan.study):
                print(f"  {at}: {text}", file=sys.stderr)
        raise


def _last(name: str) -> Path:
    last = Path(f"{name}.study")
    for number in count(2):
        following = Path(f"{name}-{number}.study")
        if not exists(following):
            break
        last = following
    return last
