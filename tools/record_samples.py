"""Write the samples of a study's launches to a file for the tests, in the order of time.

    paribus run FILE --out DIR && python tools/record_samples.py DIR tests/data/same-samples.npz

One array for each benchmark and case, (launch, sample) in the metric's unit, single precision.
How the file in tests/data was made: tests/data/README.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from paribus.core import State
from paribus.store import Store


def main() -> None:
    """Read the study directory and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    series: dict[str, list[tuple[float, ...]]] = {}
    with Store(asked.directory) as store:
        for one in sorted(store.launches(), key=lambda one: one.outcome.started):
            if one.launch.block == 0 or one.outcome.state is not State.OK:
                continue
            for sample in one.outcome.samples:
                size = sample.case.get("bytes")
                series.setdefault(f"{one.launch.benchmark}-{size}", []).append(tuple(sample.values))
    arrays = {name: np.array(rows, dtype=np.float32) for name, rows in series.items()}
    np.savez_compressed(asked.file, allow_pickle=False, **arrays)
    for name, array in arrays.items():
        print(f"{name}: {array.shape[0]} launches of {array.shape[1]} samples")


if __name__ == "__main__":
    main()
