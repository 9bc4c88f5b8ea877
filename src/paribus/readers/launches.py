"""Phrases by which launchers, MPI libraries and resource managers say that a launch failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from paribus.readers.text import line_at, line_of, refuse, within

NEVER_STARTED = (
    "There are not enough slots available",
    "as it could not access",
    "was unable to launch the specified application",
    "unable to find the specified executable",
    "execvp error on file ",
    *("run: command not found", "mpiexec: command not found", "run: not found"),
    "mpirun has detected an attempt to run as root",
    "srun: error: Unable to ",
    "slurmstepd: error: execve(): ",
)
"""Phrases on a program that was not started, and so has printed nothing."""

_NOT_FOUND = re.compile(r"slurmstepd: error: execve\(\): ([^:\n]+): ")
MEASURES_NOTHING = frozenset(
    (
        *("xthi", "hello_jobstep", "gpus_for_tasks", "hostname", "uname", "uptime", "date", "env"),
        *("nvidia-smi", "rocm-smi", "amd-smi", "lscpu", "lspci", "lstopo", "lstopo-no-graphics"),
        *("nproc", "numastat", "free", "dmidecode", "cpupower", "sysctl", "df", "lsblk", "ldd"),
        *("ip", "ifconfig", "ethtool", "ibstat", "ibstatus", "ibv_devinfo", "ibv_devices"),
        *("ucx_info", "fi_info", "ompi_info", "scontrol", "sinfo", "squeue", "sacct", "qstat"),
        *("module", "ml", "conda", "mamba", "micromamba", "spack", "source", "pyenv", "git"),
        *("nvcc", "gcc", "which", "bc", "tput", "clear", "gnuplot"),
    )
)
"""Programs that jobs start before what they measure, to set up, or to show where they run.

Neither `numactl` nor `make` is one: they may start what is measured.
"""

FAILED = (
    *NEVER_STARTED,
    "The user-provided time limit for job execution",
    "are unable to reach each other",
    "Abort is in progress...hit ctrl-c",
    "noticed that process rank",
    "detected that one or more processes exited",
    "MPI_ABORT was invoked",
    "MPI_ERRORS_ARE_FATAL",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION",
    "application called MPI_Abort",
    "Fatal error in internal_",
    "Fatal error in PMPI_",
    "Caught signal ",
    "Segmentation fault",
    "DUE TO TIME LIMIT",
    "srun: error: ",
    "slurmstepd: error: ",
    "=>> PBS: job killed",
)
"""Phrases on a launch that failed."""

_SHELL = re.compile(
    r"(?:-?[bdkz]?a?sh|\S+: line \d+|\S+: \d+): "
    r"(?!/\S+\.sh:|/(?:sys|proc|dev|etc|usr/share)/)([^:\s]+): "  # not a file that is read or set
    r"(?:(?:command )?not found|No such file or directory|Permission denied|[Cc]annot execute.*)$"
    r"|([^:\s]+): error while loading shared libraries: "
    r"|(?:\S+: line \d+: +\d+ )?(?:Killed|Aborted|Bus error|Illegal instruction)"
    r"(?:$| +\(core dumped\)| {9}(?! *(?:vmstat|iostat|sar|nvidia-smi|sleep) |.* -s\b))"
)
BY_SHELL = (
    *("not found", "No such file", "Permission denied", "annot execute", "shared libraries: "),
    *("Killed", "Aborted", "Bus error", "Illegal instruction"),
)
"""What is in lines of a shell on a program that it did not find or that a signal ended, but for
servers and monitors, which a script ends so."""

_EXITED = re.compile(r"(?im)^(?:exit[ _](?:code|status)|return ?code|rc)\W{1,3}(\d{1,4})\W*$")

GOES_ON = ("gnoring", "going to /tmp instead", "get_joules")
"""What is in lines of Slurm that say "error" although the launch goes on: an option is ignored, a
folder or a counter of energy is missing."""


def failed(text: str) -> bool:
    """Return whether a text says somewhere that a launch failed."""
    return _first(text) >= 0


def says_failed(line: str, phrases: Sequence[str] = FAILED) -> bool:
    """Return whether a line says by one of the phrases, or as a shell, that a launch failed."""
    said = within(phrases, line) and not within(GOES_ON, line)
    return bool(said) or by_shell(line.strip()) is not None


def exit_code(text: str) -> int | None:
    """Return the code with which a launch ended, from the first line that says nothing else."""
    found = _EXITED.search(text)
    return int(found[1]) if found else None


def not_started(line: str) -> str:
    """Return the name of the program that Slurm or a shell could not start, "" in other lines."""
    found = _NOT_FOUND.search(line)
    return PurePath(found[1].strip() if found else by_shell(line) or "").name


def by_shell(line: str) -> str | None:
    """Return the program that a shell did not find, "" of one that a signal ended; else None."""
    found = _SHELL.match(line) if within(BY_SHELL, line) else None
    return found and (found[1] or found[2] or "")


def check_launch(text: str) -> None:
    """Raise ParseError where a launcher, an MPI library or a resource manager says it failed."""
    if (at := _first(text)) >= 0:
        refuse(f"the launch failed: {line_at(text, at).strip()[:160]!r}", line_of(text, at))


def _first(text: str) -> int:
    """Return where a text says that a launch failed, -1 if it does not."""
    for phrase in FAILED:
        at = text.find(phrase)
        while at >= 0:
            if says_failed(line_at(text, at)):
                return at
            at = text.find(phrase, at + 1)
    return -1
