"""Predictions of what the links of a tree carry in each load, by max-min fair flows.

Example: two GPUs below a switch with an x16 Gen3 uplink get 16 GB/s from host memory alone, and 8
each together. Nothing of it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, permutations, product
from typing import Literal

from paribus.topology.capacities import Capacities, Model
from paribus.topology.shape import shape_of
from paribus.topology.tree import DEVICES, NVSWITCH, Link, Node, Peer, Tree

# Transfers at the same time share the links by max-min fairness (progressive filling): all rates
# grow alike until a resource is full; flows through it stay, the others go on (Bertsekas and
# Gallager, Data Networks, 6.5.2). Latency, head-of-line blocking and protocol are not modelled.

Resource = tuple[str, ...]
"""A link in one direction, such as ("link", address, "up"), or a part of a processor."""

Route = Mapping[Resource, float]
"""The resources that a flow passes, each with the share of the flow's bytes that passes it."""


class Network:
    """The links of a tree as resources, with the `capacity` of each in GB/s; `gpus`: their ids."""

    def __init__(self, tree: Tree, stated: Capacities) -> None:
        self.tree = tree
        self.capacity: dict[Resource, float] = {}
        self._stated = stated
        self.gpus = [gpu.id for gpu in tree.gpus]
        self._above = tree.above()
        self._devices = {node.id: node for node in tree.walk() if node.kind in DEVICES}
        self._socket = {
            device: str(tree.sockets.index(socket)) for device, socket in tree.socket_of().items()
        }
        self._peers: dict[tuple[str, str], Peer] = {}
        for peer in tree.peers:
            self._peers[peer.a, peer.b] = self._peers[peer.b, peer.a] = peer

    def peer(self, one: str, other: str) -> Route:
        """Return the route from a GPU to another: over NVLink or the like, else over PCIe."""
        beside = self._beside(one, other)
        if beside:
            return beside
        above, below = self._path(one), self._path(other)
        common = 0
        for upper, lower in zip(above, below, strict=False):
            if upper is not lower:
                break
            common += 1
        redirected = common and any(n.redirects for n in above[common - 1 : common])
        start = 0 if redirected else common
        used = [self._link(node, "up") for node in above[start:]]
        used += [self._link(node, "down") for node in below[start:]]
        if start == 0:
            used.append(self._crossing(one, other, "peer"))
        return dict.fromkeys(used, 1.0)

    def from_memory(self, gpu: str, sockets: Sequence[str]) -> Route:
        """Return the route to a GPU from host memory that is spread evenly over `sockets`."""
        cpu = f"cpu{self.tree.sockets[int(self._socket[gpu])].package}"
        beside = self._peers.get((gpu, cpu))
        route = (
            {self._of_peer(beside, cpu, gpu): 1.0}
            if beside
            else dict.fromkeys([self._link(node, "down") for node in self._path(gpu)], 1.0)
        )
        for socket in sockets:
            if socket != self._socket[gpu]:
                key = self._resource(
                    "between sockets", (socket, self._socket[gpu]), self._stated.socket_memory
                )
                route[key] = route.get(key, 0.0) + 1 / len(sockets)
        return route

    def local(self) -> list[Route]:
        """Return the route of each GPU from the memory of its own socket."""
        return [self.from_memory(gpu, [self._socket[gpu]]) for gpu in self.gpus]

    @cached_property
    def alone(self) -> dict[tuple[str, str], float]:
        """GB/s of each ordered pair of GPUs while nothing else uses the links, by their ids."""
        several = permutations(self.gpus, 2)
        return {pair: slowest([self.peer(*pair)], self.capacity) for pair in several}

    @cached_property
    def together(self) -> dict[tuple[str, str], float]:
        """GB/s of each ordered pair of GPUs while all of them transfer."""
        several = list(permutations(self.gpus, 2))
        rates = max_min([self.peer(*pair) for pair in several], self.capacity)
        return dict(zip(several, rates, strict=True))

    @cached_property
    def rates(self) -> Rates:
        """The rates on which the time of a training step depends."""
        return Rates(input_rate(self), reduce_ms(self, 1.0))

    def _path(self, device: str) -> list[Node]:
        """Return the switches above a device, from the root port down, and the device itself.

        Each stands for the link above it.
        """
        upper = [n for n in self._above[device] if n.kind in ("switch", "card-bridge")]
        return [*upper, self._devices[device]]

    def _link(self, node: Node, direction: str) -> Resource:
        key = ("link", node.id or str(id(node)), direction)
        self.capacity[key] = signalling(node.link, self._stated.pcie) * self._stated.efficiency
        return key

    def _crossing(self, one: str, other: str, kind: str) -> Resource:
        """Return the resource between two root ports: within one processor, or between two."""
        ends = self._socket[one], self._socket[other]
        if ends[0] != ends[1]:
            return self._resource("sockets", ends, self._stated.socket_peer)
        ports = [str(id(self._above[d][1])) if len(self._above[d]) > 1 else d for d in (one, other)]
        return self._resource(f"processor {ends[0]}", (ports[0], ports[1]), self._stated.peer)

    def _resource(self, name: str, ends: tuple[str, str], gbs: float) -> Resource:
        """Return a resource of processors; it is the same for both directions if they share it."""
        shared = self._stated.shared and name != "between sockets"
        key = (name,) if shared else (name, *ends)
        self.capacity[key] = gbs
        return key

    def _beside(self, one: str, other: str) -> Route:
        direct = self._peers.get((one, other))
        if direct is not None:
            return {self._of_peer(direct, one, other): 1.0}
        up, down = self._peers.get((one, NVSWITCH)), self._peers.get((other, NVSWITCH))
        if up is None or down is None:
            return {}
        return {self._of_peer(up, one, NVSWITCH): 1.0, self._of_peer(down, NVSWITCH, other): 1.0}

    def _of_peer(self, peer: Peer, one: str, other: str) -> Resource:
        each = {"nvlink": self._stated.nvlink, "xgmi": self._stated.xgmi, "c2c": self._stated.c2c}
        self.capacity["beside", one, other] = peer.gbs or peer.count * each[peer.kind]
        return "beside", one, other


