"""The operating system: kernel, its command line and modules, its scheduling, the distribution."""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import about, fields, read_all, scalar

_SYS = "/proc/sys/kernel/"
_FILES = {
    "os.release": _SYS + "osrelease",
    "os.build": _SYS + "version",
    "os.autogroup": _SYS + "sched_autogroup_enabled",
    "os.rt_runtime_us": _SYS + "sched_rt_runtime_us",
    "os.schedstats": _SYS + "sched_schedstats",
    "os.perf_event_paranoid": _SYS + "perf_event_paranoid",
    "os.randomize_va_space": _SYS + "randomize_va_space",
    "os.nmi_watchdog": _SYS + "nmi_watchdog",
    "os.watchdog": _SYS + "watchdog",
    "os.timer_migration": _SYS + "timer_migration",
    "os.ptrace_scope": _SYS + "yama/ptrace_scope",
    "os.io_uring_disabled": _SYS + "io_uring_disabled",
    "os.threads_max": _SYS + "threads-max",
    "os.pid_max": _SYS + "pid_max",
    "os.lsm": "/sys/kernel/security/lsm",
    "os.realtime": "/sys/kernel/realtime",
    "os.file_max": "/proc/sys/fs/file-max",
    "os.nr_open": "/proc/sys/fs/nr_open",
}
_PLACES = ("root", "BOOT_IMAGE", "initrd", "resume", "ip", "rd.luks.uuid", "rd.lvm.lv", "ifname")
"""Parameters that say where a machine boots from: another value on every node, and no matter."""

_SECRET = re.compile(
    r"(passw(or)?d|passphrase|secret|token|key|psk|jwt|cookie|credentials?)$", re.IGNORECASE
)
"""Parameters that give installers and network disks their passwords."""


def kernel_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of the operating system."""
    facts = read_all(archive, _FILES)
    facts["os.file_max"] = about(facts["os.file_max"], 2)
    facts["os.cmdline"] = _cmdline(archive.read("/proc/cmdline"))
    facts["os.modules"] = _modules(archive.read("/proc/modules"))
    facts["os.distribution"] = _distribution(archive.read("/etc/os-release"))
    return facts


def _cmdline(text: str | Unknown) -> list[str] | Unknown:
    if isinstance(text, Unknown):
        return text
    words = without_secrets(text).split()
    return [word for word in words if word.partition("=")[0] not in _PLACES]


def without_secrets(text: str) -> str:
    """Return the kernel's command line `text` without the values of passwords and keys."""

    def masked(word: re.Match[str]) -> str:
        name, given, _ = word[0].partition("=")
        return f"{name}=(redacted)" if given and _SECRET.search(name[-20:]) else word[0]

    return re.sub(r"\S+", masked, text)


def _modules(text: str | Unknown) -> list[str] | Unknown:
    if isinstance(text, Unknown):
        return text
    return sorted({line.split()[0] for line in text.split("\n") if line.split()})


def _distribution(text: str | Unknown) -> str | Unknown:
    if isinstance(text, Unknown):
        return text
    names = dict(fields(text, "="))
    return str(scalar(names.get("PRETTY_NAME", "").strip('"'))) or Unknown.UNREADABLE
