"""Tools of network and storage: really driven where they are installed, and what the contract of
every benchmark does not cover.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpis import any_mpi
from outputs import FIXTURES, read, reading, text_of
from paribus import containers
from paribus.benchmarks import BENCHMARKS
from paribus.core import (
    Arm,
    Case,
    Container,
    ParseError,
    Request,
    Sample,
    Selection,
    State,
)
from paribus.launch.arms import Ready, compose
from paribus.launch.local import LocalStation, capture
from paribus.store import Store, Stored
from paribus.tools import incast
from processes import processes_with
from studies import paribus

ARMS = '[arms.a]\n[arms.b]\nenv = { PARIBUS_TEST_ARM = "b" }\n'
TRANSPORTS = """
[arms.tcp]
env = { UCX_TLS = "tcp,self" }
[arms.shm]
env = { UCX_TLS = "posix,self" }
"""
DRIVEN = {
    "iperf3": ("seconds = 1", ARMS),
    "fio": ('seconds = 1\nsize = "4 MiB"\nmode = "randrw"\nblock = "4 KiB"', ARMS),
    "qperf": ("seconds = 1", ARMS),
    "sockperf": ("seconds = 1", ARMS),
    "ucx_perftest": ("iterations = 500\nwarmup = 20", TRANSPORTS),
    "ucx_perftest_bw": ("iterations = 200\nwarmup = 20", TRANSPORTS),
    "netperf": ("seconds = 1", ARMS),
    "netperf_rr": ("seconds = 1", ARMS),
}


def driven(
    folder: Path,
    name: str,
    settings: str,
    arms: str,
    *,
    plan: str = 'budget = "12 s"',
    path: str = "",
) -> tuple[subprocess.CompletedProcess[str], list[Stored]]:
    """Return how `paribus run` of one benchmark in two arms ended, and its launches."""
    (folder / "study.toml").write_text(
        f'question = "Which?"\nfactor = "env"\n{arms}\n[[benchmarks]]\nname = "{name}"\n'
        f"{settings}\n[plan]\nblocks = 8\nseed = 3\n{plan}\n"
    )
    env: dict[str, Any] = {"PATH": path} if path else {}
    done = paribus("run", "study.toml", "--out", "out", cwd=folder, **env)
    with Store(folder / "out") as store:
        return done, list(store.launches())


def free(port: int) -> bool:
    """Return whether nothing listens on `port` any more."""
    with socket.socket() as tried:
        tried.settimeout(1.0)
        return tried.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.slow
@pytest.mark.parametrize("name", DRIVEN)
def test_driven_in_two_arms_its_server_gone_with_each_launch(name: str, tmp_path: Path) -> None:
    program = BENCHMARKS[name].program
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed: {BENCHMARKS[name].get}")
    done, stored = driven(tmp_path, name, *DRIVEN[name])
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {one.outcome.error for one in stored} == {""}
    assert {one.outcome.state for one in stored} == {State.OK}
    assert {one.launch.arm for one in stored} == set(
        re.findall(r"\[arms\.(\w+)\]", DRIVEN[name][1])
    )
    assert any(one.launch.block > 0 for one in stored)
    for one in stored:
        assert {s.metric for s in one.outcome.samples} == {m.name for m in BENCHMARKS[name].metrics}
        line = " ".join(one.outcome.argv)
        ports = re.findall(r"(?:-p|-lp) (2\d{4})\b", line)
        assert ports or name == "fio"
        assert all(free(int(port)) for port in ports)
    assert processes_with(str(tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DRIVEN if name != "fio"])
def test_between_two_containers_the_server_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    """Client and server are in containers of their own, as on two machines."""
    benchmark = BENCHMARKS[name]
    if not shutil.which(benchmark.program):
        pytest.skip(f"{benchmark.program} is not installed: {benchmark.get}")
    container = Container("namespace")
    if reason := containers.check(container, capture):
        pytest.skip(reason)
    parameters = {key: parameter.default for key, parameter in benchmark.parameters.items()}
    for key in {"seconds", "iterations", "warmup"} & parameters.keys():
        parameters[key] = {"seconds": 1, "iterations": 500, "warmup": 20}[key]
    with LocalStation() as host:
        scratch = f"{host.scratch}/launch"
        command = compose(
            Ready(Arm("bridged", container=container, env={"UCX_TLS": "tcp,self"}), None, ()),
            Selection(name, name, 1, parameters),
            benchmark,
            seed=1,
            scratch=scratch,
        )
        out, err = tmp_path / "out", tmp_path / "err"
        done = host.run(command, stdout=str(out), stderr=str(err), timeout_s=60, scratch=scratch)
    assert done.exit_code == 0, err.read_text()
    found = benchmark.parse(out.read_text(), Request(parameters, 1))
    assert {s.metric for s in found.samples} == {m.name for m in benchmark.metrics}


@pytest.mark.slow
def test_fio_keeps_to_the_folder_and_leaves_nothing_there(tmp_path: Path) -> None:
    if not shutil.which("fio"):
        pytest.skip(f"fio is not installed: {BENCHMARKS['fio'].get}")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    settings = f'seconds = 1\nsize = "1 MiB"\ndirect = false\ndirectory = "{folder}"'
    done, stored = driven(tmp_path, "fio", settings, ARMS, plan='budget = "4 s"')
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {one.outcome.state for one in stored} == {State.OK}
    assert all(f"--filename={folder}/" in " ".join(one.outcome.argv) for one in stored)
    assert list(folder.iterdir()) == []


def test_without_an_rdma_device_perftest_says_so_in_one_sentence(tmp_path: Path) -> None:
    if not shutil.which("ib_write_bw"):
        pytest.skip(f"ib_write_bw is not installed: {BENCHMARKS['ib_write_bw'].get}")
    devices = Path("/sys/class/infiniband")
    if devices.is_dir() and any(devices.iterdir()):
        pytest.skip("this machine has an RDMA device")
    done, stored = driven(tmp_path, "ib_write_bw", "", ARMS)
    assert done.returncode == 4
    assert "no RDMA device on this host: perftest needs one on both sides" in " ".join(
        done.stdout.split()
    )
    assert {one.outcome.state for one in stored} == {State.FAILED}
    said = "".join(path.read_text() for path in (tmp_path / "out" / "logs").iterdir())
    assert "Unable to find the Infiniband/RoCE device" in said
    with pytest.raises(ParseError, match="Unable to find the Infiniband/RoCE device"):
        read("ib_write_bw", said)


# --- the incast: perftest needs devices, so a stand-in prints what it would ---------------------

STAND_IN = r"""#!/bin/sh
port='' pairs='' size='' last=''
while [ $# -gt 0 ]; do
  case $1 in
  -p) port=$2; shift ;; -q) pairs=$2; shift ;; -s) size=$2; shift ;; -D | -d | -x) shift ;;
  -F | --report_gbits) ;; *) last=$1 ;;
  esac
  shift
