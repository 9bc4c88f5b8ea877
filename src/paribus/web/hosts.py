"""The page of nodes and jobs: what the arms ran on, and this user's jobs in the queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from paribus.core import Facts, ParibusError, count
from paribus.doctor.fitness import settings_of
from paribus.launch.lease import key_for
from paribus.report.markup import Html, element, escape, join, table
from paribus.schedulers.queues import Queue
from paribus.store import Store
from paribus.web.found import Found

SHOWN = (
    ("Processor", "cpu.model"),
    ("Cores", "cpu.cores"),
    ("Memory", "memory.total_kib"),
    ("Kernel", "os.release"),
)
"""Facts of a node in the table; the report of its study has all that differ."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an arm, with the facts seen last from inside the arm."""

    arm: str
    name: str
    facts: Facts
    slow: bool = False


def nodes(found: Found, slow: Collection[str]) -> list[Node] | str:
    """Return the nodes of a study, those in `slow` marked, or why they cannot be read."""
    try:
        with Store(found.path) as store:
            newest = {(one.arm, one.node): one.facts for one in store.gathered()}
    except (ParibusError, OSError) as error:
        return str(error)
    return [Node(arm, name, facts, name in slow) for (arm, name), facts in newest.items()]


def page(shown: Sequence[Queue], studies: Sequence[tuple[Found, list[Node] | str]]) -> Html:
    """Return the page."""
    return join(
        element("h1", "Hosts and jobs"),
        element(
            "section",
            queues(shown, [found for found, _ in studies]),
            aria_label="Queues",
            data_again="queue",
            data_every="5",
        ),
        *(_study(found, listed) for found, listed in studies),
    )


def queues(shown: Sequence[Queue], studies: Sequence[Found]) -> Html:
    """Return the part of the page that is asked for again while somebody looks."""
    if not shown:
        return element("p", "No scheduler is installed on this host.")
    keys = {key_for(one.path): one for one in studies}
    return join(*(_queue(one, keys) for one in shown))


def _queue(queue: Queue, keys: Mapping[str, Found]) -> Html:
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
            join(*(_link(found) for key, found in keys.items() if key in job.name)),
        ]
        for job in queue.jobs
    ]
    caption = count(len(rows), "job")
    titles = ["Job", "Name", "State", "Nodes", "Study"]
    return join(head, table(titles, rows, caption, left=range(len(titles))))


def _study(found: Found, listed: list[Node] | str) -> Html:
    head = element("h2", _link(found))
    if isinstance(listed, str):
        return join(head, element("p", escape(listed), kind="box"))
    rows = [
        [
            escape(node.name),
            escape(node.arm),
            _fitness(node),
            *(escape(_value(key, node.facts)) for _, key in SHOWN),
        ]
        for node in listed
    ]
    titles = ["Node", "Arm", "Fitness for measurements", *(title for title, _ in SHOWN)]
    caption = count(len(rows), "node")
    return join(head, table(titles, rows, caption, left=range(len(titles)), fold=True))


def _link(found: Found) -> Html:
    return element("a", escape(found.name), href=f"../studies/{found.ident}/")


def _fitness(node: Node) -> Html:
    """Return what of a node's settings disturbs measurements, and whether it was slow."""
    bad = [one for one in settings_of(node.facts) if one.grade in ("poor", "fair")]
    said = (
        [("slow", "slower than the others, by the pairs that were measured")] if node.slow else []
    )
    said += [(one.grade, f"{one.name}: {one.found}") for one in bad]
    if not said:
        return escape("nothing found that disturbs")
    return join(*(element("div", element("b", grade), escape(f" {text}")) for grade, text in said))


def _value(key: str, facts: Facts) -> str:
    value = facts.get(key)
    if value is None:
        return "unknown"
    if key == "memory.total_kib" and isinstance(value, int):
        return f"{value / (1 << 20):.0f} GiB"
    return str(value)
