"""Launches recorded on real machines, as tests of statistics read them."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / name, "rt") as file:
        return list(csv.DictReader(file))
