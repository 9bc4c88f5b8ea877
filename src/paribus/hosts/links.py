"""The links of pocket hosts: rate, delay and loss, by tc of this kernel or by a switch of our own.

Rate is the kernel's token bucket (tc-tbf(8)) at both ends of a link. Delay and loss are netem
(tc-netem(8)) where the kernel has it; else a switch of our own in user space (containers/link.cpp)
takes the place of the bridge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from paribus.border import find_program
from paribus.containers.fabric import script
from paribus.core import Link, UserError, parse_rate, parse_seconds, parse_share
from paribus.launch.local import capture
from paribus.launch.machine import HERE, MADE

LONGEST_DELAY_S = 1.0
LEAST_RATE, MOST_RATE = 100_000, 100_000_000_000
"""Bits per second."""

BURST_S = 1e-3
"""Seconds at full rate that an idle link lets pass at once. Timers that are later than this cost
rate (with 0.2 ms, 1 Gbit/s became 0.45); messages shorter than this are not limited."""

QUEUE_S = 10e-3
"""Seconds at full rate that the queue at a link's end holds; packets beyond are dropped."""

_FRAME = 1514
"""Bytes of a full Ethernet frame."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the scripts of a pocket cluster need for its links.

    `files`: their texts by name; `program`: the argv of the switch in user space, () without one.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = ()


def read_link(value: Any) -> Link:
    """Return the link of a table such as { rate = "1 Gbit", delay = "500 us", loss = "0.1 %" }.

    Raises ValueError, with the fix, for anything else.
    """
    known = {"rate", "delay", "loss"}
    if not isinstance(value, dict) or not value or not set(value) <= known:
        raise ValueError('write some of { rate = "1 Gbit", delay = "500 us", loss = "0.1 %" }')
    link = Link(
        rate=parse_rate(value["rate"]) if "rate" in value else 0,
        delay_s=parse_seconds(value["delay"]) if "delay" in value else 0.0,
        loss=parse_share(value["loss"]) if "loss" in value else 0.0,
    )
    if "rate" in value and not LEAST_RATE <= link.rate <= MOST_RATE:
        raise ValueError(f"rate {value['rate']!r}: use 100 kbit to 100 Gbit, or leave rate out")
    if "delay" in value and not 0 < link.delay_s <= LONGEST_DELAY_S:
        raise ValueError(f"delay {value['delay']!r}: use up to 1 s, or leave delay out")
    return link


def wire(link: Link | None, names: Sequence[str], path: str) -> Wiring:
    """Return the wiring of hosts of these names; programs are found on `path`, a PATH.

    Raises UserError where this machine cannot provide the link, before anything is made.
    """
    bridged = {"ports.ip": "".join(f"link set {name} master br0 up\n" for name in names)}
    if link is None or link == Link():
        return Wiring(bridged)
    kernel = kernel_has(path)
    if link.rate and "tbf" not in kernel:
        raise UserError(
            "this kernel limits no rate here (no token bucket)",
            place="link.rate",
            fix="as root, `modprobe sch_tbf`; or leave rate out",
        )
    slow = bool(link.delay_s or link.loss)
    netem = slow and "netem" in kernel
    files = {**bridged, "eth0.tc": _host_end(link, netem=netem)}
    if link.rate:
        files["ports.tc"] = "".join(
            f"qdisc add dev {name} root {_bucket(link.rate)}\n" for name in names
        )
    if link.loss:
        # Else the kernel passes up to 64 KiB of TCP on as one packet, which would be lost as one.
        files["eth0.ip"] = "link set eth0 gso_max_segs 1\n"
    if netem or not slow:
        return Wiring(files)
    files["ports.ip"] = (
        "link add p0 type veth peer name p1\nlink set p1 master br0 up\nlink set p0 arp off up\n"
        + "".join(f"link set {name} arp off up\n" for name in names)
    )
    figures = (str(round(link.delay_s * 1e9)), f"{link.loss:.9f}", "cut" if link.loss else "whole")
    return Wiring(files, (str(link_program()), *figures, "p0", *names))


def _host_end(link: Link, *, netem: bool) -> str:
    """Return the lines for `tc -batch` on a host's eth0."""
    if not netem:
        return f"qdisc add dev eth0 root {_bucket(link.rate)}\n" if link.rate else ""
    slow = f"delay {link.delay_s * 1e6:.3f}us" if link.delay_s else ""
    lost = f"loss {link.loss * 100:.7f}%" if link.loss else ""
    lines = f"qdisc add dev eth0 root handle 1: netem {slow} {lost} limit 100000\n"
    return lines + (
        f"qdisc add dev eth0 parent 1:1 handle 2: {_bucket(link.rate)}\n" if link.rate else ""
    )


def _bucket(rate: int) -> str:
    burst = max(round(rate * BURST_S / 8), 2 * _FRAME)
    queue = max(round(rate * QUEUE_S / 8), 1 << 17)
    return f"tbf rate {rate}bit burst {burst} limit {burst + queue}"


def kernel_has(path: str) -> frozenset[str]:
    """Return which of "tbf" and "netem" this kernel has; both are tried in a namespace."""
    if find_program("tc", path) is None:
        raise UserError(
            "`tc` is not installed", place="link", fix="install iproute2 (Fedora: iproute-tc)"
        )
    tried = capture(["/bin/sh", "-c", script("qdiscs.sh")], env={"PATH": path}, timeout_s=20)
    return frozenset(tried.stdout.split())


def link_program() -> Path:
    """Return the switch in user space, compiled now if it is not in the cache.

    Raises UserError without a C++ compiler, for one that fails, and for a cache that cannot be
    written or that others can change.
    """
    compiler = next(filter(None, map(find_program, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise UserError(
            "this kernel has no netem, and no C++ compiler was found for the link in user space",
            place="link",
            fix="install g++; or as root, `modprobe sch_netem`; or leave delay and loss out",
        )
    source = (resources.files("paribus.containers") / "link.cpp").read_bytes()
    version = capture([compiler, "--version"]).stdout
    key = hashlib.sha256(f"{compiler}\0{version}\0".encode() + source).hexdigest()
    target = HERE.cache() / "links" / f"link-{key[:16]}"
    argv = [compiler, "-O2", "-std=c++17", "link.cpp", "-o", MADE]
    HERE.build(target, {"link.cpp": source}, [argv], {})
    return target
