"""A real Kubernetes control plane on a pocket cluster, with a kwok in the place of each kubelet.

API server, scheduler, controller manager and etcd are in the fabric's network. kwok moves the
phases of pods, and runs what `kubectl exec` sends it: by the protocol of a kubelet, but in
its own namespaces. So a pod is the whole pocket host that its node is; its image is never looked
at, and what its container would do is not done.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from containers.gates import gated
from paribus.containers.fabric import FABRIC
from processes import ran
from schedulers.gridengine import Killed
from schedulers.slurm import until

BUILT = Path(os.environ.get("PARIBUS_TEST_KUBERNETES", "/opt/paribus-tests/kubernetes"))
"""Where `./dev test-kubernetes` builds the programs. Not below /tmp: hosts have their own."""

PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl", "kwok"),
    "mpi-operator",
)
UP_S = 90.0
NAMESPACE = "lab"
TOKENS = {"admin": "token-of-admin", "ada": "token-of-ada", "guest": "token-of-guest"}
NO_IMAGE = "registry.example/nope:1"
"""An image that the kubelets of this site do not find."""

_CONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: pocket
  cluster: { server: "https://%s:16443", certificate-authority: %s/certs/apiserver.crt }
users:
- name: %s
  user: { token: %s }
contexts:
- name: pocket
  context: { cluster: pocket, user: %s }
current-context: pocket
"""

