"""What nodes find out together: shared homes, ssh between them, TCP ports open to each other."""

from __future__ import annotations

import random
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paribus.cluster.answers import ASK_S, Answer, script_of
from paribus.cluster.networks import Interface
from paribus.cluster.session import AT_ONCE, Crowd, Session, SessionError, nonce, with_each
from paribus.hosts.reached import Host
from paribus.launch.toolchain import native_sources

CONNECT_S = 4.0
"""Seconds that a connection may take: the kernel sends a lost request again after 1 and 3 s."""

KERNEL_PAIRS = 256
"""Pairs of nodes on one kernel that are tried: all of its network namespaces share a table of
neighbours, with 1024 places (arp(7), gc_thresh3), and each direction of a pair takes one."""

BUILD_S = 30.0
LINKS_S = 40.0

OPTIONS = "-o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=3"
"""How a node's ssh is asked to reach another: as mpirun would, but it must not wait for people."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection that `source` could not make to `target`: `why` is silent, refused, ..."""

    source: str
    target: str
    port: int
    why: str


@dataclass(slots=True)
class Links:
    """What nodes found out together.

    `pairs` counts the pairs of nodes, `tried` those that opened connections, in both directions.
    `ssh` holds, for each ordered pair that was tried, whether `ssh TARGET true` worked. `homes`
    holds, for each node, the nodes whose files it sees in its home directory. `failed` says why a
    node took no part; `untested` why no ports were tried.
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
    """What to try: TCP ports `first` to `last` (0: those that MPI takes by itself; none without
    `ports`), and ssh between nodes with `ssh_options`, for `ssh_s` seconds, by address or
    `by_name`; paths begin at the home directory. Each node has `answer_s` to say all of itself."""

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
    """Return what the nodes that answered find out of each other.

    Up to AT_ONCE nodes every pair is tried. Above, the nodes are shuffled twice (always alike) into
    groups of that size, and every pair within a group is tried. Of nodes that share one kernel
    KERNEL_PAIRS are tried.
    """
    nodes = [(host, answer) for host, answer in zip(hosts, answers, strict=True) if answer.answered]
    found = Links(pairs=len(nodes) * (len(nodes) - 1) // 2)
    programs, found.untested = _programs(nodes) if asked.ports and len(nodes) > 1 else ({}, "")
    if not chosen and len(nodes) > 1:
        found.untested = "no network was found that they share"
    done: set[frozenset[str]] = set()
    for group in groups_of(nodes):
        done |= _Group(group, programs, chosen, asked).carry_out(found)
    found.tried = len(done)
    return found


def groups_of(nodes: list[tuple[Host, Answer]]) -> list[list[tuple[Host, Answer]]]:
    """Return groups of nodes that are linked at once: all, or two divisions of many."""
    if len(nodes) <= AT_ONCE:
        return [nodes] if len(nodes) > 1 else []
    groups = []
    for seed in (1, 2):
        shuffled = random.Random(seed).sample(nodes, len(nodes))
        groups += [shuffled[i : i + AT_ONCE] for i in range(0, len(nodes), AT_ONCE)]
    return [group for group in groups if len(group) > 1]


def peers_of(group: Sequence[tuple[Host, Answer]]) -> list[list[int]]:
    """Return, for each node of a group, the others that it tries; whom it tries tries it."""
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
    """Return what a program must be compiled for."""
    return answer.one("arch"), answer.one("libc")


def _programs(nodes: Sequence[tuple[Host, Answer]]) -> tuple[dict[tuple[str, str], str], str]:
    """Return the program in base64 for each kind of node, and why there is none for some."""
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
    for kind, said in zip(
        kinds, with_each([able[kind][0] for kind in kinds], BUILD_S, talk), strict=True
    ):
        if isinstance(said, SessionError):
            why = f"the compiler of {able[kind][0].name} did not end ({said})"
        elif not re.fullmatch(r"[A-Za-z0-9+/=\n]+", said):
            first = said.splitlines()[0].removeprefix("! ") if said else "nowhere to write"
            why = f"the compiler of {able[kind][0].name} failed: {first}"
        else:
            made[kind] = said
    without = [answer.name for _, answer in nodes if _kind(answer) not in able]
    if without and not why:
        why = f"no C++ compiler on {without[0]} or a node like it"
    return made, why


class _Group:
    """Nodes whose shells are open at once; the methods are the steps of links.sh, in their order.

    A step is taken by each node, given by its number, in a session.
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

    def carry_out(self, found: Links) -> set[frozenset[str]]:
        """Add to `found` what the nodes find out; returns the pairs that tried ports."""
        with Crowd(self.hosts, LINKS_S) as crowd:
            crowd.each(self.begin)
            for name, said in zip(self.names, crowd.each(self.ask), strict=True):
                if not isinstance(said, SessionError):
                    found.homes[name], works = said
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
        """Let a node read the script."""
        program = self.programs.get(_kind(self.answers[number]), "")
        asked = self.asked
        session.send(
            f"{{ mark={self.mark} number={number} first={asked.first} last={asked.last}"
            f" ssh={shlex.quote(asked.ssh_options)}\n"
            f"{script_of('links.sh').replace('@PROGRAM@', program)}}}\n"
        )
        session.until("ready")

    def ask(self, number: int, session: Session) -> tuple[tuple[str, ...], dict[str, bool]]:
        """Return whose files a node sees in its home, and which others its ssh reaches."""
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
    """Return the port on which a node's sshd listens, as the connection from here shows it."""
    words = answer.one("connection").split()
    return int(words[3]) if len(words) == 4 and words[3].isdecimal() else 22
