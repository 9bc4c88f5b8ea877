"""Kubernetes: an allocation is an object whose pods sleep, and `kubectl exec` enters them.

All requests go through kubectl and its user's kubeconfig: Paribus reads no credentials.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from paribus.core import Scheduler, count
from paribus.schedulers import manifest
from paribus.schedulers.dialect import Dialect, Job, Phase, Pod

KINDS = {
    "Job": "jobs.batch",
    "JobSet": "jobsets.jobset.x-k8s.io",
    "MPIJob": "mpijobs.kubeflow.org",
}
"""The kinds of object that hold the pods, with the names of their resources."""

_OBJECTS = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "job-name")
"""Labels of a pod that name its object; the first that it has counts: a JobSet's pods have two."""

# Conditions after which an object makes no more pods: of batch/v1, of JobSet, of MPIJob.
_ENDED = {"Failed", "FailureTarget", "Complete", "SuccessCriteriaMet", "Completed", "Succeeded"}

# Reasons of a waiting container that will never start: kubernetes/pkg/kubelet/images/types.go,
# kuberuntime.
_IN_VAIN = {
    *("ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
}

# 0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were unschedulable. ... preemption: 0/3
# nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found ...
_UNSCHEDULABLE = re.compile(
    r"0/\d+ nodes are available: (.*?)\. .*?preemption: 0/\d+ nodes are available: (.*)"
)
_COUNTED = re.compile(r"(\d+) ([^,]+)")


def json_object(value: Any) -> dict[str, Any]:
    """Return a JSON object; raises ValueError for another value."""
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:80]!r} is no object")
    return value


def jobs_of(printed: str) -> dict[str, Job]:
    """Return the jobs in lists of objects, pods and events, by name.

    Raises ValueError for another text.
    """
    lists = [*_documents(printed)]
    if not lists:
        raise ValueError("kubectl printed nothing")
    try:
        items = [item for one in lists for item in one["items"]]
        pods = [item for item in items if item["kind"] == "Pod"]
        events = [item for item in items if item["kind"] == "Event"]
        found = [item for item in items if item["kind"] in KINDS]
        jobs = [_job(one, pods, events) for one in found if _notes(one).get(manifest.NAME)]
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise ValueError(f"kubectl printed what has not what it must have: {error!r}") from None
    return {job.ident: job for job in jobs}


def _documents(printed: str) -> Iterator[dict[str, Any]]:
    decoder, at = json.JSONDecoder(), 0
    while rest := printed[at:].lstrip():
        at = len(printed) - len(rest)
        try:
            value, at = decoder.raw_decode(printed, at)
        except RecursionError:
            raise ValueError("kubectl printed lists in lists without end") from None
        yield json_object(value)


