"""The capacities of links, in a TOML file, by which predictions are made; see capacities.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from paribus.border import Place, fields, read_toml
from paribus.core import UserError


@dataclass(frozen=True, slots=True)
class Model:
    """A neural network that is trained on each GPU.

    MB (10^6 B) of gradients, images per step and MB of each, and ms of compute per step.
    """

    gradient_mb: float
    images: int
    image_mb: float
    compute_ms: float


@dataclass(frozen=True, slots=True)
class Capacities:
    """Capacities in GB/s per direction, shares from 0 to 1, and models; capacities.toml explains
    each.

    `published`: the orderings that study 3 published, such as "Cascade > Common = Balance".
    """

    efficiency: float
    pcie: float
    nvlink: float
    xgmi: float
    c2c: float
    peer: float
    socket_peer: float
    socket_memory: float
    shared: bool
    input_exposed: float
    reduce_exposed: float
    host_share: float
    models: Mapping[str, Model]
    published: Mapping[str, str]


def shipped() -> Path:
    """Return the file that ships, with the inputs of study 3."""
    return Path(str(resources.files(__package__).joinpath("capacities.toml")))


def read_capacities(path: Path) -> Capacities:
    """Return the capacities in a file; raises UserError with all that is wrong in it."""
    try:
        table = read_toml(path, "a file of capacities")
    except (OSError, ValueError) as error:
        cause, fix = getattr(error, "strerror", error), f"fix it, or copy {shipped()} and edit that"
        raise UserError(f"cannot be read: {cause}", place=str(path), fix=fix) from None
    top = Place(str(path), "", table, [])
    top.only((*_TABLES, "models", "published", "published_images_per_s"))  # the last is for people
    values: dict[str, Any] = {}
    for name, readers in _TABLES.items():
        values |= _part(top, name, readers)
    models: dict[str, Any] = {}
    with top.noting():
        models = top.need("models", fields.table, f"[models.NAME], as in {shipped()}")
    parts = {name: _part(top.within("models", models), name, _MODEL) for name in models}
    published: dict[str, Any] = top.read("published", fields.table, {})
    top.finish()
    return Capacities(
        **values,
        models={name: Model(**part) for name, part in parts.items()},
        published={key: str(text) for key, text in published.items()},
    )


def _part(top: Place, name: str, readers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return the values of the table `name`, all of which must be given."""
    with top.noting():
        table = top.need(name, fields.table, f"[{name}], as in {shipped()}")
        part = top.within(f"{top.path}.{name}".lstrip("."), table)
        part.only(readers)
        return {key: part.need(key, reader, f"{key} = ..") for key, reader in readers.items()}
    return {}


def _number(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise ValueError(f"write a number up to {high:g}")
        return value  # type: ignore[no-any-return]

    return read


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


_rate, _share = _number(1e-9, 1e9), _number(0, 1)
_TABLES: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "links": {
        "efficiency": _number(1e-9, 1),
        **dict.fromkeys(("pcie", "nvlink", "xgmi", "c2c"), _rate),
    },
    "processor": {
        **dict.fromkeys(("peer", "socket_peer", "socket_memory"), _rate),
        "shared": _flag,
    },
    "training": dict.fromkeys(("input_exposed", "reduce_exposed"), _share),
    "hpl": {"host_share": _share},
}
_MODEL = dict.fromkeys(("gradient_mb", "images", "image_mb", "compute_ms"), _rate)
