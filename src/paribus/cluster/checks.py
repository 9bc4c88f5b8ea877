"""The checks of the nodes' answers: each takes all answers and returns findings.

A finding has a grade, a cause, the nodes and a fix: "warning: C library differs: glibc 2.36 (3
nodes), glibc 2.31 (n4); install the same distribution on all nodes".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from paribus.cluster.answers import Answer
from paribus.core import count, format_bytes, format_seconds
from paribus.hosts.ssh import why_no_connection

Grade = Literal["broken", "warning", "information", "ok"]
GRADES: tuple[Grade, ...] = ("broken", "warning", "information", "ok")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check on some nodes.

    `grade`: "broken": MPI launches would fail, hang or be invalid; "warning": they may, or figures
    suffer; "information": good to know. `nodes`: those concerned, () for all. `fix`: a command or a
    sentence, "" where none is needed.
    """

    check: str
    grade: Grade
    cause: str
    nodes: tuple[str, ...] = ()
    fix: str = ""


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings sorted by grade, otherwise in their order."""
    return tuple(sorted(findings, key=lambda one: GRADES.index(one.grade)))


CLOCK_WARNING_S, CLOCK_BROKEN_S = 0.1, 10.0

LITTLE_BYTES = 256 << 20
"""Free bytes below which a directory is too small for the files of MPI and Paribus."""

LITTLE_MEMLOCK = 1 << 20
"""KiB of locked memory below which RDMA cannot register its buffers."""

Check = Callable[[Sequence[Answer]], list[Finding]]
"""A check, from the answers of all nodes that answered."""


def same_machine(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for names that are one machine, by boot, network namespace and hostname."""
    boots = _groups(answers, lambda one: one.one("boot"))
    found = []
    for nodes in boots.values():
        for same in _groups(nodes, lambda one: one.one("net") + one.one("hostname")).values():
            if len(same) > 1:
                found.append(
                    Finding(
                        "identity",
                        "broken",
                        "these names are one machine: the same boot, network and hostname"
                        f" ({same[0].one('hostname')})",
                        _names(same),
                        "name each machine once; give a host its number of slots instead",
                    )
                )
        if len(_groups(nodes, lambda one: one.one("net"))) > 1:
            cause = "these nodes share one kernel: they are containers or pocket hosts"
            found.append(
                Finding(
                    "identity",
                    "information",
                    f"{cause} of one machine, and compete for its cores",
                    _names(nodes),
                )
            )
    for same in _groups(answers, lambda one: one.one("machine")).values():
        if len(_groups(same, lambda one: one.one("boot"))) > 1:
            cause = "these machines have one machine-id: images were cloned"
            fix = "rm /etc/machine-id && systemd-machine-id-setup on each; DHCP hands out addresses"
            found.append(Finding("identity", "warning", cause, _names(same), f"{fix} by it"))
    return found or [Finding("identity", "ok", "each name is a machine of its own")]


def hostnames(answers: Sequence[Answer]) -> list[Finding]:
    """Return a finding for each hostname that several machines have."""
    found = []
    for name, same in _groups(answers, lambda one: one.one("hostname")).items():
        if len(_groups(same, lambda one: one.one("boot") + one.one("net"))) > 1:
            cause = f"these machines all call themselves {name!r}; MPI takes them for one"
            fix = "hostnamectl set-hostname NAME on each"
            found.append(Finding("hostname", "broken", cause, _names(same), fix))
    return found


