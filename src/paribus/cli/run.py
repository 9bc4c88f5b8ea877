"""`paribus run STUDY`: plan, launch, judge, report.

`run` checks what can be checked before anything starts, `_in_allocations` runs the study in one
allocation after the other, and `_execute` is one of these: built, planned, launched, shown.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.audit.accepted import add_accepted, parse_accepted, read_accepted
from paribus.cli.directory import claimed, clear
from paribus.cli.exports import add_accept, add_exports, finish
from paribus.cli.hosts import (
    add_host_keys,
    add_hosts,
    hosts_by_arm,
    reached,
    seconds,
    warn_unshared,
)
from paribus.cli.shipped import add_beside, with_published
from paribus.core import (
    AllocationError,
    Finding,
    Judgement,
    Progress,
    ShareError,
    Study,
    UserError,
    typed,
)
from paribus.designs import design_of
from paribus.judge.conclude import conclude
from paribus.launch.execute import execute
from paribus.launch.memory import fitted
from paribus.launch.ready import built, digests, make_switched_ready
from paribus.launch.space import check_limits
from paribus.launch.station import ANSWER_S, DETACHED, Station
from paribus.launch.unswitched import switches_of
from paribus.plan import frozen as plans
from paribus.plan.begun import note
from paribus.store import Board, Count, Doing, Effect, Standing, Store, read_count, write_standing
from paribus.studyfile.load import load_study
from paribus.words.values import reason_of

if TYPE_CHECKING:
    from paribus.launch.arms import Ready
    from paribus.launch.execute import Check
    from paribus.lenses.published.reading import Publication
    from paribus.logs.change import Measured

BUNDLE = ".zip"
"""The ending of files that `paribus pack` wrote."""

EXAMPLE = """\
example:
  paribus run container-network --out network-study
  paribus run container-network --out network-study --resume     # after an interruption
  paribus run network-study.zip                                   # a colleague's, again here
  paribus run container-network --out today --against network-study   # what changed since then
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run a study: plan, launch, judge, report."
    study = parser.add_argument(
        "study",
        metavar="STUDY",
        help="a study file, the name of one that ships, or what `paribus pack` wrote",
    )
    study.completer = _studies  # type: ignore[attr-defined]  # argcomplete looks for it
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="study directory (named after the study)"
    )
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue the study in DIR")
    again.add_argument("--replace", action="store_true", help="overwrite the study in DIR")
    _add_trust(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show the plan, and estimate its duration from a few pilot launches (not kept)",
    )
    parser.add_argument("--no-pilot", action="store_true", help="with --dry-run: launch nothing")
    parser.add_argument(
        "--monitor",
        action="store_true",
        help="continue until stopped, with an interval that is valid at any time",
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        type=seconds,
        help='monitor, a round at this interval, such as "10 min"',
    )
    parser.add_argument(
        "--detach",
        action="store_true",
        help="let the study go on as a job of its scheduler, which submits those of its arms",
    )
    parser.add_argument(
        "--detach-option",
        metavar="OPTION",
        action="append",
        default=[],
        help="with --detach: an option of sbatch for that job, written with = (repeatable)",
    )
    add_accept(parser)
    add_hosts(parser)
    add_host_keys(parser)
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="measure although the arms differ in more than the factor (no verdict)",
    )
    _add_earlier(parser)
    add_beside(parser)
    add_exports(parser)
    parser.set_defaults(execute=run, designed=_monitored)


def _add_trust(parser: argparse.ArgumentParser) -> None:
    """Declare --trust."""
    parser.add_argument(
        "--trust",
        metavar="PLAN",
        default="",
        help="with --resume or FILE.zip: run the commands of a study that somebody else began;"
        " PLAN is how the hash of its plan begins, which the refusal says",
    )


def _add_earlier(parser: argparse.ArgumentParser) -> None:
    """Declare options that name earlier measurements: --against, --calibration, --screen."""
    parser.add_argument(
        "--against",
        metavar="DIR",
        type=Path,
        help="judge the arm against that of the study in DIR, each by the reference of its day",
    )
    parser.add_argument(
        "--alone",
        metavar="ARM",
        default="",
        help="with --against, a folder of studies: measure this arm alone, without a verdict",
    )
    parser.add_argument(
        "--calibration",
        metavar="DIR",
        type=Path,
        help="say beforehand what cannot be shown, by what `paribus calibrate` found in DIR",
    )
    parser.add_argument(
        "--screen",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="a screen of nodes (paribus screen), such as one of each partition (repeatable): a"
        " node that is slow in one arm alone withholds",
    )


