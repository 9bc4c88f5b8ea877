"""Checks 14 and 15, under load 24 and 25: the real harness on this machine, and a known answer.

The studies are those that ship: studies/same.toml (nothing differs) and studies/delay.toml (the
kernel waits for 5 % of each round trip).
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.figures import Check, Figure
from validation.load import competing_load

ROOT = Path(__file__).parents[2]
DELAY = 1.05
"""The ratio that studies/delay.toml injects."""

ERROR = 0.05
"""How often an interval may miss the truth: 1 - confidence of the studies."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one live study came to: exit code, sentence, and the findings of its verdict.json."""

    exit_code: int
    sentence: str
    headlines: tuple[Mapping[str, Any], ...]
    cases: tuple[Mapping[str, Any], ...]


def execute(name: str, times: int, *, load: bool) -> Iterator[Told]:
    """Yield what each of `times` studies of studies/NAME.toml came to.

    Raises SystemExit, with what Paribus said, when a study could not be run.
    """
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="paribus-validate-") as folder, ExitStack() as also:
            if load:
                also.enter_context(competing_load())
            out = Path(folder) / "study"
            file = ROOT / "studies" / f"{name}.toml"
            command = [sys.executable, "-m", "paribus", "run", str(file), "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode not in (0, 3):
                raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            verdict = json.loads((out / "verdict.json").read_text())
        yield Told(
            done.returncode,
            verdict["sentence"],
            tuple(h for h in verdict["headlines"] if h.get("decides", True)),
            tuple(verdict["cases"]),
        )


def identical(times: int, *, load: bool = False) -> Check:
    """Check 14, under load 24: studies of identical arms say neither faster nor slower."""
    studies = list(_reported("same", times, load=load))
    headlines = [h for study in studies for h in study.headlines]
    cases = [c for study in studies for c in study.cases]
    beside = sum(not _holds(h, 1.0) for h in headlines)
    blocks = [_blocks(h) for h in headlines]
    return Check(
        24 if load else 14,
        f"Live: identical arms{_loaded(load)}",
        f"`paribus run studies/same.toml`, {times} times{_under(load)}: both arms alike, two "
        f"ranks on this machine. {_blocks_said(blocks)} {_words_said(headlines)}",
        (
            Figure("studies run", {"": len(studies)}, "=", times, ""),
            Figure(
                "faster, slower or withheld",
                {
                    f"of {len(headlines)} headlines": _wrong(headlines),
                    f"of {len(cases)} cases": _wrong(cases),
                },
                "=",
                0,
                "",
            ),
            Figure(
                "headline intervals that exclude 1",
                {f"of {len(headlines)}": beside},
                "<=",
                allowed(len(headlines)),
                "",
            ),
        ),
    )


def delayed(times: int, *, load: bool = False) -> Check:
    """Check 15, under load 25: studies with an injected delay of 5 % say slower, by 5 %."""
    studies = list(_reported("delay", times, load=load))
    headlines = [h for study in studies for h in study.headlines]
    missed = sum(not _holds(h, DELAY) for h in headlines)
    blocks = [_blocks(h) for h in headlines]
    ratios = sorted(h["comparison"]["ratio"] for h in headlines if h["comparison"])
    between = f"Ratios found: {min(ratios):.3f} to {max(ratios):.3f}." if ratios else ""
    return Check(
        25 if load else 15,
        f"Live: an injected delay of 5 %{_loaded(load)}",
        f"`paribus run studies/delay.toml`, {times} times{_under(load)}: the kernel busy-waits "
        f"for 5 % of each round trip. {_blocks_said(blocks)} {between}",
        (
            Figure("studies run", {"": len(studies)}, "=", times, ""),
            Figure(
                "headlines that do not say slower",
                {f"of {len(headlines)}": sum(_word(h) != "slower" for h in headlines)},
                "=",
                0,
                "",
            ),
            Figure(
                "intervals that exclude 5 %",
                {f"of {len(headlines)}": missed},
                "<=",
                allowed(len(headlines)),
                "",
            ),
        ),
    )


def allowed(intervals: int) -> int:
    """Return how many of so many intervals may miss the truth: more have a chance below 1.5 %.

    Binomial, each missing in 5 %: 5 of 40.
    """
    left = 1.0
    for misses in range(intervals + 1):
        ways = math.comb(intervals, misses)
        left -= ways * ERROR**misses * (1 - ERROR) ** (intervals - misses)
        if left < 0.015:
            return misses
    return intervals


def _reported(name: str, times: int, *, load: bool) -> Iterator[Told]:
    """Yield the studies, each printed as soon as it is over."""
    for place, reported in enumerate(execute(name, times, load=load), 1):
        found = "; ".join(_one_line(h) for h in reported.headlines)
        print(f"     {name} {place} of {times}: {reported.sentence} {found}", flush=True)
        yield reported


def _one_line(finding: Mapping[str, Any]) -> str:
    found = finding["comparison"] or {}
    ends = (found.get(key) for key in ("ratio", "low", "high"))
    ratio, low, high = ("open" if end is None else f"{end:.3f}" for end in ends)
    return f"{finding['benchmark']} {ratio} [{low}, {high}] after {_blocks(finding)} blocks"


def _holds(finding: Mapping[str, Any], ratio: float) -> bool:
    """Return whether the finding's interval holds `ratio`; none does not."""
    found = finding["comparison"]
    if found is None:
        return False
    low, high = found["low"] or 0.0, math.inf if found["high"] is None else found["high"]
    return bool(low <= ratio <= high)


def _word(finding: Mapping[str, Any]) -> str:
    return str(finding["verdict"]["word"])


def _wrong(findings: Sequence[Mapping[str, Any]]) -> int:
    """Return how many say anything but that there is no difference, or that it is not known."""
    return sum(_word(one) not in ("equivalent", "undecided") for one in findings)


def _blocks(finding: Mapping[str, Any]) -> int:
    return int(finding["comparison"]["blocks"]) if finding["comparison"] else 0


def _blocks_said(blocks: Sequence[int]) -> str:
    return f"Headlines ended after {min(blocks)} to {max(blocks)} blocks." if blocks else ""


def _words_said(findings: Sequence[Mapping[str, Any]]) -> str:
    words = [_word(one) for one in findings]
    return "; ".join(f"{words.count(word)} {word}" for word in sorted(set(words))) + "."


def _loaded(load: bool) -> str:
    return ", under load" if load else ""


def _under(load: bool) -> str:
    return (
        ", with as many busy processes of the same priority as cores (every other one copying"
        " memory)"
        if load
        else ""
    )
