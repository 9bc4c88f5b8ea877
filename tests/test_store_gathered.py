"""The facts of nodes in the store: kept in order, and with the study."""

from __future__ import annotations

from pathlib import Path

from paribus.store import Gathered, Store


def test_facts_of_nodes_come_back_in_order(tmp_path: Path) -> None:
    first = [
        Gathered("host", "n1", 1.5, {"cpu.model": "EPYC", "cpu.governor": {"unknown": "absent"}}),
        Gathered("bridged", "c1", 2.5, {"net.0.mtu": 1500, "rank.affinity": ["0", "1"]}),
    ]
    later = [Gathered("host", "n1", 9.0, {"facts.error": "no answer"})]
    with Store(tmp_path, write=True) as store:
        store.keep_gathered(first)
        store.keep_gathered(later)
    with Store(tmp_path) as store:
        assert store.gathered() == [*first, *later]


def test_a_study_without_facts_of_nodes_has_none(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        assert store.gathered() == []
