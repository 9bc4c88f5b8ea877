"""`--detach`: a study that runs as a Slurm job of its own, which submits the jobs of its arms."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from paribus.border import find_program, search_path
from paribus.core import Study, UserError, typed
from paribus.launch.lease import key_for
from paribus.launch.local import capture
from paribus.launch.station import ANSWER_S, DETACHED
from paribus.schedulers.slurm import Slurm, study_script

_SLURM = Slurm()


def check(study: Study) -> None:
    """Raise UserError where `study` cannot run as a job: it asks for no Slurm, or it is missing."""
    asked = [arm.hosts.scheduler for arm in study.arms if arm.hosts and arm.hosts.scheduler]
    if not asked or asked[0].name != "slurm":
        has = (
            f"its scheduler is {asked[0].name}" if asked else "no arm of this study has a scheduler"
        )
        raise UserError(
            f"{has}: only Slurm runs a study as a job",
            place=f"{study.path}: --detach",
            fix="start it in the background: `nohup paribus run ... &`",
        )
    path = search_path(os.environ.get("PATH"))
    if missing := [one for one in _SLURM.PROGRAMS if find_program(one, path) is None]:
        raise UserError(
            f"Slurm is not here: no `{missing[0]}` on the PATH",
            place=f"{study.path}: --detach",
            fix="start Paribus where you submit jobs: a login node",
        )


def submit(directory: Path, argv: Sequence[str], options: Sequence[str]) -> str:
    """Submit the job that runs `argv` for the study in `directory`; return its number.

    Its output goes into DIRECTORY.log. Raises UserError while there is such a job, and for one that
    Slurm refuses.
    """
    name = _name(directory)
    listed = capture(_SLURM.queue(), timeout_s=ANSWER_S)
    jobs = _SLURM.read_queue(listed.stdout) if listed.exit_code == 0 else {}
    if here := [job for job in jobs.values() if job.name == name]:
        raise UserError(
            f"this study is job {here[0].ident} ({here[0]})",
            place=str(directory),
            fix=f"`{typed(('paribus', 'watch', directory))}` shows it, and"
            f" `scancel {here[0].ident}` ends it",
        )
    text = script(directory, argv, options)
    answer = capture(_SLURM.SUBMIT, timeout_s=ANSWER_S, stdin=text)
    ident = _SLURM.read_submitted(answer.stdout)
    if not ident:
        reason = " ".join((answer.stderr or answer.stdout).split())[:500]
        raise UserError(
            f"Slurm refused the job of the study: {reason}",
            place="--detach",
            fix="name where it may run: --detach-option=--partition=NAME; `sinfo` lists partitions",
        )
    return ident


def script(directory: Path, argv: Sequence[str], options: Sequence[str]) -> str:
    """Return the script of the job that runs `argv` for the study in `directory`."""
    log = directory.absolute().with_name(f"{directory.name}.log")
    return study_script(_name(directory), log, [*argv], DETACHED, options)


def _name(directory: Path) -> str:
    return f"paribus-{key_for(directory)}-study"


def is_gone(ident: str) -> bool:
    """Return whether Slurm no longer lists the job; False where it cannot be asked."""
    try:
        listed = capture(_SLURM.queue(), timeout_s=ANSWER_S)
        return listed.exit_code == 0 and ident not in _SLURM.read_queue(listed.stdout)
    except (OSError, ValueError):
        return False
