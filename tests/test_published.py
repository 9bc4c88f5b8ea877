"""Published figures: those that ship are those that were printed; one's own stand beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from log_folders import many, osu, write
from paribus.benchmarks import BENCHMARKS
from paribus.core import Judgement, StudyError
from paribus.lenses.published.beside import beside
from paribus.lenses.published.lens import here, what
from paribus.lenses.published.reading import Figure, load_publication
from paribus.logs.imported import Answers
from paribus.logs.logged import judge_logs
from paribus.logs.logs import find_logs
from paribus.logs.pairing import pair_logs
from studies import paribus, write_study

SHIPPED = Path(__file__).parent.parent / "studies" / "published"

LATENCY_A9 = """0:3.28 1:3.69 2:3.70 4:3.67 8:3.69 16:4.11 32:4.53 64:5.35 128:6.60 256:2.85
512:3.06 1024:3.44 2048:4.19 4096:5.96 8192:7.60 16384:10.64 32768:15.31 65536:23.32 131072:53.65
262144:85.02 524288:156.81 1048576:299.23 2097152:567.89 4194304:1098.55"""
BIBW_A9 = """1:0.43 2:0.87 4:1.69 8:3.35 16:6.82 32:13.69 64:18.64 128:29.12 256:486.75 512:1174.69
1024:2170.21 2048:3844.66 4096:5982.22 8192:2873.87 16384:7078.87 32768:6669.85 65536:4926.26
131072:4878.30 262144:5853.30 524288:6674.26 1048576:7066.08 2097152:7344.74 4194304:7479.30"""
# What the five studies print: (benchmark, arm, reference, what was printed).
PRINTED = {
    "containers-2021": [
        ("osu_bw", "container", "host", "6,694 -> 5,887 MB/s (-12.1 %)"),
        ("babelstream", "container", "host", "424,762.4 -> 422,473 MB/s (-0.5 %)"),
        ("babelstream", "container", "host", "at most +0.54 %"),
        ("pynamic", "container", "host", "at most +8 %"),
    ],
    "pcie-2020": [
        ("pytorch_ddp", "common", "", "5,624.23 images/s"),
        ("pytorch_ddp", "cascade", "", "2,658.47 images/s"),
        ("hpl", "common", "balance", "slower"),
        ("hpl", "cascade", "balance", "slower"),
        ("p2p_bandwidth", "common", "balance", "alike"),
        ("p2p_bandwidth", "cascade", "balance", "alike"),
        ("p2p_bandwidth", "common", "balance", "alike"),
        ("p2p_bandwidth", "cascade", "balance", "faster"),
    ],
    "roce-2024": [
        ("hpl", "roce", "infiniband", "+1 to +4.2 %"),
        ("hpl", "roce", "infiniband", "+1 to +4 %"),
        ("hpcg", "roce", "infiniband", "alike"),
        ("npb_is", "roce", "infiniband", "alike"),
        ("vasp", "roce", "infiniband", "+14.9 to +16.1 %"),
        ("lammps", "roce", "infiniband", "+1.4 to +2.35 %"),
        ("qe", "roce", "infiniband", "-0.29 to -0.1 %"),
    ],
    "virtual-2013": [
        *((f"npb_{n}", "16 nodes", "32 nodes", "+40 to +50 %") for n in ("is", "mg", "cg", "bt")),
        ("npb_ft", "16 nodes", "32 nodes", "+27 %"),
        *((f"npb_{n}", "virtual", "physical", "slower") for n in ("lu", "sp")),
        *(
            (f"npb_{n}", "virtual", "physical", "alike")
            for n in ("bt", "cg", "ep", "ft", "is", "mg")
        ),
        *((f"npb_{n}", "virtual", "physical", "slower") for n in ("cg", "lu", "sp")),
        ("npb_ep", "virtual", "physical", "alike"),
    ],
}


def figures(name: str) -> tuple[Figure, ...]:
    return load_publication(SHIPPED / f"{name}.toml").figures


@pytest.mark.parametrize("name", PRINTED)
def test_what_ships_is_what_was_printed(name: str) -> None:
    rows = [figure.row for figure in figures(name)]
    found = [(row.benchmark, row.arm, row.reference, row.said) for row in rows]
    assert found == PRINTED[name]


@pytest.mark.parametrize(
    ("benchmark", "table"), [("osu_latency", LATENCY_A9), ("osu_bibw", BIBW_A9)]
)
def test_the_tables_of_the_cloud_cluster_are_whole(benchmark: str, table: str) -> None:
    printed = {int(b): float(v) for b, v in (pair.split(":") for pair in table.split())}
    mine = [f for f in figures("azure-2014") if f.row.benchmark == benchmark]
    said = {f.case.get("bytes"): f.row.said for f in mine if f.case}
    assert {size: float(text.split()[0].replace(",", "")) for size, text in said.items()} == printed
    assert len(mine) == len(printed)


def test_every_file_that_ships_says_where_it_is_from_and_what_is_missing() -> None:
    paths = sorted(SHIPPED.glob("*.toml"))
    assert {path.stem for path in paths} == {*PRINTED, "azure-2014"}
    for path in paths:
        found = load_publication(path)
        assert f"{path.stem[-4:]})" in found.source
        assert found.missing
        assert found.factor
        for figure in found.figures:
            assert figure.row.benchmark in BENCHMARKS, figure.row.benchmark
            assert {figure.row.arm, figure.row.reference} - {""} <= set(found.arms)


@pytest.mark.parametrize("name", [*PRINTED, "azure-2014"])
def test_the_command_shows_each_with_its_source(name: str, tmp_path: Path) -> None:
    others: dict[str, str | Path] = {
        "azure-2014": SHIPPED / "azure-2014.toml",
        "pcie-2020": "pcie-2020.toml",
    }
    done = paribus("compare", others.get(name, name), "--out", "out", cwd=tmp_path)
    assert done.stderr == ""
    assert done.returncode == 0
    flat = " ".join(done.stdout.split())
    publication = load_publication(SHIPPED / f"{name}.toml")
    assert publication.source in flat
    assert "have no interval" in flat
    assert "( against" not in flat
    page = (tmp_path / "out" / "report.html").read_text()
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert len(reported["published"]) == len(publication.figures)
    for figure in publication.figures:
        assert figure.row.said.replace(">", "&gt;") in page


# --- beside one's own ------------------------------------------------------------------------


def own(tmp_path: Path, effect: float, arms: tuple[str, str] = ("infiniband", "roce")) -> Judgement:
    """Return the judgement of twelve launches each, osu_latency at eight sizes."""
    one = write(tmp_path / arms[0], many())
    other = write(tmp_path / arms[1], many(effect, seed=2))
    return judge_logs(pair_logs(*find_logs([one, other])), Answers())


PAPER = """
title = "Wires"
year = 2020
[arms]
infiniband = "the old"
roce = "the new"
"""


def lay(tmp_path: Path, judgement: Judgement, text: str) -> list[str]:
    path = tmp_path / "paper.toml"
    path.write_text(PAPER + text)
    found = beside(judgement, [load_publication(path)])
    assert found.headlines == judgement.headlines, "no verdict rests on what was published"
    return [
        f"{what(row)}: {row.said}; {here(row)}" for row in found.lenses["published"] if row.finding
    ]


PAIR = 'benchmark = "osu_latency"\narm = "roce"\nreference = "infiniband"\n'


@pytest.mark.parametrize(
    ("effect", "key", "expected"),
    [
        (
            0.8,
            "advantage = [14.9, 16.1]",
            "speed of roce against infiniband: +14.9 to +16.1 %; +24",
        ),
        (1.25, "advantage = 1", "speed of roce against infiniband: +1 %; -20"),
        (1.25, "overhead = { at_most = 8 }", "cost of roce against infiniband: at most +8 %; +2"),
        (1.25, 'word = "alike"', "roce against infiniband: alike; +2"),
    ],
)
def test_ones_own_finding_stands_on_the_scale_of_the_published(
    tmp_path: Path, effect: float, key: str, expected: str
) -> None:
    (row,) = lay(tmp_path, own(tmp_path, effect), f"[[figures]]\n{PAIR}{key}\n")
    assert row.startswith(f"osu_latency, {expected}")
    low, high = (float(end) for end in row[row.index("[") + 1 : -1].split(","))
    assert low < float(row.rpartition("; ")[2].split()[0]) < high


def test_arms_the_other_way_round_are_turned(tmp_path: Path) -> None:
    judgement = own(tmp_path, 1.25, ("RoCE", "InfiniBand"))
    (row,) = lay(tmp_path, judgement, f"[[figures]]\n{PAIR}advantage = 20\n")
    assert "; +2" in row, "RoCE is the reference here and a quarter faster"


def test_values_and_cases_stand_beside_their_like(tmp_path: Path) -> None:
    text = """
