"""Judgements for tests of reports: of stores that a seeded script filled, judged as any other."""

from __future__ import annotations

import io
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from imported import imported, logs, logs_apart, logs_untimed, table, turns
from paribus.core import (
    Address,
    Arm,
    Case,
    Container,
    Hosts,
    Judgement,
    Launch,
    Metric,
    Scaling,
    Selection,
    Settings,
    State,
    Study,
)
from paribus.judge.allocations import JOB, NODES
from paribus.launch.execute import DISTURBED, RETRY, STATES
from paribus.probes.energy import JOULES
from paribus.report.printing import console_on
from paribus.report.terminal import print_report
from stored import Script, Twist, judged, nodes

SIZES = [2**k for k in range(3, 23, 2)]
HOSTILE = (
    '</script><script>window.broken=1</script><img src=x onerror="window.broken=2">&\x1b[31m\u202e'
)
LATE = "still busy after 60 s, the time limit"
LOST = "mpirun noticed that rank 1 exited on signal 9"
ARMS = (
    Arm("host", mpi="openmpi", transport="tcp"),
    Arm("bridged", mpi="openmpi", transport="tcp", container=Container("namespace")),
)
MACHINE = "kvm-root"
BRIDGED = {
    "container.engine": "namespace",
    "container.network": "bridge",
    "net.mpi.interface": "eth0",
    "net.mpi.mtu": 1500,
}
HOST = {
    "container.engine": "none",
    "container.network": "host",
    "net.mpi.interface": "lo",
    "net.mpi.mtu": 65536,
}
RATIOS = {
    "latency": {"bridged": 1.187},
    "bandwidth": {"bridged": 1 / 0.871},
    "allreduce": {"bridged": 1.052},
    "barrier": {"bridged": 1.222},
    "triad": {"bridged": 1 / 1.002},
}
SCATTER = {"allreduce": 0.06, "barrier": 0.02}
BASE = {"barrier": 21.4, "triad": 5992.0}


def selection(label: str, benchmark: str = "", **changes: Any) -> Selection:
    name = benchmark or label
    sizes = {"barrier": {}, "triad": {"bytes": [64 << 20]}}.get(name, {"bytes": SIZES})
    return replace(Selection(label, name, 2, {**sizes, "samples": 100}, 60.0), **changes)


def study(labels: tuple[str, ...], arms: tuple[Arm, ...] = ARMS, **changes: Any) -> Study:
    settings = Settings(seed=20210)
    made = Study(
        "What does bridged container networking cost MPI on one host?",
        "network",
        arms,
        tuple(map(selection, labels)),
        settings,
        path="studies/container-network.toml",
    )
    return replace(made, **changes)


FACTS = (nodes("host", MACHINE, HOST), nodes("bridged", MACHINE, BRIDGED))
LABELS = ("latency", "bandwidth", "allreduce", "barrier", "triad")
SCRIPT = Script(RATIOS, scatter=SCATTER, base=BASE)


def failing(launch: Launch, attempt: int) -> Twist:
    """Return what became of two launches of allreduce, though their blocks were rerun."""
    if launch.benchmark == "allreduce" and launch.block in (9, 31) and launch.arm == "bridged":
        states = {9: (State.FAILED, LOST), 31: (State.TIMEOUT, LATE)}
        state, error = states[launch.block]
        again = attempt == 0 and state is State.FAILED
        return Twist(state=state, error=error, void=RETRY if again else "")
    return Twist()


@cache
def two_arms() -> Judgement:
    """Return the demo: two arms, a sweep each way, a memory benchmark that is equivalent."""
    script = replace(SCRIPT, twist=failing)
    return judged(study(LABELS), script, name="container-network", facts=FACTS)


