"""Network: interfaces by what they are, and the settings of TCP/IP.

Roles: net.ethernet (0 is the one with the default route, then the fastest), net.infiniband,
net.loopback, net.bond, net.bridge, net.vlan, net.tunnel, net.wireless, net.other. The host's ends
of container links (veth) come and go with containers and are only counted.
"""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.devices import Device, irq_facts, numbered, positive
from paribus.probes.ethtool import dcb_facts, ethtool_counters, ethtool_facts
from paribus.probes.layers import own_namespaces
from paribus.probes.pci import addresses, link
from paribus.probes.values import all_known, fields, number, read_all, scalar

_NET = "/sys/class/net/"
_IPV4 = (
    *("tcp_rmem", "tcp_wmem", "tcp_mem", "tcp_timestamps", "tcp_sack", "tcp_window_scaling"),
    *("tcp_slow_start_after_idle", "tcp_ecn", "tcp_mtu_probing", "tcp_no_metrics_save"),
    *("tcp_low_latency", "tcp_autocorking", "tcp_limit_output_bytes", "tcp_notsent_lowat"),
    *("tcp_fastopen", "tcp_min_tso_segs", "tcp_tso_win_divisor", "tcp_adv_win_scale"),
    *("tcp_moderate_rcvbuf", "ip_forward", "ip_local_port_range"),
)
_CORE = (
    *("default_qdisc", "rmem_max", "wmem_max", "rmem_default", "wmem_default", "optmem_max"),
    *("netdev_max_backlog", "netdev_budget", "netdev_budget_usecs", "somaxconn", "busy_poll"),
    *("busy_read", "rps_sock_flow_entries", "bpf_jit_enable"),
)
_FILES = {
    "net.congestion_control": "/proc/sys/net/ipv4/tcp_congestion_control",
    "net.congestion_controls": "/proc/sys/net/ipv4/tcp_available_congestion_control",
    **{f"net.ipv4.{name}": f"/proc/sys/net/ipv4/{name}" for name in _IPV4},
    **{f"net.core.{name}": f"/proc/sys/net/core/{name}" for name in _CORE},
}
_SETTINGS = (
    *("mtu", "speed", "duplex", "operstate", "tx_queue_len", "gro_flush_timeout"),
    *("napi_defer_hard_irqs", "threaded"),
)
# include/uapi/linux/if_arp.h
_TYPES = {"772": "loopback", "32": "infiniband", "65534": "tunnel"}
_KINDS = {"bridge": "bridge", "bond": "bond", "vlan": "vlan", "vxlan": "tunnel", "wlan": "wireless"}


def net_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of the interfaces, and of TCP/IP in this network namespace."""
    facts = read_all(archive, _FILES)
    routed = _routed(archive)
    devices, veths = [], 0
    for name in archive.names(_NET + "*/type"):
        role = _role(archive, name, routed)
        if role:
            devices.append(_device(archive, name, f"net.{role}", name in routed))
        else:
            veths += 1
    return facts | numbered(devices) | {"net.veth.count": veths}


def _role(archive: Archive, name: str, routed: set[str]) -> str:
    """Return what an interface is for; "" for the host's end of a container's link."""
    base = f"{_NET}{name}/"
    kind = dict(fields(archive.text(base + "uevent"), "=")).get("DEVTYPE", "")
    if archive.text(base + "type") in _TYPES:
        return _TYPES[archive.text(base + "type")]
    if kind in _KINDS:
        return _KINDS[kind]
    if base + "device" in archive.links or name in routed:
        return "ethernet"
    master = base + "master" in archive.links
    # In a network namespace of our own the link to the outside is the only interface. Its number
    # may be that of its other end, for the other namespace has numbers of its own.
    if "net" in own_namespaces(archive) and not master:
        return "ethernet"
    paired = archive.text(base + "iflink") != archive.text(base + "ifindex")
    if paired:
        return "ethernet" if routed and not master else ""
    return "other"


def _device(archive: Archive, name: str, role: str, routed: bool) -> Device:
    base = f"{_NET}{name}/"
    hardware, settings = link(archive, archive.links.get(base + "device", ""))
    driver = archive.links.get(base + "device/driver")
    hardware["driver"] = driver.rpartition("/")[2] if driver else Unknown.ABSENT
    for setting in _SETTINGS:
        value = scalar(archive.read(base + setting))
        settings[setting] = Unknown.UNSUPPORTED if value == "" else value
    settings["speed"] = _speed(archive.read(base + "speed"))
    for setting in ("bonding/mode", "bridge/stp_state"):
        if not isinstance(archive.read(base + setting), Unknown):
            settings[setting.partition("/")[2]] = scalar(archive.read(base + setting))
    settings |= _queues(archive, name)
    settings |= ethtool_facts(archive, name) | dcb_facts(archive, name)
    ecn = archive.names(base + "ecn/roce_np/enable/*")
    if ecn:
        bits = [archive.read(f"{base}ecn/roce_{p}/enable/{n}") for p in ("np", "rp") for n in ecn]
        known = all_known(bits)
        if isinstance(known, Unknown):
            settings["ecn"] = known
        else:
            settings["ecn"] = ["".join(known[: len(ecn)]), "".join(known[len(ecn) :])]
    rank = (0 if routed else 1, positive(settings["speed"]))
    chain = addresses(archive.links.get(base + "device", ""))
    # Where interrupts go is a setting, too, but one that changes: it must not change the order.
    volatile = (irq_facts(archive, chain[-1]) if chain else {}) | ethtool_counters(archive, name)
    return Device(role, hardware, settings, {"name": name}, volatile, rank)


def _queues(archive: Archive, name: str) -> dict[str, Any]:
    """Return {"queues": [receive, transmit]}, their numbers; {} where that was not asked."""
    for line in archive.lists.get("queues", ()):
        interface, *counts = line.split(" ")
        if interface == name and len(counts) == 2:
            return {"queues": [number(count) for count in counts]}
    return {}


def _speed(text: str | Unknown) -> int | float | Unknown:
    """Return Mbit/s, UNSUPPORTED for -1: so a driver says that it does not know."""
    value = number(text)
    return Unknown.UNSUPPORTED if value == -1 else value


def _routed(archive: Archive) -> set[str]:
    """Return the names of the interfaces with a default route (destination and mask 0)."""
    rows = (line.split() for line in archive.text("/proc/net/route").split("\n")[1:])
    return {row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"}
