"""The plan of a study: drawn, frozen and sealed, written and read."""

from paribus.plan.frozen import (
    MOST_BYTES,
    SCHEMA,
    Plan,
    check_same,
    freeze,
    plan,
    read_plan,
    software,
    with_sizes,
    write_plan,
)
