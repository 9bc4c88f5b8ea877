"""Values of JSON from outside as the types of our own that they stand for, each checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def of_json(kind: Any, value: Any) -> Any:
    """Return `value`, as json.loads gives it, as `kind`: a type, or what a field is annotated with.

    Dataclasses and NamedTuples are made of an object, or of a list of their fields in order. Raises
    TypeError, ValueError or LookupError for another value, a field too many, or one too few.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        several = [one for one in inner if one is not NoneType]
        fitting = [one for one in several if isinstance(one, type) and isinstance(value, one)]
        return of_json((fitting or several)[0], value)
    if origin is Literal:
        return _demand(value, value in inner, kind)
    if origin in (tuple, Sequence):
        _demand(value, isinstance(value, list | tuple), kind)
        if origin is tuple and inner[-1] is not Ellipsis:
            return tuple(of_json(*pair) for pair in zip(inner, value, strict=True))
        return tuple(of_json(inner[0], one) for one in value)
    if origin is Mapping:
        _demand(value, isinstance(value, Mapping), kind)
        return {key: of_json(inner[1], one) for key, one in value.items()}
    if is_dataclass(kind) or issubclass(kind, tuple):
        hints = _hints(kind)
        if isinstance(value, list) and len(value) <= len(hints):
            value = dict(zip(hints, value, strict=False))
        _demand(value, isinstance(value, Mapping), kind)
        return kind(**{name: of_json(hints[name], one) for name, one in value.items()})
    if isinstance(value, bool) or value != value:  # True is an int to Python; NaN is no number
        return _demand(value, kind is bool, kind)
    return _demand(value, isinstance(value, int | float if kind is float else kind), kind)


def _demand(value: Any, holds: bool, kind: Any) -> Any:
    if not holds:
        raise TypeError(f"{value!r:.40} is not {getattr(kind, '__name__', kind)}")
    return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