done
meet=%(meet)s/$port
if [ -z "$last" ]; then
  sleep 0.$((port %% 5))
  : >"$meet.listens"
  until [ -e "$meet.done" ]; do sleep 0.02; done
  rm "$meet.listens" "$meet.done"
  exit 0
fi
if ! [ -e "$meet.listens" ]; then
  echo "Couldn't connect to $last:$port"
  exit 1
fi
sed -e "s/Number of qps   : 1/Number of qps   : $pairs/" \
  -e "s/^ 65536  .*/ $size      664644           0.00               %(rate)s/" %(printed)s
: >"$meet.done"
"""


@pytest.mark.slow
def test_incast_of_three_senders_on_real_ranks(tmp_path: Path) -> None:
    mpi = any_mpi()
    printed = tmp_path / "printed.txt"
    table = text_of("ib_write_bw/good-real-4_qps_gbits")
    table = re.sub(r"Number of qps   : \d+", "Number of qps   : 1", table)
    table = re.sub(r" +(Device|Transport type) +:", r"\t\t\1 :", table)  # as perftest 4.5 prints it
    assert "\t" in table
    printed.write_text(table)
    program = tmp_path / "ib_write_bw"
    meet = tmp_path / "meet"
    meet.mkdir()
    rate = 32.768 / 65536 / 8 * 1e3
    program.write_text(
        STAND_IN % {"meet": meet, "rate": f"32.77              {rate:.6f}", "printed": printed}
    )
    program.chmod(0o755)
    settings = f'path = "{program}"\nqueue_pairs = [4, 16]\nseconds = 1\nranks = 4'
    path = f"{Path(mpi.mpirun).parent}:/usr/bin:/bin"
    done, stored = driven(
        tmp_path, "incast", settings, ARMS, plan='bind = "none"\nbudget = "5 s"', path=path
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {one.outcome.error for one in stored} == {""}
    for one in stored:
        samples = {(s.metric, s.case): s.values[0] for s in one.outcome.samples}
        for pairs in (4, 16):
            case = Case.of(queue_pairs=pairs)
            assert samples["throughput", case] == pytest.approx(3 * 32.77)
            assert samples["fairness", case] == pytest.approx(1.0)
            for sender in (1, 2, 3):
                row = Case.of(queue_pairs=pairs, sender=sender)
                assert samples["sender", row] == pytest.approx(32.77)
    for log in (tmp_path / "out" / "logs").glob("*incast.out"):
        text = log.read_text()
        assert "address:" not in text
        assert "\t" not in text, "where a terminal may stop, and another sender's line begin"
        assert max(Counter(re.findall(r"(?m)^\[incast (\d)/3 16\]", text)).values()) < 30
    assert processes_with(str(meet)) == []
    assert list(meet.iterdir()) == []


def incast_of(rates: Sequence[float], *, late_s: int = 0) -> str:
    """Return what senders of `rates` (million messages/s of 64 KiB) print, the last one late."""
    table = text_of("ib_write_bw/good-real-4_qps_gbits").split("\n")
    lines = []
    for sender, rate in enumerate(rates, 1):
        begin = 1795238000 + (late_s if sender == len(rates) else 0)
        row = f" 65536      664644           0.00               {rate * 524.288:.2f}"
        row += f"\t\t   {rate:.6f}"
        own = [row if line.startswith(" 65536") else line for line in table]
        lines += [f"begin {begin}", *own, f"end {begin + 10}"]
        lines[-len(own) - 2 :] = [
            f"[incast {sender}/{len(rates)} 4] {line}" for line in lines[-len(own) - 2 :]
        ]
    return "\n".join(lines) + "\n"


def fairness_of(rates: Sequence[float]) -> float:
    samples = {
        s.metric: s for s in read("incast", incast_of(rates)).samples if len(s.case.items) == 1
    }
    return samples["fairness"].values[0]


@given(st.lists(st.floats(0.01, 2.0), min_size=2, max_size=5))
def test_fairness_is_jains_index(rates: list[float]) -> None:
    """1 for equal shares; never below 1/n; the same whatever the unit and the order."""
    rates = [round(rate, 6) for rate in rates]
    found = fairness_of(rates)
    assert 1 / len(rates) - 1e-9 <= found <= 1 + 1e-9
    assert found == pytest.approx(fairness_of(rates[::-1]), rel=1e-6)
    assert fairness_of([0.7] * len(rates)) == pytest.approx(1.0)


def test_senders_that_do_not_send_together_are_reported() -> None:
    assert read("incast", incast_of([0.06, 0.06, 0.06])).guards == ()
    guard = read("incast", incast_of([0.06, 0.06, 0.06], late_s=6)).guards[0]
    assert "with 4 queue pairs all senders sent for 4 s only" in guard


def test_an_incast_script_that_cannot_know_its_rank_says_so(tmp_path: Path) -> None:
    argv = ["/bin/sh", "-c", incast.SCRIPT, "incast", "true", "127.0.0.1", "20000", "4", "1", "2"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 2
    assert "the launcher does not say which rank this is" in done.stderr


# --- figures that mean the same, and what contaminates them -----------------------------------


def test_perftests_labels_are_one_unit_and_its_gigabits_another() -> None:
    """MB/sec and MiB/sec are both 2^20 B; 0.187654 million messages of 64 KiB are 98.38 Gbit/s."""
    mb = text_of("ib_write_bw/good-real-fdr_all_sizes")
    mib = read("ib_write_bw", mb.replace("MB/sec", "MiB/sec"))
    assert read("ib_write_bw", mb).samples == mib.samples
    assert Sample("bandwidth", Case.of(bytes=65536), (3636.20,)) in mib.samples
    for report in ("good-handmade-report-45", "good-handmade-report"):
        found = {s.metric: s.values[0] for s in reading(f"ib_write_bw/{report}").samples}
        assert found["bandwidth"] == pytest.approx(11728.38, rel=1e-4)
    gigabits = mb.replace("MB/sec", "Gb/sec")
    with pytest.raises(ParseError, match="Gb/sec are not"):
        read("ib_write_bw", gigabits)


@pytest.mark.parametrize("name", ["ib_write_bw", "ib_write_lat"])
def test_between_perftests_rows_stands_only_what_it_says_of_its_clock(name: str) -> None:
    text = text_of(f"{name}/good-real-fdr_all_sizes")
    row = re.search(r"\n 64 .*", text)
    assert row
    clock = "\nConflicting CPU frequency values detected: 1000.0 != 1304.7."
    reported = read(name, text.replace(row[0], clock + row[0]))
    assert reported.samples == read(name, text).samples
    assert "its clock is the CPU's" in reported.guards[0]
    whole = row[0].strip()
    for line in ("", " ", "2 1.00", f"x{whole}", f"{whole} 1.00", f"x{clock[1:]}"):
        with pytest.raises(ParseError, match="expected a row"):
            read(name, text.replace(row[0], f"\n{line}{row[0]}"))


def test_a_title_of_perftest_that_stands_above_another_is_seen() -> None:
    text = text_of("ib_write_bw/good-real-fdr_all_sizes")
    title = " RDMA_Write BW Test\n"
    for twice in (title + text, text.replace("\n", f"\n{title}", 1)):
        with pytest.raises(ParseError, match="title"):
            read("ib_write_bw", twice)


def test_what_ucx_perftests_server_says_must_be_whole_and_in_its_order() -> None:
    text = text_of("ucx_perftest/good-tag-lat")
    lines = re.findall(r"\n\| (?:Test|Send memory|Recv memory|Message size): .*", text)
    assert len(lines) == 4
    for line in lines:
        for damaged in ("", line * 2, f"{line}\n{line[1:].replace(' |', '  x |')}"):
            with pytest.raises(ParseError):
                read("ucx_perftest", text.replace(line, damaged))
        with pytest.raises(ParseError):
            read("ucx_perftest", line[1:] + "\n" + text)


def test_mean_and_median_of_perftest_are_never_compared() -> None:
    median = reading("ib_write_lat/good-real-roce_one_size")
    mean = reading("ib_write_lat/good-handmade-duration")
    assert (median.parameters["statistic"], mean.parameters["statistic"]) == ("median", "mean")
    assert {s.metric for s in mean.samples} == {"latency"}


def test_datagrams_that_were_lost_are_reported() -> None:
    said = json.loads(text_of("iperf3/good-udp-json"))
    said["end"]["sum_received"]["lost_percent"] = 12.25
    guard = read("iperf3", json.dumps(said, indent=1)).guards[0]
    assert "12.2 % of the datagrams were lost" in guard
    guard = reading("netperf/good-udp").guards[0]
    assert "31.3 % of the datagrams were lost" in guard
    assert reading("iperf3/good-udp-json").guards == ()


def test_a_core_at_its_limit_is_reported() -> None:
    said = json.loads(text_of("iperf3/good-tcp-json"))
    said["end"]["cpu_utilization_percent"]["remote_total"] = 99.4
    guard = read("iperf3", json.dumps(said, indent=1)).guards[0]
    assert guard == "the other host used 99 % of a core: the core limits, not the network"


def test_netperfs_own_confidence_is_reported() -> None:
    guard = reading("netperf/good-confidence").guards[0]
    assert "confidence asked for was not reached: throughput to 79.755 %" in guard


def test_an_iperf3_that_was_cut_short_is_refused() -> None:
    said = json.loads(text_of("iperf3/good-tcp-json"))
    said["start"]["test_start"]["duration"] = 10
    with pytest.raises(ParseError, match="10 s were asked for"):
        read("iperf3", json.dumps(said, indent=1))
    with pytest.raises(ParseError, match="interrupt"):
        read(
            "iperf3",
            json.dumps({**said, "error": "interrupt - the client has terminated"}, indent=1),
        )


def test_the_forms_of_one_tool_say_the_same_in_the_same_words() -> None:
    """Text and JSON of one tool bear the same metrics and parameters, so that they can be laid
    side by side."""
    for name, one, other in (
        ("fio", "good-randrw-text", "good-randrw-json"),
        ("ior", "good-posix-text", "good-posix-json"),
        ("iperf3", "good-tcp-text", "good-tcp-json"),
        ("netperf_rr", "good-classic", "good-keys"),
    ):
        text, machine = read(name, text_of(f"{name}/{one}")), read(name, text_of(f"{name}/{other}"))
        assert set(text.parameters) <= {*machine.parameters, "omit"}
        assert {s.metric for s in text.samples} <= {s.metric for s in machine.samples}
        if name == "fio":
            assert {s.case for s in text.samples} == {s.case for s in machine.samples}


def test_every_repetition_of_ior_is_a_value_of_the_launch() -> None:
    found = reading("ior/good-posix-text")
    values = {(s.metric, str(s.case)): s.values for s in found.samples}
    assert values["bandwidth", "op=write"] == (639.6, 1700.54, 3005.12)
    assert found.ranks == 2


def test_a_clients_log_of_ucx_alone_is_no_launch_of_a_study() -> None:
    """Its size is bandwidth by message rate; without the server's part the test is not known."""
    whole = text_of("ucx_perftest/good-tag-lat")
    client = whole[: whole.index("Waiting for connection")]
    found = read("ucx_perftest", client)
    assert {s.case for s in found.samples} == {Case.of(bytes=64)}
    asked = Request({"bytes": [64], "test": "tag_lat", "iterations": 2000}, 1)
    with pytest.raises(ParseError, match="test = 'tag_lat' was asked for"):
        BENCHMARKS["ucx_perftest"].parse(client, asked)
    assert BENCHMARKS["ucx_perftest"].parse(whole, asked).samples


