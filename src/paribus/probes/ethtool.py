"""What ethtool says of an interface: firmware, offloads, rings, coalescing, pause frames."""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, number, scalar

_NO = ("n/a", "")


def ethtool_facts(archive: Archive, name: str) -> dict[str, Any]:
    """Return what was asked of the interface `name`; no keys where ethtool was not asked."""
    facts: dict[str, Any] = {}
    driver = _output(archive, "i", name)
    if driver is not None:
        pairs = {} if isinstance(driver, Unknown) else dict(fields(driver))
        for key, row in (("firmware", "firmware-version"), ("driver_version", "version")):
            facts[key] = driver if isinstance(driver, Unknown) else _value(pairs.get(row, ""))
    offloads = _output(archive, "k", name)
    if isinstance(offloads, str):
        states = fields(offloads)
        facts["offloads"] = sorted(key for key, state in states if state.split(" ")[0] == "on")
    elif offloads is not None:
        facts["offloads"] = offloads
    for option, key in (("g", "rings"), ("l", "channels"), ("c", "coalescing"), ("a", "pause")):
        text = _output(archive, option, name)
        if text is not None:
            facts[key] = text if isinstance(text, Unknown) else _settings(text)
    return facts


def ethtool_counters(archive: Archive, name: str) -> dict[str, int]:
    """Return the counters of pause frames, discards and congestion since the driver was loaded."""
    text = archive.tool(f"ethtool-S-{name}")
    rows = [] if isinstance(text, Unknown) else fields(text)
    counts = ((key, number(value)) for key, value in rows)
    return {f"counter.{key}": count for key, count in counts if isinstance(count, int)}


def _output(archive: Archive, option: str, name: str) -> str | Unknown | None:
    tool = f"ethtool-{option}-{name}"
    return archive.tool(tool) if tool in archive.tools else None


def _value(text: str) -> Any:
    return Unknown.UNSUPPORTED if text.lower() in _NO else scalar(text)


def _settings(text: str) -> Any:
    """Return the settings in force: those under "Current hardware settings", where there are two
    lists."""
    current = text.rpartition("Current hardware settings:")[2]
    # "Adaptive RX: on  TX: off" has two of them.
    rows = re.sub(r"^(.*) (RX: *\S+)  +(TX: *\S+)$", r"\1 \2\n\1 \3", current, flags=re.MULTILINE)
    pairs = {key: scalar(value) for key, value in fields(rows) if value.lower() not in _NO}
    pairs = {key: value for key, value in pairs.items() if " for " not in key}
    return pairs or Unknown.UNSUPPORTED
