"""Kubernetes: an allocation is an object whose pods sleep, and `kubectl exec` enters them.

All is asked by kubectl, as its user's kubeconfig says: Paribus reads no credentials.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from paribus.core import Scheduler, count
from paribus.schedulers import manifest
from paribus.schedulers.dialect import key_among
from paribus.schedulers.jobs import Job
from paribus.schedulers.pods import KINDS, jobs_of, json_object

_UNREACHABLE = re.compile(
    r"Unable to connect to the server|connection (to the server .* was )?refused|i/o timeout"
    r"|TLS handshake timeout|unexpected EOF|connection reset|request timed out"
    r"|\((ServiceUnavailable|InternalError|Timeout|ServerTimeout|TooManyRequests)\)"
    r"|Client\.Timeout exceeded|deadline exceeded|client connection lost"
)

_KEYS = (
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

_RIGHTS = (
    *("create {}", "get {}", "list {}", "watch {}", "delete {}", "get pods", "list pods"),
    "create pods --subresource=exec",
)
"""What a user must be allowed, as `kubectl auth can-i` takes it.

`kubectl delete` hides from a user who may not get and watch objects that they are still there.
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

# Refusals to make pods are events: they are in no status.
_LIST = """\
which=$1 whose=$2
shift 2
listed=$(kubectl get "$which,pods" --selector="$whose" --output=json "$@") || exit
[ -n "$listed" ] || exit
printf '%s\\n' "$listed"
kubectl get events --field-selector=reason=FailedCreate --output=json "$@" 2>/dev/null || :
"""

# Hydra names the pod that it is in by its host name, which other pods cannot resolve.
_ENTER = (
    "[ ! -e /sys/class/net/eth0 ] || export HYDRA_IFACE=eth0 I_MPI_HYDRA_IFACE=eth0; exec /bin/sh"
)


class Kubernetes:
    """Kubernetes, of one namespace ("": the current one) and one kind of object; see Dialect."""

    TITLE: str = "Kubernetes"
    PROGRAMS: tuple[str, ...] = ("kubectl",)
    RAN: bool = True
    MARK: str = "kubectl"
    TIED: bool = False
    KEYS: tuple[str, ...] = (
        *("namespace", "image", "resources", "constraint", "kind", "autoscaled"),
        *("pod", "container"),
    )
    NEEDED: Mapping[str, str] = {
        "image": 'image = "registry.example/mpi:1"',
        "resources": 'resources = { cpu = 16, memory = "64Gi" }',
    }
    GIVEN: Mapping[str, str] = {}
    JOINED: bool = False
    LOOK: str = "`kubectl describe nodes`, `kubectl describe quota`"
    MOST_NAME: int = 200

    def __init__(self, namespace: str = "", kind: str = "Job") -> None:
        self._place = (f"--namespace={namespace}",) if namespace else ()
        self._objects = KINDS[kind]

    def script(self, asked: Scheduler, name: str) -> str:
        """Return the manifest that holds the pods of `asked` as job `name`."""
        return manifest.manifest(asked, name)

    def named(self, nodes: Sequence[str]) -> str:
        """Return what asks for these very nodes."""
        return f"{manifest.NAMED}{','.join(nodes)}"

    def check(self) -> list[str]:
        """Return the command that fails where this user may not do what Paribus does."""
        rights = [right.format(self._objects) for right in _RIGHTS]
        return ["/bin/sh", "-c", _MAY, "sh", "".join(self._place), *rights]

    def submit(self) -> list[str]:
        """Return the command that makes what its standard input says, and prints its name."""
        return ["kubectl", "create", "--filename=-", "--output=name"]

    def read_submitted(self, printed: str) -> str:
        """Return the object that `submit` printed, "" for none.

        >>> Kubernetes().read_submitted("job.batch/paribus-0123456789-1-a-x7k2p\\n")
        'paribus-0123456789-1-a-x7k2p'
        """
        found = re.fullmatch(r"[a-z0-9.-]+/([a-z0-9-]+)", printed.strip())
        return found[1] if found else ""

    def unreachable(self, said: str) -> bool:
        """Return whether a command failed because the API server does not answer.

        >>> Kubernetes().unreachable("Unable to connect to the server: EOF")
        True
        """
        return _UNREACHABLE.search(said) is not None

    def gone(self, said: str) -> bool:
        """Return False: what is not there is not listed."""
        return False

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        """Return the command that lists this user's objects, their pods, and refused pods."""
        whose = f"{manifest.MANAGED}=paribus,{manifest.OWNER}={manifest.owner()}"
        return ["/bin/sh", "-c", _LIST, "sh", self._objects, whose, *self._place]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        """Return the jobs that `queue` printed, by name; raises ValueError for another text."""
        return jobs_of(printed, now)

    def cancel(self, name: str) -> list[str]:
        """Return the command that deletes this user's objects of one name, and waits for it."""
        which = f"{manifest.JOB}={manifest.label_of(name)},{manifest.OWNER}={manifest.owner()}"
        argv = ["kubectl", "delete", self._objects, f"--selector={which}"]
        return [*argv, "--cascade=foreground", "--timeout=100s", *self._place]

    def shell(self, job: Job, node: str) -> tuple[str, ...]:
        """Return the argv that starts a shell in the pod on a node."""
        pod = next((one for one in job.pods if one.node == node), None)
        if pod is None:
            return ()
        argv = ("kubectl", "exec", "--stdin", f"--namespace={pod.namespace}", pod.name)
        return (*argv, f"--container={manifest.CONTAINER}", "--", "/bin/sh", "-c", _ENTER)

    def in_job(self, env: Mapping[str, str]) -> str:
        """Return "": a pod in which Paribus itself may be is none of its nodes."""
        return ""

    def key_of(self, said: str) -> str:
        """Return the key of the study's `scheduler` that a rejection is about, "" where unclear.

        >>> Kubernetes().key_of("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
        'resources'
        """
        return key_among(_KEYS, said)

    def offer(self) -> list[str]:
        """Return the command that lists the nodes, and what pods can have of each."""
        row = '{.spec.unschedulable}|{.status.allocatable}{"\\n"}'
        return ["kubectl", "get", "nodes", f"--output=jsonpath={{range .items[*]}}{row}{{end}}"]

    def read_offer(self, printed: str) -> list[str]:
        """Return what there is, for people; raises ValueError for another text.

        >>> Kubernetes().read_offer('|{"cpu":"2","pods":"9"}\\n|{"cpu":"2","pods":"9"}\\n')
        ['2 nodes of cpu 2']
        """
        seen: dict[str, int] = {}
        for line in printed.splitlines():
            closed, bar, amounts = line.partition("|")
            if not bar or closed not in ("", "true", "false"):
                raise ValueError(f"{line[:80]!r} is not a node")
            found = json_object(json.loads(amounts))
            shown = ", ".join(f"{key} {found[key]}" for key in sorted(found) if _told(key))
            says = f"{shown}{', closed to new pods' if closed == 'true' else ''}"
            seen[says] = seen.get(says, 0) + 1
        return [f"{count(number, 'node')} of {says}" for says, number in seen.items()]


def _told(resource: str) -> bool:
    return resource in ("cpu", "memory") or "/" in resource
