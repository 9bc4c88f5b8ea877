"""The page of nodes and jobs: what the arms ran on, and this user's jobs in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.errors import ParibusError
from paribus.model import Facts
from paribus.platform.queues import Queue
from paribus.report.markup import Html, element, escape, join, table
from paribus.store import Store
from paribus.units import count
from paribus.web.found import Found

SHOWN = (
    ("Processor", "cpu.model"),
    ("Cores", "cpu.cores"),
    ("Memory", "memory.total_kib"),
    ("Kernel", "os.release"),
    ("Governor", "cpu.governor"),
)
"""Facts of a node in the table; the report of its study has all that differ."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an arm, with the facts seen last from inside the arm."""

    arm: str
    name: str
    facts: Facts


def nodes(found: Found) -> list[Node] | str:
    """Return the nodes of a study, or why they cannot be read."""
    try:
        with Store(found.path) as store:
            newest = {(one.arm, one.node): one.facts for one in store.gathered()}
    except (ParibusError, OSError) as error:
        return str(error)
    return [Node(arm, name, facts) for (arm, name), facts in newest.items()]


def page(shown: Sequence[Queue], studies: Sequence[tuple[Found, list[Node] | str]]) -> Html:
    """Return the page."""
    return join(
        element("h1", "Hosts and jobs"),
        *(_queue(one) for one in shown),
        Html("") if shown else element("p", "No scheduler is installed on this host."),
        *(_study(found, listed) for found, listed in studies),
    )


def _queue(queue: Queue) -> Html:
    head = element("h2", escape(f"Queue of {queue.title}"))
    if queue.error:
        return join(head, element("p", escape(f"it did not answer: {queue.error}"), kind="box"))
    if not queue.jobs:
        return join(head, element("p", "No job of this user."))
    rows = [
        [
            escape(job.ident),
            escape(job.name),
            escape(str(job)),
            escape(", ".join(job.nodes)),
        ]
        for job in queue.jobs
    ]
    caption = count(len(rows), "job")
    return join(head, table(["Job", "Name", "State", "Nodes"], rows, caption, left=range(4)))


def _study(found: Found, listed: list[Node] | str) -> Html:
    link = element("a", escape(found.name), href=f"../studies/{found.ident}/")
    head = element("h2", link)
    if isinstance(listed, str):
        return join(head, element("p", escape(listed), kind="box"))
    rows = [
        [
            escape(node.name),
            escape(node.arm),
            *(escape(_value(key, node.facts)) for _, key in SHOWN),
        ]
        for node in listed
    ]
    titles = ["Node", "Arm", *(title for title, _ in SHOWN)]
    caption = count(len(rows), "node")
    return join(head, table(titles, rows, caption, left=range(len(titles)), fold=True))


def _value(key: str, facts: Facts) -> str:
    value = facts.get(key)
    if value is None:
        return "unknown"
    if key == "memory.total_kib" and isinstance(value, int):
        return f"{value / (1 << 20):.0f} GiB"
    return str(value)
