"""Links of pocket hosts: what is asked for, and what packets see of it."""

from __future__ import annotations

import os
import re
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from containers.pockets import Held
from incast_on_a_link import launched
from link_accuracy import ASK, ECHO, SEND, SINK
from mpis import any_mpi
from paribus.containers.fabric import script
from paribus.core import Link, UserError
from paribus.hosts.links import read_link, wire
from paribus.hosts.pocket import Pocket
from paribus.launch.local import capture
from processes import children, ended, gone

BLAST = """
import socket, sys, time
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect(("h2", 5002))
for number in range(int(sys.argv[1])):
    client.send(b"x" * 100)
    if number % 20 == 0: time.sleep(0.001)
"""

COUNT = """
import os, socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 5002))
server.settimeout(2)
if os.fork(): raise SystemExit
os.setsid()
[os.close(n) for n in (0, 1, 2)]
got = waits = 0
while True:
    try: got += len(server.recv(2000)) // 100
    except TimeoutError:  # before the first packet the sender may only be slow to start
        waits += 1
        if got or waits > 9: open("/tmp/got", "w").write(str(got))
"""


def times(held: Held, count: int = 200) -> list[float]:
    """Return the seconds that packets from the first host to the second and back took."""
    return [float(line) for line in held.python(0, ASK, "10.77.0.2", str(count)).split()]


@pytest.mark.parametrize("identity", ["root", "user"])
def test_a_packet_is_late_by_the_delay_each_way(identity: str) -> None:
    """Against a cluster without delay, where the machine disturbs least: the best tenth."""
    with Held(2, identity=identity) as held:
        held.python(1, ECHO)
        plain = statistics.quantiles(times(held), n=10)[0]
    with Held(2, identity=identity, link={"delay": "2 ms"}) as held:
        held.python(1, ECHO)
        late = times(held)
    assert len(late) == 200
    assert min(late) >= 4e-3
    assert statistics.quantiles(late, n=10)[0] - plain == pytest.approx(4e-3, abs=0.5e-3)


@pytest.mark.parametrize("link", [{}, {"delay": "1 ms"}], ids=["kernel", "user-space"])
def test_tcp_gets_the_rate_and_no_more(link: dict[str, str]) -> None:
    """Of 100 Mbit a second, 95.7 are left to TCP; the buckets and the buffers fill at once."""
    with Held(2, link={"rate": "100 Mbit", **link}) as held:
        held.python(1, SINK)
        rate = float(held.python(0, SEND, "1"))
        assert held.inside(0, "tc qdisc show dev eth0").count("tbf") == 1
    assert 60e6 < rate < 101e6


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["root", "user"])
def test_packets_are_lost_at_the_share(identity: str) -> None:
    """5 % of 4000: 200 with a standard deviation of 14; five of those are allowed."""
    with Held(2, identity=identity, link={"loss": "5 %"}) as held:
        held.python(1, COUNT)
        held.python(0, BLAST, "4000")
        got = int(held.inside(1, "until cat /tmp/got 2>/dev/null; do sleep 0.1; done"))
    assert 4000 - got == pytest.approx(200, abs=70)


@pytest.mark.slow
@pytest.mark.parametrize("link", [None, {"delay": "1 ms"}], ids=["bridge", "user-space"])
def test_a_link_is_cut_and_restored(link: dict[str, str] | None) -> None:
    with Held(2, link=link) as held:
        held.python(1, ECHO)
        heard = [len(times(held, 3))]
        for state in ("down", "up"):
            held.inside(1, f"ip link set eth0 {state}")
            time.sleep(0.5)
            heard.append(len(times(held, 3)))
    assert heard == [3, 0, 3]


def test_the_link_in_user_space_ends_the_cluster_when_it_ends(tmp_path: Path) -> None:
    """Else launches would hang on a network that is not there."""
    with Pocket(2, link=Link(delay_s=1e-3), directory=f"{tmp_path}/p") as pocket:
        links = children_of(children_of(children_of(pocket.controller)[0])[0], "link-")
        if not links:
            pytest.skip("this kernel has netem")
        os.kill(links[0], signal.SIGKILL)
        assert ended([*pocket.pids])
    assert gone(f"{tmp_path}/p")


def children_of(pid: int, named: str = "") -> list[int]:
    """Return the children of a process whose names begin with `named`."""
    return [c for c in children(pid) if Path(f"/proc/{c}/comm").read_text().startswith(named)]


