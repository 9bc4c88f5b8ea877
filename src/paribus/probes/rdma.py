"""RDMA ports: InfiniBand, RoCE and others, by what they are; the names differ between equal VMs."""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.devices import Device, numbered, positive
from paribus.probes.pci import link
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
        *("np_ecn_marked_roce_packets", "rx_icrc_encapsulated"),
    ),
}
"""Those that count trouble, and the traffic; data in units of 4 bytes (InfiniBand spec, PMA)."""


def rdma_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of every port under rdma.N, the fastest InfiniBand port first."""
    ports = archive.matches(_RDMA + "*/ports/*/state")
    devices = [_port(archive, device, port) for device, port in ports]
    return {"rdma.count": 0, **numbered(devices)}


def _port(archive: Archive, device: str, port: str) -> Device:
    card, base = f"{_RDMA}{device}/", f"{_RDMA}{device}/ports/{port}/"
    hardware, settings = link(archive, archive.links.get(card + "device", ""))
    hardware |= {
        "link_layer": scalar(archive.read(base + "link_layer")),
        "type": scalar(archive.read(card + "hca_type")),
        "board": scalar(archive.read(card + "board_id")),
        "revision": scalar(archive.read(card + "hw_rev")),
        "node_type": scalar(archive.read(card + "node_type")),
    }
    rate = scalar(archive.read(base + "rate"))
    settings |= {
        "rate": rate,
        "state": scalar(archive.read(base + "state")),
        "phys_state": scalar(archive.read(base + "phys_state")),
        "firmware": scalar(archive.read(card + "fw_ver")),
        "pkeys": _pkeys(archive, base),
        "gid_types": _gid_types(archive, base),
    }
    counters = {}
    for group, names in _COUNTERS.items():
        for name in names:
            text = archive.read(f"{base}{group}/{name}")
            if text is not Unknown.ABSENT:
                counters[f"counter.{name}"] = number(text)
    fast = number(str(rate).split(" ")[0])
    rank = (0 if hardware["link_layer"] == "InfiniBand" else 1, positive(fast))
    return Device(
        "rdma", hardware, settings, {"name": device, "port": scalar(port)}, counters, rank
    )


def _pkeys(archive: Archive, base: str) -> Any:
    """Return the partition keys in use, sorted: two machines of one fabric share one."""
    texts = [archive.read(f"{base}pkeys/{n}") for n in archive.names(base + "pkeys/*")]
    keys = sorted({text for text in texts if isinstance(text, str) and text.strip("0x")})
    return keys or Unknown.ABSENT


def _gid_types(archive: Archive, base: str) -> Any:
    """Return index and type of the GIDs that are populated, of the first eight."""
    found = {}
    for index in archive.names(base + "gid_attrs/types/*"):
        text = archive.read(f"{base}gid_attrs/types/{index}")
        if isinstance(text, str) and text:
            found[index] = text
    return found or Unknown.ABSENT
