"""Every figure of an output has its row and its word, and noise alone seldom fails a pipeline."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from scipy.stats import binom

from log_folders import FIXTURES, judged, write
from paribus.__main__ import main
from paribus.core import Case, Judgement, Metric, Outcome, ParseError, Sample, State, Word
from paribus.judge.conclude import conclude
from paribus.logs.imported import Answers, judge_table
from paribus.logs.tables.table import Row, Source, build
from paribus.plan import frozen as plans
from paribus.readers.known import readers
from paribus.report import stored, tables
from paribus.report.export import to_json
from paribus.report.gate import Rule, failures
from paribus.store import Store
from test_conservation import DESIGNS

HPCC = (FIXTURES / "hpcc" / "good-openblas_np2.out").read_text()
FIGURES = (
    *("hpl", "dgemm", "stream_triad", "ptrans", "random_access", "fft", "latency", "bandwidth"),
)


def hpcc(launch: int, triad: float = 1.0) -> str:
    """Return an output of HPCC of which STREAM's triad is `triad` times what it was."""
    scale = triad * random.Random(f"{launch} {triad}").lognormvariate(0, 0.001)

    def scaled(match: re.Match[str]) -> str:
        return f"{match[1]}{float(match[2]) * scale:.6g}"

    return re.sub(r"(StarSTREAM_Triad=)([0-9.e+-]+)", scaled, HPCC)


def test_one_rank_alone_measures_no_network() -> None:
    """HPCC prints -1 there; with more ranks that is no figure."""
    missing = re.sub(r"((?:PingPong|OrderedRing)(?:Latency|Bandwidth)_\w+)=.*", r"\1=-1", HPCC)
    alone = missing.replace("CommWorldProcs=2", "CommWorldProcs=1")
    (reader,) = (one for name, one in readers().items() if name == "hpcc")
    found = {sample.metric for sample in reader.read(alone).samples}
    assert found == {*FIGURES} - {"latency", "bandwidth"}
    with pytest.raises(ParseError, match="above zero, got '-1'"):
        reader.read(missing)


@pytest.fixture
def halved(tmp_path: Path) -> tuple[Path, Path]:
    """Return the folders of two arms, in the second of which STREAM is half as fast."""
    host = write(tmp_path / "host", {f"{n}.txt": hpcc(n) for n in range(9)})
    return host, write(tmp_path / "cont", {f"{n}.txt": hpcc(n + 9, 0.5) for n in range(9)})


def words(judgement: Judgement) -> dict[str, str]:
    rows = (*judgement.headlines, *judgement.others)
    return {row.metric.name: row.verdict.word.value for row in rows}