# --- what is asked for ----------------------------------------------------------------------------


def test_a_link_is_read_from_its_table() -> None:
    assert read_link({"rate": "1 Gbit", "delay": "500 us", "loss": "0.1 %"}) == Link(
        1_000_000_000, 500e-6, 0.001
    )
    assert read_link({"rate": "2.5 Mbit/s"}) == Link(rate=2_500_000)
    assert read_link({"loss": 0.01}) == Link(loss=0.01)


@pytest.mark.parametrize(
    ("table", "fix"),
    [
        ("1 Gbit", 'rate = "1 Gbit"'),
        ({}, 'rate = "1 Gbit"'),
        ({"speed": "1 Gbit"}, 'rate = "1 Gbit"'),
        ({"rate": 1000}, "no unit"),
        ({"rate": "1 GB"}, "kbit, Mbit, Gbit"),
        ({"rate": "1 kbit"}, "100 kbit to 100 Gbit"),
        ({"rate": "0 Gbit"}, "100 kbit to 100 Gbit"),
        ({"rate": "-1 Gbit"}, "is not a rate"),
        ({"delay": 5}, "no unit"),
        ({"delay": "0 s"}, "is not above 0"),
        ({"delay": "2 s"}, "up to 1 s"),
        ({"loss": "0 %"}, "outside 0 to 100 %"),
        ({"loss": "100 %"}, "outside 0 to 100 %"),
        ({"loss": "a few"}, "not a share"),
    ],
)
def test_a_link_that_cannot_be_is_refused(table: Any, fix: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fix)):
        read_link(table)


def test_without_a_compiler_delay_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for tool in Path(place).iterdir():
            compiles = tool.name.endswith(("c++", "g++")) or "++" in tool.name
            if not compiles and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    if "netem" in capture(["/bin/sh", "-c", script("qdiscs.sh")]).stdout:
        pytest.skip("this kernel has netem")
    with (
        pytest.raises(UserError) as raised,
        Pocket(2, link=Link(delay_s=1e-3), directory=f"{tmp_path}/p"),
    ):
        pass
    assert "install g++" in raised.value.fix
    assert not (tmp_path / "p").exists()


def test_what_is_asked_of_netem_is_what_tc_understands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where this kernel has none, `tc` must have understood the words that the kernel refuses."""
    monkeypatch.setattr("paribus.hosts.links.kernel_has", lambda path: {"tbf", "netem"})
    wiring = wire(Link(1_000_000_000, 500e-6, 0.001), ["h1"], "/usr/bin:/usr/sbin")
    assert wiring.program == ()
    lines = wiring.files["eth0.tc"].replace("eth0", "lo").splitlines()
    assert "netem delay 500.000us loss 0.1000000% " in lines[0]
    (tmp_path / "tc").write_text(f"{lines[0]}\n")
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--", "tc", "-batch"]
    done = capture([*unshare, str(tmp_path / "tc")])
    assert done.exit_code == 0 or "Specified qdisc kind is unknown" in done.stderr
    wrong = lines[0].replace("delay", "dely")
    (tmp_path / "tc").write_text(f"{wrong}\n")
    assert "unknown" not in capture([*unshare, str(tmp_path / "tc")]).stderr


def test_three_senders_share_a_link(tmp_path: Path) -> None:
    """The receiver's link is full, each flow has a third of it, and the victim's message waits in
    the queue, which holds 10 ms of the rate: the half of that, and more than a tenth in any case.
    """
    any_mpi()
    for number in range(8):  # On a busy machine the senders may not fill the link all the time.
        folder = tmp_path / str(number)
        folder.mkdir()
        found = launched({"rate": "1 Gbit"}, {"bytes": [65536], "connections": [1]}, folder)
        flows = [found["flow"][sender] for sender in (1, 2, 3)]
        [goodput, idle_us, loaded_us] = (
            found[name][0] for name in ("goodput", "idle_latency", "loaded_latency")
        )
        fair = max(abs(flow * 3 / goodput - 1) for flow in flows) < 0.2
        if fair and 940 < goodput < 970 and idle_us < 500 and 1000 < loaded_us < 6000:
            break
    assert 940 < goodput < 970
    assert flows == [pytest.approx(goodput / 3, rel=0.2)] * 3
    assert idle_us < 500
    assert 1000 < loaded_us < 6000
