"""The hosts of an arm: as study files and hostfiles name them, and which rank goes to which."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import (
    MOST_NAMES,
    Address,
    Hosts,
    Link,
    Placement,
    Step,
    Study,
    StudyError,
    UserError,
    expand,
    fold,
    nodes_of_ranks,
    size,
)
from paribus.launch.arms import bound
from paribus.plan import freeze, read_plan, write_plan
from paribus.studyfile.load import load_study
from studies import paribus, write_study


def study(folder: Path, *lines: str) -> Study:
    """Return a study whose arm b has the keys of `lines`."""
    arms = "[arms.a]\n[arms.b]\n" + "\n".join(lines) + "\n"
    path, program = write_study(folder, arms=arms, more="ranks = 2"), folder / "steady.py"
    program.write_text(program.read_text().replace("mpi=False", "mpi=True"))
    return load_study(path)


GUEST = ('hosts = "node1"', 'hypervisors = "hyper1"')


def hosts(folder: Path, *lines: str) -> Hosts:
    found = study(folder, *lines).arms[1].hosts
    assert found is not None
    return found


def named(folder: Path, text: str) -> list[str]:
    return [one.name for one in hosts(folder, f'hosts = "{text}"').addresses]


def test_names_are_nodesets(tmp_path: Path) -> None:
    assert named(tmp_path, "node[08-10],gate") == ["node08", "node09", "node10", "gate"]
    assert named(tmp_path, "10.0.0.1,10.0.0.2") == ["10.0.0.1", "10.0.0.2"]


def test_one_address_with_a_port_for_each_host(tmp_path: Path) -> None:
    found = hosts(tmp_path, 'hosts = "gate.example:2201-2203,node1"').addresses
    assert [(one.name, one.address, one.port) for one in found] == [
        *((f"gate.example-{port}", "gate.example", port) for port in (2201, 2202, 2203)),
        ("node1", "node1", 0),
    ]


ENDLESS = [
    "n[1-100000000]",
    "n[0000000001-1000000000]",
    "n[1-1000]m[1-1000]",
    "n[1-100]m[1-100]k[1-100]",
    "n[1-99999],m[1-99999]",
    "n[1-99999]!n[1-99999]",
    "n[1-900000000/3]",  # in a hostfile: elsewhere it is a path
    "n[-99999-99999]",
    "gate:1-65535,other:1-65535",
    "gate:1-65535,n[1-90000]",
    *("n[1-99999]," * 50000 + "n", "n[1-9]" * 5000),
]
"""Texts of which the names would fill the memory, or take minutes."""


@pytest.mark.parametrize("text", ENDLESS)
def test_names_are_counted_before_they_are_made(tmp_path: Path, text: str) -> None:
    """What fails this test by taking minutes and gigabytes has made them."""
    for lines in (f'hosts = "{text}"',), ('hosts = "node1"', f'hypervisors = "{text}"'):
        if "/" not in text:
            with pytest.raises(StudyError, match="are the most"):
                study(tmp_path, *lines)
    if not text.startswith("gate"):
        (tmp_path / "list").write_text(text.replace(",", "\n"))
        with pytest.raises(StudyError, match="are the most"):
            study(tmp_path, 'hosts = "./list"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n[1-1_000_000_000]", "stand in brackets"),  # int() takes these
        ("n[\u0661-\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669\u0669]", "stand in brackets"),
        (f"n[1-{'9' * 5000}]", "stand in brackets"),
        ("n99999[9-10]", "write node[19,110]"),  # 900,000 names to ClusterShell
        ("[" * 100_000, "missing bracket"),
    ],
)
def test_nor_is_what_looks_like_few_names(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        study(tmp_path, f'hosts = "{text}"')
    assert said in str(refused.value)


RANGES = st.builds(
    "{}[{}]".format,
    st.sampled_from(["n", "n1", "-", "r2x"]),
    st.sampled_from(["1-9", "01-12", "1-9/3", "3", "1,4-6", "8-9,1", "1-2, 5", "0-0"]),
)
SETS = st.lists(RANGES, min_size=1, max_size=3).map("".join)


@given(st.lists(st.tuples(st.sampled_from(",!&^"), SETS), min_size=1, max_size=3))
def test_no_nodeset_has_more_names_than_were_counted(several: list[tuple[str, str]]) -> None:
    text = "".join(sign + one for sign, one in several)[1:]
    with suppress(ValueError):
        assert len(expand(text)) <= size(text)


def test_a_hostfile_with_a_line_for_each_slot_may_be_long(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("node1\nnode2\n" * MOST_NAMES)
    found = hosts(tmp_path, 'hosts = "./list"').addresses
    assert {one.name: one.slots for one in found} == {"node1": MOST_NAMES, "node2": MOST_NAMES}


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("node1 slots=2 max_slots=4\nnode2 slots=1\n", {"node1": 2, "node2": 1}),
        ("node1 slots=2 max-slots=4\nnode2\n", {"node1": 2, "node2": 1}),
        ("# from the batch system\nnode1:2\n\nnode2:1  # half\n", {"node1": 2, "node2": 1}),
        ("node1\nnode1\nnode2\n", {"node1": 2, "node2": 1}),
        ("node[1-3]\n", {"node1": 0, "node2": 0, "node3": 0}),
        ("node[1-2]:8\n", {"node1": 8, "node2": 8}),
        ("\ufeffnode1\r\nnode2\r\n", {"node1": 0, "node2": 0}),
    ],
)
def test_hostfiles_of_every_dialect(tmp_path: Path, text: str, slots: dict[str, int]) -> None:
    (tmp_path / "list").write_text(text)
    found = hosts(tmp_path, 'hosts = "./list"').addresses
    assert {one.name: one.slots for one in found} == slots


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node1 slots=0", "it gives 0 slots"),
        ("node1:0", "it gives 0 slots"),
        ("node1 slot_s=2", "did you mean slots="),
        ("node1 slots=two", "not a whole number"),
        ("node1 user=me", "write ssh.user in the study"),
        ("node1:2 binding=socket", "binding= is not known"),
        ("node1 node2", "write NAME, NAME:SLOTS, or NAME slots=N"),
        ("-oProxyCommand=reboot", "is not a host name"),
        ("", "no host is named"),
        ("node[1-", "missing bracket"),
    ],
)
def test_a_hostfile_that_cannot_be_used_names_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "list").write_text(f"node9\n{text}\n" if text else "# nothing\n")
    with pytest.raises(StudyError) as error:
        study(tmp_path, 'hosts = "./list"')
    assert said in str(error.value)
    if text and "host name" not in said:
        assert "line 2 of list" in str(error.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['hosts = "node[4-1]"'], "bad range"),
        (['hosts = "n{1..3}"'], "write names such as node[1-4,7], with commas between"),
        (['hosts = "n1 n2"'], "write names such as node[1-4,7], with commas between"),
        (['hosts = "n1;n2"'], "write names such as node[1-4,7], with commas between"),
        (['hosts = "node1,,node2"'], "nothing stands between two commas"),
        (['hosts = "node1,node1"'], "node1 is named twice"),
        (['hosts = "@rack1"'], "write names"),
        (['hosts = "me@node1"'], "a user name goes into ssh.user"),
        (['hosts = "gate:2203-2201"'], "the lower first"),
        (['hosts = "gate:70000"'], "ports are 1 to 65535"),
        (['hosts = "./missing"'], "No such file"),
        (['hosts = "pocket:0"'], "from 1 to 64"),
        (['hosts = "pocket:x"'], "is not a pocket cluster"),
        ([f'hosts = "node[1-{MOST_NAMES + 1}]"'], "are the most"),
        (['hosts = "n1[9,10]"'], "write node[19,110], not node1[9,10]"),
        (['hosts = "node1"', 'link = { rate = "1 Gbit" }'], "only a pocket cluster has one"),
        (['hosts = "pocket:2"', 'link = { rate = "1" }'], "the unit is missing"),
        (['hosts = "pocket:2"', 'ssh = { user = "me" }'], "has keys of its own"),
        (['ssh = { user = "me" }'], "this arm has no hosts"),
        (['hosts = "?"'], "--hosts b='node[1-4]'"),
        (['hosts = "node1"', 'ssh = { user = "-oProxyCommand=x" }'], "use only letters"),
        (['hosts = "node1"', 'ssh = { jump = "gate -v" }'], "USER@"),
        (['hosts = "node1"', "ssh = { prot = 22 }"], "did you mean 'port'?"),
        (
            ['hosts = "node1"', 'container = { engine = "namespace" }'],
            "only pocket hosts are joined",
        ),
        (['hosts = "node[1-3]"', 'hypervisors = "hyper[1-2]"'], "2 for 3 hosts: name one for each"),
        (['hosts = "node1"', 'hypervisors = "node1"'], "name the machine that it runs on"),
        (['hosts = "pocket:2"', 'hypervisors = "hyper1"'], "pocket hosts are no virtual machines"),
        (['hypervisors = "hyper1"'], "this arm has no hosts"),
        ([*GUEST, 'before = { on = "hyper2", run = "x" }'], "did you mean 'hyper1'?"),
        ([*GUEST, 'before = { on = "else", run = "x" }'], "add it to `hypervisors` of the arm"),
        ([*GUEST, 'before = { on = "hyper1", run = " " }'], "texts that are not blank"),
        ([*GUEST, "before = { on = 1, run = 'x' }"], "texts that are not blank"),
        ([*GUEST, 'after = [{ on = "hyper1" }]'], "has the keys `on` and `run`"),
        (['before = { on = "hyper1", run = "x" }'], "is no host and no hypervisor of this arm"),
        (['hosts = "node1"', "ranks_per_host = 1"], "2 ranks do not fit on 1 host that takes 1"),
    ],
)
def test_hosts_that_cannot_be_used(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(StudyError) as error:
        study(tmp_path, *lines)
    assert said in str(error.value)


def test_a_plan_keeps_guests_and_what_switches_them(tmp_path: Path) -> None:
    one = study(
        tmp_path,
        'hosts = "vm[1-4]"',
        'hypervisors = "hyper[1-2]"',
        'before = [{ on = "hyper1", run = "virsh start vm1" }, "sleep 1"]',
        'observe = { on = "vm1", run = "uname -r" }',
    )
    arm = one.arms[1]
    assert arm.before == (Step(("virsh", "start", "vm1"), "hyper1"), Step(("sleep", "1")))
    assert arm.hosts is not None
    assert [arm.hosts.below(number) for number in range(4)] == ["hyper1"] * 2 + ["hyper2"] * 2
    write_plan(freeze(one, {}), tmp_path)
    assert read_plan(tmp_path).study.arms[1] == arm


def test_a_plan_keeps_the_hosts(tmp_path: Path) -> None:
    key = tmp_path / "key"
    one = study(
        tmp_path,
        'hosts = "node[1-2]"',
        'ssh = { user = "me", port = 2222, jump = "me@gate:22", identity = "key" }',
        'network = "10.1.0.0/16"',
        'order = "host"',
    )
    found = one.arms[1].hosts
    assert found.ssh.identity == str(key)
    write_plan(freeze(one, {}), tmp_path)
    assert read_plan(tmp_path).study.arms[1].hosts == found


def test_a_pocket_cluster_and_its_link(tmp_path: Path) -> None:
    found = hosts(
        tmp_path,
        'hosts = "pocket:4"',
        'link = { rate = "1 Gbit", delay = "500 us", loss = "0.1 %" }',
    )
    assert found.pocket == 4
    assert found.link == Link(1_000_000_000, 5e-4, 0.001)
    assert found.names == ("h1", "h2", "h3", "h4")


def test_ranks_fill_hosts_or_take_turns() -> None:
    two = (Address("a", "a"), Address("b", "b"))
    slot, turns = Hosts(two), Hosts(two, order="host")
    assert nodes_of_ranks(slot, 4, 0) == ("a", "a", "b", "b")
    assert nodes_of_ranks(turns, 4, 0) == ("a", "b", "a", "b")
    assert nodes_of_ranks(slot, 2, 0) == ("a", "b")
    assert nodes_of_ranks(slot, 2, 2) == ("a", "a")
    many = Hosts((Address("a", "a", 0, 10**12), Address("b", "b", 0, 10**12)))
    assert nodes_of_ranks(many, 2, 0) == ("a", "a")
    assert nodes_of_ranks(replace(many, order="host"), 2, 0) == ("a", "b")
    uneven = Hosts((Address("a", "a", 0, 3), Address("b", "b", 0, 1)), order="host")
    assert nodes_of_ranks(uneven, 4, 0) == ("a", "b", "a", "a")
    with pytest.raises(UserError, match="5 ranks do not fit on 2 hosts that take 4"):
        nodes_of_ranks(uneven, 5, 0)


def test_cores_are_counted_on_every_host() -> None:
    slots = bound(("a", "b", "a", "b"), {"a": (0, 1), "b": (4, 5)}, 1)
    assert [slot.cores for slot in slots] == [(0,), (4,), (1,), (5,)]
    placed = Placement(slots)
    assert placed.hosts == (("a", 2), ("b", 2))
    assert placed.in_turn
    assert not Placement(bound(("a", "a", "b"), {}, 1)).in_turn


NAMES = st.lists(st.from_regex(r"[a-z]{1,3}(0{0,2}[0-9]{1,3})?(-ib)?", fullmatch=True), max_size=40)


@given(NAMES)
def test_folded_names_unfold_to_the_same(names: list[str]) -> None:
    assert sorted(expand(fold(names)) if names else ()) == sorted(set(names))


def test_hosts_are_named_on_the_command_line(tmp_path: Path) -> None:
    """They take the place of what the file says; a hostfile is one of the working directory."""
    path = write_study(tmp_path, arms='[arms.a]\n[arms.b]\nhosts = "?"\n', more="ranks = 2")
    found = load_study(path, hosts={"b": "node[1-2]"}).arms[1].hosts
    assert found.names == ("node1", "node2")
    with pytest.raises(StudyError, match="did you mean 'b'"):
        load_study(path, hosts={"bb": "node1"})
    (tmp_path / "list").write_text("node7 slots=2\n")
    listed = paribus(
        "run", path, "--hosts", "b=list", "--dry-run", "--no-pilot", cwd=tmp_path, code=2
    )
    assert "node7" in listed.stderr
    for wrong in ("b", "b=", "=node1"):
        done = paribus("run", path, "--hosts", wrong, cwd=tmp_path, code=2)
        assert "write --hosts ARM='node[1-4]'" in done.stderr
