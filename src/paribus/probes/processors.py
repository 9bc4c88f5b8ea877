"""Which hardware threads are one core, and which are one socket: by the lists each thread states.

cores(archive) returns [(0, 4), (1, 5), (2, 6), (3, 7)] of four cores with two threads each.

The kernel's numbers (core_id, physical_package_id) are not used for that: they repeat from die to
die, book to book and drawer to drawer, and are -1 where firmware says nothing.
Source: Documentation/admin-guide/cputopology.rst of Linux.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import all_known, common, count_of, holds, number, ranges

CPU = "/sys/devices/system/cpu/"
# Each list has two names: the first since Linux 5.3, the second from 2.6.25 on.
_CORE = ("core_cpus_list", "thread_siblings_list")
_SOCKET = ("package_cpus_list", "core_siblings_list")
CORE_FILES = (*_CORE, "core_id")

Core = tuple[str, str]


def online(archive: Archive) -> list[int] | Unknown:
    """Return the hardware threads that are online, sorted.

    Where the kernel has no list of them, those with a directory topology, which the kernel removes
    of others. ABSENT where a thread of the list has no such directory.
    """
    names = {name for path in (*_CORE, *_SOCKET) for name in archive.names(_topology("*", path))}
    found = sorted(int(name[3:]) for name in names if name[3:].isdecimal() and len(name) < 9)
    text = archive.read(CPU + "online")
    if text is Unknown.ABSENT:
        return found or Unknown.ABSENT
    spans, count = ranges(text), count_of(text)
    if isinstance(spans, Unknown) or isinstance(count, Unknown):
        return Unknown.UNREADABLE if isinstance(text, str) else text
    found = [cpu for cpu in found if holds(spans, cpu)]
    return found if found and len(found) == count else Unknown.ABSENT


def cores(archive: Archive) -> list[tuple[int, ...]] | Unknown:
    """Return the online hardware threads of each core, in the order of the first."""
    cpus = online(archive)
    if isinstance(cpus, Unknown):
        return cpus
    why_not = _inconsistent(cpus, [_first(archive, cpu, _CORE) for cpu in cpus])
    return why_not or cores_of(archive, cpus)


def sockets(archive: Archive) -> list[tuple[int, ...]] | Unknown:
    """Return the online hardware threads of each socket, in the order of the first.

    Without the lists, as in some recordings, by the number of each thread's socket; UNSUPPORTED
    where such a number is -1.
    """
    cpus = online(archive)
    if isinstance(cpus, Unknown):
        return cpus
    lists = [_first(archive, cpu, _SOCKET) for cpu in cpus]
    if all(text is Unknown.ABSENT for text in lists):
        numbers = all_known(
            number(archive.read(_topology(f"cpu{cpu}", "physical_package_id"))) for cpu in cpus
        )
        if isinstance(numbers, Unknown):
            return numbers
        return (
            Unknown.UNSUPPORTED if min(numbers) < 0 else _grouped(zip(cpus, numbers, strict=True))
        )
    why_not = _inconsistent(cpus, lists)
    return why_not or _grouped(zip(cpus, lists, strict=True))


def cores_of(archive: Archive, cpus: Iterable[int]) -> list[tuple[int, ...]]:
    """Return `cpus` grouped by core, in the order of the first.

    A thread that does not state its siblings is taken for a core of its own: ranks must be placed
    somewhere all the same.
    """
    return _grouped((cpu, _core(archive, cpu)) for cpu in sorted(cpus))


def core_paths(cpus: Iterable[int]) -> list[str]:
    """Return the paths of the files that `cores_of` reads."""
    return [_topology(f"cpu{cpu}", name) for cpu in cpus for name in CORE_FILES]


def _core(archive: Archive, cpu: int) -> Core:
    """Return a key that all threads of a core share, and no thread of another core has.

    The two cores of an AMD compute unit (families 15h and 16h) state each other as siblings, but
    each has a core_id of its own; threads of one core share theirs.
    """
    text = _first(archive, cpu, _CORE)
    if isinstance(text, Unknown):
        return "", str(cpu)
    return text, archive.text(_topology(f"cpu{cpu}", "core_id"))


def _first(archive: Archive, cpu: int, names: Iterable[str]) -> str | Unknown:
    """Return the text of the first of `names` that `cpu` has."""
    texts = (archive.read(_topology(f"cpu{cpu}", name)) for name in names)
    return next((text for text in texts if text is not Unknown.ABSENT), Unknown.ABSENT)


def _inconsistent(cpus: Sequence[int], lists: Iterable[str | Unknown]) -> Unknown | None:
    """Return why `lists`, one of each of `cpus`, do not divide `cpus` into groups; None if they do.

    They do where each list names its own thread and is stated by as many of `cpus` as it names.
    """
    single = [(cpu, cpu) for cpu in cpus]
    counts: Counter[str] = Counter()
    for cpu, text in zip(cpus, lists, strict=True):
        if isinstance(text, Unknown):
            return text
        spans = ranges(text)
        if isinstance(spans, Unknown) or not holds(spans, cpu):
            return Unknown.UNREADABLE
        counts[text] += 1
    for text, count in counts.items():
        spans = ranges(text)
        if isinstance(spans, Unknown) or common(spans, single) != count:
            return Unknown.UNREADABLE
    return None


def _grouped(pairs: Iterable[tuple[int, object]]) -> list[tuple[int, ...]]:
    """Return the first items of `pairs` grouped by the second, groups in the order they begin."""
    found: dict[object, tuple[int, ...]] = {}
    for cpu, group in pairs:
        found[group] = (*found.get(group, ()), cpu)
    return list(found.values())


def _topology(cpu: str, name: str) -> str:
    return f"{CPU}{cpu}/topology/{name}"
