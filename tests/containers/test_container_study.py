"""The study of containers on two hosts: what is known of bridges shows in few blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paribus.studyfile.shipping import shipped_studies
from studies import paribus


@pytest.mark.long
def test_bridged_containers_are_slower_and_those_on_the_host_s_network_are_not(
    tmp_path: Path,
) -> None:
    names = ("latency", "alltoall")
    text = shipped_studies()["container-mpi"].read_text().partition("[plan]")[0]
    kept = [
        line
        for line in text.splitlines()
        if "name =" not in line or any(f'"{name}"' in line for name in names)
    ]
    assert len(kept) == len(text.splitlines()) - 6
    path = tmp_path / "study.toml"
    path.write_text("\n".join(kept) + '\n[plan]\nbind = "none"\nblocks = 8\nseed = 1\n')
    paribus("run", path, "--out", "out", cwd=tmp_path, code=0)
    ratios = {
        (one["benchmark"], one["arm"]): one["comparison"]["ratio"]
        for one in json.loads((tmp_path / "out/verdict.json").read_text())["headlines"]
    }
    for name in names:
        assert ratios[name, "bridged"] > 1.1, ratios
        assert ratios[name, "bridged"] > ratios[name, "host-network"], ratios
    assert 0.75 < ratios["latency", "host-network"] < 1.33, ratios
