"""What nodes find out together: shared home directories, ssh between them, open TCP ports.

Each node listens on some ports, and others connect to these; so a firewall between n1 and n3 is
found as "n3 does not reach n1 over TCP (ports 42000, ...)".
"""

from __future__ import annotations

import ipaddress
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from paribus.cluster.answers import ASK_S, Answer, script_of
from paribus.cluster.checks import Finding
from paribus.hosts.reached import Host
from paribus.hosts.session import AT_ONCE, Crowd, Session, SessionError, nonce, with_each
from paribus.launch.interfaces import addresses
from paribus.launch.toolchain import native_sources

_VIRTUAL = re.compile(r"docker|virbr|br-|cni|flannel|lxc|podman|veth")
"""Names of interfaces that container engines and the like make: they lead to no other node."""


@dataclass(frozen=True, slots=True)
class Interface:
    """An IPv4 address of a node and its interface; speed in Mbit/s, -1 if not known."""

    name: str
    address: ipaddress.IPv4Interface
    mtu: int = 0
    speed: int = -1


def interfaces(answer: Answer) -> tuple[Interface, ...]:
    """Return the IPv4 addresses of a node, without loopback and link-local ones."""
    rows = {words[0]: words for words in (one.split() for one in answer.all("interface")) if words}
    found = []
    for name, text in _addresses(answer):
        try:
            address = ipaddress.IPv4Interface(text)
        except ValueError:
            continue
        if not address.is_loopback and not address.is_link_local:
            words = rows.get(name, [])
            mtu, speed = (_number(words, 1), _number(words, 3)) if words else (0, -1)
            found.append(Interface(name, address, mtu, speed))
    return tuple(found)


def _number(words: Sequence[str], place: int) -> int:
    try:
        return int(words[place])
    except (IndexError, ValueError):
        return -1


