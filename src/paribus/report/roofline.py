"""The roofs of a roofline: what limits each arm, drawn above its measured points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paribus.core import format_value
from paribus.report.axes import ROOFLINE, Panel, Spec, layer


def is_roofline(panel: Panel) -> bool:
    return panel.key == ROOFLINE


@dataclass(frozen=True, slots=True)
class Roof:
    """What limits an arm: the memory, in GB/s, then the processor, in the metric's unit."""

    arm: str
    bandwidth: float
    peak: float

    @property
    def ridge(self) -> float:
        """Return the intensity from which on the processor limits, in operations per byte."""
        return self.peak / self.bandwidth


def roofs(rows: Sequence[Spec]) -> list[Roof]:
    """Return the roof of each arm of a figure's rows: the best that its points reached.

    A speed in G operations per second, divided by operations per byte, is in GB/s.
    """
    found = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm and row["x"]]
        bandwidth = max(row["value"] / row["x"] for row in mine)
        found.append(Roof(arm, bandwidth, max(row["value"] for row in mine)))
    return found


def text(roof: Roof, unit: str) -> str:
    """Return what a roof says in figures."""
    return (
        f"{roof.arm}: {format_value(roof.bandwidth)} GB/s, {format_value(roof.peak)} {unit},"
        f" ridge at {format_value(roof.ridge)} per byte"
    )


def layers(rows: Sequence[Spec], unit: str, x: Spec, y: Spec, colour: Spec) -> Iterator[Spec]:
    """Yield the roofs as dashed lines, and what they say in the corner that they leave free."""
    found = roofs(rows)
    low, high = min(row["x"] for row in rows), max(row["x"] for row in rows)
    lines = [
        {"arm": roof.arm, "x": at, "value": min(roof.peak, roof.bandwidth * at)}
        for roof in found
        for at in sorted({low, min(max(roof.ridge, low), high), high})
    ]
    dashed = {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5}
    yield layer(dashed, {"x": x, "y": y}, colour) | {"data": {"values": lines}}
    for place, roof in enumerate(reversed(found)):
        mark = {"type": "text", "text": text(roof, unit), "align": "right", "fontSize": 11}
        at = {
            "x": {"value": {"expr": "width - 4"}},
            "y": {"value": {"expr": f"height - {10 + 15 * place}"}},
        }
        yield layer(mark, at, colour) | {"data": {"values": [{"arm": roof.arm}]}}
