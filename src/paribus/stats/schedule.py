"""The order of the arms in each block: drawn from a seed, the same on every machine and Python."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from typing import TypeVar

from paribus.core import units

T = TypeVar("T")

EVEN = 8
"""Over the first so many blocks, those of the first look, each of two arms comes first in some.

Where one came first in all of them, an order effect would look like an effect of the arm. That has
a chance of 2 in 256, so drawing such a plan again makes any other, and with it any error, at most
256/254 = 1.008 times as likely.
"""


class Randomiser:
    """A stream of fair draws that `seed` and the name `stream` determine for good.

    Draw i is the first 8 bytes, big-endian, of SHA-256 over "paribus/SEED/STREAM/i": written out
    here because the methods of `random` may change their sequence between Python versions, and a
    plan must come out the same when it is resumed or repeated years later.
    """

    def __init__(self, seed: int, stream: str) -> None:
        self._name = f"paribus/{seed}/{stream}"
        self._drawn = 0

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to bound - 1, each exactly as likely as the others."""
        if not 1 <= bound <= 2**64:
            raise ValueError(f"no whole number from 0 to {bound - 1} can be drawn")
        while True:
            digest = hashlib.sha256(f"{self._name}/{self._drawn}".encode()).digest()
            self._drawn += 1
            word = int.from_bytes(digest[:8], "big")
            # Words beyond the last whole multiple of `bound` would favour the low numbers.
            if word < 2**64 - 2**64 % bound:
                return word % bound

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return `items` in random order (Fisher-Yates, from the end)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def _latin_square(arms: Sequence[str], draw: Randomiser) -> list[tuple[str, ...]]:
    """Return a Latin square: each arm once per row and once per column, all three permuted."""
    count = len(arms)
    symbols = draw.shuffled(arms)
    rows = draw.shuffled(range(count))
    columns = draw.shuffled(range(count))
    return [tuple(symbols[(row + column) % count] for column in columns) for row in rows]


def orders(
    arms: Sequence[str], seed: int, stream: str, *, after: int = 0, even: int = EVEN
) -> Iterator[tuple[str, ...]]:
    """Yield, block after block without end, the order in which the arms are launched.

    Two arms: a fair coin per block, which is all that the exactness of the interval rests on. Of
    the blocks that follow the first `after`, `even` are drawn again while one arm comes first in
    all of them; 0 for never. More arms: rows of random Latin squares, so that in each run of
    len(arms) blocks every arm takes every place once, and of two arms either comes before the
    other. Raises ValueError for no arms and for arms named twice.
    """
    if not arms or len(set(arms)) != len(arms):
        raise ValueError(f"arms {', '.join(arms) or '(none)'}: each must be named once")
    draw = Randomiser(seed, stream)
    first, *others = arms
    if len(others) == 1:
        either = ((first, others[0]), (others[0], first))
        tossed = (either[draw.below(side)] for side in repeat(2))
        yield from islice(tossed, after)
        start: list[tuple[str, ...]] = []
        while even > 1 and len(set(start)) < 2:
            start = list(islice(tossed, even))
        yield from start
        yield from tossed
    while True:
        yield from _latin_square(arms, draw)


def arm_orders(arms: Sequence[str], blocks: int, seed: int, stream: str) -> list[tuple[str, ...]]:
    """Return the first `blocks` of `orders`; raises ValueError for a negative number of them."""
    if blocks < 0:
        raise ValueError(units.count(blocks, "block"))
    return list(islice(orders(arms, seed, stream), blocks))


Place = tuple[int, str, str, int]
"""Block, benchmark, arm, and place of the launch in its session."""


def rounds(
    arms: Sequence[str],
    labels: Sequence[str],
    blocks: int,
    seed: int,
    *,
    start: int = 0,
    even: int = EVEN,
) -> Iterator[Place]:
    """Yield the places of launches round by round, the warm-up (block 0) first; `even` as above.

    The launches of the first `start` blocks of a benchmark are shuffled as a whole: any order of
    all of them is as likely as any other, and so is any matching of the arms' launches by block.
    """
    even = 0 if start else even  # no launch of a shuffled start follows another of its block
    order = {label: orders(arms, seed, f"arms of {label}", after=1, even=even) for label in labels}
    for block in range(blocks + 1):
        if 1 < block <= start:
            continue
        for label in Randomiser(seed, f"benchmarks of round {block}").shuffled(labels):
            if block == 1 and start:
                together = [(n, arm) for n in range(1, start + 1) for arm in next(order[label])]
                for n, arm in Randomiser(seed, f"start of {label}").shuffled(together):
                    yield n, label, arm, 0
            else:
                for arm in next(order[label]):
                    yield block, label, arm, 0


def sessions(
    arms: Sequence[str],
    labels: Sequence[str],
    blocks: int,
    launches: int,
    seed: int,
    *,
    even: int = EVEN,
) -> Iterator[Place]:
    """Yield the places of sessions: in each, a warm-up launch and then all others by rounds."""
    order = orders(arms, seed, "sessions", even=even)
    for block in range(1, blocks + 1):
        for arm in next(order):
            draw = Randomiser(seed, f"benchmarks of session {block} of {arm}")
            for place in range(launches + 1):
                for label in draw.shuffled(labels):
                    yield block, label, arm, place