def test_a_figure_that_does_not_decide_has_its_word(
    halved: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    judgement = judged(*halved)
    assert tuple(words(judgement)) == FIGURES
    assert words(judgement)["stream_triad"] == "slower"
    assert "slower in hpcc stream_triad" in judgement.sentence
    assert "in hpcc," not in judgement.sentence
    assert main(["compare", *map(str, halved), "--fail-on", "slower", "--brief"]) == 1
    printed = capsys.readouterr()
    assert all(name in printed.out for name in FIGURES)
    assert "stream_triad" in printed.err
    page = str(tables.endpoints(judgement, "hpcc"))
    assert "Other figures: " in page
    assert all(f">{name}</th>" in page for name in FIGURES[1:])


def test_the_json_keeps_what_decides_first(halved: tuple[Path, Path], tmp_path: Path) -> None:
    judgement = judged(*halved)
    said = to_json(judgement)
    heads = said["headlines"]
    assert [one["metric"]["name"] for one in heads] == [*FIGURES]
    assert [one.get("decides", True) for one in heads] == [True] + [False] * 7
    (tmp_path / "verdict.json").write_text(json.dumps(said))
    again = stored.read_report(tmp_path / "verdict.json")
    assert len(again.others) == 7
    assert to_json(again)["headlines"] == heads


def test_a_verdict_of_before_reads_and_says_what_it_said(
    halved: tuple[Path, Path], tmp_path: Path
) -> None:
    said = to_json(judged(*halved))
    said["headlines"] = [one for one in said["headlines"] if one.get("decides", True)]
    (tmp_path / "verdict.json").write_text(json.dumps(said))
    again = stored.read_report(tmp_path / "verdict.json")
    assert len(again.headlines) == 1
    assert again.others == ()
    assert to_json(again)["sentence"] == said["sentence"]


# --- noise alone -----------------------------------------------------------------------------


def noise(draw: random.Random, figures: int, *, paired: bool, common: float) -> Judgement:
    """Return what ten launches of two equal arms come to; `common` of a launch's noise is shared.

    The margin is so small that chance alone gives words.
    """
    rows: list[Row] = []
    for block in range(10):
        for arm in ("host", "cont"):
            shared = common * draw.gauss(0, 0.01)
            for number in range(figures):
                rows.append(
                    Row(
                        place=f"row {len(rows)}",
                        arm=arm,
                        benchmark="tool",
                        metric=f"figure {number}",
                        value=2.0 ** (shared + draw.gauss(0, 0.01)),
                        unit="s",
                        better="lower" if number % 2 else "higher",
                        block=str(block) if paired else "",
                        launch="" if paired else f"{arm} {block}",
                    )
                )
    table = build([Source("numbers", rows)])
    return judge_table(table, Answers(margin=1e-9))


def test_noise_alone_fails_a_pipeline_in_at_most_5_percent_of_comparisons() -> None:
    """Eight designs of 50 comparisons each; of 1,200 each, between 3.6 and 5.1 % failed."""
    draw = random.Random(7)
    alone = failed = 0
    for paired, figures, common in product((True, False), (4, 8), (0.0, 3.0)):
        for _ in range(50):
            judgement = noise(draw, figures, paired=paired, common=common)
            rows = (*judgement.headlines, *judgement.others)
            assert len(rows) == figures
            failed += bool(failures(rows, [Rule(Word.SLOWER)]))
            alone += bool(failures(judgement.headlines, [Rule(Word.SLOWER)]))
    assert 0 < alone <= failed  # chance does give words
    assert failed <= binom.ppf(0.999, 400, 0.05)


# --- studies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("often", [0.0, 0.1, 1.0])
def test_every_design_has_a_row_for_each_figure(design: str, often: float, tmp_path: Path) -> None:
    """The second figure is halved; where launches of one arm fail, none has a word on speed."""
    frozen = plans.freeze(DESIGNS[design], {})
    latency = frozen.metrics["latency"][0]
    both = (latency, Metric("bandwidth", "MB/s", "higher"))
    frozen = replace(frozen, metrics={**frozen.metrics, "latency": both})
    draw = random.Random(f"{design} {often}")
    with Store(tmp_path, write=True) as store:
        for block in frozen.blocks():
            if block[0].block > 12:
                break
            for launch in block:
                fails = launch.arm != "host" and draw.random() < often
                halved = 1.0 if launch.arm == "host" else 0.5
                noise = draw.lognormvariate(0, 0.001)
                samples = [Sample(latency.name, Case.of(bytes=8), (9 * noise,) * 4)]
                samples += [Sample("bandwidth", Case.of(bytes=8), (9 * halved / noise,) * 4)]
                if launch.benchmark == "barrier":
                    samples = [Sample("time", Case.of(bytes=8), (9 * noise,) * 4)]
                state = State.FAILED if fails else State.OK
                done = Outcome(
                    state, float(launch.number), 1.0, 0, (), () if fails else (*samples,)
                )
                store.append(launch, done)
        judgement = conclude(frozen, store)
    heads = [f for f in judgement.headlines if f.benchmark == "latency"]
    others = {f.arm: f for f in judgement.others}
    assert {f.benchmark for f in judgement.others} <= {"latency"}
    for head in heads:
        if head.comparison is None:
            assert head.arm not in others
            continue
        other = others[head.arm]
        assert (other.metric.name, other.decides) == ("bandwidth", False)
        if head.verdict.word is Word.RELIABILITY:
            assert other.verdict == head.verdict
        elif often == 0:
            assert (head.verdict.word, other.verdict.word) == (Word.EQUIVALENT, Word.SLOWER)
            assert "slower in latency bandwidth" in judgement.sentence
    said = to_json(judgement)
    (tmp_path / "verdict.json").write_text(json.dumps(said))
    again = stored.read_report(tmp_path / "verdict.json")
    assert to_json(again)["headlines"] == said["headlines"]