def signalling(link: Link, otherwise: float) -> float:
    """Return the GB/s of a link before line coding, as vendors state it: 16 for x16 Gen3.

    `otherwise`: for a link without speed, width and rate.
    """
    if link.speed and link.width:
        return link.speed * link.width / 8
    # A rate is after line coding, of 128b/130b; older generations are not considered.
    return link.rate * 130 / 128 if link.rate else otherwise


def max_min(routes: Sequence[Route], capacity: Mapping[Resource, float]) -> list[float]:
    """Return the rate of each flow in GB/s, in the order of `routes`; inf for an empty route."""
    rates = [0.0] * len(routes)
    growing = set(range(len(routes)))
    left = {key: capacity[key] for route in routes for key in route}
    while growing:
        load: dict[Resource, float] = {}
        for flow in growing:
            for key, share in routes[flow].items():
                load[key] = load.get(key, 0.0) + share
        if not load:
            return [float("inf") if flow in growing else rate for flow, rate in enumerate(rates)]
        step = min(left[key] / weight for key, weight in load.items())
        for flow in growing:
            rates[flow] += step
        for key, weight in load.items():
            left[key] -= step * weight
        full = {key for key in load if left[key] <= 1e-9 * capacity[key]}
        growing = {flow for flow in growing if not full & routes[flow].keys()}
    return rates


def slowest(routes: Iterable[Route], capacity: Mapping[Resource, float]) -> float:
    """Return the rate of the slowest of simultaneous flows, in GB/s."""
    return min(max_min(list(routes), capacity))


_MOST_STEPS = 20_000
"""Steps of a search for a ring over direct links: most take as many as there are GPUs."""


def ring_rate(network: Network, order: Sequence[str]) -> float:
    """Return the GB/s of a ring of GPUs: of its slowest part while all parts are in use."""
    following = [*order[1:], order[0]]
    routes = [network.peer(a, b) for a, b in zip(order, following, strict=True)]
    return slowest(routes, network.capacity)


def nccl_order(network: Network) -> list[str]:
    """Return the order of a ring as NCCL begins to build it (graph/search.cc).

    The next GPU is always the one with the most bandwidth, then the fewest links on the way, then
    the next number (ncclTopoSearchNextGpuSort). NCCL itself backtracks where this ring is poor, and
    makes several rings of NVLinks.
    """
    ids = network.gpus
    order = ids[:1]
    while len(order) < len(ids):
        last = order[-1]
        left = [other for other in ids if other not in order]
        routes = {other: network.peer(last, other) for other in left}
        scores = {
            other: (
                -slowest([routes[other]], network.capacity),
                len(routes[other]),
                (ids.index(other) - ids.index(last)) % len(ids),
            )
            for other in left
        }
        order.append(min(left, key=scores.__getitem__))
    return order


def best_order(network: Network) -> list[str]:
    """Return the order of the fastest of a few rings.

    In the order of the tree every link is passed once in each direction, which is the least where
    GPUs are on both sides. NCCL's ring is tried too, and where GPUs have direct links one over the
    widest of them.
    """
    orders = [[gpu.id for gpu in network.tree.walk() if gpu.kind == "gpu"], nccl_order(network)]
    if any(peer.direct for peer in network.tree.peers):
        orders += [ring for ring in [_widest(network)] if ring]
    return max(orders, key=lambda order: ring_rate(network, order))


