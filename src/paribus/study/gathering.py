"""Facts of every node of an arm, read from inside: same launcher, container and environment.

One launch for each node: a node that hangs, or answers half, is then bounded and named, and the
answers of two cannot be mixed up on the launcher's way to us.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paribus import probes
from paribus.errors import LaunchError
from paribus.host import remove_scratch
from paribus.judgement import Difference
from paribus.model import Benchmark, Facts, Host, Parsed, Program, Selection, Study
from paribus.store import Gathered
from paribus.study.arms import Ready, asked_of, compose, program, run_commands
from paribus.study.audit import ERROR, Question, moved, ranked
from paribus.study.load import benchmark_of

LIMIT_S = 30.0
"""Seconds that a node may take, its launcher included. Reading takes well under one."""

MOST_BYTES = 20 << 20
"""Bytes that are read of an answer; facts.sh itself stops far below, a banner adds little."""

_TURN = """\
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}
[ "$rank" = "$1" ] || exit 0
nonce=n$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
exec /bin/sh -c "$2" paribus-facts "$nonce" all
"""
"""Of the ranks that a launch starts, the one whose turn it is reads its node.

The nonce is made there: Open MPI puts a program's arguments into its environment, which is read.
"""


def gather(
    study: Study, ready: Mapping[str, Ready], host: Host, tell: Callable[[str], None]
) -> list[Gathered]:
    """Return the facts of every node of every arm, each arm switched to by its own commands.

    `tell` hears of each arm, and of the commands that switch it, before they are carried out.
    What goes wrong on a node is its fact `facts.error`; raises ParibusError only for a command of
    the study that fails.
    """
    found: list[Gathered] = []
    for arm in study.arms:
        switches = [" ".join(argv) for argv in arm.before]
        tell(f"{arm.name}: facts" + (f", after `{'; '.join(switches)}`" if switches else ""))
        run_commands(arm.before, arm.name, "before")
        try:
            found += gather_arm(study, ready[arm.name], host)
        finally:
            run_commands(arm.after, arm.name, "after")
    return found


def gather_arm(study: Study, ready: Ready, host: Host) -> list[Gathered]:
    """Return the facts of every node of an arm that is switched to already."""
    ranks = nodes_of(study, ready)
    prefix = f"{tempfile.gettempdir()}/paribus-facts-{secrets.token_hex(4)}-"
    try:
        return [_gathered(ready, host, node, ranks, f"{prefix}{node}") for node in range(ranks)]
    finally:
        remove_scratch(prefix)


def nodes_of(study: Study, ready: Ready) -> int:
    """Return how many nodes the launches of an arm use: its containers that stand for hosts."""
    container = ready.arm.container
    if container is None or container.each == "rank":
        return 1
    wanted = [(s, program(s, benchmark_of(s))) for s in study.benchmarks]
    return max(s.ranks if p.mpi else 1 for s, p in wanted)


def of_nodes(gathered: Sequence[Gathered]) -> dict[str, dict[str, Facts]]:
    """Return the last facts of each node, by arm and node."""
    found: dict[str, dict[str, Facts]] = {}
    for one in gathered:
        found.setdefault(one.arm, {})[one.node] = one.facts
    return found


def asked(study: Study, ready: Mapping[str, Ready]) -> dict[str, dict[str, list[Facts]]]:
    """Return what is known of launches before the first: what the study asks for, the builds."""
    return {
        selection.label: {
            name: [{**asked_of(one.arm), **_build(one, selection.label)}]
            for name, one in ready.items()
        }
        for selection in study.benchmarks
    }


def _build(ready: Ready, label: str) -> Facts:
    return {"kernel.build": ready.facts[label]} if label in ready.facts else {}


def changes(
    gathered: Sequence[Gathered],
    study: Study,
    layers: Sequence[str],
    accepted: Mapping[str, str],
) -> tuple[Difference, ...]:
    """Return what should have stayed on the nodes of an arm and did not, from first to last."""
    first: dict[str, dict[str, Facts]] = {}
    for one in gathered:
        first.setdefault(one.arm, {}).setdefault(one.node, one.facts)
    last = of_nodes(gathered)
    return ranked(
        one
        for arm, nodes in first.items()
        for one in moved(nodes, last[arm], Question(study, arm, layers, accepted))
    )


def _gathered(ready: Ready, host: Host, node: int, ranks: int, scratch: str) -> Gathered:
    """Return the facts of node number `node`, or what went wrong there."""
    arm, at = ready.arm.name, time.time()
    unnamed = f"node {node + 1} of {ranks}"
    try:
        named, facts = _ask(ready, host, node, ranks, scratch)
    except (LaunchError, OSError, ValueError) as error:
        return Gathered(arm, unnamed, at, {ERROR: f"{unnamed}: {_one_line(error)}"})
    return Gathered(arm, named, at, facts)


def _ask(ready: Ready, host: Host, node: int, ranks: int, scratch: str) -> tuple[str, Facts]:
    """Return the name and the facts of one node; raises LaunchError with what it did instead."""
    benchmark = _reader(node, needs_mpi=ready.mpi is not None)
    selection = Selection("facts", "facts", ranks, {})
    command = compose(ready, selection, benchmark, seed=0, scratch=scratch)
    with tempfile.TemporaryDirectory(prefix="paribus-answer-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        done = host.run(
            command, stdout=str(out), stderr=str(err), timeout_s=LIMIT_S, scratch=scratch
        )
        answer, said = _start_of(out, MOST_BYTES + 1), _start_of(err, 4096)
    if len(answer) > MOST_BYTES:
        raise LaunchError(f"more than {MOST_BYTES >> 20} MiB of answer")
    if done.timed_out:
        raise LaunchError(f"no answer within {LIMIT_S:g} s")
    if done.exit_code != 0:
        last = said.strip().splitlines()[-1:] or answer.strip().splitlines()[-1:]
        raise LaunchError(f"exit code {done.exit_code}{': ' + last[0][:200] if last else ''}")
    return read_answer(answer)


def read_answer(text: str) -> tuple[str, Facts]:
    """Return the name of the node that answered and its facts; raises ParseError for no answer."""
    ((name, facts),) = probes.facts_by_host(text).items()
    return name, facts


def _reader(node: int, *, needs_mpi: bool) -> Benchmark:
    """Return the script of the probes as a benchmark, so that it is started as any other is."""
    argv = ("/bin/sh", "-c", _TURN, "paribus-turn", str(node), probes.script())
    return Benchmark(
        name="facts",
        layer="",
        summary="what the probes read of a node",
        metrics=(),
        command=lambda _: Program(argv, mpi=needs_mpi),
        parse=lambda _text, _request: Parsed(()),
    )


def _start_of(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
