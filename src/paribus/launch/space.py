"""What a launch needs of the measuring machine: disk space, inodes, file descriptors, file sizes.

If it lacks them, launches fail whatever their arm: such a failure says nothing about a platform.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
from collections.abc import Iterable

from paribus.core import MachineError, Room

FAULTS = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
    }
)
"""The errno values that are the machine's fault, not that of the program that meets them."""

LEAST_BYTES = 512 * 1024
"""Bytes that must be free before a launch: several times what a kernel prints."""

LEAST_INODES = 32
"""Inodes that must be free before a launch: more than its files, scripts and directories."""

SHORT_SHARED_MEMORY = 64 << 20
"""Bytes of shared memory that MPI libraries may ask for: with less, they may crash."""

LEAST_DESCRIPTORS = 256
"""The limit of open files that a launch needs: Open MPI's launcher asks for pipes and sockets."""

LEAST_CPU_S = 10
"""Seconds of CPU time that Paribus needs itself: loading and reporting take some."""

LEAST_ADDRESSES = 512 << 20
"""Bytes of address space that Paribus needs with the libraries that judge and draw: a report of a
small study was written with 320 MiB, and libraries that find less may end the process themselves.
"""

_SPACE = re.compile(r"No space left on device|Disk quota exceeded|not enough space for|ENOSPC")
_FILES = re.compile(r"Too many open files in system|ENFILE")
_FORK = re.compile(
    r"(?i:fork|clone|pthread_create).{0,80}Resource temporarily unavailable|\bCannot fork\b"
)
_TOO_LONG = re.compile(r"File size limit exceeded|File too large|EFBIG")
_MEMORY = re.compile(r"[Cc]annot allocate memory|bad_alloc|MemoryError|ENOMEM")
_SHARED = re.compile(r"^([^/]+:)?/dev/shm/")
_BUS = re.compile(r"\b[Bb]us error\b|\bSIGBUS\b")


def said_of(number: int, text: str) -> str:
    """Return `text`, the message of a system error, after what its errno `number` means."""
    meanings = {
        errno.EMFILE: "the limit of open files is reached (`ulimit -n`)",
        errno.ENFILE: "the system's table of open files is full (fs.file-max)",
        errno.EAGAIN: "no process can be started: a limit is reached (`ulimit -u`, pids.max)",
        errno.ENOMEM: "no memory is left",
        errno.EFBIG: "the limit on file size is reached (`ulimit -f`)",
        errno.ENOSPC: "no space or no inodes are left",
    }
    return f"{meanings[number]}: {text}" if number in meanings else text


def room_at(path: str | os.PathLike[str]) -> Room:
    """Return what is free on the file system of `path`; raises MachineError if that is unknown."""
    try:
        of = os.statvfs(path)
    except OSError as error:
        fix = "make it a directory that you can use"
        raise MachineError(f"cannot be used: {error.strerror}", place=str(path), fix=fix) from error
    inodes = of.f_favail if of.f_files else None
    return Room(str(path), of.f_bavail * of.f_frsize, inodes)


