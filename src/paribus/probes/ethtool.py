"""What tools say of an interface: how its hardware is set, and what it does for RoCE.

ethtool: firmware, offloads, rings, coalescing, pause frames. `dcb -N -j {pfc,ets,app} show`
(iproute2), or `mlnx_qos` where there is no dcb: flow control per priority, shares of traffic
classes, priorities of packets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, number, scalar

_NO = ("n/a", "")


def ethtool_facts(archive: Archive, name: str) -> dict[str, Any]:
    """Return what ethtool printed of the interface `name`; {} where it was not started.

    `firmware` and `driver_version` are texts, `offloads` lists those that are on, and `rings`,
    `channels`, `coalescing` and `pause` are settings by their names.
    """
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
    """Return what `ethtool -OPTION NAME` printed, None where it was not started."""
    tool = f"ethtool-{option}-{name}"
    return archive.tool(tool) if tool in archive.tools else None


def _value(text: str) -> Any:
    return Unknown.UNSUPPORTED if text.lower() in _NO else scalar(text)


def _settings(text: str) -> Any:
    """Return the settings in force by name.

    Of two lists, of which the first is "Pre-set maximums", that is "Current hardware settings".
    """
    current = text.rpartition("Current hardware settings:")[2]
    # "Adaptive RX: on  TX: off" are two settings in one line.
    rows = re.sub(r"^(.*) (RX: *\S+)  +(TX: *\S+)$", r"\1 \2\n\1 \3", current, flags=re.MULTILINE)
    pairs = {key: scalar(value) for key, value in fields(rows) if value.lower() not in _NO}
    pairs = {key: value for key, value in pairs.items() if " for " not in key}
    return pairs or Unknown.UNSUPPORTED


_TABLES = ("tc_tsa", "tc_bw", "prio_tc")
_MAPS = ("default_prio", "dscp_prio", "pcp_prio", "ethtype_prio", "port_prio")
# "tc: 0 ratelimit: unlimited, tsa: ets, bw: 50%"
_CLASS = re.compile(r"tc: ([0-9]+) ratelimit: (.*), tsa: (\S+?)(?:, bw: ([0-9]+)%)?\s*$")


def dcb_facts(archive: Archive, name: str) -> dict[str, Any]:
    """Return `pfc` (priorities with flow control), `ets` and `priorities` of the interface `name`.

    No keys where no tool was started; where the driver has none of it they are unsupported.
    """
    if f"mlnx_qos-{name}" in archive.tools:
        return _mlnx_qos(archive.tool(f"mlnx_qos-{name}"))
    facts: dict[str, Any] = {}
    for what, key, read in (
        ("pfc", "pfc", _pfc),
        ("ets", "ets", _ets),
        ("app", "priorities", _priorities),
    ):
        tool = f"dcb-{what}-{name}"
        if tool in archive.tools:
            table = _table(archive.tool(tool))
            facts[key] = table if isinstance(table, Unknown) else read(table)
    return facts


def _table(text: str | Unknown) -> Mapping[str, Any] | Unknown:
    if isinstance(text, Unknown):
        return text
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return Unknown.UNREADABLE
    return table if isinstance(table, dict) else Unknown.UNREADABLE


def _pfc(table: Mapping[str, Any]) -> Any:
    """Return the priorities with flow control: [3]; older versions print "on", newer ones true."""
    states = table.get("prio_pfc")
    if not isinstance(states, list):
        return Unknown.UNREADABLE
    return [number for number, state in enumerate(states) if state in (True, 1, "on")]


def _ets(table: Mapping[str, Any]) -> Any:
    """Return the rows of _TABLES that the table has: {"tc_bw": "50 50 0 0 0 0 0 0", ...}."""
    found = {name: table[name] for name in _TABLES if isinstance(table.get(name), list)}
    return {name: " ".join(map(str, row)) for name, row in found.items()} or Unknown.UNREADABLE


def _priorities(table: Mapping[str, Any]) -> Any:
    """Return the entries of the application table: ["dscp 26:3"]; [] where it is empty."""
    found = []
    for name in _MAPS:
        rows = table.get(name)
        for row in rows if isinstance(rows, list) else ():
            cells = row if isinstance(row, list) else [row]
            found.append(f"{name.removesuffix('_prio')} {':'.join(map(str, cells))}")
    return found


def _mlnx_qos(text: str | Unknown) -> dict[str, Any]:
    """Return `pfc` and `ets` from what mlnx_qos prints, and `trust`: "dscp" or "pcp"."""
    keys = ("pfc", "ets", "trust")
    if isinstance(text, Unknown):
        return dict.fromkeys(keys, text)
    facts: dict[str, Any] = dict.fromkeys(keys, Unknown.UNREADABLE)
    shares: dict[int, tuple[str, str]] = {}
    classes: dict[int, int] = {}
    current = -1
    for line in text.split("\n"):
        words = line.split()
        if line.startswith("Priority trust state:"):
            facts["trust"] = scalar(line.partition(":")[2])
        elif words[:1] == ["enabled"] and facts["pfc"] is Unknown.UNREADABLE:
            facts["pfc"] = [number for number, state in enumerate(words[1:]) if state == "1"]
        elif (match := _CLASS.match(line)) and len(match[1]) < 3:
            current = int(match[1])
            shares[current] = match[3], match[4] or "0"
        elif words[:1] == ["priority:"] and current >= 0 and words[-1] in tuple("01234567"):
            classes[int(words[-1])] = current
    if shares:
        numbers = sorted(shares)
        facts["ets"] = {
            "tc_tsa": " ".join(shares[n][0] for n in numbers),
            "tc_bw": " ".join(shares[n][1] for n in numbers),
            "prio_tc": " ".join(str(classes[n]) for n in sorted(classes)),
        }
    return facts