@cache
def three_arms() -> Judgement:
    """Return a study with two arms against the reference and long names."""
    names = ("shared-memory", "tcp-loopback", "tcp-bridge")
    arms = tuple(Arm(name, transport="shm" if name == names[0] else "tcp") for name in names)
    asked = study(
        ("latency", "message_rate"),
        arms,
        question="What does leaving shared memory cost?",
        factor="transport",
        path="studies/mpi-transport.toml",
    )
    slower = {"tcp-loopback": 14.2, "tcp-bridge": 21.7}
    rates = {"tcp-loopback": 1 / 0.081, "tcp-bridge": 1 / 0.079}
    script = Script(
        {"latency": slower, "message_rate": rates},
        scatter={"message_rate": 0.06},
        growth=0.02,
        samples=20,
    )
    facts = [nodes(n, MACHINE, {"mpi.transport": "shm" if n == names[0] else "tcp"}) for n in names]
    return judged(asked, script, name="mpi-transport", facts=facts)


@cache
def withheld() -> Judgement:
    """Return a study whose audit found a difference that the factor does not explain."""
    governors = ("performance", "powersave")
    facts = [
        replace(one, facts={**one.facts, "cpu.governor": governor})
        for one, governor in zip(FACTS, governors, strict=True)
    ]
    return judged(study(("latency", "barrier")), SCRIPT, name="container-network", facts=facts)


@cache
def reliability() -> Judgement:
    """Return a study in which one arm fails far more often than the reference."""

    def twist(launch: Launch, attempt: int) -> Twist:
        fails = launch.block in (1, 2, 4, 5, 7, 8, 10, 11)
        if launch.benchmark != "allreduce" or launch.arm == "host" or not fails:
            return Twist()
        states = (State.TIMEOUT, State.FAILED, State.INVALID, State.FAILED)
        state = states[launch.block % 4]
        errors = {State.TIMEOUT: LATE, State.INVALID: "line 3: nan"}
        void = RETRY if attempt == 0 and state is not State.TIMEOUT else ""
        return Twist(state=state, error=errors.get(state, LOST), void=void)

    script = replace(SCRIPT, twist=twist)
    asked = study(("latency", "allreduce"))
    return judged(asked, script, name="container-network", facts=FACTS)


@cache
def no_data() -> Judgement:
    """Return a study in which no launch of an arm gave anything."""

    def twist(launch: Launch, attempt: int) -> Twist:
        void = RETRY if attempt == 0 else ""
        if launch.arm == "host":
            return Twist(void=void)
        return Twist(state=State.FAILED, error="mpirun: command not found", void=void)

    script = replace(SCRIPT, twist=twist)
    return judged(study(("latency",)), script, name="container-network", facts=FACTS)


@cache
def incomplete() -> Judgement:
    """Return a study that was interrupted before an interval exists."""
    return judged(study(LABELS), SCRIPT, name="container-network", facts=FACTS, most=5)


@cache
def censored() -> Judgement:
    """Return a study in which so many launches were cut off that only the word stands."""

    def twist(launch: Launch, attempt: int) -> Twist:
        if launch.benchmark == "barrier" and launch.arm == "bridged" and launch.block % 14 == 3:
            return Twist(state=State.TIMEOUT, error=LATE)
        return Twist()

    script = replace(SCRIPT, twist=twist)
    asked = study(("latency", "barrier"))
    return judged(asked, script, name="container-network", facts=FACTS)


@cache
def monitor() -> Judgement:
    """Return a study that watches without an end: no looks, words so far, and a change."""

    def twist(launch: Launch, attempt: int) -> Twist:
        moved = (launch.benchmark, launch.arm) == ("barrier", "bridged") and launch.block > 12
        return Twist(times=2.5 if moved else 1.0)

    few = {"bytes": SIZES[::3], "samples": 20}
    asked = study(
        (),
        benchmarks=(
            selection("latency", parameters=few, endpoints=("median",)),
            selection("barrier", endpoints=("median",)),
        ),
        settings=Settings(seed=20210, monitor=True, blocks=10_000),
    )
    script = replace(SCRIPT, twist=twist)
    return judged(asked, script, name="container-network", facts=FACTS, most=60)


