"""How fit this machine's NVIDIA GPUs are, from nvidia-smi and the kernel, by fitness.toml.

`cards` reads `nvidia-smi -q`, `graded` and `around` make findings of it, and `busiest` watches the
PCIe links while GPUs work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

from paribus.core import count
from paribus.doctor.fitness import Finding, rows, text_of
from paribus.launch.local import capture
from paribus.probes.archive import Unknown
from paribus.probes.machine import cores, processor_times
from paribus.probes.values import holds, ranges

Card = Mapping[str, str]
"""The lines of `nvidia-smi -q` for a GPU. The key is the name of a line after the names that it
stands below, with "/" between; the values of a name that is there several times are joined by ", ".
"""

Cards = Mapping[str, Card]
"""GPUs by PCI address, in nvidia-smi's order."""

_UNTOLD = (
    *("", "N/A", "Not Supported", "Unknown Error", "Insufficient Permissions"),
    "Requested functionality has been deprecated",
)
"""Values of nvidia-smi that are none."""

_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
"""VGA, 3D and other display controllers, and processing accelerators, as AMD's are (pci.ids).
Adapters, bridges and sound of the same makers are other classes."""

_LINK = "PCI/GPU Link Info/"
_MOVING = (f"{_LINK}PCIe Generation/Current", f"{_LINK}Link Width/Current")
"""What changes as a link gets busy."""

_EVERY_S = 0.2


def cards() -> dict[str, Card]:
    """Return the lines of nvidia-smi for each GPU; nothing where there is none."""
    answer = capture(["nvidia-smi", "-q"], timeout_s=20.0)
    return {} if answer.exit_code else read(answer.stdout)


def unseen(several: Cards, root: Path = Path("/")) -> list[Finding]:
    """Return findings of the GPUs on the PCI bus that are none of `several`: NVIDIA's, and AMD's.

    `root` is where the kernel's files are, here and below.
    """
    found: dict[str, list[str]] = {"0x10de": [], "0x1002": []}
    for device in (root / "sys/bus/pci/devices").glob("*"):
        vendor = text_of(device / "vendor").strip()
        if vendor in found and text_of(device / "class").startswith(_GPU_CLASSES):
            found[vendor].append(device.name)
    nvidia, amd = found.values()
    missing = set(nvidia) - set(several)
    findings = []
    if missing and several:
        text = f"missing in nvidia-smi -q: {len(missing)} of {count(len(nvidia), 'GPU')}"
        means = "they are other jobs', lent to guests, or have fallen off the bus"
        fix = "outside of a job: nvidia-smi -L; sudo dmesg | grep Xid"
        findings.append(Finding("GPU: all", "unknown", text, means, fix))
    elif missing:
        answer = capture(["nvidia-smi"], timeout_s=20.0)
        why = (answer.stdout.strip() or answer.stderr.strip() or "nothing").splitlines()[0]
        fix = "install the driver, or sudo modprobe nvidia; after an update of the driver, reboot"
        means = "no program can use them, unless they are lent to guests"
        text = f"{count(len(missing), 'GPU')}; nvidia-smi: {why}"
        findings.append(Finding("GPU", "unknown", text, means, fix))
    if amd:
        text = f"{count(len(amd), 'GPU')} of AMD, not examined: only NVIDIA's are"
        findings.append(Finding("GPU: AMD", "unknown", text, "", "amd-smi static, or rocm-smi -a"))
    return findings


def read(text: str) -> dict[str, Card]:
    """Return the GPUs in what `nvidia-smi -q` printed; a line's depth is its indentation."""
    found: dict[str, Card] = {}
    here: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if head := re.match(r"GPU [0-9A-Fa-f]{4}([0-9A-Fa-f]{4}:\S+)", line):
            found[head[1].lower()] = here = {}
        name, _, value = (part.strip() for part in line.partition(" : "))
        depth = len(line) - len(line.lstrip())
        above = [one for one in above if one[0] < depth]
        if depth and name:
            above.append((depth, name))
            path = "/".join(one for _, one in above)
            here[path] = f"{here[path]}, {value}" if here.get(path) else value
    return found


