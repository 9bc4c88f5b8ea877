"""The YAML of an allocation in Kubernetes: a Job, a JobSet or an MPIJob whose pods sleep.

Each pod stands for a node: no two of them share one, and launches are started in them. Fields are
those of the published schemas: batch/v1, jobset.x-k8s.io/v1alpha2, kubeflow.org/v2beta1.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from typing import Any

from paribus.core import Scheduler

CONTAINER = "ranks"
"""The name of the one container of a pod."""

MANAGED = "app.kubernetes.io/managed-by"
JOB = "paribus/job"
OWNER = "paribus/owner"
"""Labels of all objects of Paribus: that it made them, for which arm of which study, which user."""

NAME, NODES, SECONDS = "paribus/name", "paribus/nodes", "paribus/seconds"
"""Annotations of the object: the job's name, the number of pods, the seconds that each sleeps."""

AUTOSCALED = "paribus/autoscaled"
"""The annotation of an object that waits for nodes which are not there yet."""

NAMED = "metadata.name="
"""How an option for nodes by their names begins; see Kubernetes.named."""

LINGER_S = 600
"""Seconds for which an object stays after its pods have ended, so that it can be looked at."""

OF_POD = ("containers", "restartPolicy", "activeDeadlineSeconds", "affinity", "nodeSelector")
OF_CONTAINER = ("name", "image", "command", "args", "resources", "env", "envFrom")
"""Fields of a pod and of its container that a study may not set: Paribus does, by other keys."""

# The shell is the first process of its container: it must end by TERM, and adopt orphans.
_SLEEP = "trap 'exit 0' TERM; sleep {seconds} & wait"


def label_of(name: str) -> str:
    """Return the label of a job's name; the names of its objects begin with it.

    >>> label_of("paribus-0123456789-1-Arm_A.")
    'paribus-0123456789-1-arm-a'
    """
    return re.sub("[^a-z0-9-]", "-", name.lower())[:40].strip("-")


def owner() -> str:
    """Return the label of this user on this machine.

    Kubernetes keeps no owner of an object; a namespace may be shared.
    """
    whole = f"{os.getuid()}@{socket.gethostname()}"
    return hashlib.sha256(whole.encode()).hexdigest()[:10]


def manifest(asked: Scheduler, name: str) -> str:
    """Return the YAML of the object that holds the pods of `asked` as job `name`."""
    import yaml

    seconds = round(asked.time_s)
    labels = {MANAGED: "paribus", JOB: label_of(name), OWNER: owner()}
    notes = {NAME: name, NODES: str(asked.nodes), SECONDS: str(seconds)}
    notes |= {AUTOSCALED: "true"} if asked.autoscaled else {}
    about: dict[str, Any] = {"generateName": f"{label_of(name)}-"}
    about |= {"namespace": asked.namespace} if asked.namespace else {}
    about |= {"labels": labels, "annotations": notes}
    template = {"metadata": {"labels": labels}, "spec": _pod(asked, seconds, labels)}
    version, spec = {"Job": _job, "JobSet": _jobset, "MPIJob": _mpijob}[asked.kind](asked, template)
    whole = {"apiVersion": version, "kind": asked.kind, "metadata": about, "spec": spec}

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

        def plain(self, text: str) -> Any:
            # Quoted unless it begins with two letters: readers differ on 5e78d1, 0123, 1e5.
            style = None if re.match(r"[A-Za-z]{2}", text) else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, Dumper.plain)
    text = yaml.dump(whole, Dumper=Dumper, sort_keys=False, default_flow_style=False, width=1000)
    return f"# Holds its nodes for a study of Paribus, which starts its launches there.\n{text}"


def _job(asked: Scheduler, template: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    # A pod is never replaced: the allocation ends with any of them.
    spec = {"parallelism": asked.nodes, "completions": asked.nodes, "completionMode": "Indexed"}
    spec |= {"backoffLimit": 0, "podReplacementPolicy": "Failed"}
    return "batch/v1", {**spec, "ttlSecondsAfterFinished": LINGER_S, "template": template}


def _jobset(asked: Scheduler, template: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    _, job = _job(asked, template)
    del job["ttlSecondsAfterFinished"]
    group = {"name": "nodes", "replicas": 1, "template": {"spec": job}}
    spec = {"failurePolicy": {"maxRestarts": 0}, "ttlSecondsAfterFinished": LINGER_S}
    return "jobset.x-k8s.io/v1alpha2", {**spec, "replicatedJobs": [group]}


def _mpijob(asked: Scheduler, template: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    # The launcher is one of the nodes. It starts nothing: Paribus does.
    policy = {"cleanPodPolicy": "All", "backoffLimit": 0, "ttlSecondsAfterFinished": LINGER_S}
    spec: dict[str, Any] = {"slotsPerWorker": 1, "runLauncherAsWorker": True, "runPolicy": policy}
    roles = {"Launcher": 1, **({"Worker": asked.nodes - 1} if asked.nodes > 1 else {})}
    replicas = {
        role: {"replicas": number, "restartPolicy": "Never", "template": template}
        for role, number in roles.items()
    }
    return "kubeflow.org/v2beta1", {**spec, "mpiReplicaSpecs": replicas}


def _pod(asked: Scheduler, seconds: int, labels: dict[str, str]) -> dict[str, Any]:
    """Return the spec of a pod: one container that sleeps, on a node without another of Paribus."""
    amounts = dict(asked.resources)
    container = {
        "name": CONTAINER,
        "image": asked.image,
        "command": ["/bin/sh", "-c", _SLEEP.format(seconds=seconds)],
        # Equal ones make a pod "Guaranteed": the last to be evicted.
        "resources": {"requests": amounts, "limits": amounts},
        # The 64 MiB that runtimes give are not enough for ranks that share memory.
        "volumeMounts": [{"name": "paribus-shm", "mountPath": "/dev/shm"}],
    }
    others = {"matchLabels": {MANAGED: labels[MANAGED]}}
    apart = [{"labelSelector": others, "topologyKey": "kubernetes.io/hostname"}]
    affinity: dict[str, Any] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}
    }
    if terms := _terms(asked):
        where = {"nodeSelectorTerms": terms}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": where}
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds + 60,  # in case the sleep does not end the pod
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": affinity,
        "volumes": [{"name": "paribus-shm", "emptyDir": {"medium": "Memory"}}],
    }
    merged = _merged(container, json.loads(asked.container or "{}"))
    return {**_merged(spec, json.loads(asked.pod or "{}")), "containers": [merged]}


def _terms(asked: Scheduler) -> list[dict[str, Any]]:
    """Return the terms that select nodes: by labels, and by names where some are asked for."""
    labels = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in (one.split("=", 1) for one in asked.constraint.split(",") if one)
    ]
    chosen = [one.removeprefix(NAMED) for one in asked.options if one.startswith(NAMED)]
    term: dict[str, Any] = {"matchExpressions": labels} if labels else {}
    if not chosen:
        return [term] if term else []
    # A field takes one value, so each name is a term; one of the terms must hold.
    fields = [
        {"key": "metadata.name", "operator": "In", "values": [node]}
        for node in chosen[0].split(",")
    ]
    return [{**term, "matchFields": [field]} for field in fields]


def _merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return our fields with those of a study, whose values win; lists are joined."""
    found = dict(ours)
    for key, value in theirs.items():
        known = found.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            found[key] = _merged(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            found[key] = [*known, *value]
        else:
            found[key] = value
    return found
