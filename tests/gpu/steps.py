"""Steps of a script on a GPU machine: each ends by itself, and what it found is written at once."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Steps:
    """Findings of steps as JSON Lines in `out`; after `limit_s` seconds none is begun."""

    def __init__(self, out: Path, limit_s: float) -> None:
        self.out, self.ends = out, time.monotonic() + limit_s
        self.failed: list[str] = []
        for name in ("OMPI", "PRTE"):  # Open MPI 4, and 5: such machines are often root's
            os.environ.update({f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")})
        out.mkdir(parents=True, exist_ok=True)
        (out / "steps.jsonl").write_text("")

    def left_s(self) -> float:
        return self.ends - time.monotonic()

    def say(self, step: str, **found: Any) -> None:
        """Write what a step found."""
        line = json.dumps({"step": step, "left_s": round(self.left_s(), 1), **found}, default=str)
        with (self.out / "steps.jsonl").open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)

    def do(self, step: str, needs_s: float, work: Callable[[], Mapping[str, Any]]) -> bool:
        """Run a step that takes `needs_s`, unless too little time is left; never raises."""
        began = time.monotonic()
        if self.left_s() < needs_s:
            self.failed.append(step)
            self.say(step, skipped=f"needs {needs_s:g} s")
            return False
        try:
            found = dict(work())
        except Exception as error:  # what fails here must not cost the steps that follow
            self.failed.append(step)
            self.say(step, failed=f"{type(error).__name__}: {error}"[-800:])
            return False
        self.say(step, took_s=round(time.monotonic() - began, 1), **found)
        if found.get("good") is False:
            self.failed.append(step)
        return True

    def call(self, argv: Sequence[str | Path], most_s: float = 60.0, **how: Any) -> str:
        """Return what a command printed on stdout; raises RuntimeError where it fails or hangs."""
        most = max(1.0, min(most_s, self.left_s()))
        done = subprocess.run(
            [*map(str, argv)], capture_output=True, text=True, timeout=most, check=False, **how
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise RuntimeError(f"{argv[0]}: exit code {done.returncode}: {said[-600:]}")
        return done.stdout

    def end(self) -> int:
        """Write what did not succeed, and return the exit code."""
        self.say("end", failed=self.failed)
        return int(bool(self.failed))


T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}
"""Student's t for an interval of 95 %, by degrees of freedom."""


def ratio(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return ours / theirs of paired launches with its 95 % interval, of the mean logarithm."""
    logs = [math.log(ours / theirs) for ours, theirs in pairs]
    half = T_95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return {"pairs": len(logs), "ratio": math.exp(middle), "low": low, "high": high}
