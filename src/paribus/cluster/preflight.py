"""The preflight of a cluster: every precondition of MPI launches, tested on every node at once."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from paribus.cluster import checks, mpi
from paribus.cluster.answers import Answer, ask
from paribus.cluster.checks import Finding, worst_first
from paribus.cluster.links import Asked, Closed, Interface, Links, choose, link
from paribus.cluster.mpi import named
from paribus.core import count, fold
from paribus.hosts.reached import Host

CHECKS: tuple[checks.Check, ...] = (
    checks.banners,
    checks.slow,
    checks.tools,
    checks.same_machine,
    checks.hostnames,
    checks.platform,
    mpi.same_mpi,
    mpi.compilers,
    checks.limits,
    checks.rdma,
    checks.clocks,
    checks.places,
    checks.settings,
)
"""The checks of the answers, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """The result of a preflight: the answers of all nodes, and the findings, worst first.

    `network`: the CIDR chosen for MPI, and `chosen` each node's interface in it. `links`: what
    nodes found out together. `seconds`: how long it took.
    """

    answers: tuple[Answer, ...]
    network: str
    chosen: dict[str, Interface]
    links: Links
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def fine(self) -> bool:
        """Whether nothing is broken."""
        return all(one.grade != "broken" for one in self.findings)


def preflight(
    hosts: Sequence[Host], *, network: str = "", prefix: str = "", asked: Asked | None = None
) -> Preflight:
    """Return the results of all checks on `hosts`, on which nothing is changed.

    `network`: a CIDR or an interface, "" to choose one; `prefix`: where MPI is on the nodes.
    """
    begin = time.monotonic()
    asked = asked or Asked()
    answers = ask(hosts, prefix=prefix, timeout_s=asked.answer_s)
    findings = checks.reached(answers)
    there = [one for one in answers if one.answered]
    chosen: dict[str, Interface] = {}
    links = Links()
    if there:
        for check in CHECKS:
            findings += check(there)
        network, chosen, of_network = choose(there, network)
        findings += of_network
        links = link(hosts, answers, chosen, asked)
        findings += _homes(links) + ssh_between(links) + ports(links, there, asked)
    seconds = time.monotonic() - begin
    return Preflight(answers, network, chosen, links, worst_first(findings), seconds)


def _homes(links: Links) -> list[Finding]:
    if not links.homes:
        return []
    shared = sum(len(seen) > 1 for seen in links.homes.values())
    cause = "each node has a home directory of its own; Paribus pushes what it needs"
    if shared:
        all_of_them = min(map(len, links.homes.values())) == len(links.homes)
        cause = f"{'all' if all_of_them else shared} nodes share one home directory"
    return [Finding("home", "information", cause)]


def ssh_between(links: Links) -> list[Finding]:
    """Return a finding on ssh between nodes: the user's mpirun needs it, Paribus does not."""
    if not links.ssh:
        return []
    works = sum(links.ssh.values())
    pairs = links.pairs * 2
    tried = f"{works} of {count(len(links.ssh), 'tried pair')}"
    sampled = f" (of {pairs})" if len(links.ssh) < pairs else ""
    if works == len(links.ssh):
        return [Finding("ssh", "ok", f"nodes reach each other by ssh: {tried}{sampled}")]
    cause = f"nodes do not all reach each other by ssh without a question: {tried}{sampled}"
    fix = "Paribus needs no ssh between nodes; for an mpirun by hand: `paribus cluster up HOSTS`"
    nodes = tuple(dict.fromkeys(pair[0] for pair, fine in links.ssh.items() if not fine))
    return [Finding("ssh", "information", cause, nodes, fix)]


def ports(links: Links, answers: Sequence[Answer], asked: Asked) -> list[Finding]:
    """Return findings on TCP connections between nodes: closed ones, or that all are open."""
    if len(answers) < 2:
        return []
    found = []
    if links.untested:
        cause = f"not all TCP ports between nodes were tested: {links.untested}"
        found.append(Finding("ports", "warning", cause, fix="see the other findings"))
    for name, why in links.failed.items():
        cause = f"the test of ports did not end there ({why})"
        found.append(
            Finding("ports", "warning", cause, (name,), "try again: `paribus cluster check HOSTS`")
        )
    found += _closed(links.closed, answers, asked)
    if not links.closed and links.tried:
        sampled = f", sampled from {links.pairs}" if links.tried < links.pairs else ""
        cause = f"TCP is open both ways: {count(links.tried, 'pair')} of nodes{sampled}"
        found.append(Finding("ports", "ok", cause))
    return found