def test_of_both_directions_iperf3s_text_gives_the_sum_of_what_arrived() -> None:
    found = reading("iperf3/good-real-both_udp_text")
    assert found.samples[0].values == (pytest.approx(35.8 + 37.8),)
    assert "51.4 % of the datagrams were lost" in found.guards[0]
    text = text_of("iperf3/good-both-streams-text")
    found = read("iperf3", text)
    assert (found.parameters["streams"], found.parameters["direction"]) == (2, "both")
    assert set(found.parameters) == set(reading("iperf3/good-tcp-text").parameters)
    total = (
        sum(float(rate) for rate in re.findall(r"SUM.* ([\d.]+) Gbits/sec +receiver", text)) * 1e3
    )
    assert found.samples[0].values == (pytest.approx(total),)
    with pytest.raises(ParseError, match="are not the sum"):
        read("iperf3", text.replace("204 MBytes  1.71", "104 MBytes  0.872"))


def test_what_an_iperf3s_server_says_is_not_taken_for_the_clients() -> None:
    text = text_of("iperf3/good-server-output-text")
    client = text[: text.index("\nServer output:")] + "\niperf Done.\n"
    assert read("iperf3", text).samples == read("iperf3", client).samples


def test_netperfs_share_of_the_processors_is_not_its_rate() -> None:
    values = {
        ("netperf", "good-real-stream_cpu"): 38910.63,
        ("netperf", "good-real-udp_cpu"): 5997.0,
        ("netperf_rr", "good-real-tcp_cpu"): 6591.45,
    }
    for (name, fixture), value in values.items():
        assert read(name, text_of(f"{name}/{fixture}")).samples[0].values == (value,)
    text = text_of("netperf/good-real-stream_cpu").replace("10^6bits/s ", "MBytes  /s ")
    # netperf counts bytes in powers of two, and bits in powers of ten.
    assert read("netperf", text).samples[0].values == (pytest.approx(38910.63 * 2**20 * 8 / 1e6),)


