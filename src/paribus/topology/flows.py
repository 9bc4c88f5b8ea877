"""What transfers at the same time get: routes over the links of a tree, shared by max-min fairness.

Every route is a set of directed resources with the share of the flow that passes each. Max-min
(progressive filling): all rates grow alike until a resource is full; flows through it stay, the
others go on (Bertsekas and Gallager, Data Networks, 6.5.2). Latency, head-of-line blocking and
protocol are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paribus.topology.capacities import Capacities
from paribus.topology.tree import DEVICES, NVSWITCH, Link, Node, Peer, Tree

Resource = tuple[str, ...]
Route = Mapping[Resource, float]
"""Resources that a flow passes, each with the share of its bytes that does."""


class Network:
    """The links of a tree with what they carry: resources in `capacity`, GB/s."""

    def __init__(self, tree: Tree, stated: Capacities) -> None:
        self.tree = tree
        self.capacity: dict[Resource, float] = {}
        self._stated = stated
        self._above = tree.above()
        self._devices = {node.id: node for node in tree.walk() if node.kind in DEVICES}
        self._socket = {
            device: str(tree.sockets.index(socket)) for device, socket in tree.socket_of().items()
        }
        self._peers: dict[tuple[str, str], Peer] = {}
        for peer in tree.peers:
            self._peers[peer.a, peer.b] = self._peers[peer.b, peer.a] = peer

    def peer(self, one: str, other: str) -> Route:
        """Return the route from a GPU to another: NVLink or the like, else PCIe."""
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
        """Return the route from host memory, spread evenly over `sockets`, to a GPU."""
        own = f"cpu{self.tree.sockets[int(self._socket[gpu])].package}"
        beside = self._peers.get((gpu, own))
        route = (
            {self._of_peer(beside, own, gpu): 1.0}
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

    def local_memory(self, gpu: str) -> Route:
        """Return the route from the memory of its own socket to a GPU."""
        return self.from_memory(gpu, [self._socket[gpu]])

    def spread_memory(self, gpu: str) -> Route:
        """Return the route from memory that is spread over all sockets to a GPU."""
        return self.from_memory(gpu, [str(number) for number in range(len(self.tree.sockets))])

    def _path(self, device: str) -> list[Node]:
        """Return the switches above a device from the root port down, then the device itself.

        Each stands for the link above it; that of a card is the link above its own bridge.
        """
        upper = [n for n in self._above[device] if n.kind in ("switch", "card-bridge")]
        return [*upper, self._devices[device]]

    def _link(self, node: Node, direction: str) -> Resource:
        key = ("link", node.id or str(id(node)), direction)
        self.capacity[key] = signalling(node.link, self._stated.pcie) * self._stated.efficiency
        return key

    def _crossing(self, one: str, other: str, kind: str) -> Resource:
        """Return what GPU traffic between two root ports passes: one processor, or two."""
        ends = self._socket[one], self._socket[other]
        if ends[0] != ends[1]:
            return self._resource("sockets", ends, self._stated.socket_peer)
        ports = [str(id(self._above[d][1])) if len(self._above[d]) > 1 else d for d in (one, other)]
        return self._resource(f"processor {ends[0]}", (ports[0], ports[1]), self._stated.peer)

    def _resource(self, name: str, ends: tuple[str, str], gbs: float) -> Resource:
        """Return a resource of the processors, one for both directions where they share it."""
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
    """Return GB/s of a link before line coding, as vendors state it: 16 for x16 Gen3."""
    if link.speed and link.width:
        return link.speed * link.width / 8
    # A rate without speed is after coding of 128b/130b, or 8b/10b of generations that are past.
    return link.rate * 130 / 128 if link.rate else otherwise


def max_min(routes: Sequence[Route], capacity: Mapping[Resource, float]) -> list[float]:
    """Return the rate of each flow in GB/s, in the order of `routes`."""
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
    """Return the rate of the slowest of some flows at the same time, GB/s."""
    return min(max_min(list(routes), capacity))
