"""`paribus run --dry-run`: the plan of a study, its commands, and how long it would take."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any

from paribus.benchmarks import benchmark_of
from paribus.cli.hosts import reached
from paribus.core import (
    LaunchError,
    MachineError,
    Selection,
    Step,
    Study,
    UserError,
    arm_at,
    count,
    format_bytes,
    format_parameter,
    format_seconds,
    parse_price,
    percent,
)
from paribus.launch.arms import Ready, compose, discreet, names_of, program
from paribus.launch.memory import fitted
from paribus.launch.pilot import Pilot, durations, followed, pilot, refusal
from paribus.launch.programs import check_there
from paribus.launch.ready import built, make_ready
from paribus.plan import Plan
from paribus.stats.band import LEAST_BLOCKS


def show(
    plan: Plan,
    *,
    notify: Callable[[str], None],
    launch: bool,
    anyway: bool,
    accepted: Mapping[str, str],
    accept_keys: bool,
    detached: str = "",
) -> int:
    """Print the plan, its first launches, commands, and durations; return the exit code.

    It is 4 where a pilot launch failed, whose output is then kept, else 0. With `launch` the
    durations come from pilot launches, which are not stored; a study that switches its platform has
    none. `accepted`: reasons for differences. `detached`: the script of its own job, "" for none.
    """
    if _print_scripts(plan, detached):
        return 0
    why_not = refusal(plan) if launch else "--no-pilot is given"
    study = plan.design.staged()
    with (
        reached(study, accept_keys=accept_keys) as opened,
        nullcontext(study) if why_not else built(study, None, notify, again=False) as whole,
    ):
        for name, station in opened.items():
            if asleep := station.asleep:
                fix = f"start them: --dry-run does not run `before` of {name}"
                raise MachineError(asleep.cause, place=asleep.place, fix=fix)
        ready = make_ready(whole, notify, opened, build=not why_not)
        if not why_not:
            plan = replace(plan, study=fitted(plan.study, ready, notify))
        _print_study(plan)
        _print_commands(plan, ready)
        if why_not:
            _print_missing(plan, ready)
            print(f"\nno estimate of the duration (it takes pilot launches): {why_not}")
            return 0
        print("\nmaking a few pilot launches (not kept) ...", file=sys.stderr)
        seen = pilot(plan, opened, ready, accepted, anyway=anyway)
    _print_durations(plan, seen)
    if seen.logs:
        print(f"paribus: pilot launches failed; their output is in {seen.logs}", file=sys.stderr)
    return LaunchError.exit_code if seen.failed else 0


def _print_scripts(plan: Plan, detached: str) -> bool:
    """Print the study and the job script of each arm that a scheduler lends nodes to.

    Return False, and print nothing, where none does, or where this is such a job.
    """
    from paribus.lenses.cost.node_hours import HOUR_S, text
    from paribus.schedulers.known import dialect_of, in_job

    lent = {
        arm.name: arm.hosts.scheduler
        for arm in plan.study.arms
        if arm.hosts and arm.hosts.scheduler
    }
    if not lent or any(in_job(request.name) for request in lent.values()):
        return False
    _print_study(plan)
    if detached:
        print("\nthe job that the study is (sbatch):")
        print(textwrap.indent(detached, "  "), end="")
    for request in dict.fromkeys(lent.values()):
        arms = [name for name, its in lent.items() if its == request]
        dialect = dialect_of(request)
        submit = " ".join(word for word in dialect.SUBMIT if not word.startswith("-"))
        print(f"\nthe job that arm {' and arm '.join(arms)} waits for ({submit}):")
        print(textwrap.indent(dialect.script(request, "paribus-KEY-ARM"), "  "), end="")
    print("\nno estimate of the duration: it takes pilot launches, and these take an allocation")
    print("each allocation, if it is held for all of its time:")
    prices = {arm.name: arm.price for arm in plan.study.arms}
    for request in dict.fromkeys(lent.values()):
        arms = [name for name, its in lent.items() if its == request]
        hours = request.nodes * request.time_s / HOUR_S
        price, currency = parse_price(prices[arms[0]]) if prices[arms[0]] else (0.0, "")
        spent = text(request.nodes, (hours,), (hours * price,), currency)
        print(_wrapped(f"{' and '.join(arms)}: {spent}", "  "))
    return True


def _print_study(plan: Plan) -> None:
    """Print question, arms, benchmarks, looks, and the launches of the first blocks."""
    study, settings = plan.study, plan.study.settings
    arms = ", ".join(arm.name for arm in study.arms)
    print(study.question)
    print(f"factor {study.factor}; arms {arms} (the first is the reference);")
    times = {"a round every": settings.every_s, "budget": settings.budget_s}
    said = [f"margin {percent(settings.margin)}"] if settings.margin else []
    said += [f"{what} {format_seconds(one)}" for what, one in times.items() if one]
    print("; ".join((f"seed {settings.seed}", *said)))
    for selection in study.benchmarks:
        limit = selection.timeout_s
        ranks = count(selection.ranks, "rank") if selection.ranks else "no MPI"
        parts = [ranks + _on_nodes(study, selection)]
        parts += [f"{plan.metrics[selection.label][0].name} decides"]
        parts += [f"limit {format_seconds(limit)}"] if limit else []
        parts += [f"{k} {_value(k, v)}" for k, v in selection.parameters.items() if v is not None]
        print(_wrapped(f"{selection.label}: {'; '.join(parts)}", "  "))
    print(*plan.design.to_come(plan.looks.at, plan.looks.confidence), sep="\n")
    if settings.decides != "headline":
        blocks = f", from block {LEAST_BLOCKS} on" * (settings.decides == "sizes")
        print(f"a benchmark also continues until 90 % of its cases are decided{blocks}")
    print("the first launches:")
    several = 3 * len(plan.design.holds(study.benchmarks[0].label, 1))
    for launch in islice((launch for block in plan.blocks() for launch in block), several):
        print(f"  {launch.number:4d}  block {launch.block}  {launch.benchmark}  {launch.arm}")


def _on_nodes(study: Study, selection: Selection) -> str:
    """Return " on 4 nodes" for a benchmark, by arm where they differ, "" without hosts."""
    on = {}
    for arm in study.arms if selection.ranks else ():
        if arm.hosts:
            wanted = program(arm, selection, benchmark_of(selection))
            on[arm.name] = len({*names_of(arm_at(arm, selection), wanted, selection.ranks)})
    if not on:
        return ""
    if len(on) == len(study.arms) and len({*on.values()}) == 1:
        return f" on {count(on[study.arms[0].name], 'node')}"
    return f" on nodes: {', '.join(f'{arm} {number}' for arm, number in on.items())}"


def _print_commands(plan: Plan, ready: Mapping[str, Ready]) -> None:
    """Print the commands around the launches, and the command of the first benchmark, by arm."""
    first = plan.study.benchmarks[0]
    print(f"\ncommands of {first.label} (SCRATCH is the directory of the launch):")
    for arm in ready.values():
        for what in ("before", "observe", "after"):
            for step in getattr(arm.arm, what):
                where = f"{what} on {step.on}" if step.on else what
                print(_wrapped(f"{arm.arm.name}, {where}: {shlex.join(step.argv)}", "  "))
                if step.limit_s and what == "before":
                    _print_requests(step)
        command = compose(discreet(arm), first, benchmark_of(first), seed=0, scratch="SCRATCH")
        env = [f"{key}={value}" for key, value in command.env.items()]
        words = [_short(word) for word in (*env, *command.argv)]
        print(_wrapped(f"{arm.arm.name}: {' '.join(words)}", "  "))
        for name in sorted(command.files):
            print(f"      SCRATCH/{name}: {count(len(command.files[name].splitlines()), 'line')}")


def _print_requests(step: Step) -> None:
    """Print the requests by which a step would switch the topology of the server; send none.

    Raises UserError where the BMC or the server cannot be read.
    """
    from paribus.cli import parser_of

    words = [word for word in step.argv[1:] if word != "--json"]
    arguments = parser_of(words).parse_args([*words, "--dry-run"])
    arguments.execute(arguments)


def _print_missing(plan: Plan, ready: Mapping[str, Ready]) -> None:
    """Print the programs that are missing; `before` commands of an arm may still provide them."""
    for arm in plan.study.arms:
        for one in plan.study.benchmarks:
            benchmark = benchmark_of(one)
            try:
                wanted = program(arm, one, benchmark)
                machine = ready[arm.name].machine
                check_there(arm, benchmark, wanted, one.label, machine, switched=True)
            except UserError as error:
                when = "before its `before` commands" if arm.before else "missing"
                print(_wrapped(f"{arm.name}, {when}: {one.label}: {error.cause}", "  "))


def _print_durations(plan: Plan, seen: Pilot) -> None:
    """Print the seconds of the pilot's launches, the best and worst duration, and advice."""
    from paribus.lenses.cost.node_hours import held

    print("pilot, seconds per launch:")
    for selection in plan.study.benchmarks:
        label = selection.label
        seconds = ", ".join(
            f"{arm.name} {seen.seconds[label, arm.name]:.2f}"
            for arm in plan.study.arms
            if (label, arm.name) in seen.seconds
        )
        print(f"  {label}: {seconds}")
        for arm in plan.study.arms:
            if (label, arm.name) in seen.failed:
                print(_wrapped(f"{arm.name} failed: {seen.failed[label, arm.name]}", "    "))
        if label in seen.advice:
            print(_wrapped(seen.advice[label].reason, "    "))
    if seen.failed:  # a launch that fails takes another time than one that does not
        print("no estimate of the duration: pilot launches failed")
        return
    for line in (*durations(plan, seen), *held(followed(plan, seen), seen)):
        print(_wrapped(line, ""))


def _value(key: str, value: Any) -> str:
    if key == "bytes" and isinstance(value, list | tuple):
        return ", ".join(map(format_bytes, value))
    return format_parameter(value)


def _short(word: str) -> str:
    """Return a word of a command line, quoted; of a script only the number of its lines."""
    lines = word.count("\n")
    return f"'(script of {count(lines, 'line')})'" if lines else shlex.quote(word)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        80,
        initial_indent=indent,
        subsequent_indent=indent * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
