"""RDMA ports: InfiniBand, RoCE and others, numbered by what they are.

Facts of the first port are rdma.0.rate, rdma.0.link_layer, ...; its name, which differs between
equal virtual machines, is rdma.0.name.
"""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.devices import Device, irq_facts, numbered, positive
from paribus.probes.pci import addresses, link
from paribus.probes.values import number, scalar

_RDMA = "/sys/class/infiniband/"
_COUNTERS = {
    "counters": (
        *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
        *("port_xmit_discards", "port_xmit_wait", "port_xmit_data", "port_rcv_data"),
    ),
    "hw_counters": (
        *("out_of_sequence", "out_of_buffer", "packet_seq_err", "rnr_nak_retry_err"),
        *("local_ack_timeout_err", "np_cnp_sent", "rp_cnp_handled"),
        *("np_ecn_marked_roce_packets", "rx_icrc_encapsulated", "duplicate_request"),
        # Soft-RoCE has names of its own (drivers/infiniband/sw/rxe/rxe_hw_counters.c).
        *("out_of_seq_request", "rcvd_seq_err", "rcvd_rnr_err", "retry_exceeded_err"),
        *("sent_pkts", "rcvd_pkts"),
    ),
}
"""Counters of errors and of traffic that are read, by directory.

*_data are in units of 4 bytes (InfiniBand specification, PMA).
"""


def rdma_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of every port under rdma.N, the fastest InfiniBand port first."""
    ports = archive.matches(_RDMA + "*/ports/*/state")
    devices = [_port(archive, device, port) for device, port in ports]
    return {"rdma.count": 0, **numbered(devices)}


def _port(archive: Archive, device: str, port: str) -> Device:
    card, base = f"{_RDMA}{device}/", f"{_RDMA}{device}/ports/{port}/"
    path, net = archive.links.get(card + "device"), archive.read(base + "gid_attrs/ndevs/0")
    # What software makes of a NIC (Soft-RoCE) has no PCI device: its link is the NIC's.
    below = archive.links.get(f"/sys/class/net/{net}/device", "") if path is None else path
    hardware, settings = link(archive, below)
    hardware |= {
        "software": net if path is None and isinstance(net, Unknown) else path is None,
        "link_layer": scalar(archive.read(base + "link_layer")),
        "type": scalar(archive.read(card + "hca_type")),
        "board": scalar(archive.read(card + "board_id")),
        "revision": scalar(archive.read(card + "hw_rev")),
        "node_type": scalar(archive.read(card + "node_type")),
    }
    if driver := archive.links.get(card + "device/driver"):
        hardware["driver"] = driver.rpartition("/")[2]
    rate = scalar(archive.read(base + "rate"))
    settings |= {
        "rate": rate,
        "state": scalar(archive.read(base + "state")),
        "phys_state": scalar(archive.read(base + "phys_state")),
        "firmware": scalar(archive.read(card + "fw_ver") or Unknown.UNSUPPORTED),
        "pkeys": _pkeys(archive, base),
        "gid_types": _gid_types(archive, base),
        **_marks(archive, device, port),
    }
    chain = addresses(path or "")
    counters: dict[str, Any] = irq_facts(archive, chain[-1]) if chain else {}
    for group, names in _COUNTERS.items():
        for name in names:
            text = archive.read(f"{base}{group}/{name}")
            if text is not Unknown.ABSENT:
                counters[f"counter.{name}"] = number(text)
    fast = number(str(rate).split(" ")[0])
    rank = (0 if hardware["link_layer"] == "InfiniBand" else 1, positive(fast))
    identity = {"name": device, "port": scalar(port)}
    if isinstance(net, str):
        identity["net.name"] = net
    return Device("rdma", hardware, settings, identity, counters, rank)


def _marks(archive: Archive, device: str, port: str) -> dict[str, Any]:
    """Return how RoCE packets are marked: by the driver's table, and by the connection manager.

    The latter shows in configfs once somebody has set it (cma_roce_tos, cma_roce_mode).
    """
    manager = f"/sys/kernel/config/rdma_cm/{device}/ports/{port}/"
    classes = {
        n: archive.text(f"{_RDMA}{device}/tc/{n}/traffic_class").rpartition("=")[2].strip()
        for n in archive.names(f"{_RDMA}{device}/tc/*/traffic_class")
    }
    known = {n: scalar(text) for n, text in classes.items() if text}
    return {
        "traffic_class": known or Unknown.ABSENT,
        "roce_mode": scalar(archive.read(manager + "default_roce_mode")),
        "roce_tos": scalar(archive.read(manager + "default_roce_tos")),
    }


def _pkeys(archive: Archive, base: str) -> Any:
    """Return the partition keys other than 0, sorted: machines of one fabric share one."""
    texts = [archive.read(f"{base}pkeys/{n}") for n in archive.names(base + "pkeys/*")]
    keys = sorted({text for text in texts if isinstance(text, str) and text.strip("0x")})
    return keys or Unknown.ABSENT


def _gid_types(archive: Archive, base: str) -> Any:
    """Return the types of the first eight GIDs that are set, by index: {"0": "RoCE v2"}."""
    found = {}
    for index in archive.names(base + "gid_attrs/types/*"):
        text = archive.read(f"{base}gid_attrs/types/{index}")
        if isinstance(text, str) and text:
            found[index] = text
    return found or Unknown.ABSENT