# As kustomize/stage of kwok 0.8.0 does it, without an end of jobs' pods, with hosts' addresses for
# those of pods, and with an image that is not there.
_STAGES = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: node-ready }
spec:
  resourceRef: { apiGroup: v1, kind: Node }
  selector:
    matchExpressions:
    - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
      operator: NotIn
      values: ["True"]
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      - lastHeartbeatTime: {{ Now | Quote }}
        lastTransitionTime: {{ Now | Quote }}
        message: {{ .message | Quote }}
        reason: {{ .reason | Quote }}
        status: {{ .status | Quote }}
        type: {{ .type | Quote }}
      {{ end }}
      daemonEndpoints:
        kubeletEndpoint:
          Port: {{ NodePort }}
      phase: Running
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-runs }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
    - { key: .metadata.deletionTimestamp, operator: DoesNotExist }
    - { key: .status.phase, operator: In, values: [Pending] }
    - { key: ".spec.containers.[].image", operator: NotIn, values: ["NO_IMAGE"] }
  next:
    statusTemplate: |
      conditions:
      - { lastTransitionTime: {{ Now | Quote }}, status: "True", type: Initialized }
      - { lastTransitionTime: {{ Now | Quote }}, status: "True", type: Ready }
      - { lastTransitionTime: {{ Now | Quote }}, status: "True", type: ContainersReady }
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: true
        restartCount: 0
        state: { running: { startedAt: {{ Now | Quote }} } }
      {{ end }}
      {{ $ip := index (NodeIPsWith .spec.nodeName) 0 }}
      hostIP: {{ $ip | Quote }}
      podIP: {{ $ip | Quote }}
      podIPs: [{ ip: {{ $ip | Quote }} }]
      phase: Running
      startTime: {{ Now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-without-image }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
    - { key: .metadata.deletionTimestamp, operator: DoesNotExist }
    - { key: ".status.containerStatuses", operator: DoesNotExist }
    - { key: ".spec.containers.[].image", operator: In, values: ["NO_IMAGE"] }
  next:
    statusTemplate: |
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        state:
          waiting:
            reason: ImagePullBackOff
            message: {{ printf "Back-off pulling image \\"%s\\"" .image | Quote }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-deleted }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
    - { key: .metadata.deletionTimestamp, operator: Exists }
  next:
    delete: true
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: { name: inside }
spec:
  execs:
  - local: {}
"""


@dataclass(frozen=True)
class Site:
    """A running Kubernetes: how a program is started where its user `ada` works."""

    prefix: tuple[str, ...]
    env: Mapping[str, str]
    place: Path
    api: Killed

    def ask(self, *argv: str, text: str = "", user: str = "admin") -> str:
        """Return what a command printed, for one of the users; raises CalledProcessError."""
        done = ran(
            [*self.prefix, *argv],
            env={**self.env, "KUBECONFIG": self.config(user)},
            input=text,
            code=0,
        )
        return done.stdout

    def config(self, user: str) -> str:
        """Return the path of a user's kubeconfig."""
        return f"{self.place}/{user}.yaml"

    def get(self, *what: str) -> list[dict[str, Any]]:
        """Return objects of the namespace."""
        said = self.ask("kubectl", "get", *what, "-n", NAMESPACE, "-o", "json")
        found: list[dict[str, Any]] = json.loads(said)["items"]
        return found

    def jobs(self) -> list[str]:
        """Return the names of the jobs and pods that are there."""
        return [one["metadata"]["name"] for one in self.get("jobs,pods")]

    def define(self) -> None:
        """Let the API server know JobSets and MPIJobs."""
        self.ask("kubectl", "apply", "--server-side", "-f", f"{BUILT}/definitions")
        self.ask("kubectl", "wait", "--for=condition=Established", "crd", "--all")

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`."""
        until(done, self.place, "Kubernetes", UP_S)


def missing() -> str:
    """Return what this machine lacks for a Kubernetes, "" for nothing."""
    if os.geteuid() != 0:
        return "not root"
    lack = [one for one in PROGRAMS if not (BUILT / "bin" / one).is_file()]
    return f"no {lack[0]} in {BUILT}/bin: `./dev test-kubernetes` builds it" if lack else ""


def node(name: str, address: str, labels: Mapping[str, str], gpus: int = 0) -> dict[str, Any]:
    """Return a node as a kubelet registers it."""
    has = {
        "cpu": "2",
        "memory": "2Gi",
        "pods": "20",
        **({"nvidia.com/gpu": str(gpus)} if gpus else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "capacity": has,
            "allocatable": has,
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    }


@contextmanager
def kubernetes(pools: Mapping[str, Sequence[str]], role: str) -> Iterator[Site]:
    """Start a Kubernetes with nodes h1, h2, ... in `pools` (a label); end all of it.

    `role` is the YAML of what the user `ada` may do in the namespace "lab".
    """
    names = [name for its in pools.values() for name in its]
    with ExitStack() as stack:
        # Hosts have a /tmp of their own, so what they share is elsewhere.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        place.chmod(0o755)
        gate = stack.enter_context(gated(len(names), str(place / "pocket")))
        addresses = dict(gate.addresses)
        env = {**os.environ, "PATH": f"{BUILT}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"}
        _write(place)
        prefix = gate.prefix
        daemons = {
            argv[0]: Killed([*prefix, *argv], env, place / f"{argv[0]}.out")
            for argv in _daemons(place)
        }
        api = daemons["kube-apiserver"]
        site = Site(prefix, {**env, "KUBECONFIG": f"{place}/ada.yaml"}, place, api)
        for daemon in daemons.values():
            stack.enter_context(daemon)
            if daemon is api:
                site.until(lambda: "ok" in site.ask("kubectl", "get", "--raw=/readyz"))
        for host in gate.pocket.hosts:
            serve = f"exec kwok --kubeconfig={place}/admin.yaml --config={place}/stages.yaml"
            serve += f" --manage-single-node={host.name} --node-name={host.name}"
            serve += f" --node-ip={addresses[host.name]} --node-port=10250"
            serve += f" --tls-cert-file={place}/kubelet.crt"
            serve += f" --tls-private-key-file={place}/kubelet.key --node-lease-duration-seconds=40"
            out = place / f"{host.name}.out"
            stack.enter_context(Killed([*host.shell, "-c", serve], env, out))
        for pool, its in pools.items():
            for name in its:
                one = node(name, addresses[name], {"pool": pool}, gpus=1)
                site.ask("kubectl", "create", "-f", "-", text=json.dumps(one))
        site.ask("kubectl", "create", "namespace", NAMESPACE)
        site.ask("kubectl", "create", "-f", "-", text=role)
        bind = ("rolebinding", "ada", "--role=paribus", "--user=ada", f"--namespace={NAMESPACE}")
        site.ask("kubectl", "create", *bind)
        wait = ("--for=condition=Ready", "nodes", "--all", "--timeout=60s")
        site.ask("kubectl", "wait", *wait)
        yield site


def _write(place: Path) -> None:
    """Write what the daemons read."""
    for user, token in TOKENS.items():
        text = _CONFIG % (FABRIC, place, user, token, user)
        (place / f"{user}.yaml").write_text(text)
    rows = [
        f'{token},{user},{user},"{"system:masters" * (user == "admin")}"'
        for user, token in TOKENS.items()
    ]
    (place / "tokens.csv").write_text("\n".join([*rows, ""]))
    (place / "stages.yaml").write_text(_STAGES.replace("NO_IMAGE", NO_IMAGE))
    key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    key += ["-subj", "/CN=kubelet", "-keyout", f"{place}/kubelet.key"]
    subprocess.run([*key, "-out", f"{place}/kubelet.crt"], check=True, capture_output=True)


def _daemons(place: Path) -> list[list[str]]:
    """Return the command lines of the control plane, in the order of their starts."""
    client, peer = "http://127.0.0.1:12379", "http://127.0.0.1:12380"
    etcd = ["etcd", f"--data-dir={place}/etcd", f"--listen-client-urls={client}"]
    etcd += [f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
    etcd += [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]
    key = f"{place}/kubelet.key"
    api = ["kube-apiserver", f"--etcd-servers={client}", f"--bind-address={FABRIC}"]
    api += [f"--advertise-address={FABRIC}", "--secure-port=16443", f"--cert-dir={place}/certs"]
    api += ["--service-cluster-ip-range=10.96.0.0/24", f"--token-auth-file={place}/tokens.csv"]
    api += ["--service-account-issuer=https://kubernetes.default.svc"]
    api += [f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"]
    api += ["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"]
    common = [f"--kubeconfig={place}/admin.yaml", "--leader-elect=false", "--secure-port=0"]
    manager = ["kube-controller-manager", *common, f"--service-account-private-key-file={key}"]
    return [[*etcd, "--unsafe-no-fsync"], api, ["kube-scheduler", *common], manager]