def platform(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings where architecture, kernel, C library, compiler or processor differ."""
    rows: tuple[tuple[str, str, Grade, str], ...] = (
        ("arch", "architecture", "broken", "compare one kind of machine in one arm"),
        ("kernel", "kernel", "warning", "install the same kernel on all nodes, and reboot"),
        ("libc", "C library", "warning", "install the same distribution on all nodes"),
        ("model", "processor", "warning", "leave out the nodes that differ"),
        ("cpus", "number of processors", "warning", "leave out the nodes that differ"),
        ("compiler.said", "C++ compiler", "warning", "install the same compiler on all nodes"),
    )
    found = [
        one
        for key, what, grade, fix in rows
        for one in differing("platform", what, answers, _reader(key), grade, fix)
    ]
    first = answers[0]
    same = (
        f"{first.one('arch')}, Linux {first.one('kernel')}, {first.one('libc') or 'libc unknown'}"
    )
    return found or [Finding("platform", "ok", f"{same} on all")]


def limits(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for limits of a shell that ssh starts."""
    rdma = any(one.all("rdma") for one in answers)
    memlock = [one for one in answers if _limit(one, "memlock") < LITTLE_MEMLOCK]
    files = [one for one in answers if _limit(one, "nofile") < 1024]
    stack = [one for one in answers if _limit(one, "stack") < 8192]
    found = []
    if memlock:
        least_memory = format_bytes(int(min(_limit(one, "memlock") for one in memlock)) * 1024)
        cause = f"{least_memory} of locked memory through ssh" + (
            ": RDMA cannot register its buffers" if rdma else "; RDMA would need more"
        )
        fix = (
            "echo '* - memlock unlimited' > /etc/security/limits.d/mpi.conf (with UsePAM yes in"
            " sshd_config), or LimitMEMLOCK=infinity in sshd's unit; then restart sshd"
        )
        grade: Grade = "broken" if rdma else "information"
        found.append(Finding("limits", grade, cause, _names(memlock), fix))
    if files:
        least = int(min(_limit(one, "nofile") for one in files))
        cause = f"{count(least, 'open file')} through ssh; a rank needs one for each other rank"
        fix = "echo '* - nofile 1048576' > /etc/security/limits.d/mpi.conf"
        found.append(Finding("limits", "warning", cause, _names(files), fix))
    if stack:
        cause = f"{int(min(_limit(one, 'stack') for one in stack))} KiB of stack through ssh"
        fix = "echo '* - stack unlimited' > /etc/security/limits.d/mpi.conf"
        found.append(Finding("limits", "warning", cause, _names(stack), fix))
    for key in ("memlock", "nofile", "stack"):
        found += differing(
            "limits",
            f"limit {key}",
            answers,
            _reader(f"limit.{key}"),
            "warning",
            "set the same limits on all nodes: /etc/security/limits.d",
        )
    return found or [Finding("limits", "ok", "memlock, nofile and stack suffice")]


def _limit(answer: Answer, key: str) -> float:
    value = answer.one(f"limit.{key}")
    return int(value) if value.isdecimal() else math.inf


def rdma(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for RDMA ports: down, or not the same on all nodes."""
    if not any(one.all("rdma") for one in answers):
        return [Finding("rdma", "information", "no node has an RDMA port")]
    found = []
    for one in answers:
        down = [port for port in one.all("rdma") if "ACTIVE" not in port.upper()]
        if down and len(down) == len(one.all("rdma")):
            cause = f"no RDMA port is active ({down[0].replace('|', ', ')})"
            fix = "check the cable and the subnet manager: ibstat, systemctl status opensm"
            found.append(Finding("rdma", "broken", cause, (one.name,), fix))

    def ports(answer: Answer) -> str:
        # By rate and link layer, not by name: the same port may be mlx5_0 on one machine, mlx5_1
        # on another.
        active = (p.split("|")[2:] for p in answer.all("rdma") if "ACTIVE" in p.upper())
        return ", ".join(sorted(" ".join(words[::-1]) for words in active)) or "none active"

    fix = "use nodes whose ports have the same rate and link layer, or leave out those that differ"
    found += differing("rdma", "active RDMA ports", answers, ports, "broken", fix)
    return found or [Finding("rdma", "ok", f"{ports(answers[0])} on all")]


def clocks(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for clocks that are off by more than the round trip leaves uncertain."""
    found = []
    apart = 0.0
    for one in answers:
        if math.isnan(one.offset_s):
            cause = "its `date` gives no time"
            found.append(Finding("clock", "warning", cause, (one.name,), "look at `date` there"))
            continue
        surely = abs(one.offset_s) - one.offset_error_s
        apart = max(apart, abs(one.offset_s) + one.offset_error_s)
        if surely > CLOCK_WARNING_S:
            word = "ahead" if one.offset_s > 0 else "behind"
            cause = f"its clock is {_off(abs(one.offset_s))} {word} of this machine's"
            fix = "start a time service on it: systemctl enable --now chronyd; chronyc makestep"
            grade: Grade = "broken" if surely > CLOCK_BROKEN_S else "warning"
            found.append(Finding("clock", grade, cause, (one.name,), fix))
    within = f"within {format_seconds(apart)} of this machine's"
    return found or [Finding("clock", "ok", within)]


def _off(seconds: float) -> str:
    if seconds < 120:
        return format_seconds(seconds)
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min"


def places(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for directories of Paribus and MPI that are not writable, full or small."""
    found: dict[tuple[Grade, str, str], list[str]] = {}
    for one in answers:
        for key in ("tmp", "home", "shm"):
            if problem := _place(one, key):
                found.setdefault(problem, []).append(one.name)
    findings = [
        Finding("space", grade, cause, tuple(names), fix)
        for (grade, cause, fix), names in found.items()
    ]
    return findings or [Finding("space", "ok", "scratch, home and shared memory can be written to")]


def _place(answer: Answer, key: str) -> tuple[Grade, str, str] | None:
    """Return grade, cause and fix of a directory with a problem; `key`: tmp, home or shm."""
    where = answer.one(key)
    if not where:
        return (
            ("broken", "it has no home directory", "set HOME, or the home in /etc/passwd")
            if key == "home"
            else None
        )
    grade: Grade = "warning" if key == "home" else "broken"
    refused = answer.one(f"{key}.refused")
    if "executed" in refused or ("Permission denied" in refused and key == "tmp"):
        fix = "set TMPDIR in the node's environment to a directory where programs may be executed"
        return ("warning", f"{where}: {refused}", fix)
    if "No space" in refused or "quota" in refused.lower():
        return (grade, f"{where} is full: {refused}", "remove files there: du -xh | sort -h | tail")
    if refused:
        fix = "make it writable (mount -o remount,rw)"
        if other := {"tmp": "TMPDIR", "home": "PARIBUS_CACHE"}.get(key):
            fix += f", or set {other} there to a directory that is"
        return (grade, f"{where} cannot be written to: {refused}", fix)
    space = re.fullmatch(r"(\d+) (\d+) \d+ (\d+) (\d+) .*", answer.one(f"{key}.space"))
    if space is None:
        return None
    blocks, size, inodes, total = map(int, space.groups())
    if blocks * size < LITTLE_BYTES:
        # Without the figure, so that nodes with the same problem make one line.
        cause = f"{where} has less than {format_bytes(LITTLE_BYTES)} free"
        return ("warning", cause, f"remove files there: du -xh {where} | sort -h | tail")
    if total and inodes < 1000:
        return ("warning", f"{where} has fewer than 1000 free inodes", "remove small files there")
    return None


def settings(answers: Sequence[Answer]) -> list[Finding]:
    """Return a warning for each network setting of the kernel that differs between nodes."""
    keys = sorted({key for one in answers for key in one.facts if key.startswith("sysctl.")})
    found = []
    for key in keys:
        name = key.removeprefix("sysctl.")
        fix = f"set one value on all: sysctl -w {name}=VALUE, and in /etc/sysctl.d"
        found += differing("sysctl", name, answers, _reader(key), "warning", fix)
    return found or [Finding("sysctl", "ok", f"{len(keys)} settings of the network are the same")]


def differing(
    check: str,
    what: str,
    answers: Sequence[Answer],
    read: Callable[[Answer], str],
    grade: Grade,
    fix: str,
) -> list[Finding]:
    """Return a finding where `read` returns more than one value; its nodes: those without the
    most frequent one."""
    groups = _groups(answers, lambda one: read(one) or "none")
    if len(groups) < 2:
        return []
    usual = max(groups, key=lambda value: len(groups[value]))
    few = [one for value, nodes in groups.items() if value != usual for one in nodes]
    values = ", ".join(f"{value} ({_few(nodes)})" for value, nodes in groups.items())
    return [Finding(check, grade, f"{what} differs: {values}", _names(few), fix)]


def _reader(key: str) -> Callable[[Answer], str]:
    return lambda one: " ".join(one.one(key).split())


def _few(answers: Sequence[Answer]) -> str:
    return answers[0].name if len(answers) == 1 else f"{len(answers)} nodes"


def _groups(answers: Sequence[Answer], key: Callable[[Answer], str]) -> dict[str, list[Answer]]:
    """Return the answers grouped by `key`, without those for which that is ""."""
    groups: dict[str, list[Answer]] = {}
    for one in answers:
        if value := key(one):
            groups.setdefault(value, []).append(one)
    return groups


def _names(answers: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(one.name for one in answers)


SLOW_S = 2.0
"""Seconds of a connection from which on a node is called slow."""


def reached(answers: Sequence[Answer]) -> list[Finding]:
    """Return a finding for each way in which nodes failed to answer, and one for those that did."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in answers:
        if not one.answered:
            alike.setdefault(_why(one), []).append(one.name)
    found = [Finding("reach", "broken", why, tuple(n), fix) for (why, fix), n in alike.items()]
    number = sum(one.answered for one in answers)
    if number:
        found.append(Finding("reach", "ok", f"{number} of {len(answers)} answer"))
    return found


def _why(answer: Answer) -> tuple[str, str]:
    """Return cause and fix of a failure to answer."""
    last = answer.stderr.splitlines()[-1].strip() if answer.stderr.strip() else ""
    if answer.failure.startswith("no answer"):
        prompt = re.search(r"(password|passphrase)[^\n]*:\s*$", answer.stderr, re.IGNORECASE)
        if prompt:
            return "it asks for a password", (
                "Paribus asks for none: load a key into your agent (ssh-add), or --identity FILE"
            )
        return f"{answer.failure}{f' ({last})' if last else ''}", (
            "log in by hand and look: a file system that does not answer, a load that is too high,"
            " or a login script that waits"
        )
    if answer.failure == "cannot be reached":
        error = why_no_connection(answer.name, answer.stderr, ())
        where = "" if error.place == answer.name else f"{error.place}: "
        return f"{where}{error.cause}", error.fix
    if answer.failure == "prints without end":
        return "it prints without end", "look at what its login scripts print (~/.bashrc)"
    ended = f" ({last})" if last else f" (exit code {answer.code})" if answer.code else ""
    return f"{answer.failure}{ended}", (
        "Paribus needs a POSIX shell as /bin/sh there; a login shell such as /sbin/nologin, a"
        " forced command or a login script that ends the session prevents it"
    )


def banners(answers: Sequence[Answer]) -> list[Finding]:
    """Return a warning for nodes whose login prints something where programs expect data."""
    alike: dict[str, list[str]] = {}
    for one in answers:
        if one.banner:
            alike.setdefault(one.banner[0][:60], []).append(one.name)
    return [
        Finding(
            "banner",
            "warning",
            f"login scripts print on standard output: {text!r}",
            tuple(nodes),
            "print only for people: put [ -t 1 ] before it in ~/.bashrc or /etc/profile.d; scp and"
            " MPI's launchers stumble over it",
        )
        for text, nodes in alike.items()
    ]


def slow(answers: Sequence[Answer]) -> list[Finding]:
    """Return a warning for nodes that take long to log in to."""
    usual = median(one.connect_s for one in answers)
    nodes = [one for one in answers if one.connect_s > max(SLOW_S, 5 * usual)]
    if not nodes:
        return [Finding("answer", "ok", f"a shell after {format_seconds(usual)}")]
    worst = max(one.connect_s for one in nodes)
    cause = f"a shell only after {format_seconds(worst)}; the others: {format_seconds(usual)}"
    fix = "UseDNS no in sshd_config, a name service that answers, shorter login scripts"
    return [Finding("answer", "warning", cause, tuple(one.name for one in nodes), fix)]


def tools(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for programs that nodes lack."""
    alike: dict[str, list[str]] = {}
    for one in answers:
        for tool in one.all("missing"):
            alike.setdefault(tool, []).append(one.name)
    packages = {"taskset": "util-linux", "ssh": "openssh-client"}
    soft = {
        "taskset": "launches cannot be bound to cores",
        "ssh": "mpirun cannot start ranks on other nodes by itself; Paribus does it for it",
    }
    return [
        Finding(
            "tools",
            "warning" if tool == "taskset" else "information" if tool in soft else "broken",
            f"{tool} is missing" + (f": {soft[tool]}" if tool in soft else ""),
            tuple(nodes),
            f"install {packages.get(tool, 'coreutils')}",
        )
        for tool, nodes in alike.items()
    ]