def test_fio_that_read_no_clock_has_no_latency_and_nothing_less() -> None:
    text = text_of("fio/good-randrw-text")
    lines = [line for line in text.split("\n") if not re.match(r" +(?:[sc]?lat \(|clat|\| )", line)]
    lines = [line for line in lines if not line.startswith("  lat (")]
    found = read("fio", "\n".join(lines))
    kept = {s for s in read("fio", text).samples if not s.metric.startswith("latency")}
    assert set(found.samples) == kept
    asked = json.loads((FIXTURES / "fio" / "good-randrw-text.json").read_text())
    with pytest.raises(ParseError, match="latency at"):
        BENCHMARKS["fio"].parse("\n".join(lines), Request(asked["parameters"], 1))
    with pytest.raises(ParseError, match="the percentiles of completion, are missing"):
        read("fio", re.sub(r"\n     lat \(.*", "", text, count=1))
    said = json.loads(text_of("fio/good-randrw-json"))
    nothing = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    for op in ("read", "write"):
        said["jobs"][0][op] |= dict.fromkeys(("slat_ns", "clat_ns", "lat_ns"), nothing)
    found = read("fio", json.dumps(said, indent=1).replace('version":', 'version" :'))
    assert {s.metric for s in found.samples} == {"bandwidth", "iops"}
    said["jobs"][0]["read"]["clat_ns"] = {**nothing, "max": 7}
    with pytest.raises(ParseError, match="not a measurement"):
        read("fio", json.dumps(said, indent=1).replace('version":', 'version" :'))