def busiest(work: Callable[[], object]) -> dict[str, Card]:
    """Return `cards` with the fastest state of each PCIe link while `work` keeps the GPUs busy.

    An idle link falls to its first generation.
    """
    best: dict[str, dict[str, str]] = {}
    ended = Event()

    def look() -> None:
        while not ended.wait(_EVERY_S):
            for address, card in cards().items():
                mine = best.setdefault(address, dict(card))
                for path in _MOVING:
                    mine[path] = max(mine.get(path, ""), card.get(path, ""), key=_number)

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        work()
    finally:
        ended.set()
        thread.join(30.0)
    return dict(best)


def graded(several: Cards, *, busy: bool = False) -> list[Finding]:
    """Return a finding for each row of the table, of those for `busy` GPUs or of the others.

    What the GPUs have in common is listed once; what none of them shows is one finding, "unknown".
    """
    found, untold = [], []
    for row in rows("gpu"):
        if row.get("busy", False) != busy:
            continue
        reported = [_reported(row, card) for card in several.values()]
        bad = [{} if _good(row, values) else values for values in reported]
        name = f"GPU: {row['name']}"
        if any(bad):
            found.append(Finding(name, row["otherwise"], _values(bad), row["means"], row["fix"]))
        elif any(reported):
            found.append(Finding(name, "good", _values(reported)))
        else:
            untold.append(row["name"])
    if untold:
        found.append(Finding("GPU", "unknown", f"not in nvidia-smi -q: {', '.join(untold)}"))
    return found


def _reported(row: Mapping[str, Any], card: Card) -> dict[str, str]:
    """Return a card's values for a row of the table, by name in nvidia-smi.

    Where the row has a least value, each is "VALUE of LEAST"; what is not reported is left out.
    """
    reported = {path: card.get(path, "") for path in row["query"]}
    reported = {path: value for path, value in reported.items() if value.strip("[]") not in _UNTOLD}
    if "least" not in row:
        return reported
    least = [card[path] for path in row["least"] if _number(card.get(path, "")) > 0]
    return {path: f"{value} of {least[0]}" for path, value in reported.items() if least}


def _good(row: Mapping[str, Any], reported: Mapping[str, str]) -> bool:
    """Return whether all values are good, or reach their least value."""
    if "least" not in row:
        return all(value in row["good"] for value in reported.values())
    pairs = (map(_number, value.split(" of ")) for value in reported.values())
    return all(now >= least for now, least in pairs)


def _number(value: str) -> float:
    """Return the number that a value begins with, -1 for none."""
    found = re.match(r"\d+(?:\.\d+)?", value)
    return float(found[0]) if found else -1.0


def _values(reported: list[dict[str, str]]) -> str:
    """Return the values of GPUs as text, with the numbers of the GPUs where they differ."""
    texts: dict[str, list[str]] = {}
    for number, values in enumerate(reported):
        named = [f"{path.rpartition('/')[2]}: {value}" for path, value in values.items()]
        alike = len(set(values.values())) == 1
        text = next(iter(values.values())) if alike else "; ".join(named)
        texts.setdefault(text, []).append(str(number))
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{text} (GPU {', '.join(n)})" for text, n in texts.items() if text)


def around(several: Cards, root: Path = Path("/")) -> list[Finding]:
    """Return findings of who else uses the GPUs, where these are, and the errors on record."""
    return [_users(several, root), _place(several, root), *_peermem(root), _nvlink(), _xid()]


