"""Studies in pods of a real Kubernetes: two pools of two nodes on a pocket cluster."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.judge.allocations import JOB, NODES
from schedulers.gridengine import Killed
from schedulers.kubernetes import NAMESPACE, NO_IMAGE, TOKENS, Site, kubernetes, missing
from schedulers.test_slurm import (
    COMMAND,
    LATENCY,
    SLEEP,
    Started,
    check_across,
    check_interrupted,
    check_refused,
    check_whole,
    one_rank_each,
    run,
    stored,
)
from studies import launches_in

RECORDED = Path(__file__).parent / "recorded"
DOCS = Path(__file__).parents[2] / "docs" / "schedulers.md"
ASKS = (
    'name = "kubernetes", namespace = "lab", image = "registry.example/mpi:1", nodes = 2,'
    ' time = "10 min", resources = { cpu = 1, memory = "1Gi", "nvidia.com/gpu" = 1 }'
)
STUDY = """\
question = "Is pool q slower than p?"
factor = "cluster"
[arms.p]
{mpi}scheduler = {{ {asks}, constraint = "pool=p" }}
[arms.q]
{mpi}scheduler = {{ {asks}, constraint = "pool=q" }}
[[benchmarks]]
{benchmark}
[plan]
blocks = 8
seed = 1
"""


def role() -> str:
    """Return the YAML that the documentation gives to administrators."""
    [found] = re.findall(r"```yaml\n(.*?kind: Role\n.*?)```", DOCS.read_text(), re.DOTALL)
    return found.replace("namespace: lab", f"namespace: {NAMESPACE}")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    if lack := missing():
        pytest.skip(lack)
    with kubernetes({"p": ["h1", "h2"], "q": ["h3", "h4"]}, role()) as there:
        yield there


def study(folder: Path, benchmark: str = COMMAND, mpi: str = "", asks: str = ASKS) -> Path:
    path = folder / "study.toml"
    path.write_text(STUDY.format(benchmark=benchmark, asks=asks, mpi=mpi))
    return path


def evict(site: Site, pod: str) -> None:
    """Evict a pod as `kubectl drain` does."""
    about = {"name": pod, "namespace": NAMESPACE}
    text = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about})
    place = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    site.ask("kubectl", "create", "--raw", place, "-f", "-", text=text)


@pytest.mark.long
def test_ranks_across_the_pods_of_two_pools(site: Site, tmp_path: Path) -> None:
    """No token is kept."""
    study(tmp_path, LATENCY, mpi=one_rank_each())
    check_across(site, tmp_path)
    nodes = {(e.launch.arm, e.outcome.facts[NODES]) for e in launches_in(tmp_path / "out")}
    assert nodes == {("p", "h[1-2]"), ("q", "h[3-4]")}
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert not [
        one for one in files for token in TOKENS.values() if token in one.read_text("latin1")
    ]


@pytest.mark.slow
def test_a_study_goes_on_in_other_pods_whatever_happens(site: Site, tmp_path: Path) -> None:
    """Paribus killed, a pod evicted, the API server started again in the middle."""
    study(tmp_path)
    out = tmp_path / "out"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: stored(out) >= 4)
        started.process.kill()
        started.process.wait()
    left = {one["metadata"]["name"] for one in site.get("jobs")}
    assert len(left) == 2, "nobody has deleted the jobs of the killed"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out", "--resume") as started:
        begun = stored(out)
        started.until(lambda: stored(out) >= begun + 4)
        pods = [one["metadata"]["name"] for one in site.get("pods")]
        evict(site, next(one for one in pods if "-2-q-" in one))
        started.until(lambda: "the next allocation" in started.said())
        begun = stored(out)
        started.until(lambda: stored(out) > begun)
        site.api.end()
        time.sleep(1)
        site.api.start()
        assert started.end() in (0, 3), started.said()  # a busy machine may withhold a verdict
        said = " ".join(started.said().split())
    [cleared] = re.findall(r"cancelling what this study left in the queue: job (\S+), (\S+)", said)
    assert set(cleared) == left
    assert re.search(
        r"the allocation of arm q, job \S+, has ended \(pod \S+ is being deleted", said
    )
    check_whole(out)
    assert site.jobs() == []


@pytest.mark.slow
def test_an_interrupted_study_leaves_nothing(site: Site, tmp_path: Path) -> None:
    study(tmp_path, SLEEP)
    check_interrupted(site, tmp_path)


@pytest.mark.long
def test_same_nodes_are_those_of_the_first_allocation(site: Site, tmp_path: Path) -> None:
    """One of two nodes: in the second allocation the one that is not free is waited for."""
    one_node = ASKS.replace("nodes = 2", "nodes = 1")
    text = study(tmp_path, asks=one_node).read_text().replace("pool=q", "pool=p")
    text = text.replace('"cluster"', '"nothing"')
    (tmp_path / "study.toml").write_text(f"{text}same_nodes = true\n")
    out = tmp_path / "out"
    with Started(site, tmp_path, "run", "study.toml", "--out", "out") as started:
        started.until(lambda: stored(out) >= 4)
        [pod] = site.get("pods")
        first = pod["spec"]["nodeName"]
        site.ask("kubectl", "cordon", first)
        try:
            evict(site, pod["metadata"]["name"])
            started.until(lambda: "node(s) were unschedulable" in started.said())
        finally:
            site.ask("kubectl", "uncordon", first)
        assert started.end() in (0, 3), started.said()
    seen = {(e.outcome.facts[JOB], e.outcome.facts[NODES]) for e in launches_in(out)}
    assert {nodes for _, nodes in seen} == {first}
    assert len(seen) == 2
    assert site.jobs() == []


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ('gpu" = 1', 'gpu" = 16', "Insufficient nvidia.com/gpu"),
        ("nodes = 2", "nodes = 3", "arms.p.scheduler.nodes = 3: Kubernetes will not start the job"),
        ("pool=p", "pool=gold", "arms.p.scheduler.constraint = 'pool=gold': Kubernetes will not"),
        ("registry.example/mpi:1", NO_IMAGE, "ImagePullBackOff: Back-off pulling image"),
        ('"lab"', '"nope"', "this user may not create jobs.batch in --namespace=nope"),
        (
            "nodes = 2",
            'nodes = 2, kind = "JobSet"',
            "there are no jobsets.jobset.x-k8s.io here: use",
        ),
        (
            "nodes = 2",
            "nodes = 2, pod = { prioritty = 1 }",
            'unknown field "spec.template.spec.pri',
        ),
    ],
)
def test_what_kubernetes_rejects_is_said_at_once(
    site: Site, tmp_path: Path, old: str, new: str, cause: str
) -> None:
    check_refused(site, study(tmp_path), old, new, cause)


def test_a_quota_is_quoted(site: Site, tmp_path: Path) -> None:
    site.ask("kubectl", "create", "quota", "few", "--hard=pods=1", "-n", NAMESPACE)
    try:
        study(tmp_path)
        said = run(site, tmp_path, "run", "study.toml", "--out", "out", code=2)
    finally:
        site.ask("kubectl", "delete", "quota", "few", "-n", NAMESPACE)
    assert "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1" in said
    assert "arms.p.scheduler.resources" in said
    assert site.jobs() == []


def test_who_may_not_enter_pods_is_refused_before_anything_is_made(
    site: Site, tmp_path: Path
) -> None:
    study(tmp_path)
    config = site.config("guest")
    said = run(site, tmp_path, "run", "study.toml", "--out", "out", KUBECONFIG=config, code=2)
    assert "this user may not create jobs.batch in --namespace=lab" in said
    assert site.jobs() == []


def test_the_doctor_lists_the_nodes(site: Site) -> None:
    code = "from paribus.doctor.fitness import scheduler; print(scheduler())"
    said = site.ask(sys.executable, "-c", code)
    assert "Kubernetes: 4 nodes of cpu 2, memory 2Gi, nvidia.com/gpu 1" in said


@pytest.mark.parametrize("kind", ["Job", "JobSet", "MPIJob"])
def test_the_schemas_that_are_published_know_every_field(site: Site, kind: str) -> None:
    """The API server's own, and those of the operators' definitions."""
    site.define()
    text = (RECORDED / f"kubernetes_{kind}.yaml").read_text()
    said = site.ask(
        *("kubectl", "create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"),
        text=text,
    )
    assert "paribus-0123456789-1-a" in said


@pytest.mark.long
def test_the_operator_of_mpijobs_holds_the_pods(site: Site, tmp_path: Path) -> None:
    """A whole study; and of what the operator made for it nothing stays."""
    site.define()
    rights = ("--verb=create,get,list,watch,delete", "--resource=mpijobs.kubeflow.org")
    for words in (
        ("namespace", "mpi-operator"),
        ("role", "mpijobs", *rights, "-n", NAMESPACE),
        ("rolebinding", "mpijobs", "--role=mpijobs", "--user=ada", "-n", NAMESPACE),
    ):
        site.ask("kubectl", "create", *words)
    study(tmp_path, asks=ASKS.replace("nodes = 2", 'nodes = 2, kind = "MPIJob"'))
    argv = [*site.prefix, "mpi-operator", "-lock-namespace=mpi-operator"]
    env = {**site.env, "KUBECONFIG": site.config("admin")}
    with Killed(argv, env, site.place / "mpi-operator.out"):
        said = run(site, tmp_path, "run", "study.toml", "--out", "out")
    check_whole(tmp_path / "out")
    assert "MPIJob of kubernetes, namespace lab" in said
    assert site.get("mpijobs,jobs,pods,services,secrets") == []