def test_ucx_on_one_terminal_and_what_it_warns_of() -> None:
    found = reading("ucx_perftest_bw/good-real-one_terminal")
    assert found.parameters == {"iterations": 10, "test": "tag_bw", "memory": "rocm,rocm"}
    found = reading("ucx_perftest_bw/other-real-warning")
    assert len(found.guards) == 2
    assert "transport 'cuda_copy' is not available" in found.guards[1]


def test_several_measurements_of_qperf_are_distinguished() -> None:
    found = reading("qperf/other-real-many_transports")
    values = {str(s.case): s.values[0] for s in found.samples}
    assert (values["test=udp_bw"], values["test=uc_rdma_write_bw"]) == (626.0, 735.0)
    assert len(values) == 9
    block = "tcp_lat:\n    latency   =  44.3 us\n    msg_size  =     1 bytes\n"
    block += "    time      =     1 sec\n"
    larger = block.replace("    1 bytes", "   64 KiB (65,536)")
    found = read("qperf", block + larger)
    assert [s.case for s in found.samples] == [Case.of(bytes=1), Case.of(bytes=65536)]
    with pytest.raises(ParseError, match="the message size in 'KiB'"):
        read("qperf", larger.replace("65,536", "66,536"))
    with pytest.raises(ParseError, match="a message did not come back"):
        read("qperf", block.replace("44.3 us", " 250 ms"))
    found = read("qperf", "tcp_bw:\n    bw  =  11.2 Gb/sec\n")
    assert found.samples[0].values == (pytest.approx(1400.0),)


