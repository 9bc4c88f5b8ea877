"""What launchers, MPI libraries and resource managers say of a launch that failed."""

from __future__ import annotations

from paribus.readers.text import line_at, line_of, refuse, within

NEVER_STARTED = (
    "There are not enough slots available",
    "as it could not access",
    "mpirun has detected an attempt to run as root",
    "srun: error: Unable to ",
)
"""What is said of a program that was not started: it has printed nothing."""

FAILED = (
    *NEVER_STARTED,
    "The user-provided time limit for job execution",
    "are unable to reach each other",
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
"""What launchers, MPI libraries and resource managers say of a launch that failed."""


def failed(text: str) -> bool:
    """Return whether a text says somewhere that a launch failed."""
    return bool(within(FAILED, text))


def check_launch(text: str) -> None:
    """Raise ParseError where a launcher, an MPI library or a resource manager says it failed."""
    if said := within(FAILED, text):
        at = text.find(said[0])
        refuse(f"the launch failed: {line_at(text, at).strip()[:160]!r}", line_of(text, at))
