"""Which logs of two arms belong together: by dates, times of files, names, their order, or none."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_folders import (
    FIXTURES,
    GOOD,
    in_turns,
    judged,
    many,
    names_of,
    osu,
    osu_of,
    read,
    text_of,
    words_of,
    write,
)
from paribus.core import Case, Finding, Judgement, Reading, Sample, Word
from paribus.logs.imported import Answers, judge_table
from paribus.logs.log import Log
from paribus.logs.logged import judge_logs
from paribus.logs.logs import find_logs
from paribus.logs.pairing import pair_logs
from paribus.logs.tables.files import read_tables
from paribus.readers.known import readers
from paribus.words.values import notice_fix, notice_text, reason_of
from studies import paribus


def test_one_log_each_gives_ratios_by_case_and_no_interval(tmp_path: Path) -> None:
    write(tmp_path, {"host.log": osu(), "bridged.log": osu(1.5)})
    done = paribus("compare", "host.log", "bridged.log", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    reported = json.loads(done.stdout)
    assert [arm["name"] for arm in reported["study"]["arms"]] == ["host", "bridged"]
    assert "paired: one log of each arm" in reported["design"]
    (head,) = reported["headlines"]
    assert head["verdict"]["reason"].startswith("one launch for each arm: there is no interval")
    assert (head["comparison"]["low"], head["comparison"]["high"]) == (None, None)
    ratios = [case["comparison"]["ratio"] for case in reported["cases"]]
    assert ratios == pytest.approx([1.5] * 8, rel=0.01)
    printed = paribus("compare", "host.log", "bridged.log", cwd=tmp_path).stdout
    assert "1 B: 1.500; 2 B: 1.500; 4 B: 1.500" in " ".join(printed.split())


def test_a_log_without_a_parameter_has_a_case_without_any(tmp_path: Path) -> None:
    output = (FIXTURES / "gromacs").glob("good-*.out")
    texts = {"run.log": min(output).read_text()}
    found = judged(write(tmp_path / "a", texts), write(tmp_path / "b", texts))
    assert {finding.case for finding in found.cases} == {Case()}


def test_file_times_in_turns_pair_neighbours(tmp_path: Path) -> None:
    found = judged(*in_turns(tmp_path, 1.1))
    assert words_of(found) == {"osu_latency": "slower"}
    assert "paired: neighbours in time, by the times of their files" in found.design
    assert "one look. arm a ran first in " in found.design
    assert len(found.points) == 24
    assert found.started == 1.7e9
    assert "stopping not planned" in names_of(found)
    same = judged(*in_turns(tmp_path / "same", 1.0))
    assert words_of(same)["osu_latency"] in ("equivalent", "undecided")


def test_one_launch_without_a_neighbour_is_reported_as_one(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    write(a, {"late.log": osu()}, [time.time() + 1e6])
    assert text_of(judged(a, b), "launches left out").startswith("1 launch has no neighbour")


def test_one_arm_after_the_other_is_judged_with_its_reservation_beside_the_word(
    tmp_path: Path,
) -> None:
    a = write(tmp_path / "a", many(), [1.7e9 + 60 * i for i in range(12)])
    b = write(tmp_path / "b", many(1.5, seed=2), [1.7e9 + 7200 + 60 * i for i in range(12)])
    found = judged(a, b)
    (head,) = found.headlines
    between = "unless the machine changed between 2023-11-14 22:13 and 2023-11-15 00:24"
    assert found.sentence == f"b is slower in osu_latency (1.501x), {between}."
    assert reason_of(head.verdict).endswith(f"; {between}")
    assert all(reason_of(case.verdict).endswith(f"; {between}") for case in found.cases)
    assert "are older than those of b" in text_of(found, "one arm after the other")
    assert head.comparison is not None
    assert 1.45 < head.comparison.low < 1.5 < head.comparison.high < 1.55
    for pair in ("order", "name"):
        (other,) = judged(a, b, pair=pair).headlines
        assert (other.comparison, other.verdict) == (head.comparison, head.verdict)


def test_eight_launches_of_each_arm_are_judged_unpaired_and_fewer_are_not(tmp_path: Path) -> None:
    b = write(tmp_path / "b", many(1.1, count=9, seed=2, name="slurm-{}.out"))
    for launches, word in ((7, "withheld"), (8, "slower")):
        a = write(tmp_path / f"a{launches}", many(count=launches))
        found = judged(a, b)
        assert words_of(found) == {"osu_latency": word}
    assert found.sentence.endswith(
        ", unless the machine changed between the launches of a8 and those of b (dates unknown)."
    )
    reason = reason_of(judged(tmp_path / "a7", b).headlines[0].verdict)
    assert reason.startswith("7 launches of a7 and 9 launches of b: launches that are not known to")


def test_unusual_launches_are_named_where_nothing_pairs_them(tmp_path: Path) -> None:
    draw = random.Random(81)

    def logs(effect: float, times: dict[int, float]) -> dict[str, str]:
        levels = [effect * draw.lognormvariate(0, 0.01) * times.get(n, 1.0) for n in range(16)]
        return {f"run{n}.log": osu(level, 16) for n, level in enumerate(levels)}

    slow = dict.fromkeys(range(0, 16, 4), 1.4)
    found = judged(write(tmp_path / "a", logs(1, slow)), write(tmp_path / "b", logs(1.1, slow)))
    assert words_of(found) == {"osu_latency": "slower"}
    said = text_of(found, "two states")
    assert "osu_latency is bimodal (modes 1.4" in said
    assert "4 of 16 launches on arm a, 4 of 16 launches on b)" in said
    assert "The launches are not paired" in said
    assert "neighbours" not in said
    assert "outlying launches" not in names_of(found)

    plain = write(tmp_path / "c", logs(1, {})), write(tmp_path / "d", logs(1.1, {5: 1.5}))
    found = judged(*plain)
    assert "two states" not in names_of(found)
    said = text_of(found, "outlying launches")
    assert "1 launch is far from the others" in said
    assert "First: osu_latency, d: run5.log: outlier: 1.4" in said

    often = dict.fromkeys(range(0, 16, 2), 1.4) | {1: 1.4, 3: 1.4, 5: 1.4}
    found = judged(plain[0], write(tmp_path / "e", logs(1, often)))
    assert "The arms are affected unequally" in text_of(found, "two states")


def test_pairs_decide_where_drift_hides_a_difference_from_unpaired_launches(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.1)
    times = {path: path.stat().st_mtime for folder in (a, b) for path in folder.iterdir()}
    for path, at in times.items():
        drift = 1 + (at - 1.7e9) / 1000
        text, arm = path.read_text(), 1.1 if path.parent == b else 1.0
        path.write_text(osu(drift * arm * (1 + 0.001 * (len(text) % 3))))
        os.utime(path, (at, at))
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower"}
    assert "changed between" not in found.sentence
    (head,) = found.headlines
    assert head.comparison is not None
    assert (head.comparison.blocks, head.comparison.level) == (12, 0.975)
    for path in times:
        os.utime(path, (1.7e9, 1.7e9))
    assert words_of(judged(a, b)) == {"osu_latency": "undecided"}


def test_arms_apart_are_ordered_in_time_and_not_said_to_be_paired(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(), [1.7e9 + 60 * i for i in range(12)])
    b = write(tmp_path / "b", many(1.5, count=9), [1.7e9 + 7200 + 60 * i for i in range(9)])
    found = judged(a, b)
    assert "of osu_latency 7.4, ordered in time, by the times of their files. " in found.design
    assert "unpaired, because the arms do not alternate in time" in found.design


def test_what_was_asked_for_is_not_said_of_the_logs(tmp_path: Path) -> None:
    """Their files have times: it is `--pair` that leaves them out of account."""
    a, b = in_turns(tmp_path, 1.1)
    for i in range(7, 13):
        (a / f"run{i}.log").unlink()
        (b / f"slurm-{i}.out").unlink()
    reason = reason_of(judged(a, b, pair="order").headlines[0].verdict)
    assert reason.endswith("without `--pair` the times of their files decide")
    for path in b.iterdir():
        path.rename(b / f"run{path.stem.partition('-')[2]}.log")
    found = judged(a, b, pair="name")
    (notice,) = (n for n in found.notices if n.name == "order unknown")
    assert notice_fix(notice) == "Without `--pair` the times of their files show it."


def test_a_way_of_pairing_that_was_asked_for_in_vain_is_named(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(count=9))
    b = write(tmp_path / "b", many(1.5, count=4, name="slurm-{}.out"))
    copied = "the files were copied, or their times are too coarse"
    designs = {
        "name": f"not paired: few logs have the same name in every arm, and {copied}.",
        "order": "not paired: the arms have different numbers of logs to be paired in order, and ",
        "time": f"ordered in time, as requested, though {copied}.",
    }
    for asked, reported in designs.items():
        found = judged(a, b, pair=asked)
        assert reported in found.design
        reason = reason_of(found.headlines[0].verdict)
        assert reason.startswith(
            "9 launches of arm a and 4 launches of b: launches that are not known"
        )
    a, b = in_turns(tmp_path / "timed", 1.1)
    assert (
        "neighbours in time, by the times of their files: few logs have the same name in every arm"
        in judged(a, b, pair="name").design
    )


def test_arms_measured_one_after_the_other_are_said_to_be_though_names_pair_them(
    tmp_path: Path,
) -> None:
    a, b = many(count=8, seed=1), many(1.1, count=8, seed=2)
    write(tmp_path / "a", a, times=[1.7e9 + 600 * i for i in range(8)])
    write(tmp_path / "b", b, times=[1.7e9 + 86400 + 600 * i for i in range(8)])
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    reported = [
        notice_text(notice) for notice in found.notices if notice.name == "one arm after the other"
    ]
    assert len(reported) == 1
    assert "all launches of arm a are older than those of b" in reported[0]
    write(tmp_path / "c", b, times=[1.7e9 + 60 + 600 * i for i in range(8)])
    found = judged(tmp_path / "a", tmp_path / "c", pair="name")
    assert "one arm after the other" not in {notice.name for notice in found.notices}


def test_copied_files_do_not_say_which_arm_was_measured_first(tmp_path: Path) -> None:
    for place, arm in enumerate("ab"):
        copied = [1.7e9 + 60 * place + 0.01 * i for i in range(8)]
        write(tmp_path / arm, many(count=8, seed=place), copied)
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    assert "one arm after the other" not in names_of(found)


def test_dates_in_logs_say_which_arm_was_measured_first_though_files_were_copied(
    tmp_path: Path,
) -> None:
    """The first log of all shows nothing about the others: only what all carry counts."""
    imb = (FIXTURES / "imb_pingpong" / "good-msglen.out").read_text()
    line = next(one for one in imb.splitlines() if one.startswith("# Date "))
    for place, arm in enumerate("ab"):
        texts = {
            f"run{i}.log": imb.replace(line, f"# Date : Sat Nov 21 0{5 + place}:{i}0:00 2026")
            for i in range(5)
        }
        write(tmp_path / arm, texts)
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    said = text_of(found, "one arm after the other")
    assert "by the dates in them (if of one time zone) all launches of arm a are older than" in said
    reason = reason_of(judged(tmp_path / "a", tmp_path / "b").headlines[0].verdict)
    assert "if the dates are of two time zones, `--pair name` ignores them" in reason
    undated = tmp_path / "b" / "run4.log"
    undated.write_text(imb.replace(line, ""))
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    assert "one arm after the other" not in names_of(found)
    for place, arm in enumerate("ab"):
        for i in range(5):
            at = 1.7e9 + 3600 * place + 60 * i
            os.utime(tmp_path / arm / f"run{i}.log", (at, at))
    found = judged(tmp_path / "a", tmp_path / "b", pair="name")
    said = text_of(found, "one arm after the other")
    assert "by the times of their files all launches of arm a are older than those of b" in said


def test_copied_files_are_paired_by_name_when_asked_with_a_warning(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many()), write(tmp_path / "b", many(1.1, seed=2))
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower"}
    assert "not paired: the files were copied" in found.design
    assert "not in turns" in names_of(found)
    asked = judged(a, b, pair="name")
    assert "order unknown" in names_of(asked)
    assert asked.sentence == found.sentence


def test_outputs_in_one_file_have_no_names_of_their_own(tmp_path: Path) -> None:
    """One job for each arm measured them all: the third of both need not belong together."""
    host = write(tmp_path, {"host.log": "".join(many().values())}) / "host.log"
    other = write(tmp_path, {"vm.log": "".join(many(1.1, seed=2).values())}) / "vm.log"
    found = judged(host, other)
    assert words_of(found) == {"osu_latency": "slower"}
    assert found.design.startswith(
        "24 outputs in 2 files of osu_latency 7.4, not paired: one file holds several."
    )
    assert words_of(judged(host, other, pair="name")) == {"osu_latency": "slower"}


@pytest.mark.parametrize("timed", [False, True])
def test_a_file_for_each_launch_of_several_kinds_of_log(tmp_path: Path, timed: bool) -> None:
    """Their order in the file does not matter: its name and its time are those of each of them."""
    a, b = in_turns(tmp_path, 1.1)
    for folder, arm in ((a, 0), (b, 1)):
        for path in folder.iterdir():
            at = path.stat().st_mtime if timed else 1.7e9
            texts = [path.read_text(), path.read_text().replace("CHAR", "FLOAT")]
            path.write_text("".join(texts[::-1] if arm else texts))
            name = "".join(filter(str.isdigit, path.stem))
            os.utime(path.rename(folder / f"{name}.log"), (at, at))
    found = judged(a, b)
    how = "paired: neighbours in time, by the times of their files" if timed else "not paired: "
    assert f"24 logs of osu_latency 7.4, {how}" in found.design
    assert set(words_of(found).values()) == {"slower"}


def test_names_match_without_the_name_of_their_arm(tmp_path: Path) -> None:
    a = write(tmp_path / "host", many(name="host-run{}.txt"))
    b = write(tmp_path / "bridged", many(1.1, seed=2, name="Bridged-run0{}.txt"))
    assert "logs of the same name" in judged(a, b, pair="name").design


def test_names_that_hold_that_of_an_arm_by_chance_match(tmp_path: Path) -> None:
    """In an arm called b, 8B.log is no other name than in one called a."""
    a = write(tmp_path / "a", many(name="bandwidth-8B-{}.log"))
    b = write(tmp_path / "b", many(1.1, seed=2, name="bandwidth-8B-{}.log"))
    found = judged(a, b, pair="name")
    assert "logs of the same name" in found.design
    assert words_of(found) == {"osu_latency": "slower"}


def test_the_order_of_names_alone_withholds_the_verdict(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(count=7))
    b = write(tmp_path / "b", many(1.5, count=7, seed=2, name="slurm-77{}.out"))
    found = judged(a, b, pair="order")
    (head,) = found.headlines
    assert head.verdict.word is Word.WITHHELD
    assert "it is unknown which logs are close in time" in reason_of(head.verdict)
    assert head.comparison is not None
    assert 1.4 < head.comparison.low < head.comparison.ratio < head.comparison.high < 1.6
    assert "paired: logs in the order of their names" in found.design


def test_unlike_numbers_without_times_have_a_ratio_only(tmp_path: Path) -> None:
    a = write(tmp_path / "a", many(count=9))
    found = judged(a, write(tmp_path / "b", many(1.5, count=4, name="slurm-{}.out")))
    (head,) = found.headlines
    assert "not paired: the files were copied" in found.design
    assert "as far as the logs show" in found.design
    assert head.verdict.word is Word.WITHHELD
    assert head.comparison is not None
    assert head.comparison.ratio == pytest.approx(1.5, rel=0.02)
    assert head.comparison.high == float("inf")


def test_overlapping_names_pair_what_they_can(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many(count=12)), write(tmp_path / "b", many(1.1, count=11))
    found = judged(a, b, pair="name")
    assert "run12.log" in text_of(found, "blocks left out")


def test_dates_in_the_logs_win_over_the_times_of_files(tmp_path: Path) -> None:
    logs = []
    for arm, level in (("a", 1.0), ("b", 1.1)):
        for i in range(12):
            samples = (Sample("latency", Case.of(bytes=8), (level * (10 + 0.01 * (i % 5)),)),)
            facts = {"log.started": 1.6e9 + 100 * i + 50 * (arm == "b")}
            reading = Reading("osu_latency", "7.4", {}, 2, samples, facts)
            at = float(facts["log.started"])
            path = str(tmp_path / "x")
            logs.append(Log(reading, (at, False), arm=arm, name=f"{arm}{i}", path=path, at=at))
    found = judge_logs(pair_logs(("a", "b"), logs, ()), Answers())
    assert "by the dates in the logs" in found.design
    assert words_of(found) == {"osu_latency": "slower"}


def test_logs_with_dates_are_paired_by_them_whatever_the_files_say(tmp_path: Path) -> None:
    """One file for each arm, with ten outputs of IMB one after the other: they say when."""
    text = (FIXTURES / "imb_pingpong" / "good-msglen.out").read_text()
    line = next(one for one in text.splitlines() if one.startswith("# Date "))
    for arm in ("a", "b"):
        outputs = []
        for i in range(10):
            minute = 2 * i + (arm == "b") if i % 3 else 2 * i + (arm == "a")
            outputs.append(text.replace(line, f"# Date : Sat Nov 21 05:{minute:02d}:00 2026"))
        write(tmp_path / arm, {"imb.log": "".join(outputs)})
    logs = read(tmp_path / "a", tmp_path / "b")
    (kind,) = logs.kinds
    assert (kind.pairing, len(kind.logs)) == ("time", 20)
    found = judge_logs(logs, Answers())
    assert "neighbours in time, by the dates in the logs" in found.design
    assert "a ran first in 6 blocks, b in 4" in found.design


@pytest.mark.parametrize(
    "name",
    [
        *("imb_pingpong", "hpl", "hpcc", "qe", "vasp", "gromacs"),
        *("iperf3", "fio", "ior", "mdtest", "pynamic"),
    ],
)
def test_tools_that_print_a_date_are_dated(name: str) -> None:
    """With a time of day that they print; ours in 2025 or later, those of others from 2012 on."""
    texts = [(path.stem, path.read_text()) for path in GOOD if path.parent.name == name]
    found = [
        (stem, said[0], text) for stem, text in texts if (said := readers()[name].started(text))
    ]
    assert found
    for stem, at, text in found:
        day = datetime.fromtimestamp(at, UTC)
        assert datetime(2012 if "real" in stem else 2025, 1, 1, tzinfo=UTC) < day, stem
        assert day < datetime(2030, 1, 1, tzinfo=UTC), stem
        clocks = (f"{day:%H:%M:%S}", f"{day.hour:2}:{day.minute:2}:{day.second:2}", f"{at:.0f}")
        assert any(clock in text for clock in clocks), stem


def test_three_folders_are_three_arms(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / name, many(effect, seed=place))
        for place, (name, effect) in enumerate((("a", 1.0), ("b", 1.1), ("c", 1.3)))
    ]
    found = judged(*folders)
    assert [(f.arm, f.verdict.word.value) for f in found.headlines] == [
        ("b", "slower"),
        ("c", "slower"),
    ]
    assert found.pairs == ()
    assert len(judged(*folders, pair="name").pairs) == 3


def test_a_thousand_logs_are_judged_within_five_seconds(tmp_path: Path) -> None:
    draw = random.Random(5)
    for arm, effect in (("a", 1.0), ("b", 1.1)):
        texts = {
            f"run{n}.log": osu_of(
                [effect * (10 + i) * draw.lognormvariate(0, 0.01) for i in range(8)]
            )
            for n in range(500)
        }
        write(tmp_path / arm, texts)
    begin = time.process_time()
    found = judged(tmp_path / "a", tmp_path / "b")
    assert time.process_time() - begin < 5
    assert words_of(found) == {"osu_latency": "slower"}


NAMES = st.from_regex(
    r"(run|rep|osu)[-_ .]?[0-9]{1,4}(-[a-z]{1,3})?(\.(log|out|txt))?", fullmatch=True
)


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(NAMES, min_size=1, max_size=12, unique=True),
    dropped=st.sets(st.integers(0, 11)),
    prefix=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_names_pair_each_log_with_its_namesake_once(
    names: list[str], dropped: set[int], prefix: bool, seed: int
) -> None:
    """Whatever the names and their order, a block has one log of an arm and names that agree."""
    logs = []
    for arm in ("host", "bridged"):
        for i, name in enumerate(names):
            if arm == "bridged" and i in dropped:
                continue
            sample = Sample("latency", Case.of(bytes=8), (10.0 + i,))
            reading = Reading("osu_latency", "7.4", {}, 2, (sample,))
            called = f"{arm}-{name}" if prefix else name
            logs.append(Log(reading, arm=arm, name=called, path=called, at=1.7e9))
    random.Random(seed).shuffle(logs)
    logs.sort(key=lambda log: log.arm != "host")  # arms come one after the other
    if not {log.arm for log in logs} >= {"host", "bridged"}:
        return
    paired = pair_logs(("host", "bridged"), logs, ())
    (kind,) = paired.kinds
    assert Counter(log.arm for log in kind.logs) == Counter(log.arm for log in logs)
    if kind.pairing != "name":
        return
    found = judge_logs(paired, Answers())
    ratio = found.headlines[0].comparison
    assert ratio is not None
    assert ratio.ratio == 1.0, "a log stands beside another than its namesake"


def test_the_sentence_names_what_is_paired_in_another_way_too(tmp_path: Path) -> None:
    a, b = in_turns(tmp_path, 1.3)
    for folder, level in ((a, 1.0), (b, 1.2)):
        write(folder, {"several.log": osu(level, title="Multi Latency")})
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower", "osu_multi_lat": "withheld"}
    assert found.sentence == (
        "b is slower in osu_latency (1.301x); no verdict for b in osu_multi_lat: one launch each."
    )


# --- one rule for logs and tables ------------------------------------------------------------


def said(found: Judgement) -> list[tuple[object, ...]]:
    """Return word, code, ratio and interval of the headline and the case."""
    return [
        (
            f.verdict.word,
            f.verdict.code,
            "unless" in f.verdict.figures,
            *(round(math.log(x), 9) if 0 < x < math.inf else x for x in ends(f)),
        )
        for f in (*found.headlines, *found.cases)
    ]


def ends(finding: Finding) -> tuple[float, float, float]:
    assert finding.comparison is not None
    return finding.comparison.ratio, finding.comparison.low, finding.comparison.high


VALUES = st.lists(st.integers(1000, 1399), min_size=1, max_size=13)


@settings(max_examples=25, deadline=None)
@given(a=VALUES, b=VALUES, slower=st.sampled_from((1.0, 1.1, 1.5)), turns=st.booleans())
def test_the_same_values_have_the_same_verdict_as_logs_and_as_a_table(
    tmp_path_factory: pytest.TempPathFactory, a: list[int], b: list[int], slower: float, turns: bool
) -> None:
    """One file a launch, all launches of an arm in one file, a table; with times and without."""
    folder = tmp_path_factory.mktemp("forms")
    values = {"a": [n / 100 for n in a], "b": [round(slower * n / 100, 2) for n in b]}
    at = {
        arm: [1.76e9 + (120 * n + 60 * place if turns else 1e5 * place + 60 * n) for n in range(99)]
        for place, arm in enumerate(values)
    }
    tables = {"plain": ["arm,benchmark,metric,case,value"]}
    tables["timed"] = [f"{tables['plain'][0]},time"]
    for arm, mine in values.items():
        texts = {f"{n:02}.log": osu_of([value]) for n, value in enumerate(mine)}
        write(folder / "copied" / arm, texts)
        write(folder / "kept" / arm, texts, at[arm])
        write(folder / "joined", {f"{arm}.log": "".join(texts.values())}, [at[arm][0]])
        rows = [f"{arm},osu_latency,latency,bytes=1,{value}" for value in mine]
        tables["plain"] += rows
        tables["timed"] += [f"{row},{at[arm][n]}" for n, row in enumerate(rows)]
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def of_table(name: str) -> Judgement:
        return judge_table(read_tables([folder / f"{name}.csv"]), Answers())

    joined = find_logs([folder / "joined" / f"{arm}.log" for arm in values])
    untimed = said(judged(folder / "copied" / "a", folder / "copied" / "b"))
    assert said(judge_logs(pair_logs(*joined, "", "repeated"), Answers())) == untimed
    assert said(of_table("plain")) == untimed
    timed = said(judged(folder / "kept" / "a", folder / "kept" / "b"))
    assert said(of_table("timed")) == timed