def run(arguments: argparse.Namespace, *, keep: bool = True) -> int:
    """Return the exit code of `paribus run`, or of a verb with its options (`calibrate`, ...).

    `keep`: keep the directory of a plan without a launch after an error, too.
    """
    from paribus.cli import shipped

    check_limits()
    accepted = parse_accepted(arguments.accept)
    path = shipped.find_study(arguments.study)
    _check_options(arguments, path)
    publications = shipped.read_published(arguments.beside)
    frozen = None
    if arguments.resume:  # to load a study executes its benchmark files
        from paribus.cli.resumed import plan_to_resume

        frozen = plan_to_resume(path, arguments.out, arguments.trust)
    hosts = hosts_by_arm(arguments.hosts)
    if path.suffix == BUNDLE:
        from paribus.cli.resumed import bundled

        study = bundled(path, hosts, arguments.trust)
    else:
        study = load_study(path, shipped.announce, hosts)
    study = _alone(arguments, arguments.designed(arguments, study))
    if arguments.screen:
        study = _screened(study, arguments.screen)
    if frozen is None:
        study = plans.seeded(study)
    else:  # before anything of it is run
        plans.check_same(frozen, frozen.design.settled(study), frozen.software)
        study = replace(frozen.design.settled(study), settings=frozen.study.settings)
    if arguments.calibration is not None:
        from paribus.lenses.calibration import limits

        for text in limits(study, arguments.calibration):
            print(f"paribus: calibration: {text}", file=sys.stderr)
    if arguments.against is not None:
        arguments.against = stored = _stored(arguments, study, accepted)
        latest = stored[-1] if isinstance(stored, Sequence) else stored
        study = plans.with_sizes(study, latest.plan.study)
    if any(arm.hosts for arm in study.arms):
        from paribus.launch.sharing import needed

        warn_unshared(needed(study, arguments.out or Path(f"{path.stem}.study")))
    if arguments.dry_run:
        return _dry_run(arguments, study, arguments.out or Path(f"{path.stem}.study"))
    # Nothing is written before, and nothing in a scheduler's queue is taken for a leftover.
    is_job = bool(os.environ.get(DETACHED))
    with claimed(
        path.stem,
        arguments.out,
        resume=arguments.resume,
        replace=arguments.replace,
        wait_s=ANSWER_S if is_job else 0.0,  # until the process that submitted this job lets it go
        keep=keep,
    ) as directory:
        if arguments.detach and not is_job:
            return _detach(arguments, study, directory)
        return run_in(directory, arguments, study, accepted, publications)


def _check_options(arguments: argparse.Namespace, path: Path) -> None:
    """Raise UserError for an option that would change nothing for the study at `path`."""
    if arguments.trust and not (arguments.resume or path.suffix == BUNDLE):
        fix = "leave it out: a study file that you name is trusted"
        raise UserError("applies to --resume and FILE.zip", place="--trust", fix=fix)
    if arguments.resume and arguments.dry_run:
        fix = "leave --resume out: what is resumed keeps its plan"
        raise UserError("a dry run shows a new plan", place="--dry-run --resume", fix=fix)


def _alone(arguments: argparse.Namespace, study: Study) -> Study:
    """Return `study`, with --alone reduced to that arm."""
    if not arguments.alone:
        return study
    from paribus.designs.calibrate import alone

    if arguments.fail_on:
        fix = "leave it out: an arm alone has no verdict"
        raise UserError("is about a verdict", place="--fail-on", fix=fix)
    return alone(study, arguments.alone)


def _stored(
    arguments: argparse.Namespace, study: Study, accepted: Mapping[str, str]
) -> Measured | Sequence[Measured]:
    """Return the stored study that --against names, or with --alone the studies in that folder.

    Raises UserError where `study` cannot be judged against them.
    """
    from paribus.logs import against, alone, changes_verb

    before = read_accepted(arguments.out) if arguments.resume and arguments.out else {}
    known = {**before, **accepted}
    if arguments.alone:
        return alone.days_of(arguments.against, study, known)
    changes_verb.check_rules(arguments.fail_on)
    return against.stored(arguments.against, study, known)


def _check(arguments: argparse.Namespace) -> Check | None:
    """Return the check of the first facts against those of --against, None without it."""
    if arguments.against is None:
        return None
    from paribus.logs import against

    alone, known = bool(arguments.alone), arguments.against
    return against.check(known[-1] if alone else known, alone=alone)


