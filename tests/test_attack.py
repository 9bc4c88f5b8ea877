"""The attacks of ./dev attack still run, and see what does not hold."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from processes import ran

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["inputs", "authors", "switches"])
def test_one_attack_of_a_family_ends_without_a_fault(family: str) -> None:
    done = ran(
        [sys.executable, "-m", "attack", "--seed", "1", "--only", family, "--index", "0"],
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        timeout=250,
        code=0,
    )
    assert re.search(r"^\d+ attacks, 0 faults in \d+ s; seed 1$", done.stdout, re.M)
