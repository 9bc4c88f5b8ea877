"""MPI kept to some TCP ports by the variables that `cluster check` names, behind real filters."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from mpis import each_mpi
from paribus.benchmarks import benchmark_of
from paribus.cluster.mpi import port_variables
from paribus.core import Completed, Mpi, UserError
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.arms import compose
from paribus.launch.ready import make_ready
from paribus.launch.stations import stations
from paribus.studyfile.load import load_study
from processes import ran

ARM = """
[arms.{transport}]
hosts = "pocket:2"
mpi = "{prefix}"
transport = "{transport}"
env = {{ {env} }}
"""
STUDY = """
question = "?"
factor = "nothing"
{arms}
[[benchmarks]]
name = "alltoall"
ranks = 4
bytes = ["8 B", "64 KiB"]
samples = 5
iterations = 10
[plan]
bind = "none"
"""
FILTER = """\
iptables -A INPUT -i lo -j ACCEPT &&
iptables -A INPUT -m state --state ESTABLISHED -j ACCEPT &&
iptables -A INPUT -p tcp --dport 42000:42199 -j ACCEPT &&
iptables -A INPUT -p tcp -j REJECT --reject-with tcp-reset || echo no
"""


def on(host: Host, script: str) -> str:
    words = host.shell
    return ran(words, input=script).stdout


def launched(mpi: Mpi, transport: str, folder: Path, *, pinned: bool) -> Completed:
    """Return how a launch ended between two hosts that take connections on 200 ports alone."""
    variables = port_variables(mpi.family, 42000, 42199) if pinned else {}
    env = ", ".join(f'{name} = "{value}"' for name, value in variables.items())
    prefix = mpi.family if mpi.mpicxx.startswith("/usr/") else Path(mpi.mpicxx).parents[1]
    path = folder / "study.toml"
    arms = [ARM.format(transport=one, prefix=prefix, env=env) for one in ("auto", "tcp")]
    path.write_text(STUDY.format(arms="".join(arms)))
    study = load_study(path)
    (selection,) = study.benchmarks
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(stations(study))
        except UserError as error:
            pytest.skip(str(error))
        station = opened[transport]
        assert isinstance(station, HostStation)
        ready = make_ready(study, lambda _: None, opened)[transport]
        if any(on(host, FILTER) for host in station.hosts):
            pytest.skip("no iptables here")
        scratch = f"{station.scratch}/launch"
        command = compose(ready, selection, benchmark_of(selection), seed=1, scratch=scratch)
        out, err = str(folder / "out"), str(folder / "err")
        return station.run(command, stdout=out, stderr=err, timeout_s=60, scratch=scratch)


@pytest.mark.parametrize("transport", ["auto", "tcp"])
@pytest.mark.parametrize("mpi", each_mpi())
def test_the_variables_keep_an_mpi_to_its_ports(mpi: Mpi, transport: str, tmp_path: Path) -> None:
    done = launched(mpi, transport, tmp_path, pinned=True)
    assert done.exit_code == 0, (done, (tmp_path / "err").read_text())


@pytest.mark.parametrize("mpi", each_mpi())
def test_without_them_the_filters_stop_it(mpi: Mpi, tmp_path: Path) -> None:
    assert launched(mpi, "tcp", tmp_path, pinned=False).exit_code != 0