def _dry_run(arguments: argparse.Namespace, study: Study, out: Path) -> int:
    """Show the plan of a study that would be run in `out`, and return the exit code."""
    from paribus.cli import dry_run

    if arguments.json:
        raise UserError("a plan has no verdict", place="--dry-run --json", fix="leave --json out")
    script = ""
    if arguments.detach:
        from paribus.schedulers import detached

        detached.check(study)
        script = detached.script(out, _as_a_job(arguments, out), arguments.detach_option)
    return dry_run.show(
        plans.freeze(study, plans.software()),
        notify=_announce,
        launch=not arguments.no_pilot,
        anyway=arguments.anyway,
        accepted=parse_accepted(arguments.accept),
        accept_keys=arguments.accept_host_keys,
        detached=script,
    )


def _screened(study: Study, directories: Sequence[Path]) -> Study:
    """Return `study` with the answers of screens on its nodes, which stderr shows too."""
    from paribus.screen.before import with_screens

    study, reported = with_screens(study, directories, time.time())
    for text in reported:
        print(f"paribus: {text}", file=sys.stderr)
    return study


def _monitored(arguments: argparse.Namespace, study: Study) -> Study:
    """Return `study` with the design that the options ask for."""
    if arguments.monitor or arguments.every is not None:
        from paribus.designs.monitored import monitored

        return monitored(study, arguments.every)
    return study


def run_in(
    directory: Path,
    arguments: argparse.Namespace,
    study: Study,
    accepted: Mapping[str, str],
    publications: Sequence[Publication],
) -> int:
    """Return the exit code of a study, run in a `directory` whose lock is held.

    `accepted`: reasons for differences by fact, as --accept gives them.
    """
    with Board(directory) as board:
        board.code = _in_allocations(arguments, study, directory, board, accepted, publications)
    return board.code


def _as_a_job(arguments: argparse.Namespace, directory: Path) -> list[str]:
    """Return this command line for a job, with --out, without what is of a dry run."""
    words = [one for one in sys.argv[1:] if one not in ("--dry-run", "--no-pilot")]
    named = [] if arguments.out else ["--out", str(directory)]
    return [sys.executable, "-m", "paribus", *words, *named]


def _detach(arguments: argparse.Namespace, study: Study, directory: Path) -> int:
    """Submit this command line as a job, print how to watch it, and return the exit code."""
    from paribus.schedulers import detached

    detached.check(study)
    warn_unshared([directory, Path(study.path), Path(sys.executable)], "the job's node")
    ident = detached.submit(directory, _as_a_job(arguments, directory), arguments.detach_option)
    waiting = f"in the queue as job {ident}"
    write_standing(directory, Standing(waiting, job=ident))
    print(f"{waiting}; to watch it: {typed(('paribus', 'watch', directory))}")
    return 0


def _in_allocations(
    arguments: argparse.Namespace,
    study: Study,
    directory: Path,
    board: Board,
    accepted: Mapping[str, str],
    publications: Sequence[Publication],
) -> int:
    """Return the exit code of a study, run in as many allocations as it takes."""
    if design_of(study).builds:  # builds are made before the plan is, and follow from its seed
        frozen = plans.read_plan(directory).study.settings.seed if arguments.resume else None
        study = plans.seeded(study, frozen)
    staged = design_of(study).staged()
    while True:
        stored = read_count(directory).launches
        try:
            with reached(
                staged,
                accept_keys=arguments.accept_host_keys,
                directory=directory,
                say=board.wait,
            ) as opened:
                return _execute(
                    arguments, study, staged, directory, opened, board, accepted, publications
                )
        except AllocationError as error:
            # In an allocation that is too short for a block, the next one would end the same way.
            least = 1 if isinstance(error, ShareError) else len(staged.arms) * len(study.benchmarks)
            if read_count(directory).launches < stored + least:
                raise
            _announce(f"the next allocation: {error.cause}")
            arguments.resume = True


