"""What links carry, measured or stated: the file that predictions are made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from paribus.border import read_toml
from paribus.core import UserError


@dataclass(frozen=True, slots=True)
class Model:
    """A network that is trained on each GPU: MB of gradients, images of a step and MB of each."""

    gradient_mb: float
    images: int
    image_mb: float
    compute_ms: float


@dataclass(frozen=True, slots=True)
class Capacities:
    """GB/s per direction, shares, and the models; capacities.toml says what each is.

    `published` has the orderings of study 3, `published_rates` its images/s.
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
    published_rates: Mapping[str, float]


_SHARES = {"efficiency", "input_exposed", "reduce_exposed", "host_share"}
_TABLES = {
    "links": ("efficiency", "pcie", "nvlink", "xgmi", "c2c"),
    "processor": ("peer", "socket_peer", "socket_memory", "shared"),
    "training": ("input_exposed", "reduce_exposed"),
    "hpl": ("host_share",),
}


def shipped() -> Path:
    """Return the file that ships, with the inputs of study 3."""
    return Path(str(resources.files(__package__).joinpath("capacities.toml")))


def read_capacities(path: Path) -> Capacities:
    """Return what a file says; raises UserError with table and key."""
    try:
        table = read_toml(path, "a file of capacities")
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", place=str(path)) from None
    except ValueError as error:
        raise UserError(str(error), place=str(path)) from None
    known = {*_TABLES, "models", "published", "published_images_per_s"}
    _refuse_unknown(table, known, str(path))
    values: dict[str, Any] = {}
    for name, keys in _TABLES.items():
        part = _part(table, name, path)
        _refuse_unknown(part, keys, f"{path}: [{name}]")
        for key in keys:
            values[key] = _value(part, key, f"{path}: [{name}]")
    models = {
        name: _model(_part(_part(table, "models", path), name, path), f"{path}: [models.{name}]")
        for name in _part(table, "models", path)
    }
    published = {key: str(text) for key, text in table.get("published", {}).items()}
    rates = (
        _part(table, "published_images_per_s", path) if "published_images_per_s" in table else {}
    )
    return Capacities(
        **values,
        models=models,
        published=published,
        published_rates={key: _value(rates, key, str(path)) for key in rates},
    )


def _model(part: Mapping[str, Any], place: str) -> Model:
    keys = [field.name for field in fields(Model)]
    _refuse_unknown(part, keys, place)
    return Model(**{key: _value(part, key, place) for key in keys})


def _part(table: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    part = table.get(name)
    if not isinstance(part, dict):
        raise UserError(f"lacks the table [{name}]", place=str(path), fix=f"compare {shipped()}")
    return part


def _value(part: Mapping[str, Any], key: str, place: str) -> Any:
    value = part.get(key)
    if key == "shared" and isinstance(value, bool):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    least = 0 if key in _SHARES - {"efficiency"} else 1e-9
    most = 1 if key in _SHARES else 1e9
    if not number or key == "shared" or not least <= value <= most:  # type: ignore[operator]
        what = "true or false" if key == "shared" else f"a number up to {most:g}"
        raise UserError(f"{key} is {value!r:.40}, not {what}", place=place)
    return value


def _refuse_unknown(table: Mapping[str, Any], known: Any, place: str) -> None:
    for key in table:
        if key not in known:
            raise UserError(
                f"unknown key {key!r:.60}", place=place, fix=f"known: {', '.join(known)}"
            )