def _widest(network: Network) -> list[str]:
    """Return a ring whose slowest pair is as fast as possible; [] where none is found soon."""
    rates = network.alone
    for floor in sorted(set(rates.values()), reverse=True):
        wide = {pair for pair, rate in rates.items() if rate >= floor}
        if ring := _ring_above(network.gpus, wide):
            return ring
    return []


def _ring_above(ids: list[str], pairs: set[tuple[str, str]]) -> list[str]:
    """Return a ring over `pairs` alone by depth-first search, [] after _MOST_STEPS."""
    steps = 0
    order = ids[:1]

    def extended() -> bool:
        """Extend `order` to a ring, in place; return whether it could be."""
        nonlocal steps
        steps += 1
        if len(order) == len(ids):
            return (order[-1], order[0]) in pairs
        for other in ids:
            if steps < _MOST_STEPS and other not in order and (order[-1], other) in pairs:
                order.append(other)
                if extended():
                    return True
                order.pop()
        return False

    return order if extended() else []


LOADS = ("p2p", "p2p-all", "host-to-device", "ring-allreduce", "training", "hpl")

ALIKE = 0.01
"""Figures that differ by less, as a share, are alike: the model is no more exact."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A predicted figure of a load, one value for each tree; `of`: the pair, model or place."""

    load: str
    of: str
    unit: str
    better: Literal["higher", "lower"]
    values: tuple[float, ...]


def forecasts(trees: Sequence[Tree], loads: Sequence[str], stated: Capacities) -> list[Forecast]:
    """Return the forecasts of some loads, each with one figure for each tree.

    Every tree has two GPUs at least.
    """
    networks = [Network(tree, stated) for tree in trees]
    found: list[Forecast] = []
    for load in loads:
        for of, unit, figure in _figures(load, stated):
            values = [figure(network) for network in networks]
            if load == "hpl":  # a share of the best tree's speed, whose host traffic is a share
                share, best = stated.host_share, max(values)
                values = [1 / (1 - share + share * best / one) for one in values]
            found.append(Forecast(load, of, unit, _BETTER.get(unit, "higher"), tuple(values)))
    return found


_BETTER: Mapping[str, Literal["higher", "lower"]] = {"ms": "lower"}


def _figures(
    load: str, stated: Capacities
) -> Iterator[tuple[str, str, Callable[[Network], float]]]:
    """Yield the figures of a load: `of` and unit of Forecast, and the function that computes it."""
    if load == "p2p":
        yield "nearest pair", "GB/s", lambda n: max(n.alone.values())
        yield "farthest pair", "GB/s", lambda n: min(n.alone.values())
        yield "farthest pair, both ways", "GB/s", _both_ways
    elif load == "p2p-all":
        yield "slowest pair", "GB/s", lambda n: min(n.together.values())
        yield "all together", "GB/s", lambda n: sum(n.together.values())
    elif load == "host-to-device":
        yield "one GPU alone", "GB/s", lambda n: min(slowest([r], n.capacity) for r in n.local())
        yield "each of all at once", "GB/s", input_rate
        yield "all together, spread memory", "GB/s", spread_rate
    elif load == "ring-allreduce":
        yield "ring in NCCL's order", "GB/s", lambda n: ring_rate(n, nccl_order(n))
        yield "ring in the best order", "GB/s", lambda n: ring_rate(n, best_order(n))
        yield "100 MB", "ms", lambda n: reduce_ms(n, 100.0)
    elif load == "training":
        for name, model in stated.models.items():
            yield f"{name}, a step", "ms", partial(_step_of, model, stated)
            yield name, "images/s", partial(_images_per_s, model, stated)
    else:
        yield "speed, the best tree's as 1", "", spread_rate


def _both_ways(network: Network) -> float:
    a, b = min(network.alone, key=network.alone.__getitem__)
    return sum(max_min([network.peer(a, b), network.peer(b, a)], network.capacity))


@dataclass(frozen=True, slots=True)
class Pairs:
    """The predicted GB/s of each pair of GPUs, from row to column, and orders of a ring.

    `alone`: nothing else is transferred; `together`: all pairs at once.
    """

    gpus: tuple[str, ...]
    alone: tuple[tuple[float | None, ...], ...]
    together: tuple[tuple[float | None, ...], ...]
    nccl_ring: tuple[str, ...]
    best_ring: tuple[str, ...]


def pairs_of(tree: Tree, stated: Capacities) -> Pairs:
    """Return the predicted rates of all pairs of GPUs of a tree, and the orders of its ring."""
    network = Network(tree, stated)
    names = {gpu.id: gpu.name or gpu.id for gpu in tree.gpus}

    def rows(rate: Mapping[tuple[str, str], float]) -> tuple[tuple[float | None, ...], ...]:
        return tuple(tuple(rate.get((a, b)) for b in names) for a in names)

    return Pairs(
        tuple(names.values()),
        rows(network.alone),
        rows(network.together),
        tuple(names[one] for one in nccl_order(network)),
        tuple(names[one] for one in best_order(network)),
    )


