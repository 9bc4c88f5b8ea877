"""Machines that guests run on: under keys of their own, compared with those of a physical arm."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.audit.audit import Audit, audit_study, changes
from paribus.audit.classes import classify, of_hypervisor
from paribus.core import Facts, Study
from paribus.store import Gathered
from paribus.studyfile.load import load_study
from studies import write_study

GUEST = {
    "cpu.hypervisor": "yes",
    "rank.hypervisor": "KVM",
    "cpu.governor": "none",
    "os.release": "6.1",
    "memory.ksm": 0,
}
METAL = {
    "rank.hypervisor": "none",
    "cpu.governor": "performance",
    "os.release": "6.12",
    "memory.ksm": 0,
    "cpu.microcode": "7",
}
METAL["load.running"] = 1.0


def study(folder: Path) -> Study:
    arms = '[arms.physical]\nhosts = "node1"\n[arms.virtual]\nhosts = "vm1"\n'
    arms += 'hypervisors = "hyper1"\n'
    return load_study(write_study(folder, arms=arms, factor="virtualisation", more="ranks = 1"))


def audited(folder: Path, below: Facts) -> Audit:
    virtual = {**GUEST, "cpu.microcode": "7", **of_hypervisor(below)}
    nodes = {"physical": {"node1": METAL}, "virtual": {"vm1": virtual}}
    return audit_study(study(folder), {}, nodes, {}, {})


def test_what_is_equal_below_a_guest_is_equal(tmp_path: Path) -> None:
    found = audited(tmp_path, METAL)
    assert {one.key for one in found.differences} == {
        *("cpu.governor", "os.release", "cpu.hypervisor", "rank.hypervisor"),
    }
    assert {one.kind for one in found.differences} == {"factor"}
    assert "hypervisor.cpu.governor" in found.equal


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("memory.ksm", 1, "unexplained"),
        ("cpu.microcode", "8", "unexplained"),
        ("os.release", "6.13", "unexplained"),  # of guests the factor explains it
        ("load.running", 9.0, "noted"),
    ],
)
def test_a_hypervisor_is_another_machine(
    tmp_path: Path, key: str, value: object, kind: str
) -> None:
    found = audited(tmp_path, {**METAL, key: value}).differences
    (one,) = [one for one in found if one.key.startswith("hypervisor.")]
    assert (one.key, one.kind) == (f"hypervisor.{key}", kind)
    assert one.reason == classify(key).reason


def test_a_hypervisor_that_changes_in_mid_study_is_named(tmp_path: Path) -> None:
    rows = [
        Gathered("virtual", "vm1", at, {**GUEST, **of_hypervisor({**METAL, "memory.ksm": at})})
        for at in (0, 1)
    ]
    (one,) = changes(rows, study(tmp_path), (), {})
    assert (one.key, one.kind, one.node) == ("hypervisor.memory.ksm", "unexplained", "vm1")