def _users(several: Cards, root: Path) -> Finding:
    """Return the finding of processes on the GPUs, and of MPS, by which these share one."""
    pids = [
        pid
        for card in several.values()
        for path, value in card.items()
        if path.endswith("Process ID")
        for pid in value.split(", ")
    ]
    name, means = "GPU: other processes", "what they do is in the figures of every launch"
    if any(name.startswith("nvidia-cuda-mps") for name, _, _ in processor_times(root).values()):
        fix = "echo quit | nvidia-cuda-mps-control, unless sharing is what is studied"
        return Finding(name, "fair", f"MPS; {count(len(pids), 'process')}", means, fix)
    if not pids:
        return Finding(name, "good", "none")
    fix = f"end them, or wait: ps -fp {','.join(pids)}"
    return Finding(name, "poor", f"{count(len(pids), 'process')} ({', '.join(pids)})", means, fix)


def _place(several: Cards, root: Path) -> Finding:
    """Return whether the core that is used first is beside each GPU."""
    first = cores(root, allowed=frozenset(os.sched_getaffinity(0)))[0]
    name, far, known = "GPU: cores", [], False
    for number, address in enumerate(several):
        device = root / f"sys/bus/pci/devices/{address}"
        local = ranges(text_of(device / "local_cpulist").strip() or Unknown.ABSENT)
        if not isinstance(local, Unknown):
            known = True
            node = text_of(device / "numa_node").strip()
            far += [] if holds(local, first) else [f"GPU {number} is on NUMA node {node}"]
    if not known:
        return Finding(name, "unknown", "the kernel does not say which cores are beside GPUs")
    if not far:
        return Finding(name, "good", f"core {first}, the first that is used, is beside every GPU")
    means = "copies to these GPUs cross the link between sockets"
    text = f"core {first} is used first; {'; '.join(far)}"
    return Finding(name, "fair", text, means, "numactl --cpunodebind=NODE paribus ...")


def _peermem(root: Path) -> list[Finding]:
    """Return whether network adapters reach GPU memory themselves; nothing without InfiniBand."""
    if not (root / "sys/class/infiniband").is_dir():
        return []
    name = "GPU: peermem"
    if re.search(r"^nvidia_peermem ", text_of(root / "proc/modules"), re.M):
        return [Finding(name, "good", "nvidia_peermem is loaded")]
    means = "without it, and without DMA-BUF, messages between nodes pass through host memory"
    fix = "sudo modprobe nvidia-peermem"
    return [Finding(name, "fair", "nvidia_peermem is not loaded", means, fix)]


def _nvlink() -> Finding:
    """Return the finding of errors on NVLink."""
    answer = capture(["nvidia-smi", "nvlink", "-e"], timeout_s=10.0)
    counters = re.findall(r"Link \d+: \w+ Errors: (\d+)", answer.stdout)
    name, bad = "GPU: NVLink errors", sum(map(int, counters))
    if answer.exit_code or not counters:
        return Finding(name, "unknown", "`nvidia-smi nvlink -e` shows no counter")
    if not bad:
        return Finding(name, "good", f"0 in {count(len(counters), 'counter')}")
    means = "a link that replays or recovers is slower meanwhile; one that does it often will fail"
    fix = "nvidia-smi nvlink -e, twice: where a counter grows, have the link repaired"
    return Finding(name, "fair", f"{bad} since they were reset", means, fix)


def _xid() -> Finding:
    """Return the finding of errors that NVIDIA's driver has logged, its "Xid" numbers."""
    answer = capture(["dmesg"], timeout_s=10.0)
    name, means = "GPU: Xid", "the driver reported a GPU's error"
    if answer.exit_code:
        fix = "sudo dmesg | grep Xid"
        return Finding(name, "unknown", "the kernel's log is not readable", "", fix)
    seen = sorted(set(re.findall(r"NVRM: Xid \(PCI:(\S+)\): (\d+)", answer.stdout)))
    if not seen:
        return Finding(name, "good", "none in the kernel's log")
    text = ", ".join(f"{number} of {address}" for address, number in seen)
    fix = "look the number up in NVIDIA's list of Xid errors; reset or replace the card"
    return Finding(name, "poor", text, means, fix)
