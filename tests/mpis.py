"""The MPI installations that tests use for real: all that are found, the others visibly skipped.

First the one that Paribus takes where a study names none (on the PATH, else beside this Python);
then those under the prefixes in PARIBUS_TEST_MPI (separated by colons: /opt/openmpi:/opt/mpich).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

from paribus.core import Mpi, UserError
from paribus.launch.machine import HERE
from paribus.launch.toolchain import FAMILIES, find_mpi


@cache
def installations() -> tuple[Mpi, ...]:
    """Return every installation found, one per compiler; first that of a study that names none."""
    found: dict[str, Mpi] = {}
    prefixes = [p for p in os.environ.get("PARIBUS_TEST_MPI", "").split(":") if p]
    for wanted in (None, *prefixes, *FAMILIES):
        try:
            mpi = find_mpi(wanted, HERE)
        except UserError:
            continue
        found.setdefault(mpi.mpicxx, mpi)
    return tuple(found.values())


def each_mpi() -> list[Any]:
    """Return a pytest parameter per installation, and a skipped one per family not found."""
    params = [pytest.param(mpi, id=f"{mpi.family}-{mpi.version[0]}") for mpi in installations()]
    present = {mpi.family for mpi in installations()}
    for family in FAMILIES:
        if family not in present:
            why = f"no {family} on the PATH, beside this Python or in PARIBUS_TEST_MPI"
            params.append(pytest.param(None, marks=pytest.mark.skip(reason=why), id=family))
    return params


def any_mpi() -> Mpi:
    """Return the MPI of a study that names none; skips the caller where there is no MPI.

    Only where there is none on the PATH or beside this Python, one of PARIBUS_TEST_MPI.
    """
    if not installations():
        pytest.skip("no MPI on the PATH, beside this Python or in PARIBUS_TEST_MPI")
    return installations()[0]
