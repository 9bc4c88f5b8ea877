"""The batch systems that Paribus knows, by the name that a study gives them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from paribus.border import find_program, home
from paribus.core import Scheduler, UserError
from paribus.schedulers.dialect import Dialect
from paribus.schedulers.flux import Flux
from paribus.schedulers.gridengine import GridEngine
from paribus.schedulers.kubernetes import Kubernetes
from paribus.schedulers.pbs import Pbs
from paribus.schedulers.slurm import Slurm
from paribus.schedulers.torque import Torque

DIALECTS: Mapping[str, Dialect] = {
    "slurm": Slurm(),
    "gridengine": GridEngine(),
    "pbs": Pbs(),
    "torque": Torque(),
    "flux": Flux(),
    "kubernetes": Kubernetes(),
}


def present() -> list[Dialect]:
    """Return the batch systems that the PATH has; kubectl counts only where it has a cluster."""
    cluster = bool({"KUBECONFIG", "KUBERNETES_SERVICE_HOST"} & os.environ.keys())
    with suppress(UserError):
        cluster = cluster or (home() / ".kube/config").exists()
    return [
        one
        for one in DIALECTS.values()
        if find_program(one.MARK) and (one.MARK != "kubectl" or cluster)
    ]


def dialect_of(asked: Scheduler) -> Dialect:
    """Return the dialect of a request."""
    if asked.name == "kubernetes":
        return Kubernetes(asked.namespace, asked.kind)
    return DIALECTS[asked.name]


def in_job(name: str) -> str:
    """Return the job of the scheduler `name` that Paribus was started in, "" for none."""
    return DIALECTS[name].in_job(os.environ)
