"""Which machines an arm has, as its study names them: over ssh, in a pocket, of a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from paribus.core.errors import UserError
from paribus.core.units import count, percent

Order = Literal["slot", "host"]


@dataclass(frozen=True, slots=True)
class Address:
    """One host: its name in this study, where its sshd answers, and the ranks it takes.

    `port` of 0 is the one that `Ssh` names, or ssh's own. `slots` of 0: not given.
    """

    name: str
    address: str
    port: int = 0
    slots: int = 0


@dataclass(frozen=True, slots=True)
class Ssh:
    """How hosts are reached, "" and 0 where the study leaves it to ssh's defaults.

    `config` is an ssh_config(5) file to obey, `identity` a private key, `known_hosts` the file of
    accepted host keys. None of them is taken from ~/.ssh unless it is named.
    """

    user: str = ""
    port: int = 0
    jump: str = ""
    config: str = ""
    identity: str = ""
    known_hosts: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """How the link of each pocket host is shaped. A frame is delayed, and may be lost, once."""

    rate: int = 0  # bits a second in each direction, Ethernet headers counted; 0: no limit
    delay_s: float = 0.0  # added to a frame from one host to another, one way
    loss: float = 0.0  # the share of frames that are lost

    def __str__(self) -> str:
        parts = (
            f"{self.rate / 1e6:g} Mbit/s" * bool(self.rate),
            f"{self.delay_s * 1e6:g} us later" * bool(self.delay_s),
            f"{percent(self.loss)} lost" * bool(self.loss),
        )
        return ", ".join(filter(None, parts)) or "the machine's own"


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The allocation that an arm asks of the batch system `name`: whole nodes for `time_s` seconds.

    `options` are handed to its command for submission as they are. `slots` of each node are asked
    for where the batch system counts them, of the `parallel_environment` where it has such.

    Of Kubernetes: each node is a pod of `image` in `namespace` ("": that of the current context),
    held by an object of `kind`. It has `resources`, quantities by name. `pod` and `container` are
    JSON, merged into what Paribus writes of both. `autoscaled`: nodes may come that are not there.
    """

    name: Literal["slurm", "gridengine", "pbs", "torque", "flux", "kubernetes"]
    nodes: int
    time_s: float
    partition: str = ""
    account: str = ""
    constraint: str = ""
    options: tuple[str, ...] = ()
    slots: int = 0
    parallel_environment: str = ""
    namespace: str = ""
    image: str = ""
    resources: tuple[tuple[str, str], ...] = ()
    kind: Literal["Job", "JobSet", "MPIJob"] = "Job"
    autoscaled: bool = False
    pod: str = ""
    container: str = ""

    def __str__(self) -> str:
        if self.name == "kubernetes":
            place = f"namespace {self.namespace}" if self.namespace else "current namespace"
            each = [f"{value} {name}" for name, value in self.resources]
            each += [f"where {self.constraint}"] if self.constraint else []
            return ", ".join((f"{self.kind} of {self.name}, {place}", *each))
        return f"{self.name}, partition {self.partition}" if self.partition else self.name


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of an arm: `addresses` over ssh, `pocket` hosts here, or those of an allocation.

    With a `scheduler`, `addresses` are placeholders (n1, n2, ...) until it has named the nodes.
    `hypervisors` are the machines that the hosts are guests of, reached over ssh as well: one for
    each host, or one for as many hosts in a row; none where the study does not name them.
    """

    addresses: tuple[Address, ...] = ()
    pocket: int = 0  # the number of network namespaces of this machine that stand for hosts
    scheduler: Scheduler | None = None
    ssh: Ssh = field(default_factory=Ssh)
    link: Link = field(default_factory=Link)
    network: str = ""  # the address range (CIDR) or interface for MPI; "": its own choice
    order: Order = "slot"  # of ranks: fill one host after the other ("slot"), or take turns
    hypervisors: tuple[Address, ...] = ()
    launcher: Literal["", "srun"] = ""  # what starts ranks; "": the MPI's own

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts' names, in the order in which ranks are placed."""
        return tuple(one.name for one in self.addresses) or tuple(
            f"h{number}" for number in range(1, self.pocket + 1)
        )

    def below(self, number: int) -> str:
        """Return the name of the hypervisor of host `number`, from 0; "" where none is named."""
        each = len(self.addresses) // max(1, len(self.hypervisors))
        return self.hypervisors[number // each].name if self.hypervisors else ""

    def first(self, number: int) -> Hosts:
        """Return the first `number` of these hosts."""
        return replace(self, addresses=self.addresses[:number], pocket=min(self.pocket, number))


def nodes_of_ranks(hosts: Hosts, ranks: int, per_host: int) -> tuple[str, ...]:
    """Return the name of the host of each rank.

    A host takes `per_host` ranks, or its slots, or (0, and no slots given) an equal share. "slot"
    fills one host after the other, "host" takes each host in turn. Raises UserError for
    more ranks than the hosts take.

    >>> nodes_of_ranks(Hosts(pocket=2), 3, 0)
    ('h1', 'h1', 'h2')
    """
    slots = {one.name: one.slots for one in hosts.addresses}
    share = -(-ranks // len(hosts.names))
    room = {name: per_host or slots.get(name, 0) or share for name in hosts.names}
    if ranks > sum(room.values()):
        takes = "takes" if len(room) == 1 else "take"
        raise UserError(
            f"{count(ranks, 'rank')} do not fit on {count(len(room), 'host')} that {takes}"
            f" {sum(room.values())}",
            place="hosts",
            fix="name more hosts, or raise ranks_per_host",
        )
    # No host takes more than all: a hostfile may give any number of slots.
    room = {name: min(there, ranks) for name, there in room.items()}
    if hosts.order == "slot":
        filled = [name for name, there in room.items() for _ in range(there)]
        return tuple(filled[:ranks])
    deepest = max(room.values())
    turns = [name for turn in range(deepest) for name, there in room.items() if turn < there]
    return tuple(turns[:ranks])
