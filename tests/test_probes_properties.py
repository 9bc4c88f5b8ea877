"""What must not matter does not, and no content of /proc or /sys makes a parser fail."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core import Facts
from paribus.probes import Archive, facts_of
from paribus.probes.archive import Unknown
from paribus.probes.files import from_tar

HERE = Path(__file__).parent / "machines"
sys.path.insert(0, str(HERE))
from handmade import MACHINES  # noqa: E402

ARCHIVES = {path.stem: from_tar(path) for path in sorted(HERE.glob("*.tar.gz"))} | MACHINES
IDENTITY = re.compile(r".*\.(name|port|address)")
VOLATILE = re.compile(r".*\.(now|counter)\..*")
BUS = re.compile(r"(?<![0-9a-fA-F])((?:0000)?[0-9a-f]{4}):([0-9a-fA-F]{2}):([0-9a-f]{2}\.[0-7])")


def lasting(facts: Facts) -> Facts:
    """Return what must not change when devices are renamed: all but names and counters."""
    return {
        key: value
        for key, value in facts.items()
        if not IDENTITY.fullmatch(key) and not VOLATILE.fullmatch(key)
    }


def rewritten(archive: Archive, change: object) -> Archive:
    """Return `archive` with change(text) for every path, link and tool, and in every text."""
    assert callable(change)
    return replace(
        archive,
        files={
            change(path): text if isinstance(text, Unknown) else change(text)
            for path, text in archive.files.items()
        },
        links={change(path): change(there) for path, there in archive.links.items()},
        tools={
            change(name): found if isinstance(found, Unknown) else (found[0], change(found[1]))
            for name, found in archive.tools.items()
        },
        lists={name: [change(line) for line in lines] for name, lines in archive.lists.items()},
    )


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(ARCHIVES)), seed=st.integers(0, 2**32))
def test_the_order_in_which_files_are_found_does_not_matter(name: str, seed: int) -> None:
    archive, rng = ARCHIVES[name], random.Random(seed)
    files, links = list(archive.files.items()), list(archive.links.items())
    rng.shuffle(files)
    rng.shuffle(links)
    shuffled = replace(archive, files=dict(files), links=dict(links))
    assert facts_of(shuffled) == facts_of(archive)


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(ARCHIVES)), seed=st.integers(0, 2**32))
def test_renaming_devices_changes_only_their_names(name: str, seed: int) -> None:
    archive, rng = ARCHIVES[name], random.Random(seed)
    classes = r"/sys/(?:class/(?:net|infiniband)|block)/([^/]+)/"
    old = sorted({m[1] for path in archive.files if (m := re.match(classes, path))})
    if not old:
        return
    new = [f"z{n}q" for n in range(len(old))]
    rng.shuffle(new)
    names = dict(zip(old, new, strict=True))
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, old))})(?![\w.-])")

    def change(text: str) -> str:
        return pattern.sub(lambda match: names[match[1]], text)

    assert lasting(facts_of(rewritten(archive, change))) == lasting(facts_of(archive))


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(ARCHIVES)), seed=st.integers(0, 2**32))
def test_renumbering_buses_changes_only_addresses(name: str, seed: int) -> None:
    archive, rng = ARCHIVES[name], random.Random(seed)
    buses = [f"{n:02x}" for n in range(256)]
    other = dict(zip(buses, rng.sample(buses, 256), strict=True))

    def change(text: str) -> str:
        return BUS.sub(lambda m: f"{m[1]}:{other[m[2].lower()]}:{m[3]}", text)

    assert lasting(facts_of(rewritten(archive, change))) == lasting(facts_of(archive))


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(ARCHIVES)), seed=st.integers(0, 2**32))
def test_renumbering_interrupts_changes_nothing(name: str, seed: int) -> None:
    archive, rng = ARCHIVES[name], random.Random(seed)
    old = sorted({m[1] for path in archive.files if (m := re.match(r"/proc/irq/(\d+)/", path))})
    new = dict(zip(old, map(str, rng.sample(range(1000, 9000), len(old))), strict=True))
    lines = [line.split(" ") for line in archive.lists.get("interrupts", ())]
    rows = [[row[0], *rng.sample([new[n] for n in row[1:]], len(row) - 1)] for row in lines]
    moved = replace(
        archive,
        files={
            re.sub(r"^/proc/irq/(\d+)/", lambda m: f"/proc/irq/{new[m[1]]}/", path): text
            for path, text in archive.files.items()
        },
        lists={**archive.lists, "interrupts": [" ".join(row) for row in rows]},
    )
    assert facts_of(moved) == facts_of(archive)


@pytest.mark.parametrize("name", sorted(ARCHIVES))
def test_facts_are_json_and_no_unknown_is_a_bare_value(name: str) -> None:
    facts = facts_of(ARCHIVES[name])
    assert json.loads(json.dumps(dict(facts), allow_nan=False)) == facts
    # Words of the kernel's such as "Unknown: No mitigations" are values.
    assert not any(re.search(r"Unknown\.|<Unknown", json.dumps(v)) for v in facts.values())


@pytest.mark.parametrize("why", list(Unknown))
def test_where_nothing_can_be_read_nothing_is_known(why: Unknown) -> None:
    """Every file and tool unknown in the same way: only counts of what is there are values."""
    for archive in ARCHIVES.values():
        dark = Archive(dict.fromkeys(archive.files, why), dict.fromkeys(archive.tools, why))
        facts = facts_of(dark)
        values = {key: value for key, value in facts.items() if not isinstance(value, dict)}
        plain = {
            key for key in values if not key.endswith(".count") and not IDENTITY.fullmatch(key)
        }
        assert plain <= {"numa.nodes", "memory.modules"}


def test_each_unknown_is_distinguished_at_every_file() -> None:
    """Of files that hold one fact: absent, denied and unsupported reach it as they are."""
    archive = ARCHIVES["kvm-root.tar"]
    for path, key in (
        ("/proc/sys/kernel/osrelease", "os.release"),
        ("/sys/class/net/eth0/mtu", "net.ethernet.0.mtu"),
        ("/proc/cpuinfo", "cpu.model"),
        ("/proc/meminfo", "memory.total_kib"),
        ("/proc/pressure/cpu", "load.cpu_pressure_us"),
        ("/proc/self/limits", "limits.nofile"),
        ("/proc/cmdline", "os.cmdline"),
    ):
        for why in (Unknown.ABSENT, Unknown.DENIED, Unknown.UNSUPPORTED, Unknown.TIMED_OUT):
            facts = facts_of(replace(archive, files={**archive.files, path: why}))
            assert facts[key] == {"unknown": why.value}


# --- hostile contents ----------------------------------------------------------------------------

PIECES = (
    *("", "\n", "0", "-1", "9" * 4400, "1e999", "nan", "inf", "0x", "::", ": : :", "\t", " " * 300),
    *("[", "[]", "[a] [b]", "0-", "-0", "5-1", "0-99999999", "4: ACTIVE", "max", "max 0", "1 0"),
    *("\0\x01\x7f", "\ufffd", "\u2028", "ﬁ", "٣", "²", "½", "processor", "Node 0 MemTotal: x kB"),
    *("some avg10=x total=", "some", "cpu  1 2", "cpu 1 2 3 4 5 6 7 x", "ctxt", "cfs -1 / 0"),
    *(" - ", "1 2 3 4 / rw - ", "0::", "0::/a/b", "x" * 5000, "a,b,c", '"', "'", "{}", "\\040"),
    *("1 2 3", "window 0", "window -1", "7 yes", "denied", "daemon irqbalance", "0000:41:00.0 1 x"),
    *('{"prio_pfc":[1,"on",null]}', '{"tc_bw":[{}]}', '{"dscp_prio":[[],1]}', "[" * 5000, "null"),
    *("tc: 0 ratelimit: x, tsa: ets", "priority: 9", "0x0 0x1 0x200", "0xz 1 2", "GNU C -O2"),
    *("qdisc a b dev", "GPU0 X", "name, pci.bus_id\n,", "Memory Device\n", "0000:00:00.0", "[N/A]"),
)


def test_ten_thousand_fuzzed_contents_never_crash_a_parser() -> None:
    """Each time several files, tools and lists of a real machine get contents that nobody wrote."""
    rng = random.Random(20261121)
    small = {name: _small(archive) for name, archive in ARCHIVES.items()}
    contents = 0
    while contents < 10_000:
        archive = small[rng.choice(sorted(small))]
        paths = rng.sample(sorted(archive.files), min(40, len(archive.files)))
        files = {path: _nonsense(rng, archive.files[path]) for path in paths}
        tools = {name: (rng.choice((0, 0, 1)), _nonsense(rng, "")) for name in archive.tools}
        links = {
            link: rng.choice((there, "", "/", "0000:00:00.0"))
            for link, there in archive.links.items()
        }
        lists = {name: _nonsense(rng, "").split("\n") for name in archive.lists}
        facts = facts_of(Archive({**archive.files, **files}, tools, links, lists))
        json.dumps(dict(facts), allow_nan=False)
        contents += len(files) + len(tools) + len(lists)


def _small(archive: Archive) -> Archive:
    """Return `archive` with four of its processors: 256 of them say nothing new, slowly."""
    many = re.compile(r"/sys/devices/system/cpu/cpu([4-9]|[0-9]{2,})/")
    return replace(archive, files={p: t for p, t in archive.files.items() if not many.match(p)})


def _nonsense(rng: random.Random, text: str | Unknown) -> str:
    kind = rng.randrange(3)
    if kind == 0 or isinstance(text, Unknown) or not text:
        return "".join(
            rng.choice(PIECES) + rng.choice(("", " ", "\n")) for _ in range(rng.randrange(6))
        )
    if kind == 1:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(PIECES) + text[rng.randrange(at, len(text)) :]
    return "".join(chr(rng.randrange(256)) for _ in range(rng.randrange(200)))


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(ARCHIVES["kvm-root.tar"].files)), st.text(), max_size=9)
)
def test_any_text_in_any_file_gives_facts(files: dict[str, str]) -> None:
    archive = ARCHIVES["kvm-root.tar"]
    facts_of(replace(archive, files={**archive.files, **files}))
