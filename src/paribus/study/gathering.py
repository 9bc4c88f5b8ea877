"""Facts of every node of an arm, read from inside: same launcher, container and environment.

One launch for each node: a node that hangs, or answers half, is then bounded and named, and the
answers of two cannot be mixed up on the launcher's way to us.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from paribus import probes
from paribus.audit.audit import ERROR, NODES, Question, moved, ranked
from paribus.errors import LaunchError
from paribus.host import remove_scratch
from paribus.judgement import Difference
from paribus.model import Benchmark, Facts, Host, Parsed, Program, Selection, Study
from paribus.store import Gathered
from paribus.study.arms import Ready, asked_of, compose, program, run_commands
from paribus.study.load import benchmark_of

LIMIT_S = 15.0
"""Seconds that a node may take, its launcher included. Reading takes well under one."""

TRIES = 2
"""How often a node is asked that gives no facts."""

MOST_BYTES = 20 << 20
"""Bytes that are read of an answer; facts.sh itself stops far below, a banner adds little."""

_TURN = """\
rank=${PARIBUS_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}}
[ "$rank" = "$1" ] || exec >/dev/null
nonce=n$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
exec /bin/sh -c "$4" paribus-facts "$nonce" "$2" "$(command -v "$3" || printf %s "$3")"
"""
"""Of the ranks that a launch starts, the one whose turn it is prints what it reads of its node.

The others read as well: Open MPI 5.0.11 hung in 15 % of launches in which one left at once, in none
of 80 in which all took alike. The nonce is made there, because Open MPI puts a program's arguments
into its environment, which is read.
"""

OF_PROGRAM = ("lib.", "program.")
"""Facts of a program, of which a study may start several."""


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
    ranks, programs = nodes_of(study, ready), _programs(study, ready)
    prefix = f"{tempfile.gettempdir()}/paribus-facts-{secrets.token_hex(4)}-"
    # Not bound to the cores of a rank: what is asked is which cores the arm leaves to all of them.
    free = replace(ready, cores=())
    try:
        return [
            _gathered(free, host, node, ranks, programs, f"{prefix}{node}") for node in range(ranks)
        ]
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
    """Return the last facts of each node, by arm and node.

    A node that gave none, whose name is then not known either, stands for itself only in an arm of
    which some node never answered.
    """
    found: dict[str, dict[str, Facts]] = {}
    for one in gathered:
        if ERROR not in one.facts:
            found.setdefault(one.arm, {})[one.node] = one.facts
    answered = {arm: len(nodes) for arm, nodes in found.items()}
    for one in gathered:
        if ERROR in one.facts and answered.get(one.arm, 0) < one.facts[NODES]:
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


def _programs(study: Study, ready: Ready) -> tuple[str, ...]:
    """Return the programs of the study; one of our kernels stands for all: built alike."""
    found: dict[str, str] = {}
    for selection in study.benchmarks:
        wanted = program(selection, benchmark_of(selection))
        path = (*ready.kernels.get(selection.label, ()), *wanted.argv)[0]
        found.setdefault("kernel" if wanted.kernel else path, path)
    return tuple(found.values())


def _gathered(
    ready: Ready, host: Host, node: int, ranks: int, programs: Sequence[str], scratch: str
) -> Gathered:
    """Return the facts of node number `node`, or what went wrong there."""
    arm, at = ready.arm.name, time.time()
    unnamed = f"node {node + 1} of {ranks}"
    first, *others = programs
    why = ""
    for _ in range(TRIES):
        try:
            named, facts = _ask(ready, host, node, ranks, ("all", first), scratch)
            more = [_ask(ready, host, node, ranks, ("files", one), scratch)[1] for one in others]
        except (LaunchError, OSError, ValueError) as error:
            why = f"{unnamed}: {_one_line(error)}"
            continue
        return Gathered(arm, named, at, {**facts, **_of_programs([facts, *more])})
    return Gathered(arm, unnamed, at, {ERROR: why, NODES: ranks})


def _of_programs(several: Sequence[Facts]) -> dict[str, Any]:
    """Return the facts of programs, where they differ among these all values."""
    found: dict[str, list[Any]] = {}
    for facts in several:
        for key, value in facts.items():
            if key.startswith(OF_PROGRAM) and value not in found.setdefault(key, []):
                found[key].append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def _ask(
    ready: Ready, host: Host, node: int, ranks: int, question: tuple[str, str], scratch: str
) -> tuple[str, Facts]:
    """Return the name and the facts of one node; raises LaunchError with what it did instead.

    `question` is how much is asked, and of which program the libraries.
    """
    benchmark = _reader(node, question, needs_mpi=ready.mpi is not None)
    command = compose(
        ready, Selection("facts", "facts", ranks, {}), benchmark, seed=0, scratch=scratch
    )
    # Files without a name: whoever kills us leaves none behind.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = host.run(
            command, stdout=_path(out), stderr=_path(err), timeout_s=LIMIT_S, scratch=scratch
        )
        answer, said = _start_of(out, MOST_BYTES + 1), _start_of(err, 4096)
    if len(answer) > MOST_BYTES:
        raise LaunchError(f"more than {MOST_BYTES >> 20} MiB of answer")
    if done.timed_out:
        raise LaunchError(f"no answer within {LIMIT_S:g} s")
    if done.exit_code != 0:
        last = said.strip().splitlines()[-1:] or answer.strip().splitlines()[-1:]
        raise LaunchError(f"exit code {done.exit_code}{': ' + last[0][:200] if last else ''}")
    name, facts = read_answer(answer)
    # Scratch is another directory each time, and stands in variables of launchers.
    own = Path(scratch).name
    return name, {
        key: value.replace(own, "SCRATCH") if isinstance(value, str) else value
        for key, value in facts.items()
    }


def read_answer(text: str) -> tuple[str, Facts]:
    """Return the name of the node that answered and its facts; raises ParseError for no answer."""
    ((name, facts),) = probes.facts_by_host(text).items()
    return name, facts


def _reader(node: int, question: tuple[str, str], *, needs_mpi: bool) -> Benchmark:
    """Return the script of the probes as a benchmark, so that it is started as any other is."""
    argv = ("/bin/sh", "-c", _TURN, "paribus-turn", str(node), *question, probes.script())
    return Benchmark(
        name="facts",
        layer="",
        summary="what the probes read of a node",
        metrics=(),
        command=lambda _: Program(argv, mpi=needs_mpi),
        parse=lambda _text, _request: Parsed(()),
    )


def _path(file: IO[bytes]) -> str:
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _start_of(file: IO[bytes], most: int) -> str:
    file.seek(0)
    return file.read(most).decode(errors="replace")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
