"""The operating system, the clock that it keeps, and the firmware: kernel, modules, models.

kernel_facts(archive) returns {"os.release": "6.8.0-40-generic", "os.modules": [...], ...}.
"""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import about, fields, number, read_all, scalar

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
"""Parameters that say where a machine boots from: they differ on every node and are left out."""

_SECRET = re.compile(
    r"(passw(or)?d|passphrase|secret|token|key|psk|jwt|cookie|credentials?)$", re.IGNORECASE
)
"""How parameters end that give installers and network disks their passwords."""


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


_CLOCK = "/sys/devices/system/clocksource/clocksource0/"
_CLOCK_FILES = {
    "clock.source": _CLOCK + "current_clocksource",
    "clock.sources": _CLOCK + "available_clocksource",
}


def clock_facts(archive: Archive) -> dict[str, Any]:
    """Return the clock sources, whether the time is synchronised, and chrony's offset in s."""
    facts = read_all(archive, _CLOCK_FILES)
    if "/run/systemd/timesync/synchronized" in archive.lists.get("present", ()):
        return {**facts, "clock.synchronised": "yes"}
    tracking = archive.tool("chronyc")
    if isinstance(tracking, Unknown):
        return {**facts, "clock.synchronised": tracking}
    # chronyc -c tracking: id, name, stratum, reference time, system time offset, ..., leap status.
    cells = tracking.split(",")
    synchronised = "yes" if cells[-1].strip() == "Normal" else "no"
    offset = number(cells[4]) if len(cells) > 4 else Unknown.UNREADABLE
    return {**facts, "clock.synchronised": synchronised, "clock.offset_s": offset}


_DMI = "/sys/class/dmi/id/"
_FIRMWARE = {
    "machine.vendor": _DMI + "sys_vendor",
    "machine.product": _DMI + "product_name",
    "machine.version": _DMI + "product_version",
    "machine.family": _DMI + "product_family",
    "machine.sku": _DMI + "product_sku",
    "machine.board_vendor": _DMI + "board_vendor",
    "machine.board": _DMI + "board_name",
    "machine.board_version": _DMI + "board_version",
    "machine.chassis": _DMI + "chassis_type",
    "machine.bios_vendor": _DMI + "bios_vendor",
    "machine.bios_version": _DMI + "bios_version",
    "machine.bios_date": _DMI + "bios_date",
    "machine.bios_release": _DMI + "bios_release",
    "machine.ec_release": _DMI + "ec_firmware_release",
}
# Where firmware describes the machine by a device tree (ARM, POWER) there is no DMI.
_TREE = "/sys/firmware/devicetree/base/model"


def dmi_facts(archive: Archive) -> dict[str, Any]:
    """Return maker, model, board and firmware."""
    facts = read_all(archive, _FIRMWARE)
    if isinstance(facts["machine.product"], Unknown):
        model = archive.read(_TREE)
        if not isinstance(model, Unknown):
            facts["machine.product"] = scalar(model.replace("\0", " "))
    return facts