def test_mdtest_reports_what_it_could_not_do() -> None:
    text = text_of("mdtest/good-real-3_3_tree")
    assert read("mdtest", text).guards == ()
    at = text.index("\nSUMMARY")
    warned = f"{text[:at]}WARNING: unable to create tree directory 'x'\n{text[at:]}"
    assert read("mdtest", warned).guards == ("mdtest says \"unable to create tree directory 'x'\"",)


@pytest.mark.parametrize(
    ("name", "fixture", "said"),
    [
        ("fio", "fail-terse", "let fio print JSON"),
        ("fio", "fail-real-2_2", "fio 2.2.10 prints other lines than fio 3"),
        ("iperf3", "fail-title-text", "use neither -T nor --timestamps"),
        ("iperf3", "fail-real-3_1_udp", "what was sent and not what arrived"),
        ("sockperf", "fail-real-throughput", "let it ping-pong"),
        ("ucx_perftest", "fail-real-1_6", "UCX before 1.9"),
        ("ior", "fail-real-3_0", "IOR before 3.2"),
        ("ior", "fail-handmade-stonewall", "stopped after 60 s .* give sizes instead"),
        ("ior", "fail-real-3_3_stonewall", "stopped after 259.2 s .* its result_summary.txt"),
        ("ior", "fail-real-3_4_io500", "IO500 prints none: give its result_summary.txt"),
    ],
)
def test_a_form_that_cannot_be_proved_is_refused_with_what_to_do(
    name: str, fixture: str, said: str
) -> None:
    with pytest.raises(ParseError, match=said):
        read(name, text_of(f"{name}/{fixture}"))


def test_ior_in_json_says_too_that_it_was_stopped_by_time() -> None:
    text = text_of("ior/good-posix-json")
    stopped = text.replace('"deadlineForStonewall": 0', '"deadlineForStonewall": 30')
    assert stopped != text
    with pytest.raises(ParseError, match="stopped after 30 s"):
        read("ior", stopped)