def _notes(item: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return item["metadata"].get("annotations") or {}


def _job(one: Mapping[str, Any], pods: Sequence[Any], events: Sequence[Any]) -> Job:
    """Return the job that an object of Kubernetes is, from its pods and the events about them."""
    about, notes = one["metadata"], _notes(one)
    ident, name, wanted = about["name"], notes[manifest.NAME], int(notes[manifest.NODES])
    its_pods = [pod for pod in pods if _belongs(pod) == ident]
    state, reason = _end(one, its_pods)
    if state:
        return Job(ident, name, Phase.ENDED, state, reason)
    running = [_running(pod) for pod in its_pods]
    if len(its_pods) == wanted and all(running):
        # Whichever pod is on which: the same nodes are to be in the same order.
        its_pods.sort(key=lambda pod: str(pod["spec"]["nodeName"]))
        there = tuple(
            Pod(
                pod["spec"]["nodeName"],
                pod["metadata"]["namespace"],
                pod["metadata"]["name"],
                pod["status"]["podIP"],
            )
            for pod in its_pods
        )
        stamps = (_container(pod)["state"]["running"]["startedAt"] for pod in its_pods)
        begun = min(datetime.fromisoformat(stamp).timestamp() for stamp in stamps)
        ends = begun + int(notes[manifest.SECONDS])
        nodes = tuple(pod.node for pod in there)
        return Job(ident, name, Phase.RUNS, "Running", "", nodes, ends, pods=there)
    state, reason, never = _waits(one, its_pods, events, pods)
    return Job(ident, name, Phase.WAITS, state, reason, never=never)


def _belongs(pod: Mapping[str, Any]) -> str:
    """Return the name of the object that a pod is of, "" for none."""
    labels = pod["metadata"].get("labels") or {}
    return next((labels[key] for key in _OBJECTS if key in labels), "")


def _end(one: Mapping[str, Any], pods: Sequence[Any]) -> tuple[str, str]:
    """Return state and reason of an object that no longer holds its nodes, ("", "") for others."""
    if one["metadata"].get("deletionTimestamp"):
        return "Deleted", ""
    for pod in pods:
        status, name = pod["status"], pod["metadata"]["name"]
        why = [status.get("reason"), status.get("message")]
        # Who deletes or evicts it is in a condition.
        true = [at for at in status.get("conditions") or () if at["status"] == "True"]
        why += [at.get("message") for at in true if at["type"] == "DisruptionTarget"]
        reason = ": ".join(filter(None, why))
        if pod["metadata"].get("deletionTimestamp"):
            return f"pod {name} is being deleted", reason
        if status.get("phase") in ("Failed", "Succeeded"):
            return f"pod {name} {status['phase']}", reason
    for at in one.get("status", {}).get("conditions") or ():
        if at["type"] in _ENDED and at["status"] == "True":
            return at["type"], at.get("message", "")
    return "", ""


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of a pod's container, {} where there is none yet."""
    every = pod["status"].get("containerStatuses") or ()
    return next((one for one in every if one["name"] == manifest.CONTAINER), {})


def _running(pod: Mapping[str, Any]) -> bool:
    """Return whether launches can be started in a pod."""
    status = pod["status"]
    started = "running" in (_container(pod).get("state") or {})
    return bool(status.get("phase") == "Running" and started and status.get("podIP"))


def _waits(
    one: Mapping[str, Any], pods: Sequence[Any], events: Sequence[Any], every: Sequence[Any]
) -> tuple[str, str, bool]:
    """Return state and reason of an object that waits, and whether it will never start.

    `pods`: its own; `every`: those of all objects of this user.
    """
    waits_for_nodes = manifest.AUTOSCALED in _notes(one)
    for pod in pods:
        waiting = (_container(pod).get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _IN_VAIN:
            message = ": ".join(filter(None, (waiting["reason"], waiting.get("message"))))
            return "Pending", message, True
    for pod in pods:
        for at in pod["status"].get("conditions") or ():
            if at["type"] == "PodScheduled" and at["status"] == "False":
                message = at.get("message") or at.get("reason") or ""
                waiting_pods = [
                    other for other in every if other["spec"].get("nodeName") and _alike(other, pod)
                ]
                never = not waits_for_nodes and _in_vain(message, len(waiting_pods))
                have = sum("nodeName" in other["spec"] for other in pods)
                partly = f"{have} of {len(pods)} pods have a node: " if have else ""
                return "Pending", f"{partly}{message}", never
    for event in events:
        if event["involvedObject"]["name"].startswith(one["metadata"]["name"]):
            return "Pending", event["message"], "forbidden" in event["message"]
    phases = sorted({str(pod["status"].get("phase")) for pod in pods if not _running(pod)})
    return ", ".join(phases) or "no pods yet", "", False


def _in_vain(message: str, taken: int) -> bool:
    """Return whether a pod can never get a node, by the scheduler's `message` on it.

    So it is if all reasons are lasting (too little of a resource, affinity, but not a drained node)
    and preemption could help only on the `taken` nodes, which this study itself holds.
    """
    found = _UNSCHEDULABLE.match(message)
    if found is None:
        return False
    reasons, tried = (dict(map(reversed, _COUNTED.findall(part))) for part in found.groups())
    others = sum(int(number) for text, number in tried.items() if "not helpful" not in text)
    return others <= taken and all(re.search("Insufficient|affinity", text) for text in reasons)


def _alike(pod: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two pods are of one study (paribus-KEY), and could be on the same nodes."""
    labels = [one["metadata"].get("labels", {}).get(manifest.JOB, "") for one in (pod, other)]
    of_one = len({tuple(label.split("-")[:2]) for label in labels}) == 1
    return of_one and pod["spec"].get("affinity") == other["spec"].get("affinity")


_RIGHTS = (
    *("create {}", "get {}", "list {}", "watch {}", "delete {}", "get pods", "list pods"),
    "create pods --subresource=exec",
)
"""The rights that a user needs, as arguments of `kubectl auth can-i`.

Without get and watch, `kubectl delete` returns although the objects still exist.
"""

_MAY = """\
place=$1
shift
kubectl get --raw=/version --request-timeout=10s >/dev/null || exit
for right in "$@"; do
    # shellcheck disable=SC2086
    said=$(kubectl auth can-i $right $place 2>&1) && continue
    case $said in
    *"doesn't have a resource type"*) said="there are no ${right#* } here: use kind = 'Job'" ;;
    no*) said="this user may not $right in ${place:-the current namespace}" ;;
    esac
    printf '%s\\n' "$said" >&2
    exit 1
done
"""

# Pods that may not be made are reported by events only, in no status.
_LIST = """\
which=$1 whose=$2
shift 2
listed=$(kubectl get "$which,pods" --selector="$whose" --output=json "$@") || exit
[ -n "$listed" ] || exit
printf '%s\\n' "$listed"
kubectl get events --field-selector=reason=FailedCreate --output=json "$@" 2>/dev/null || :
"""

# Hydra would name its own pod by its host name, which other pods cannot resolve.
_ENTER = (
    "[ ! -e /sys/class/net/eth0 ] || export HYDRA_IFACE=eth0 I_MPI_HYDRA_IFACE=eth0; exec /bin/sh"
)


class Kubernetes(Dialect):
    """Kubernetes, of one namespace ("": the current one) and one kind of object; see Dialect.

    A pod in which Paribus itself runs is never one of its nodes.
    """

    TITLE = "Kubernetes"
    PROGRAMS = ("kubectl",)
    RAN = True
    MARK = "kubectl"
    KEYS = (
        *("namespace", "image", "resources", "constraint", "kind", "autoscaled"),
        *("pod", "container"),
    )
    NEEDED: Mapping[str, str] = {
        "image": 'image = "registry.example/mpi:1"',
        "resources": 'resources = { cpu = 16, memory = "64Gi" }',
    }
    LOOK = "`kubectl describe nodes`, `kubectl describe quota`"
    REFUSALS = (
        (r"of \d+ pods have a node", "nodes"),
        (r"no matches for kind|there are no \S+ here", "kind"),
        (r"imagepull|errimage|invalidimagename|imageinspect|pull image", "image"),
        (r"may not .* in |namespaces? \S+ not found|cannot (create|list|get|delete)", "namespace"),
        (r"violates podsecurity|createcontainer|runcontainer", "container"),
        (r"insufficient|quota|quantit|limits|resource", "resources"),
        (r"node affinity|node selector", "constraint"),
        (r"anti-affinity", "nodes"),
        (r"unknown field|strict decoding|spec\.template\.spec|taint", "pod"),
    )
    SUBMIT = ("kubectl", "create", "--filename=-", "--output=name")
    SUBMITTED = r"[a-z0-9.-]+/([a-z0-9-]+)"
    UNREACHABLE = (
        r"Unable to connect to the server|connection (to the server .* was )?refused|i/o timeout"
        r"|TLS handshake timeout|unexpected EOF|connection reset|request timed out"
        r"|\((ServiceUnavailable|InternalError|Timeout|ServerTimeout|TooManyRequests)\)"
        r"|Client\.Timeout exceeded|deadline exceeded|client connection lost"
    )
    OFFER = (
        *("kubectl", "get", "nodes", "--output"),
        'jsonpath={range .items[*]}{.spec.unschedulable}|{.status.allocatable}{"\\n"}{end}',
    )

    def __init__(self, namespace: str = "", kind: str = "Job") -> None:
        self._place = (f"--namespace={namespace}",) if namespace else ()
        self._objects = KINDS[kind]

    def script(self, asked: Scheduler, name: str) -> str:
        return manifest.manifest(asked, name)

    def named(self, nodes: Sequence[str]) -> str:
        return f"{manifest.NAMED}{','.join(nodes)}"

    def check(self) -> list[str]:
        rights = [right.format(self._objects) for right in _RIGHTS]
        return ["/bin/sh", "-c", _MAY, "sh", "".join(self._place), *rights]

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        """Return the command that lists this user's objects, their pods, and events on refusals."""
        whose = f"{manifest.MANAGED}=paribus,{manifest.OWNER}={manifest.owner()}"
        return ["/bin/sh", "-c", _LIST, "sh", self._objects, whose, *self._place]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        return jobs_of(printed)

    def cancel(self, name: str) -> list[str]:
        """Return the command that deletes this user's objects of one name, and waits for it."""
        which = f"{manifest.JOB}={manifest.label_of(name)},{manifest.OWNER}={manifest.owner()}"
        argv = ["kubectl", "delete", self._objects, f"--selector={which}"]
        return [*argv, "--cascade=foreground", "--timeout=100s", *self._place]

    def shell(self, job: Job, node: str) -> tuple[str, ...]:
        pod = next((one for one in job.pods if one.node == node), None)
        if pod is None:
            return ()
        argv = ("kubectl", "exec", "--stdin", f"--namespace={pod.namespace}", pod.name)
        return (*argv, f"--container={manifest.CONTAINER}", "--", "/bin/sh", "-c", _ENTER)

    def read_offer(self, printed: str) -> list[str]:
        """Return a line for each kind of node, with how many there are; raises ValueError."""
        seen: dict[str, int] = {}
        for line in printed.splitlines():
            closed, bar, amounts = line.partition("|")
            if not bar or closed not in ("", "true", "false"):
                raise ValueError(f"{line[:80]!r} is not a node")
            found = json_object(json.loads(amounts))
            shown = ", ".join(f"{key} {found[key]}" for key in sorted(found) if _reported(key))
            kind = f"{shown}{', closed to new pods' if closed == 'true' else ''}"
            seen[kind] = seen.get(kind, 0) + 1
        return [f"{count(number, 'node')} of {kind}" for kind, number in seen.items()]


def _reported(resource: str) -> bool:
    return resource in ("cpu", "memory") or "/" in resource