def _closed(closed: Sequence[Closed], answers: Sequence[Answer], asked: Asked) -> list[Finding]:
    """Return a finding for each node that is the likely cause of closed connections."""
    directions: dict[tuple[str, str], list[Closed]] = {}
    for one in closed:
        directions.setdefault((one.source, one.target), []).append(one)
    into = Counter(target for _, target in directions)
    out = Counter(source for source, _ in directions)
    groups: dict[tuple[str, str], list[Closed]] = {}
    for (source, target), mine in directions.items():
        # Of both nodes the one in more of the closed directions is the likelier cause.
        if into[target] >= out[source]:
            groups.setdefault(("", target), []).extend(mine)
        else:
            groups.setdefault((source, ""), []).extend(mine)
    found = []
    for (source, target), mine in groups.items():
        others = tuple(dict.fromkeys(one.source if target else one.target for one in mine))
        text = (
            f"{fold(others)} {'does' if len(others) == 1 else 'do'} not reach {target}"
            if target
            else f"{source} does not reach {fold(others)}"
        )
        listed = sorted({one.port for one in mine})
        named = f"port{'s' * (len(listed) > 1)} {', '.join(map(str, listed[:3]))}"
        named += ", ..." * (len(listed) > 3)
        why = Counter(one.why for one in mine).most_common(1)[0][0]
        node = target or source
        back = [one for one in mine if (one.target, one.source) in directions]
        half = "" if back else "; the other way is open"
        cause = f"{text} over TCP ({named}): {_WHY.get(why, why)}{half}"
        found.append(Finding("ports", "broken", cause, (node, *others), _fix(answers, asked)))
    if len(found) > MOST_CLOSED:
        nodes = tuple(dict.fromkeys(name for one in found for name in one.nodes))
        cause = (
            f"{len(directions)} directions between {len(nodes)} nodes are closed:"
            f" {_WHY.get(closed[0].why, closed[0].why)}; the first: {found[0].cause}"
        )
        return [Finding("ports", "broken", cause, nodes, _fix(answers, asked))]
    return found


MOST_CLOSED = 8
"""With more findings than this on closed directions, one takes the place of all."""

_WHY = {
    "silent": "no answer, as a firewall that drops gives; MPI hangs without a message",
    "refused": "refused, as a firewall that rejects gives",
    "stuck": "it connects, but data do not arrive: look at MTU and at proxies",
    "stranger": "another program answers: address translation?",
    "closed": "it connects, then closes: a proxy or a firewall",
}


def _fix(answers: Sequence[Answer], asked: Asked) -> str:
    """Return how to open the ports that MPI takes."""
    known = mpi.version_of(answers[0])
    family = known[0] if known else None
    if asked.first:
        opened = f"{asked.first}-{asked.last}"
        return f"open TCP ports {opened} between all nodes, both ways"
    variables = " ".join(
        f"{name}={value}" for name, value in mpi.port_variables(family, 42000, 42199).items()
    )
    return (
        f"open TCP between all nodes, both ways (by itself MPI takes ports"
        f" {mpi.ports_by_default(family, answers[0])}); or open 42000-42199, test them with"
        f" `paribus cluster check HOSTS --ports 42000-42199`, and put into env: {variables}"
    )


SCHEMA = "paribus.cluster/1"


def to_json(found: Preflight) -> dict[str, Any]:
    """Return all results as JSON values, by schema paribus.cluster/1."""
    links = found.links
    return {
        "schema": SCHEMA,
        "fine": found.fine,
        "seconds": round(found.seconds, 3),
        "network": found.network,
        "findings": [asdict(one) for one in found.findings],
        "nodes": [_node(one, found) for one in found.answers],
        "links": {
            "pairs": links.pairs,
            "tried": links.tried,
            "closed": [asdict(one) for one in links.closed],
            "ssh": [
                {"source": source, "target": target, "works": works}
                for (source, target), works in links.ssh.items()
            ],
            "homes": {name: list(seen) for name, seen in links.homes.items()},
        },
    }


def _node(one: Answer, found: Preflight) -> dict[str, Any]:
    """Return a node as JSON values."""
    interface = found.chosen.get(one.name)
    return {
        "name": one.name,
        "answered": one.answered,
        "failure": one.failure,
        "address": str(interface.address.ip) if interface else "",
        "interface": interface.name if interface else "",
        "cores": cores(one),
        "memory_bytes": memory(one),
        "mpi": named(one) if one.answered else "",
        "clock_offset_s": None if math.isnan(one.offset_s) else round(one.offset_s, 6),
        "clock_error_s": None if math.isnan(one.offset_error_s) else round(one.offset_error_s, 6),
        "connect_s": round(one.connect_s, 6),
        "trip_s": round(one.trip_s, 6),
        "facts": {key: list(values) for key, values in one.facts.items()},
    }


def cores(one: Answer) -> int:
    """Return how many cores a shell of a node may use, 0 if not known.

    It is the number of hardware threads over the threads of the first core.
    """
    cpus = one.one("cpus")
    if not cpus.isdecimal():
        return 0
    siblings = 0
    for part in filter(None, one.one("siblings").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            siblings += int(last or first) - int(first) + 1
    return max(1, int(cpus) // max(1, siblings))


def memory(one: Answer) -> int:
    """Return a node's memory in bytes, 0 if not known."""
    kib = one.one("memory")
    return int(kib) * 1024 if kib.isdecimal() else 0
