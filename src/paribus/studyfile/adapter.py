"""The RDMA port of an arm's hosts, as study files write it."""

from __future__ import annotations

from typing import Any

from paribus.border import Place, fields
from paribus.core import Adapter

_KEYS = ("device", "port", "gid_index")


def adapter_of(place: Place) -> Adapter | None:
    """Return the adapter that the arm at `place` names, None if it names none.

    A text is DEVICE or DEVICE:PORT. Notes or raises StudyError as Place does.
    """
    given = place.table.get("adapter")
    if given is None:
        return None
    from paribus.tools.perftest import device, gid_index

    if given == "?":
        place.refuse(
            "adapter",
            None,
            "this study has no adapter of its own",
            'name its RDMA device (`rdma link` lists them): adapter = "mlx5_0"; `paribus new NAME`'
            " writes a copy of the study to edit",
        )
    if place.table.get("transport", "auto") != "auto":
        place.refuse("transport", place.table["transport"], "leaves the adapter out", "remove it")
    if not isinstance(given, dict):
        return place.read("adapter", _text, None)
    table = place.within(f"{place.path}.adapter", given)
    table.only(_KEYS)
    return Adapter(
        device=table.need("device", device, 'device = "mlx5_0"'),
        port=table.read("port", fields.whole(1, 255), 1),
        gid_index=table.read("gid_index", gid_index, None),
    )


def _text(value: Any) -> Adapter:
    from paribus.tools.perftest import device

    name, _, port = fields.text(value).partition(":")
    if port and not (port.isdecimal() and 1 <= int(port) <= 255):
        raise ValueError('write DEVICE or DEVICE:PORT, such as "mlx5_0:1"')
    return Adapter(device(name), int(port or 1))
