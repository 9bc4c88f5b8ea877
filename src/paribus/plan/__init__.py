"""The plan of a study: drawn, frozen and sealed, written and read."""

from paribus.plan.frozen import (
    MOST_BYTES,
    SCHEMA,
    Plan,
    check_same,
    freeze,
    looks_of,
    plan,
    read_plan,
    software,
    write_plan,
)
from paribus.plan.schedule import EVEN, Randomiser, arm_orders, orders, rounds

__all__ = [
    "EVEN",
    "MOST_BYTES",
    "SCHEMA",
    "Plan",
    "Randomiser",
    "arm_orders",
    "check_same",
    "freeze",
    "looks_of",
    "orders",
    "plan",
    "read_plan",
    "rounds",
    "software",
    "write_plan",
]
