"""The store of a study: every launch durable before anything is computed from it."""

from paribus.store.count import Count, read_count
from paribus.store.lock import AtWorkError, Lock, at_work
from paribus.store.reading import SCHEMA_VERSION, check_version, open_for_reading
from paribus.store.rows import (
    GATHERED,
    LAUNCH,
    Gathered,
    Stored,
    checksum,
    gathered_row,
    read_facts,
    unpack,
)
from paribus.store.standing import (
    FILES,
    LOCK,
    Board,
    Doing,
    Effect,
    Standing,
    write_standing,
)
from paribus.store.store import Store