def check_room(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Raise MachineError where the next launch may find no space or no inodes at one of `paths`."""
    for room in map(room_at, paths):
        if lack := lacking(room):
            raise MachineError(
                lack,
                place=room.place,
                fix="free some space, then continue with --resume: every stored launch is kept",
            )


def check_limits() -> None:
    """Raise MachineError where this process's limits leave too little for any launch."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors != resource.RLIM_INFINITY and descriptors < LEAST_DESCRIPTORS:
        raise MachineError(
            f"the limit of open files is {descriptors}; launches need {LEAST_DESCRIPTORS}",
            place="ulimit -n",
            fix="raise it, as with `ulimit -n 1024`, then try again",
        )
    mask = os.umask(0o077)
    os.umask(mask)
    if mask & 0o700:
        raise MachineError(
            f"{mask:03o} takes the rights to its own files away from whoever makes them",
            place="umask",
            fix="set it to 077, or 022, then try again",
        )
    size = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if size != resource.RLIM_INFINITY and size < SHORT_SHARED_MEMORY:
        raise MachineError(
            f"the limit on file size is {size} B: MPI shared memory, the store or an output"
            " may not fit",
            place="ulimit -f",
            fix="raise it, as with `ulimit -f unlimited`, then try again",
        )


def check_own(*, computes: bool) -> None:
    """Raise MachineError if a limit leaves too little CPU time for Paribus itself.

    For a verb that `computes` with large libraries, also if one leaves too little memory.
    """
    seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
    if seconds != resource.RLIM_INFINITY and seconds < LEAST_CPU_S:
        raise MachineError(
            f"the limit of CPU time is {seconds} s; Paribus needs {LEAST_CPU_S}",
            place="ulimit -t",
            fix="raise it, as with `ulimit -t unlimited`, then try again",
        )
    for limit, (name, most) in _memory_limits().items():
        if computes and most < LEAST_ADDRESSES:
            raise MachineError(
                f"the limit of {name} is {most >> 10} KiB; Paribus needs {LEAST_ADDRESSES >> 10}",
                place=f"ulimit {limit}",
                fix=f"raise it, as with `ulimit {limit} unlimited`, then try again",
            )


def memory_limits() -> str:
    """Return the limits of memory of this process as "ulimit -v 1000000" (KiB), "" without any."""
    return ", ".join(
        f"ulimit {limit} {most >> 10}" for limit, (_, most) in _memory_limits().items()
    )


def _memory_limits() -> dict[str, tuple[str, int]]:
    """Return name and bytes of the limits of memory that are set, by option of ulimit."""
    kinds = {
        "-v": ("address space", resource.RLIMIT_AS),
        "-d": ("data", resource.RLIMIT_DATA),
    }
    found = {limit: (name, resource.getrlimit(kind)[0]) for limit, (name, kind) in kinds.items()}
    return {limit: one for limit, one in found.items() if one[1] != resource.RLIM_INFINITY}


def lacking(room: Room) -> str:
    """Return a sentence on what `room` lacks for a launch, "" if nothing."""
    if room.bytes < LEAST_BYTES:
        return f"no space is left for the launches ({room.bytes // 1024} KiB are free)"
    if room.inodes is not None and room.inodes < LEAST_INODES:
        return f"no inodes are left for the launches ({room.inodes} are free)"
    return ""


def fault_of(rooms: Iterable[Room], exit_code: int | None, printed: str) -> str:
    """Return what the machine lacked when a launch failed, "" if nothing shows that it did.

    `rooms` are those at its end, `printed` the end of its output.
    """
    several = list(rooms)
    for room in several:
        if lack := lacking(room):
            return f"{room.place}: {lack}"
    shared = [room for room in several if _SHARED.search(room.place)]
    short = any(room.bytes < SHORT_SHARED_MEMORY for room in shared)
    if short and (exit_code in _codes(signal.SIGBUS) or _BUS.search(printed)):
        place = shared[0].place.partition("/")[0] + "/dev/shm"
        free = shared[0].bytes >> 20
        return f"{place}: {free} MiB are free, and the launch ended with a bus error"
    if found := _SPACE.search(printed) or _FILES.search(printed) or _FORK.search(printed):
        return f"the launch printed {found[0]!r}"
    return _limit_reached(exit_code, printed)


def _limit_reached(exit_code: int | None, printed: str) -> str:
    """Return which limit of this shell ended a launch, "" if nothing shows that one did."""
    for kind, number, text, meaning in (
        (resource.RLIMIT_FSIZE, signal.SIGXFSZ, _TOO_LONG, "on file size was reached (`ulimit -f`"),
        (resource.RLIMIT_CPU, signal.SIGXCPU, None, "of CPU time was reached (`ulimit -t`"),
        (resource.RLIMIT_AS, None, _MEMORY, "of address space was reached (`ulimit -v`"),
    ):
        if resource.getrlimit(kind)[0] != resource.RLIM_INFINITY and (
            (number and exit_code in _codes(number)) or (text and text.search(printed))
        ):
            return f"the limit {meaning})"
    return ""


def _codes(number: signal.Signals) -> tuple[int, int]:
    """Return the exit codes that mean death by a signal: that of subprocess, that of a shell."""
    return -number, 128 + number