def _execute(
    arguments: argparse.Namespace,
    study: Study,
    staged: Study,
    directory: Path,
    opened: Mapping[str, Station],
    board: Board,
    accepted: Mapping[str, str],
    publications: Sequence[Publication],
) -> int:
    """Return the exit code of a study; `staged` has its stages as arms, `opened` their stations."""
    from paribus.cli import outputs
    from paribus.report.progress import plain_line

    place = directory.with_name(f"{directory.name}.build")
    with (
        built(staged, place, _announce, again=arguments.resume) as whole,
        switches_of(staged, stations=opened) as switches,
    ):
        ready = make_switched_ready(whole, _announce, opened, switches)
        software = plans.software() | digests(whole)
    if not arguments.resume:
        clear(directory, replace=arguments.replace)
    plan = _plan(study, ready, directory, software, resume=arguments.resume)
    add_accepted(directory, accepted)
    try:
        with Store(directory, write=True, held=True) as store:
            store.bind_plan(plan.sha256)
            with outputs.display(quiet=arguments.json) as display:

                def show(progress: Progress) -> None:
                    effects = [effect_of(one) for one in progress.headlines]
                    most = progress.launches_most if plan.design.has_end else 0
                    text = plain_line(progress)
                    board.say(text, effects, most, progress.failures, doing_of(progress))
                    display.update(progress)

                check = _check(arguments)
                evidence = execute(
                    plan, store, opened, ready, show, anyway=arguments.anyway, check=check
                )
            judgement = with_published(conclude(plan, store, evidence), publications)
            store.check_in_place()
            code = _show(arguments, judgement, directory)
            store.check_in_place()
    except KeyboardInterrupt:
        _check_kept(directory)
        if not plan.design.has_end:
            with Store(directory) as store:
                _show(arguments, with_published(conclude(plan, store), publications), directory)
        again = ["paribus", "run", arguments.study, "--out", directory, "--resume"]
        again += [word for hosts in arguments.hosts for word in ("--hosts", hosts)]
        print(
            f"\nInterrupted. Every finished launch is stored. To continue:\n  {typed(again)}",
            file=sys.stderr,
        )
        raise
    if arguments.against is None:
        return finish(arguments, judgement, directory, code)
    return _change(arguments, judgement, directory, code)


def _change(arguments: argparse.Namespace, judgement: Judgement, directory: Path, code: int) -> int:
    """Show what changed from the study of --against, and return the exit code.

    It is that of the change, to which the rules of --fail-on apply; if that is 0, the study's.
    """
    from paribus.logs import changes_verb

    rules, arguments.fail_on = arguments.fail_on, []
    own, then = finish(arguments, judgement, directory, code), arguments.against
    if not arguments.json:
        print()
    if arguments.alone:
        changes_verb.alone(then, directory, as_json=arguments.json)
        return own
    return changes_verb.against(then, directory, rules, as_json=arguments.json) or own


def _show(arguments: argparse.Namespace, judgement: Judgement, directory: Path) -> int:
    """Print the judgement, write its files, and return its exit code."""
    from paribus.cli import outputs

    def write() -> None:
        outputs.write_files(judgement, directory)

    if arguments.json and arguments.against:  # what is printed is the change
        write()
        return outputs.exit_code(judgement)
    return outputs.print_and_write(judgement, write, **outputs.form(arguments))


def doing_of(progress: Progress) -> Doing | None:
    """Return the launch that begins, for the file that `paribus watch` reads; None without one."""
    one = progress.launch
    if one is None:
        return None
    return Doing(
        one.number,
        one.block,
        one.benchmark,
        one.arm,
        time.time(),
        progress.blocks_done,
        progress.look,
        progress.look_s,
        progress.elapsed_s,
        progress.left_s,
    )


def effect_of(finding: Finding) -> Effect:
    """Return a headline for the file that `paribus watch` reads."""
    known, verdict = finding.comparison, finding.verdict
    effect = Effect(
        finding.benchmark,
        finding.arm,
        verdict.word.value,
        reason_of(verdict),
        better=finding.metric.better,
    )
    if known is None or not verdict.size_known:
        return effect
    high = known.high if math.isfinite(known.high) else None
    return replace(effect, ratio=known.ratio, low=known.low, high=high)


def _check_kept(directory: Path) -> None:
    """Raise StoreError unless the launches that were stored are there and can be read."""
    plans.read_plan(directory)
    if read_count(directory) == Count():
        return
    with Store(directory) as store:
        store.counting()


def _studies(prefix: str, **_: object) -> list[str]:
    """Return the completions of STUDY: names of studies that ship, and study files here."""
    from paribus.studyfile.shipping import shipped_studies

    files = [str(path) for path in Path().glob(f"{prefix}*.toml")]
    return [name for name in shipped_studies() if name.startswith(prefix)] + files


def _plan(
    study: Study,
    ready: Mapping[str, Ready],
    directory: Path,
    software: Mapping[str, str],
    *,
    resume: bool,
) -> plans.Plan:
    """Return the plan to run: the one frozen in `directory`, or a new one frozen there."""
    if resume:
        frozen = plans.read_plan(directory)
        plans.check_same(frozen, frozen.design.settled(study), software)
        return frozen
    frozen = plans.freeze(fitted(study, ready, _announce), software)
    note(frozen)
    plans.write_plan(frozen, directory)
    return frozen


def _announce(text: str) -> None:
    print(f"preparing {text}", file=sys.stderr)