[[figures]]
benchmark = "osu_latency"
case = { bytes = [1, 8, 999] }
values = { infiniband = [10, 13, 99], roce = [11, 14, 99] }
[[figures]]
benchmark = "osu_latency"
peak = true
values = { infiniband = 9 }
[[figures]]
benchmark = "vasp"
arm = "roce"
reference = "infiniband"
advantage = 5
"""
    rows = lay(tmp_path, own(tmp_path, 1.1), text)
    assert rows[0].startswith(
        "osu_latency, latency, 1 B, roce against infiniband: 10 -> 11 us (+10.0 %); +"
    )
    assert rows[1].startswith("osu_latency, latency, 8 B, ")
    assert rows[2].startswith("osu_latency, latency, peak, infiniband: 9 us; 10")
    assert " -> 11" in rows[2]
    assert len(rows) == 3


def test_the_report_has_both_in_terminal_and_html(tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text(f"{PAPER}[[figures]]\n{PAIR}advantage = [14.9, 16.1]\n")
    own(tmp_path, 0.8)
    words = ["compare", "infiniband", "roce", "--beside", "paper.toml", "--beside", "azure-2014"]
    done = paribus(*words, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    flat = " ".join(done.stdout.split())
    assert "Wires (2020)" in flat
    assert "published: +14.9 to +16.1 %; here: +24" in flat
    assert "published figures have no interval" in flat.casefold()
    assert "Not measured here: osu_bibw." in flat
    page = (tmp_path / "out" / "report.html").read_text()
    assert "+14.9 to +16.1 %" in page
    assert "Published figures have no interval" in page
    assert page.count("a drop from 6.60 us at 128 B") == 1
    done = paribus("compare", "infiniband", "roce", "--beside", "azure-2015", cwd=tmp_path, code=2)
    assert "did you mean 'azure-2014'?" in done.stderr


def test_published_figures_are_no_arm_of_a_comparison(tmp_path: Path) -> None:
    write(tmp_path / "mine", {"x.log": osu(sizes=14)})
    done = paribus("compare", SHIPPED / "azure-2014.toml", "mine", cwd=tmp_path, code=2)
    assert f"--beside {SHIPPED / 'azure-2014.toml'}" in done.stderr


# --- matched by what was compared ------------------------------------------------------------

NODES = """
[[figures]]
benchmark = "osu_latency"
factor = "number of nodes"
arm = "16 nodes"
reference = "32 nodes"
advantage = 40
"""


def matched(tmp_path: Path, arms: tuple[str, str], factor: str, figures: str) -> list[bool | None]:
    """Return of each figure whether it was turned; None where it stands beside nothing."""
    one, other = (write(tmp_path / arm, many(seed=n)) for n, arm in enumerate(arms))
    mine = judge_logs(pair_logs(*find_logs([one, other])), Answers(factor=factor))
    path = tmp_path / "paper.toml"
    levels = 'virtual = "Xen"\nphysical = "bare"\n"16 nodes" = "few"\n"32 nodes" = "many"\n'
    path.write_text(
        f'title = "T"\nyear = 2013\nfactor = "virtualisation"\n[arms]\n{levels}{figures}'
    )
    found = beside(mine, [load_publication(path)])
    return [row.turned if row.finding else None for row in found.lenses["published"]]


def test_scaling_does_not_stand_beside_a_ratio_of_platforms(tmp_path: Path) -> None:
    """Shipped: 16 against 32 nodes of NPB. It was laid beside the ratio of any two arms."""
    assert matched(tmp_path, ("physical", "virtual"), "", NODES) == [None]


VIRTUAL = NODES.replace('factor = "number of nodes"\n', "").replace("16 nodes", "virtual")
VIRTUAL = VIRTUAL.replace("32 nodes", "physical")


@pytest.mark.parametrize(
    ("arms", "factor", "turned"),
    [
        (("physical", "virtual"), "", False),
        (("Virtual", "Physical"), "Virtualisation", True),
        (("physical", "virtual"), "container", None),  # the same names for another thing
        (("physical", "kvm"), "virtualisation", False),
        (("kvm", "physical"), "virtualisation", True),
        (("physical", "kvm"), "", None),
        (("physical", "16 nodes"), "virtualisation", None),  # another level of the publication
        (("bare", "kvm"), "virtualisation", None),
    ],
)
def test_a_figure_stands_beside_the_same_factor_and_levels(
    tmp_path: Path, arms: tuple[str, str], factor: str, turned: bool | None
) -> None:
    assert matched(tmp_path, arms, factor, VIRTUAL) == [turned]


@pytest.mark.parametrize(("here", "stands"), [(16, True), (32, False), (0, True)])
def test_a_figure_of_some_hosts_stands_beside_as_many(
    tmp_path: Path, here: int, *, stands: bool
) -> None:
    """16 and 32 nodes were laid beside the same figure; logs do not say how many (0)."""
    mine = own(tmp_path, 1.1)
    (selection,) = mine.study.benchmarks
    scaled = replace(mine.study, benchmarks=(replace(selection, hosts=here),))
    figure = f"[[figures]]\n{PAIR}hosts = 16\nadvantage = 1"
    rows = lay(tmp_path, replace(mine, study=scaled), figure)
    assert bool(rows) is stands


def test_the_row_says_that_the_like_was_not_measured_here(tmp_path: Path) -> None:
    own(tmp_path, 1.1, ("physical", "virtual"))
    arms = 'virtual = "Xen"\nphysical = "bare"\n"16 nodes" = "few"\n"32 nodes" = "many"\n'
    text = f'title = "T"\nyear = 2013\n[arms]\n{arms}{NODES}{VIRTUAL}'
    (tmp_path / "paper.toml").write_text(text)
    words = ["compare", "physical", "virtual", "--beside", "paper.toml", "--out", "out"]
    done = paribus(*words, cwd=tmp_path)
    flat = " ".join(done.stdout.split())
    assert "16 nodes against 32 nodes: published: +40 %; here: not measured here" in flat
    assert "virtual against physical: published: +40 %; here: -9" in flat
    assert "<td" in (page := (tmp_path / "out" / "report.html").read_text())
    assert page.count("not measured here") == 1
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())["published"]
    assert [row["here"] is None for row in reported] == [True, False]


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("titel = 1", "did you mean 'title'?"),
        (f"{PAPER}", "figures: is missing"),
        (f"{PAPER}[[figures]]\n{PAIR}", "gives not one of values"),
        (f"{PAPER}[[figures]]\n{PAIR}advantage = 1\nword = 'alike'", "gives not one of values"),
        (f"{PAPER}[[figures]]\n{PAIR}advantage = 'big'", "is not a number"),
        (f"{PAPER}[[figures]]\n{PAIR}advantage = [1, 2, 3]", "write percent"),
        (f"{PAPER}[[figures]]\n{PAIR}advantage = nan", "is not a number"),
        (f"{PAPER}[[figures]]\n{PAIR}word = 'better'", '"faster", "slower", "alike"'),
        (
            f"{PAPER}[[figures]]\n{PAIR.replace('roce', 'rocky')}advantage = 1",
            '"infiniband", "roce"',
        ),
        (f"{PAPER}[[figures]]\nbenchmark = 'osu_bw'\nvalues = {{ roce = 0 }}", "not above zero"),
        (
            f"{PAPER}[[figures]]\nbenchmark = 'osu_bw'\nvalues = {{ roce = [1, 2] }}",
            "2 values for 1",
        ),
        (f"{PAPER}[[figures]]\nbenchmark = 'mine'\nvalues = {{ roce = 1 }}", "metric or unit"),
        (
            f"{PAPER}[[figures]]\nbenchmark = 'osu_bw'\nmetric = 'x'\nvalues = {{ roce = 1 }}",
            "is none of",
        ),
        (
            f"{PAPER}[[figures]]\nbenchmark = 'osu_bw'\nunit = 'GB/s'\nvalues = {{ roce = 1 }}",
            "convert",
        ),
        (f"{PAPER}[[figures]]\n{PAIR}hosts = 0\nadvantage = 1", "hosts = 0"),
        ("title = ", "is not TOML"),
        ('question = "?"\n[[benchmarks]]\nname = "latency"', "is a study, not figures"),
    ],
)
def test_what_a_file_cannot_say_is_refused_with_its_key(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(StudyError) as caught:
        load_publication(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_run_and_report_lay_them_beside_as_well(tmp_path: Path) -> None:
    study = write_study(tmp_path, script="echo 2.50013", plan="blocks = 8")
    text = '[[figures]]\nbenchmark = "steady"\narm = "b"\nreference = "a"\noverhead = [1, 2]\n'
    arms = PAPER.replace("infiniband", "a").replace("roce", "b")
    (tmp_path / "paper.toml").write_text(arms + text)
    for words in (["run", study, "--out", "out"], ["report", "out"]):
        done = paribus(*words, "--beside", "paper.toml", cwd=tmp_path)
        assert done.returncode in (0, 3), done.stderr
        flat = " ".join(done.stdout.split())
        assert "steady, cost of b against a: published: +1 to +2 %; here: 0.0 %" in flat
        assert "+1 to +2 %" in (tmp_path / "out" / "report.html").read_text()
    paribus("run", study, "--out", "new", "--beside", "nowhere.toml", cwd=tmp_path, code=2)
    assert not (tmp_path / "new").exists(), "refused before the first launch"
