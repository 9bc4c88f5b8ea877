"""Which processors a device's interrupts may go to, by the device and never by their numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paribus.probes.archive import Archive, Unknown

BALANCED = "irqbalance"
"""Stands for the processors where the daemon of this name moves interrupts about."""


def irq_facts(archive: Archive, address: str) -> dict[str, Any]:
    """Return `irq_cpus` of the PCI device at `address`; no key where its interrupts were not asked.

    A list of kernel lists such as "4 x 0-7", "0": how many interrupts may go where. Neither their
    numbers nor their order enter.
    """
    for line in archive.lists.get("interrupts", ()):
        own, *numbers = line.split(" ")
        if own != address:
            continue
        if balanced(archive):
            return {"irq_cpus": BALANCED}
        if "cut" in numbers:
            return {"irq_cpus": Unknown.CUT}
        texts = [archive.read(f"/proc/irq/{number}/smp_affinity_list") for number in numbers]
        counts: Counter[str] = Counter()
        for text in texts:
            if isinstance(text, Unknown):
                return {"irq_cpus": text}
            counts[text] += 1
        found = [
            f"{n} x {cpus}" if n > 1 else cpus for cpus, n in sorted(counts.items(), key=_place)
        ]
        return {"irq_cpus": found or Unknown.ABSENT}
    return {}


def _place(counted: tuple[str, int]) -> tuple[int, str]:
    return len(counted[0]), counted[0]


def balanced(archive: Archive) -> bool:
    """Return whether irqbalance shows: by its directory, or among the processes."""
    reported = archive.lists.get("consumers", ())
    return "/run/irqbalance" in archive.lists.get("present", ()) or "daemon irqbalance" in reported
