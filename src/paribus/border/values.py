"""Values of JSON from outside, checked and turned into the types of our own.

of_json(tuple[int, ...], [1, 2]) is (1, 2); of_json(Case, {"items": [["bytes", 8]]}) is a Case; a
text in the place of a number is a TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

Rules = Mapping[Any, Callable[[Any], Any]]

_NONE: Rules = MappingProxyType({})


def of_json(kind: Any, value: Any, *, rules: Rules = _NONE, later: bool = False) -> Any:
    """Return `value`, as json.loads gives it, as `kind`: a type, or the annotation of a field.

    NamedTuples and dataclasses are made of an object, or of a list of their fields in order; one
    that is made already stays. `rules` are functions that make the kinds which are their keys.
    With `later`, unknown keys are ignored, as those of a later version, and no dataclass is made of
    a list. Raises TypeError, ValueError or LookupError for a value that does not fit, an unknown
    field, or a missing one.
    """

    def made(kind: Any, value: Any) -> Any:
        return of_json(kind, value, rules=rules, later=later)

    origin, inner = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if kind in rules:
        return rules[kind](value)
    if origin is Annotated:
        return made(inner[0], value)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        kinds = [one for one in inner if one is not NoneType]
        fitting = [one for one in kinds if isinstance(one, type) and isinstance(value, one)]
        fitting = [one for one in fitting if type(value) is one] or fitting  # True is an int too
        return made((fitting or kinds)[0], value)
    if origin is Literal:
        return _demand(value, value in inner, kind)
    if origin in (tuple, Sequence):
        _demand(value, isinstance(value, list | tuple), kind)
        if origin is tuple and inner[-1] is not Ellipsis:
            return tuple(made(*pair) for pair in zip(inner, value, strict=True))
        return tuple(made(inner[0], one) for one in value)
    if origin is Mapping:
        _demand(value, isinstance(value, Mapping), kind)
        return {key: made(inner[1], one) for key, one in value.items()}
    if is_dataclass(kind) or issubclass(kind, tuple):
        if isinstance(value, kind):
            return value
        hints = _hints(kind)
        if isinstance(value, list) and (
            issubclass(kind, tuple) if later else len(value) <= len(hints)
        ):
            value = dict(zip(hints, value, strict=False))
        _demand(value, isinstance(value, Mapping), kind)
        known = {k: one for k, one in value.items() if k in hints} if later else value
        return kind(**{name: made(hints[name], one) for name, one in known.items()})
    if issubclass(kind, Enum):
        return kind(value)
    if isinstance(value, bool) or value != value:  # True is an int to Python; NaN is no number
        return _demand(value, kind is bool, kind)
    return _demand(value, isinstance(value, int | float if kind is float else kind), kind)


def _demand(value: Any, fits: bool, kind: Any) -> Any:
    if not fits:
        raise TypeError(f"{value!r:.40} is not {getattr(kind, '__name__', kind)}")
    return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)
