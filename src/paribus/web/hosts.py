"""The page of hosts and jobs: each machine once, its speed against all others, this user's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from paribus.core import Facts, ParibusError, count
from paribus.doctor.fitness import Finding, settings_of
from paribus.launch.lease import key_for
from paribus.report import heat
from paribus.report.markup import Html, element, escape, join, table, tabular
from paribus.schedulers.queues import Queue
from paribus.store import Store
from paribus.web.found import Found
from paribus.web.summaries import Summary, Value

MOST_COLUMNS = 24
"""Columns of the map: the benchmarks that most machines have measured."""

BAD = ("poor", "fair")


@dataclass
class Machine:
    """A machine: its names, newest facts and studies.

    `used`: by id, each study with the arms that ran on it; `slow`: the studies that call it slow.
    `levels`: what was measured on it alone, by `what` and `how` of Value.
    """

    names: list[str]
    facts: Facts
    used: dict[str, tuple[Found, list[str]]] = field(default_factory=dict)
    slow: list[Found] = field(default_factory=list)
    levels: dict[tuple[str, str], list[Value]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return ", ".join(self.names)

    @property
    def hardware(self) -> str:
        return ", ".join(filter(None, _hardware(self.facts)))


Nodes = Sequence[tuple[str, str, Facts]]
"""The nodes of a study: arm, name, and the facts seen last from inside the arm."""


def nodes(found: Found) -> Nodes | str:
    """Return the nodes of a study, or why they cannot be read."""
    try:
        with Store(found.path) as store:
            newest = {(one.arm, one.node): one.facts for one in store.gathered()}
    except (ParibusError, OSError) as error:
        return str(error)
    return [(arm, name, facts) for (arm, name), facts in newest.items()]


def _hardware(facts: Facts) -> tuple[str, str, str]:
    """Return processor, cores and memory, "" for what is not known."""
    model, cores, kib = (facts.get(key) for key in ("cpu.model", "cpu.cores", "memory.total_kib"))
    return (
        model if isinstance(model, str) else "",
        count(cores, "core") if isinstance(cores, int) else "",
        f"{kib / (1 << 20):.0f} GiB" if isinstance(kib, int) else "",
    )


def machines(studies: Sequence[tuple[Summary, Nodes]]) -> list[Machine]:
    """Return each machine once, from the nodes of all studies.

    A node is the same machine if it has the same name and hardware, or if ranks saw the same boot
    id on both: facts hold no serial number.
    """
    rows, alike = [], dict[object, set[object]]()
    for study, listed in sorted(studies, key=lambda one: one[0].started or 0.0):
        arms = [arm for arm, *_ in listed]
        for arm, name, facts in listed:
            alone, boots = arms.count(arm) == 1, study.boots.get(arm, {})
            only = {*boots.values()} if alone else set()
            boot = {boots[name]} if name in boots else only if len(only) == 1 else set()
            key = name, _hardware(facts)
            whole = {key, *boot}.union(*(alike.get(one, ()) for one in (key, *boot)))
            alike |= dict.fromkeys(whole, whole)
            rows.append((study, arm, name, facts, key, alone))
    found: dict[int, Machine] = {}
    for study, arm, name, facts, key, alone in rows:
        one = found.setdefault(id(alike[key]), Machine([], facts))
        one.names += [name] if name not in one.names else []
        one.facts = facts
        one.used.setdefault(study.found.ident, (study.found, []))[1].append(arm)
        if name in study.slow_nodes and study.found not in one.slow:
            one.slow.append(study.found)
        for value in study.values if alone else ():
            if value.arm == arm:
                one.levels.setdefault((value.what, value.how), []).append(value)
    return list(found.values())


def page(
    shown: Sequence[Queue], studies: Sequence[tuple[Summary, Nodes]], unread: Mapping[str, str]
) -> Html:
    """Return the page; `unread`: why the nodes of some studies cannot be read, by their names."""
    known = machines(studies)
    errors = [element("p", escape(f"{n}: {why}"), kind="box") for n, why in unread.items()]
    return join(
        element("h1", escape(count(len(known), "host") if known else "Hosts and jobs")),
        _map(known),
        *(_machine(one, f"host-{n}") for n, one in enumerate(known)),
        *errors,
        element(
            "section",
            queues(shown, [study.found for study, _ in studies]),
            aria_label="Queues",
            data_again="queue",
            data_every="5",
        ),
    )


def _map(known: Sequence[Machine]) -> Html:
    """Return the map: each machine against the median of all, by benchmark.

    Benchmarks that only one machine measured are left out; without others there is no map.
    """
    measured: dict[tuple[str, str], list[Machine]] = {}
    for one in known:
        for column in one.levels:
            measured.setdefault(column, []).append(one)
    columns = sorted((c for c in measured if len(measured[c]) > 1), key=lambda c: -len(measured[c]))
    columns = columns[:MOST_COLUMNS]
    if not columns:
        return Html("")
    usual = {c: median(_level(one, c) for one in measured[c]) for c in columns}
    heads = [element("th", *_named(c, measured[c]), scope="col") for c in columns]
    shown = [one for one in known if any(c in one.levels for c in columns)]
    times = {
        id(one): {c: _level(one, c) / usual[c] for c in columns if c in one.levels} for one in shown
    }
    shown.sort(key=lambda one: -max(times[id(one)].values()))
    rows = []
    for one in shown:
        cells = [_cell(one, c, times[id(one)].get(c)) for c in columns]
        place = next(n for n, other in enumerate(known) if other is one)
        name = element("a", escape(one.name), href=f"#host-{place}")
        twice = sum(other.name == one.name for other in known) > 1
        name = join(name, element("small", escape(one.hardware))) if twice else name
        rows.append(element("tr", element("th", name, kind="text", scope="row"), *cells))
    caption = element("caption", "Times as slow as the median of all hosts")
    head = [element("th", "Host", kind="text", scope="col"), *heads]
    wide = f"max-width: {max(40, 14 + 14 * len(columns))}ch"
    return tabular(caption, head, rows, "heat", style=wide)


def _cell(one: Machine, column: tuple[str, str], ratio: float | None) -> Html:
    if ratio is None:
        return Html("<td></td>")
    value = one.levels[column][0]
    text = f"{one.name}, {value.label}: {value.text}, {ratio:.3f} times as slow as usual"
    return element("td", f"{ratio:.2f}", kind=heat.shade(ratio, value.margin), title=text)


def _named(column: tuple[str, str], measured: Sequence[Machine]) -> list[Html]:
    """Return the head of a column: the benchmark, and the arm if it has one name everywhere."""
    values = [value for one in measured for value in one.levels[column]]
    arms = {value.arm for value in values}
    below = [element("small", escape(arm)) for arm in arms if len(arms) == 1]
    return [escape(values[0].label), *below]


def _level(one: Machine, column: tuple[str, str]) -> float:
    """Return the median value of a machine in a column, of a rate the inverse: more is slower."""
    return median(v.value if v.better == "lower" else 1 / v.value for v in one.levels[column])


def _machine(one: Machine, place: str) -> Html:
    """Return a line for a machine, which opens on settings that disturb, and on its studies."""
    bad = [finding for finding in settings_of(one.facts) if finding.grade in BAD]
    bad.sort(key=lambda finding: BAD.index(finding.grade))
    links = [
        element("li", "Study ", _link(found), escape(f", as {', '.join(arms)}"))
        for found, arms in one.used.values()
    ]
    poor = any(finding.grade == "poor" for finding in bad)
    text = f"{count(len(bad), 'setting')} may disturb" if bad else "nothing found that disturbs"
    kind = "slower" if poor else "few" if bad else "open"
    chip = element("span", escape(text), kind=f"chip {kind}")
    slow = [element("span", "▼ slow", kind="chip slower")] if one.slow else []
    by = [join(_link(found), Html(" ")) for found in one.slow]
    proof = [element("p", "Slower than the others, by the pairs measured in ", *by)] if by else []
    small = element("small", escape(f"{one.hardware} "))
    return element(
        "details",
        element("summary", element("b", escape(one.name)), small, chip, *slow),
        element("div", *proof, element("ul", *map(_finding, bad), *links), id=place),
        kind="host",
    )


def _finding(finding: Finding) -> Html:
    """Return a setting as `paribus doctor` shows it."""
    return element(
        "li",
        element("b", escape(f"{finding.name}: {finding.found}")),
        escape(f" ({finding.grade}): {finding.means}. "),
        element("code", escape(finding.fix)),
    )


def queues(shown: Sequence[Queue], studies: Sequence[Found]) -> Html:
    """Return the queues with their jobs: the part that an open page fetches again."""
    if not shown:
        return element("p", "No scheduler is installed on this host.")
    keys = {key_for(one.path): one for one in studies}
    return join(*(_queue(one, keys) for one in shown))


def _queue(queue: Queue, keys: Mapping[str, Found]) -> Html:
    """Return the table of a batch system's jobs."""
    head = element("h2", escape(f"Queue of {queue.title}"))
    if queue.error:
        text = f"{queue.title} does not list its jobs on this host: {queue.error}"
        return join(head, element("p", escape(text), kind="box warnings"))
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


def _link(found: Found) -> Html:
    return element("a", escape(found.name), href=f"../studies/{found.ident}/")
