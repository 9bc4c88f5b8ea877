"""What Kubernetes is asked, and what answers say that were recorded from its control plane."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from paribus.border import of_json
from paribus.core import Hosts, Scheduler, StudyError
from paribus.schedulers import manifest
from paribus.schedulers.dialect import Job, Phase, key_of
from paribus.schedulers.kubernetes import Kubernetes, jobs_of
from paribus.studyfile.load import load_study
from studies import write_arms

RECORDED = Path(__file__).parent / "recorded"
MANIFESTS = ("Job", "JobSet", "MPIJob")
ASKED = Scheduler(
    "kubernetes",
    2,
    7200.0,
    constraint="pool=hpc",
    options=(Kubernetes().named(["n1", "n2"]),),
    namespace="lab",
    image="registry.example/mpi:1",
    resources=(("cpu", "2"), ("memory", "1Gi"), ("nvidia.com/gpu", "1")),
    pod='{"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}',
    container='{"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}',
)


def answers() -> dict[str, str]:
    """Return the recorded answers by what they show."""
    files = sorted(RECORDED.glob("kubernetes_*.json"))
    return {one.stem.removeprefix("kubernetes_"): one.read_text() for one in files}


def jobs(name: str) -> list[Job]:
    return [*jobs_of(answers()[name]).values()]


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_is_the_one_that_an_api_server_took(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """test_kubernetes.py has a real one validate these files, by the published schemas."""
    monkeypatch.setattr(manifest, "owner", lambda: "0123456789")
    asked = Scheduler(**{**asdict(ASKED), "kind": kind, "resources": ASKED.resources})
    accepted = (RECORDED / f"kubernetes_{kind}.yaml").read_text()
    assert manifest.manifest(asked, "paribus-0123456789-1-a") == accepted


@pytest.mark.parametrize("text", ["5e78d17881", "0123456789", "1e5", "yes", "null", "a: b", "~"])
def test_a_text_stays_a_text_for_every_reader(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """YAML 1.2 reads 1e5 as a number, and YAML 1.1 does not."""
    monkeypatch.setattr(manifest, "owner", lambda: text)
    made = manifest.manifest(ASKED, "paribus-0123456789-1-a")
    assert yaml.safe_load(made)["metadata"]["labels"][manifest.OWNER] == text
    assert re.search(rf"""paribus/owner: (["']{re.escape(text)}["']|[a-z].*)\n""", made)


def test_pods_of_a_job_that_runs() -> None:
    [job] = jobs("runs")
    assert (job.phase, job.state, job.nodes) == (Phase.RUNS, "Running", ("h1", "h2"))
    assert [pod.address for pod in job.pods] == ["10.77.0.1", "10.77.0.2"]
    begun = datetime.fromisoformat("2026-11-25T03:46:43Z").timestamp()
    assert job.ends_at == begun + 600
    other = answers()["runs"].replace('"h1"', '"h9"')
    assert [one.nodes for one in jobs_of(other).values()] == [("h2", "h9")]  # whichever pod it is
    first, second = (Kubernetes("lab").shell(job, node) for node in job.nodes)
    assert first[:5] == ("kubectl", "exec", "--stdin", "--namespace=lab", job.pods[0].name)
    assert second[4] == job.pods[1].name
    assert re.fullmatch(r"paribus-0123456789-1-a-\w{5}-0-\w{5}", first[4])


def test_pods_of_an_mpijob() -> None:
    """Its launcher is one of the nodes, also where it is the only one."""
    [job] = jobs("mpijob_runs")
    assert (job.phase, job.nodes) == (Phase.RUNS, ("h1", "h2"))
    assert {"launcher" in pod.name for pod in job.pods} == {True, False}
    [job] = jobs("mpijob_one")
    assert (job.phase, len(job.nodes)) == (Phase.RUNS, 1)
    [job] = jobs("mpijob_insufficient")
    assert (job.phase, job.never) == (Phase.WAITS, True)


def test_pods_of_a_jobset() -> None:
    """They have the label of the job that its operator made, too."""
    [job] = jobs("jobset_runs")
    assert (job.phase, job.nodes) == (Phase.RUNS, ("h1", "h2"))
    assert all(pod.name.startswith(f"{job.ident}-nodes-0-") for pod in job.pods)


@pytest.mark.parametrize(
    ("name", "said", "key", "never"),
    [
        ("insufficient", "Insufficient nvidia.com/gpu. preemption", "resources", True),
        ("too_many", "2 of 3 pods have a node: 0/4 nodes are available", "nodes", True),
        ("jobset_too_many", "2 of 3 pods have a node: 0/4 nodes are available", "nodes", True),
        ("jobset_quota", "exceeded quota: few, requested: pods=1", "resources", True),
        ("no_label", "4 node(s) didn't match Pod's node affinity/selector", "constraint", True),
        ("no_image", "ImagePullBackOff: Back-off pulling image", "image", True),
        ("quota", "exceeded quota: few, requested: pods=1, used: pods=1", "resources", True),
        ("drained", "4 node(s) were unschedulable", "", False),
    ],
)
def test_why_pods_wait_and_whether_they_would_for_good(
    name: str, said: str, key: str, never: bool
) -> None:
    [job] = jobs(name)
    assert job.phase is Phase.WAITS
    assert said in job.reason
    assert (key_of(Kubernetes(), job.reason), job.never) == (key, never)


@pytest.mark.parametrize("name", ["insufficient", "too_many", "no_label"])
def test_where_nodes_may_come_a_pod_waits_for_them(name: str) -> None:
    note = f'"{manifest.AUTOSCALED}":"true","{manifest.NODES}"'
    [job] = jobs_of(answers()[name].replace(f'"{manifest.NODES}"', note)).values()
    assert (job.phase, job.never) == (Phase.WAITS, False)


@pytest.mark.parametrize("name", ["evicted", "mpijob_evicted", "jobset_evicted"])
def test_one_pod_that_is_evicted_ends_all(name: str) -> None:
    [job] = jobs(name)
    assert job.phase is Phase.ENDED
    assert re.fullmatch(r"pod \S+ is being deleted: Eviction API: evicting", str(job))


WHOLE = (
    'scheduler = { name = "kubernetes", nodes = 2, time = "2 h", image = "r.example/mpi:1",'
    ' namespace = "lab", resources = { cpu = 2, memory = "1Gi" } }'
)


def load(folder: Path, a: str, b: str = "") -> Hosts:
    return load_study(write_arms(folder, a, b, factor="cluster"), lambda _: None).arms[0].hosts


def test_an_arm_asks_for_pods_and_plans_keep_it(tmp_path: Path) -> None:
    pod = f'{WHOLE[:-1]}, pod = {{ priorityClassName = "high" }} }}'
    hosts = load(tmp_path, pod)
    assert hosts.scheduler.resources == (("cpu", "2"), ("memory", "1Gi"))
    assert json.loads(hosts.scheduler.pod) == {"priorityClassName": "high"}
    assert of_json(Hosts, json.loads(json.dumps(asdict(hosts)))) == hosts


@pytest.mark.parametrize(
    ("a", "b", "cause"),
    [
        (WHOLE.replace(' image = "r.example/mpi:1",', ""), "", "image: is missing"),
        (WHOLE.replace(', memory = "1Gi"', ""), "", "name cpu and memory"),
        (WHOLE.replace("cpu = 2", 'cpu = "two"'), "", "write a quantity such as 16"),
        (WHOLE.replace('"lab"', '"La b"'), "", "write lower-case letters, digits and '-'"),
        (WHOLE.replace('"lab"', '"lab", constraint = "gpu"'), "", "write labels of nodes"),
        (WHOLE.replace('"lab"', '"lab", kind = "Pod"'), "", "kind = 'Pod'"),
        (WHOLE.replace('"lab"', '"lab", partition = "p"'), "", "is not for Kubernetes"),
        (WHOLE.replace('"lab"', '"lab", options = ["-n x"]'), "", "is not for Kubernetes"),
        (WHOLE.replace('"lab"', '"lab", pod = { containers = [] }'), "", "is given by Paribus"),
        (WHOLE.replace('"lab"', '"lab", container = { env = [] }'), "", "is given by Paribus"),
        (WHOLE, WHOLE.replace('"lab"', '"other"'), "another arm asks for lab"),
        (f"{WHOLE}\nssh = {{}}", "", "Kubernetes itself leads to this arm's nodes"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, a: str, b: str, cause: str) -> None:
    with pytest.raises(StudyError) as refused:
        load(tmp_path, a, b)
    assert cause in str(refused.value)