@cache
def sessions() -> Judgement:
    """Return a study by session that is decided by the p99."""
    asked = study(
        (),
        question="What does the other BIOS setting cost?",
        benchmarks=(selection("latency", endpoints=("p99", "median", "p25", "min")),),
        settings=Settings(seed=7, unit="session", launches=5, blocks=8),
    )
    script = replace(SCRIPT, ratios={"latency": {"bridged": 1.3}}, twist=_switched)
    return judged(asked, script, name="bios", facts=FACTS)


def _switched(launch: Launch, attempt: int) -> Twist:
    return Twist(pause_s=240.0 if launch.place == 5 else 0.0)


@cache
def builds() -> Judgement:
    """Return a study of four builds of each arm, too few for a verdict."""
    asked = study(("latency",), settings=Settings(seed=7, unit="build", launches=5, blocks=4))
    script = replace(SCRIPT, ratios={"latency": {"bridged": 1.3}})
    return judged(asked, script, name="builds", facts=FACTS)


@cache
def empty() -> Judgement:
    """Return a study directory in which nothing was launched yet."""
    return judged(study(("latency",)), SCRIPT, name="fresh", most=-1)


@cache
def troubled() -> Judgement:
    """Return a study of a machine that does all that a notice can say, and its budget ended it."""
    fitful = (7, 8, 12, 15, 19, 22, 23, 26)

    def twist(launch: Launch, attempt: int) -> Twist:
        name, block, arm = launch.benchmark, launch.block, launch.arm
        facts: dict[str, Any] = {
            "probe.before.core_to_core_ns": 60.0 * (1.2 if arm == "bridged" else 1.0),
            "probe.after.core_to_core_ns": 61.0 * (1.2 if arm == "bridged" else 1.0),
            "mpi.transport_taken": "network" if arm == "bridged" else "memory",
        }
        if name == "alltoall":
            return Twist(state=State.FAILED, error=LOST, void=RETRY if attempt == 0 else "")
        times = 1.3 if name == "latency" and block in fitful else 1.0
        if name == "bandwidth":
            facts |= {"rank.machines": ["b0f1", "b0f1"], "rank.affinity": ["3", "3"]}
            times *= 1 + 0.03 * ((block // 8) % 2) * 4
        void = ""
        if name == "triad":
            facts |= {
                "rank.hosts": ["node1", "node2", "node3"],
                "rank.cpu_s": [1.0, 1.0, 0.8 if arm == "bridged" else 1.0],
                "rank.involuntary": [0, 0, 90],
                "wall_s": 1.0,
            }
            times *= 1.05 if _second(launch) else 1.0
            facts["lib.libc.build_id"] = "aa11" if block < 12 else "bb22"
            if block == 6 and attempt == 0:
                facts["gate.reasons"] = ["processes waited for memory 12 % of the time"]
                void = DISTURBED
            if block == 17:
                facts["gate.reasons"] = ["processes waited for memory 14 % of the time"]
            if block == 21 and arm == "host":
                times *= 1.5
            if block == 10 and arm == "host":
                facts["launch.clock_step_s"] = -3.2
            if block in (13, 14) and arm == "host":
                facts["launch.left_out"] = 68_000_000
        if name == "latency" and block == 5 and attempt == 0:
            void = STATES
        interrupted = 2 if name == "bandwidth" and block % 5 == 1 else 0
        return Twist(times=times, facts=facts, void=void, interrupted=interrupted)

    labels = ("latency", "bandwidth", "triad", "alltoall")
    asked = study(labels, settings=Settings(seed=20210, blocks=60, budget_s=175.0))
    ratios = {**RATIOS, "latency": {"bridged": 1.015}, "alltoall": {}}
    script = replace(SCRIPT, twist=twist, ratios=ratios, scatter={"latency": 0.015})
    return judged(
        asked,
        script,
        name="container-network",
        facts=FACTS,
        accepted={"cpu.governer": "both are pinned", "cpu.model": "one machine"},
    )


def _second(launch: Launch) -> bool:
    """Return whether a launch of two arms is the second of its block: numbers go by order."""
    return launch.number % 2 == 0


@cache
def damaged() -> Judgement:
    """Return a study of whose store a disk has lost launches."""

    def damage(directory: Path) -> None:
        path = directory / "launches.db"
        with closing(sqlite3.connect(path)) as db:
            numbers = "SELECT started FROM launches WHERE number IN (7, 8, 33)"
            places = [struct.pack(">d", started) for (started,) in db.execute(numbers)]
        whole = bytearray(path.read_bytes())
        for place in places:
            whole[whole.index(place) + 3] ^= 1
        path.write_bytes(bytes(whole))

    asked = study(("latency", "barrier"))
    return judged(asked, SCRIPT, name="container-network", facts=FACTS, damage=damage)


@cache
def hostile() -> Judgement:
    """Return a study whose every text tries to be more than text."""
    arms = (Arm("host" + HOSTILE), Arm("[bold]x" + HOSTILE))
    label = "latency" + HOSTILE
    asked = study(
        (),
        arms,
        question=HOSTILE,
        factor="nothing",
        path="a'b\n" + HOSTILE,
        benchmarks=(selection(label, "latency"), selection("b" + HOSTILE, "barrier")),
    )
    metric = Metric("lat" + HOSTILE, "us" + HOSTILE, "lower", 0.02)
    tail = replace(metric, name=f"{metric.name} p99", endpoint="p99", sampled=metric.name)
    metrics = {one.label: (metric, tail) for one in asked.benchmarks}

    def twist(launch: Launch, attempt: int) -> Twist:
        facts = {HOSTILE: HOSTILE + str(launch.block % 2) + launch.arm, "gate.reasons": [HOSTILE]}
        bad = launch.block == 3 and launch.arm == arms[1].name and launch.benchmark == label
        if bad:
            return Twist(state=State.FAILED, error=HOSTILE, void=HOSTILE if attempt == 0 else "")
        return Twist(facts=facts if launch.block == 2 else {HOSTILE: facts[HOSTILE]})

    script = Script({s.label: {arms[1].name: 1.2} for s in asked.benchmarks}, twist=twist)
    points = [*(Case.of(bytes=size) for size in SIZES), Case.of(**{HOSTILE: HOSTILE})]
    facts = [nodes(arm.name, MACHINE, {HOSTILE: HOSTILE + arm.name}) for arm in arms]
    return judged(
        asked, script, name=HOSTILE, facts=facts, metrics=metrics,
        cases={one.label: points for one in asked.benchmarks},
        accepted={HOSTILE: HOSTILE},
    )  # fmt: skip


@cache
def large() -> Judgement:
    """Return 10 benchmarks x 20 sizes x 2 arms x 60 blocks: the size that must stay fast."""
    labels = [f"benchmark_{n}" for n in range(10)]
    sizes = [2**k for k in range(3, 23)]
    kinds = ("latency", "bandwidth")
    asked = study(
        (),
        benchmarks=tuple(
            Selection(label, kinds[n % 2], 2, {"bytes": sizes}, 60.0, endpoints=("median",))
            for n, label in enumerate(labels)
        ),
    )
    ratios = {label: {"bridged": 1.018} for label in labels}
    script = Script(ratios, scatter=dict.fromkeys(labels, 0.06), growth=0, samples=1)
    return judged(asked, script, name="container-network", facts=FACTS)


@cache
def lent() -> Judgement:
    """Return a study on nodes of a scheduler, other ones after every block, which count energy."""

    def twist(launch: Launch, attempt: int) -> Twist:
        energy = 100 * (1.3 if launch.arm == "bridged" else 1) * (1 + launch.number % 5 / 100)
        nodes = f"{launch.arm}{launch.block}"
        return Twist(
            facts={JOB: f"{launch.number}", NODES: nodes, **dict.fromkeys(JOULES.values(), energy)}
        )

    script = replace(SCRIPT, twist=twist)
    return judged(study(("latency",)), script, name="lent", facts=FACTS)


@cache
def commands() -> Judgement:
    """Return two programs of the user's own: wall time, and a figure that they print."""
    arms = (Arm("a", argv=("./old", "in.dat")), Arm("b", argv=("./new", "in.dat")))
    asked: dict[str, Any] = dict.fromkeys(("argv", "regex", "success", "unit", "better"))
    rate = {**asked, "regex": "rate: (.*)", "unit": "Mcells/s", "better": "higher"}
    made = study(
        (), arms, question="Is b faster than a?", factor="command", path="ab.toml",
        settings=Settings(seed=20219),  # by which a comes first in seven of eight blocks
        benchmarks=(
            Selection("command", "command", 0, asked), Selection("rate", "command", 0, rate)
        ),
    )  # fmt: skip
    ratios = {label: {"b": 0.94} for label in ("command", "rate")}
    script = Script(ratios, growth=0, samples=1, base={"command": 0.0125, "rate": 4.2})
    facts = [nodes(arm.name, MACHINE, {"command.argv": " ".join(arm.argv)}) for arm in arms]
    return judged(made, script, name="ab", facts=facts)


@cache
def scaling(factor: str = "virtualisation") -> Judgement:
    """Return a study of the shape of the field's fourth: NPB on physical and on virtual nodes.

    The speed per node of CG is 45 % higher on 16 nodes than on 32, that of EP the same. The
    nodes of the two arms have different governors, which not every `factor` explains.
    """
    hosts = tuple(Address(f"n{n}", f"n{n}") for n in range(1, 33))
    arms = tuple(
        Arm(name, mpi="openmpi", hosts=Hosts(addresses=hosts)) for name in ("physical", "virtual")
    )
    speeds = {"npb_ep": (1.0, 1.0), "npb_cg": (1.0, 1 / 1.45), "npb_lu": (1.0, 0.9)}
    virtual = {"npb_ep": (1.0, 1.0), "npb_cg": (1.004, 1.52), "npb_lu": (1.1, 1.3)}
    chosen = [
        Selection(f"{name} on {size} hosts", name, size, {}, of=name, hosts=size)
        for name in speeds
        for size in (16, 32)
    ]
    made = study(
        (), arms, question="What does virtualisation cost MPI on 16 and on 32 nodes?",
        factor=factor, path="vm.toml", benchmarks=tuple(chosen),
        scaling=Scaling("hosts"),
    )  # fmt: skip
    place = {16: 0, 32: 1}
    script = Script(
        {one.label: {"virtual": virtual[one.of][place[one.hosts]]} for one in chosen},
        base={
            one.label: 1000 * 16 / one.hosts / speeds[one.of][place[one.hosts]] for one in chosen
        },
        growth=0,
        samples=1,
        usual=0.01,
    )
    governors = ("performance", "powersave")
    facts = [
        nodes(arm.name, MACHINE, {"cpu.governor": one})
        for arm, one in zip(arms, governors, strict=True)
    ]
    return judged(made, script, name="vm", facts=facts)


ALL: dict[str, Callable[[], Judgement]] = {
    "two_arms": two_arms,
    "three_arms": three_arms,
    "withheld": withheld,
    "reliability": reliability,
    "no_data": no_data,
    "incomplete": incomplete,
    "censored": censored,
    "monitor": monitor,
    "sessions": sessions,
    "scaling": scaling,
    "imported": imported,
    "empty": empty,
    "hostile": hostile,
}

MORE: dict[str, Callable[[], Judgement]] = {
    "builds": builds,
    "troubled": troubled,
    "damaged": damaged,
    "table": table,
    "turns": turns,
    "logs": logs,
    "logs_apart": logs_apart,
    "logs_untimed": logs_untimed,
    "commands": commands,
    "lent": lent,
}
"""What has notices that none of the others has."""


def printed(judgement: Judgement, width: int = 100) -> str:
    """Return the words of the report on a terminal, with one blank between two of them."""
    file = io.StringIO()
    print_report(judgement, console_on(file, width))
    return " ".join(file.getvalue().split())