def input_rate(network: Network) -> float:
    """Return GB/s that each GPU gets from local memory while all read: of the slowest GPU."""
    return slowest(network.local(), network.capacity)


def spread_rate(network: Network) -> float:
    """Return GB/s of all GPUs together from memory that is spread over all sockets."""
    sockets = [str(number) for number in range(len(network.tree.sockets))]
    routes = [network.from_memory(gpu, sockets) for gpu in network.gpus]
    return sum(max_min(routes, network.capacity))


def reduce_ms(network: Network, megabytes: float) -> float:
    """Return ms of a ring all-reduce: each GPU sends 2 (n - 1) / n of the bytes on its way.

    (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69, 2009.) Latency is not in it.
    """
    gpus = len(network.gpus)
    return 2 * (gpus - 1) / gpus * megabytes / ring_rate(network, best_order(network))


@dataclass(frozen=True, slots=True)
class Rates:
    """What a step of training needs of a tree: GB/s of input, and ms to reduce 1 MB."""

    input_gbs: float
    reduce_ms_per_mb: float


def step_ms(
    rates: Rates, gradient_mb: float, input_mb: float, compute_ms: float, stated: Capacities
) -> float:
    """Return ms of a step: compute, and what it does not hide of input and all-reduce.

    MB are 10^6 B, of each GPU; capacities.toml has the shares that are exposed.
    """
    return (
        compute_ms
        + stated.input_exposed * input_mb / rates.input_gbs
        + stated.reduce_exposed * gradient_mb * rates.reduce_ms_per_mb
    )


def _step_of(model: Model, stated: Capacities, network: Network) -> float:
    inputs = model.images * model.image_mb
    return step_ms(network.rates, model.gradient_mb, inputs, model.compute_ms, stated)


def _images_per_s(model: Model, stated: Capacities, network: Network) -> float:
    return 1000 * len(network.gpus) * model.images / _step_of(model, stated, network)


# --- beside what was published -----------------------------------------------------------------


Holds = Literal["yes", "tie", "no"]


@dataclass(frozen=True, slots=True)
class Beside:
    """A published ordering of trees beside the predicted ones.

    These are two: with links of a processor that both directions share, and with a link for each
    direction. `holds`, for each: "tie" where the published best is best by less than ALIKE.
    """

    of: str
    published: str
    predicted: tuple[str, str]
    holds: tuple[Holds, Holds]


_FORECAST_OF = {
    "p2p-within": ("p2p", "nearest pair"),
    "p2p-across": ("p2p", "farthest pair"),
    "hpl": ("hpl", "speed, the best tree's as 1"),
}


def beside_published(trees: Sequence[Tree], stated: Capacities) -> list[Beside]:
    """Return the published orderings beside the predicted ones; none for other trees than theirs.

    Whether both directions share the links of a processor is not known, so both are tried.
    """
    names = [shape_of(tree).name for tree in trees]
    if sorted(names) != ["Balance", "Cascade", "Common"]:
        return []
    found = []
    for of, published in stated.published.items():
        load, what = _FORECAST_OF.get(of, ("training", of))
        ways = [
            dict(zip(names, one.values, strict=True))
            for shared in (True, False)
            for one in forecasts(trees, [load], replace(stated, shared=shared))
            if one.of == what
        ]
        if ways:
            a, b = ways
            holds = has_order(published, a), has_order(published, b)
            found.append(Beside(of, published, (ordering(a), ordering(b)), holds))
    return found


def ordering(values: Mapping[str, float]) -> str:
    """Return the names from the highest value down: "A > B = C", "=" between alike ones."""
    names = sorted(values, key=lambda name: -values[name])
    text = names[0]
    for upper, lower in pairwise(names):
        text += (" = " if _alike(values[upper], values[lower]) else " > ") + lower
    return text


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= ALIKE * max(one, other)


def has_order(published: str, values: Mapping[str, float]) -> Holds:
    """Return whether `values` have an order such as "A > B = C"; a single name is the best one."""
    levels = [[name.strip() for name in level.split("=")] for level in published.split(">")]
    if published.strip() in values:
        best = published.strip()
        others = [value for name, value in values.items() if name != best]
        if values[best] <= max(others):
            return "no"
        return "tie" if _alike(values[best], max(others)) else "yes"
    alike = all(_alike(values[a], values[b]) for level in levels for a, b in product(level, level))
    falling = all(
        values[a] > values[b] and not _alike(values[a], values[b])
        for upper, lower in pairwise(levels)
        for a, b in product(upper, lower)
    )
    return "yes" if alike and falling else "no"
