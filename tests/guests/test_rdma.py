"""RDMA between guests: Soft-RoCE, real perftest, and counters that say which way messages took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from guests.started import Guests
from paribus.benchmarks import benchmark_of
from paribus.core import Case, Outcome, State, Study, UserError
from paribus.core.facts import OF_ADAPTER, OF_OTHERS
from paribus.launch import launching
from paribus.launch.adapters import with_adapter
from paribus.launch.arms import Ready
from paribus.launch.ready import make_ready
from paribus.launch.station import Station
from paribus.launch.stations import stations
from paribus.probes import facts_from_stream, script
from paribus.studyfile.load import load_study

pytestmark = [pytest.mark.guests, pytest.mark.timeout(1200)]

PAIRS = (1, 4, 16, 64)

TRIES = 4
"""Launches in which perftest may fail to set its clock: emulated processors stand still often."""

STUDY = """
question = "Which?"
factor = "interconnect"
[arms.here]
[arms.guests]
hosts = "vm[1-4]"
ssh = {{ config = "{rack}/ssh_config", known_hosts = "{rack}/known_hosts" }}
network = "10.79.0.0/24"
adapter = {{ device = "rxe0", gid_index = 1 }}
[[benchmarks]]
name = "incast"
path = "{rack}/ib_write_bw"
label = "incast 64 B"
size = 64
queue_pairs = [1, 4, 16, 64]
seconds = 16
[[benchmarks]]
name = "incast"
path = "{rack}/ib_write_bw"
label = "incast 1 KiB"
size = 1024
queue_pairs = [1, 4, 16, 64]
seconds = 16
[[benchmarks]]
name = "ib_write_bw"
bytes = "4 KiB"
iterations = 200
queue_pairs = 4
[[benchmarks]]
name = "iperf3"
seconds = 1
[plan]
bind = "none"
"""


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    """Four guests with Soft-RoCE on the link that joins them."""
    folder = tmp_path_factory.mktemp("rdma") / "rack"
    with Guests(folder, 4, "--memory", "768", "--modules", "all") as guests:
        for name in guests.names:
            guests.ask(name, "rdma link add rxe0 type rxe netdev eth1")
        yield guests


class Rack(NamedTuple):
    """A study of guests, made ready once: an emulated processor takes minutes for it."""

    study: Study
    station: Station
    ready: Ready


@pytest.fixture(scope="module")
def rack(guests: Guests, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    path = tmp_path_factory.mktemp("study") / "study.toml"
    # By itself it has 128 messages of each queue pair on the way, and sees 100 arrive at once: with
    # 64 queue pairs more than an emulated processor completes in the time.
    program = guests.folder / "ib_write_bw"
    program.write_text('#!/bin/sh\nexec ib_write_bw -Q 1 -t 16 "$@"\n')
    program.chmod(0o755)
    path.write_text(STUDY.format(rack=guests.folder))
    study = load_study(path)
    with stations(study) as opened:
        yield Rack(study, opened["guests"], make_ready(study, lambda _: None, opened)["guests"])


def launched(rack: Rack, label: str, folder: Path) -> Outcome:
    """Return what came of one launch of a benchmark between the guests."""
    labels = [one.label for one in rack.study.benchmarks]
    number = labels.index(label)
    selection = rack.study.benchmarks[number]
    logs = folder / "launch.out", folder / "launch.err"
    what = selection, benchmark_of(selection)
    scratch = f"{rack.station.scratch}/{number}"
    prepared = launching.prepare(rack.ready, what, 1, scratch, logs, 280.0)
    return launching.launched(rack.station, prepared)


@pytest.mark.parametrize("label", ["incast 64 B", "incast 1 KiB"])
def test_three_senders_write_into_one_receiver(rack: Rack, tmp_path: Path, label: str) -> None:
    for _ in range(TRIES):
        found = launched(rack, label, tmp_path)
        if "Correlation coefficient" not in found.error and " are not 0.000000 " not in found.error:
            break
    assert found.state is State.OK, found.error
    samples = {(one.metric, one.case): one.values[0] for one in found.samples}
    for pairs in PAIRS:
        rates = [samples["sender", Case.of(queue_pairs=pairs, sender=n)] for n in (1, 2, 3)]
        assert min(rates) > 0
        assert samples["throughput", Case.of(queue_pairs=pairs)] == pytest.approx(sum(rates))
        assert 1 / 3 <= samples["fairness", Case.of(queue_pairs=pairs)] <= 1
    assert found.facts[OF_ADAPTER] > 1 << 16


def test_a_pair_of_hosts_writes_over_the_adapter(rack: Rack, tmp_path: Path) -> None:
    found = launched(rack, "ib_write_bw", tmp_path)
    assert found.state is State.OK, found.error
    assert found.facts["perftest.link_type"] == "Ethernet"
    assert found.facts[OF_ADAPTER] > 1 << 16


def test_tcp_beside_the_adapter_is_no_launch_of_the_arm(rack: Rack, tmp_path: Path) -> None:
    found = launched(rack, "iperf3", tmp_path)
    assert found.state is State.INVALID
    assert "the messages did not take rxe0:1: on vm" in found.error
    assert ", eth1 " in found.error
    assert found.facts[OF_ADAPTER] < 1 << 12
    assert found.facts[OF_OTHERS] > 1 << 20


def test_the_port_of_a_guest_is_reported_by_its_facts(rack: Rack, guests: Guests) -> None:
    (guests.folder / "facts.sh").write_text(script())
    facts = facts_from_stream(guests.ask("vm2", f"sh {guests.folder}/facts.sh nonce files"))
    adapter = rack.ready.arm.adapter
    assert adapter is not None
    found = with_adapter(adapter, "vm2", facts, "here")
    assert (found["adapter.link_layer"], found["adapter.gid_type"]) == ("Ethernet", "RoCE v2")
    assert (found["adapter.software"], found["adapter.net.driver"]) == (True, "virtio_net")
    guests.ask("vm2", "ip link set eth1 down")
    down = facts_from_stream(guests.ask("vm2", f"sh {guests.folder}/facts.sh nonce files"))
    with pytest.raises(UserError, match="rxe0:1 of vm2 is not active"):
        with_adapter(adapter, "vm2", down, "here")
    guests.ask("vm2", "ip link set eth1 up")
