"""`paribus run --dry-run`: what a study would do, without a launch."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from typing import Any

from paribus.study.arms import Ready, compose
from paribus.study.load import benchmark_of
from paribus.study.plan import Plan
from paribus.units import format_bytes, format_seconds


def show(plan: Plan, ready: Mapping[str, Ready]) -> int:
    """Print the plan, its first launches and the command of each arm; returns exit code 0."""
    study = plan.study
    arms = ", ".join(arm.name for arm in study.arms)
    print(study.question)
    print(f"factor {study.factor}; arms {arms} (the first is the reference);")
    print(
        f"seed {study.settings.seed}"
        + (
            ""
            if study.settings.budget_s is None
            else f"; budget {format_seconds(study.settings.budget_s)} of launches"
        )
    )
    for selection in study.benchmarks:
        limit = selection.timeout_s
        said = [f"{selection.ranks} ranks"]
        said += [f"limit {format_seconds(limit)}"] if limit else []
        said += [f"{k} {_value(k, v)}" for k, v in selection.parameters.items() if v is not None]
        print(_wrapped(f"{selection.label}: {'; '.join(said)}", "  "))
    looks = ", ".join(map(str, plan.looks.at))
    least = (plan.looks.at[0] + 1) * len(study.arms) * len(study.benchmarks)
    print(f"looks after {looks} blocks, at {plan.looks.confidence:.1%} confidence each")
    print(f"{least} to {len(plan.launches)} launches; the first ones:")
    for launch in plan.launches[: 3 * len(study.arms)]:
        print(f"  {launch.number:4d}  block {launch.block}  {launch.benchmark}  {launch.arm}")
    first = study.benchmarks[0]
    print(f"\ncommands of {first.label}, with SCRATCH for the launch's own directory:")
    for arm in ready.values():
        command = compose(arm, first, benchmark_of(first), seed=0, scratch="SCRATCH")
        env = [f"{key}={value}" for key, value in command.env.items()]
        words = [_short(word) for word in (*env, *command.argv)]
        print(_wrapped(f"{arm.arm.name}: {' '.join(words)}", "  "))
        for name in sorted(command.files):
            print(f"      SCRATCH/{name}: {len(command.files[name].splitlines())} lines")
    return 0


def _value(key: str, value: Any) -> str:
    if key == "bytes" and isinstance(value, list | tuple):
        return ", ".join(map(format_bytes, value))
    return str(value)


def _short(word: str) -> str:
    """Return a word of a command line as a shell takes it; a whole script is only counted."""
    lines = word.count("\n")
    return f"'(script of {lines} lines)'" if lines else shlex.quote(word)


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        80,
        initial_indent=indent,
        subsequent_indent=indent * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