def _addresses(answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield (interface, address/length): from `ip`, or from /proc/net where there is none."""
    for line in answer.all("address"):
        if match := re.match(r"(\S+)\s+inet (\S+)", line):
            yield match[1].partition("@")[0], match[2]
    for name, address in addresses(answer.all("route"), answer.all("trie")):
        yield name, str(address)


def choose(
    answers: Sequence[Answer], wanted: str
) -> tuple[str, dict[str, Interface], list[Finding]]:
    """Return the network (CIDR) that MPI should use, each node's interface in it, and findings.

    `wanted` is a CIDR or an interface's name, "" for the one network that all nodes share.
    """
    have = {one.name: interfaces(one) for one in answers}
    if wanted:
        return _wanted(have, wanted)
    shared = _shared(have)
    if not shared:
        listed = "; ".join(
            f"{name}: {', '.join(str(i.address) for i in interfaces) or 'no address'}"
            for name, interfaces in list(have.items())[:4]
        )
        cause = f"no network has an address of every node ({listed})"
        fix = "name the network that connects them: --network 10.0.0.0/8"
        return "", {}, [Finding("network", "broken", cause, fix=fix)]
    (network, chosen), *others = shared
    findings = [Finding("network", "ok", f"{network}{_speed(chosen)}")]
    if others:
        names = ", ".join(f"{cidr}{_speed(interfaces)}" for cidr, interfaces in others)
        cause = f"the nodes share several networks: {network}{_speed(chosen)}, {names}; {network}"
        findings = [
            Finding(
                "network",
                "warning",
                f"{cause} was taken",
                fix=f'name the one that MPI is to take: --network {network}, and network = "..."'
                " in the arm",
            )
        ]
    return network, chosen, findings + _differing(chosen)


def _speed(chosen: Mapping[str, Interface]) -> str:
    speed = min(one.speed for one in chosen.values())
    return f" ({speed} Mbit/s)" if speed > 0 else ""


def _shared(have: Mapping[str, Sequence[Interface]]) -> list[tuple[str, dict[str, Interface]]]:
    """Return the networks in which each node has an address of its own, the fastest first."""
    found: dict[str, dict[str, Interface]] = {}
    for name, interfaces in have.items():
        for one in interfaces:
            if not _VIRTUAL.match(one.name):
                found.setdefault(str(one.address.network), {}).setdefault(name, one)
    whole = [
        (network, nodes)
        for network, nodes in found.items()
        if len(nodes) == len(have)
        and (len(have) == 1 or len({one.address.ip for one in nodes.values()}) > 1)
    ]
    return sorted(whole, key=lambda one: -min(i.speed for i in one[1].values()))


def _wanted(
    have: Mapping[str, Sequence[Interface]], wanted: str
) -> tuple[str, dict[str, Interface], list[Finding]]:
    """Return what `choose` does for a network or an interface that was named."""
    chosen: dict[str, Interface] = {}
    try:
        network = ipaddress.IPv4Network(wanted, strict=False)
    except ValueError:
        network = None
    for name, interfaces in have.items():
        for one in interfaces:
            if one.name == wanted or (network and one.address.ip in network):
                chosen.setdefault(name, one)
    if without := tuple(name for name in have if name not in chosen):
        others = ", ".join(str(one.address) for one in have[without[0]]) or "none"
        cause = f"no address in {wanted}; {without[0]} has {others}"
        fix = "name a network or an interface that every node has"
        return wanted, {}, [Finding("network", "broken", cause, without, fix)]
    named = str(network or next(iter(chosen.values())).address.network)
    found = Finding("network", "ok", f"{named}{_speed(chosen)}")
    return named, chosen, [found, *_differing(chosen)]


def _differing(chosen: Mapping[str, Interface]) -> list[Finding]:
    """Return a warning where the interfaces have different MTUs."""
    sizes: dict[int, list[str]] = {}
    for name, one in chosen.items():
        sizes.setdefault(one.mtu, []).append(name)
    if len(sizes) < 2:
        return []
    few = min(sizes, key=lambda mtu: len(sizes[mtu]))
    cause = f"frames of {few} B where others have {max(sizes, key=lambda m: len(sizes[m]))} B (MTU)"
    fix = "set one size on all: ip link set dev NAME mtu 9000, as the switches permit"
    return [Finding("network", "warning", cause, tuple(sizes[few]), fix)]


CONNECT_S = 4.0
"""Seconds that a connection may take: the kernel repeats a lost request after 1 and 3 s."""

KERNEL_PAIRS = 256
"""Pairs of nodes on one kernel that are tried: its network namespaces share one ARP table with 1024
entries (arp(7), gc_thresh3), and each direction of a pair takes one."""

BUILD_S = 30.0
LINKS_S = 40.0
"""Seconds that compiling may take on a node, and all steps of links.sh together."""

OPTIONS = "-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=3"
"""Options of ssh between nodes: as mpirun would call it, but without questions to a user."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection that `source` could not make to `target`; `why`: "silent", "refused", "stuck",
    "stranger" or "closed"."""

    source: str
    target: str
    port: int
    why: str


@dataclass(slots=True)
class Links:
    """What nodes found out together.

    `pairs`: the number of pairs of nodes; `tried`: of those that tried ports, in both directions.
    `closed`: the connections that failed. `ssh`: for each ordered pair that was tried, whether `ssh
    TARGET true` worked. `homes`: for each node, the nodes whose files it sees in its home
    directory. `failed`: why nodes did not complete; `untested`: why no ports were tried.
    """

    pairs: int = 0
    tried: int = 0
    closed: list[Closed] = field(default_factory=list)
    ssh: dict[tuple[str, str], bool] = field(default_factory=dict)
    homes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    untested: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to try.

    `first`, `last`: the range of TCP ports, 0 for those that MPI takes by itself; none are tried
    without `ports`. `ssh_options`, `ssh_s`: how ssh between nodes is called, from the home
    directory, and for how many seconds; by address, or `by_name`. `answer_s`: the seconds that a
    node has for its answer.
    """

    first: int = 0
    last: int = 0
    ssh_s: int = 3
    ssh_options: str = OPTIONS
    answer_s: float = ASK_S
    ports: bool = True
    by_name: bool = False


def link(
    hosts: Sequence[Host],
    answers: Sequence[Answer],
    chosen: Mapping[str, Interface],
    asked: Asked,
) -> Links:
    """Return what the nodes that answered find out about each other.

    Up to AT_ONCE nodes every pair is tried. More are divided twice into groups of that size, by
    fixed shuffles, and every pair within a group is tried. Of nodes on one kernel only KERNEL_PAIRS
    pairs are tried.
    """
    nodes = [(host, answer) for host, answer in zip(hosts, answers, strict=True) if answer.answered]
    found = Links(pairs=len(nodes) * (len(nodes) - 1) // 2)
    programs, found.untested = _programs(nodes) if asked.ports and len(nodes) > 1 else ({}, "")
    if not chosen and len(nodes) > 1:
        found.untested = "no network was found that they share"
    done: set[frozenset[str]] = set()
    for group in groups_of(nodes):
        done |= _Group(group, programs, chosen, asked).execute(found)
    found.tried = len(done)
    return found


def groups_of(nodes: list[tuple[Host, Answer]]) -> list[list[tuple[Host, Answer]]]:
    """Return the groups of nodes whose pairs are tried: one of all, or those of two divisions."""
    if len(nodes) <= AT_ONCE:
        return [nodes] if len(nodes) > 1 else []
    groups = []
    for seed in (1, 2):
        shuffled = random.Random(seed).sample(nodes, len(nodes))
        groups += [shuffled[i : i + AT_ONCE] for i in range(0, len(nodes), AT_ONCE)]
    return [group for group in groups if len(group) > 1]


def peers_of(group: Sequence[tuple[Host, Answer]]) -> list[list[int]]:
    """Return for each node of a group the numbers of those that it tries; tries are mutual."""
    size = len(group)
    most = size - 1
    if max(Counter(answer.one("boot") for _, answer in group).values()) > 1:
        most = max(2, min(most, 2 * KERNEL_PAIRS // size))
    # A ring through all, then across it.
    steps = [step for k in range(1, size) for step in (k, -k) if 2 * k < size]
    steps += [size // 2] if size % 2 == 0 else []
    if most < len(steps):
        across = [k for k in range(2, size) if 2 * k < size]
        chosen = random.Random(1).sample(across, min(len(across), most // 2 - 1))
        steps = [step for k in (1, *chosen) for step in (k, -k)]
    return [[(number + step) % size for step in steps] for number in range(size)]


def _kind(answer: Answer) -> tuple[str, str]:
    return answer.one("arch"), answer.one("libc")


def _programs(nodes: Sequence[tuple[Host, Answer]]) -> tuple[dict[tuple[str, str], str], str]:
    """Return ports.cpp compiled for each kind of node, in base64, and why some kind lacks it."""
    source = (native_sources() / "cluster" / "ports.cpp").read_text(encoding="utf-8")
    script = script_of("build.sh").replace("@SOURCE@", source)
    able = {_kind(a): (h, a.one("compiler")) for h, a in reversed(nodes) if a.one("compiler")}
    compilers = {host.name: compiler for host, compiler in able.values()}

    def talk(session: Session) -> str:
        mark, compiler = nonce(), shlex.quote(compilers[session.host.name])
        session.send(
            f"{{ mark={mark} compiler={compiler}\necho; echo {mark}\n{script}}} </dev/null\n"
        )
        session.until(mark)
        lines = session.until(mark)
        return "\n".join(lines)

    kinds = list(able)
    made: dict[tuple[str, str], str] = {}
    why = ""
    for kind, printed in zip(
        kinds, with_each([able[kind][0] for kind in kinds], BUILD_S, talk), strict=True
    ):
        if isinstance(printed, SessionError):
            why = f"the compiler of {able[kind][0].name} did not end ({printed})"
        elif not re.fullmatch(r"[A-Za-z0-9+/=\n]+", printed):
            first = printed.splitlines()[0].removeprefix("! ") if printed else "nowhere to write"
            why = f"the compiler of {able[kind][0].name} failed: {first}"
        else:
            made[kind] = printed
    without = [answer.name for _, answer in nodes if _kind(answer) not in able]
    if without and not why:
        why = f"no C++ compiler on {without[0]} or a node like it"
    return made, why


class _Group:
    """Nodes whose shells are open at once, running links.sh.

    `begin`, `ask`, `listen` and `connect` are its steps, in this order; each is done for every
    node, given by its number, in its session.
    """

    def __init__(
        self,
        nodes: Sequence[tuple[Host, Answer]],
        programs: Mapping[tuple[str, str], str],
        chosen: Mapping[str, Interface],
        asked: Asked,
    ) -> None:
        self.answers = [answer for _, answer in nodes]
        self.hosts = [host for host, _ in nodes]
        self.names = [answer.name for answer in self.answers]
        self.programs, self.chosen, self.asked = programs, chosen, asked
        self.peers = peers_of(nodes)
        self.mark = nonce()
        self.ports: dict[int, list[int]] = {}

    def execute(self, found: Links) -> set[frozenset[str]]:
        """Do all steps, add the results to `found`, and return the pairs that tried ports."""
        with Crowd(self.hosts, LINKS_S) as crowd:
            crowd.each(self.begin)
            for name, answer in zip(self.names, crowd.each(self.ask), strict=True):
                if not isinstance(answer, SessionError):
                    found.homes[name], works = answer
                    found.ssh |= {(name, other): fine for other, fine in works.items()}
            for number, ports in enumerate(crowd.each(self.listen)):
                if ports and not isinstance(ports, SessionError):
                    self.ports[number] = ports
            for name, closed in zip(self.names, crowd.each(self.connect), strict=True):
                if isinstance(closed, SessionError):
                    found.failed[name] = str(closed)
                else:
                    found.closed += closed
        return {
            frozenset((self.names[a], self.names[b]))
            for a in self.ports
            for b in self.peers[a]
            if b in self.ports
        }

    def begin(self, number: int, session: Session) -> None:
        """Send the script to a node, and wait until it is ready."""
        program = self.programs.get(_kind(self.answers[number]), "")
        asked = self.asked
        session.send(
            f"{{ mark={self.mark} number={number} first={asked.first} last={asked.last}"
            f" ssh={shlex.quote(asked.ssh_options)}\n"
            f"{script_of('links.sh').replace('@PROGRAM@', program)}}}\n"
        )
        session.until("ready")

    def ask(self, number: int, session: Session) -> tuple[tuple[str, ...], dict[str, bool]]:
        """Return the nodes whose files a node sees in its home, and by node whether ssh works."""
        lines = [
            f"{peer} {self.names[peer] if self.asked.by_name else self.address(peer)}"
            f" {ssh_port(self.answers[peer])}\n"
            for peer in self.peers[number]
            if self.names[peer] in self.chosen
        ]
        session.send(f"{self.asked.ssh_s}\n{''.join(lines)}end\n")
        seen, works = [], {}
        for line in session.until("asked"):
            match line.split():
                case ["home", other] if other.isdecimal() and int(other) < len(self.names):
                    seen.append(self.names[int(other)])
                case ["ssh", other, code] if other.isdecimal() and int(other) < len(self.names):
                    works[self.names[int(other)]] = code == "0"
        return tuple(seen), works

    def listen(self, number: int, session: Session) -> list[int]:
        """Return the ports on which a node listens, none where it has no program."""
        able = bool(self.chosen) and _kind(self.answers[number]) in self.programs
        session.send("go\n" if able else "no\n")
        while not (line := session.line()).startswith("listening"):
            pass
        return [int(word) for word in line.split()[1:] if word.isdecimal()]

    def connect(self, number: int, session: Session) -> list[Closed]:
        """Return the connections that a node could not make."""
        if number not in self.ports:
            return []
        lines = [
            f"{peer} {self.address(peer)} {' '.join(map(str, self.ports[peer]))}\n"
            for peer in self.peers[number]
            if peer in self.ports
        ]
        session.send(f"{''.join(lines)}go {CONNECT_S * 1000:.0f}\n")
        closed = []
        for line in session.until("done"):
            match line.split(maxsplit=3):
                case ["to", peer, port, why] if why != "ok" and f"{peer}{port}".isdecimal():
                    if int(peer) < len(self.names):
                        target = self.names[int(peer)]
                        closed.append(Closed(self.names[number], target, int(port), why))
        return closed

    def address(self, number: int) -> str:
        """Return the address of a node in the network that was chosen."""
        return str(self.chosen[self.names[number]].address.ip)


def ssh_port(answer: Answer) -> int:
    """Return the port of a node's sshd: the last word of its SSH_CONNECTION, else 22."""
    words = answer.one("connection").split()
    return int(words[3]) if len(words) == 4 and words[3].isdecimal() else 22
