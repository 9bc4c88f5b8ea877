"""Files of harnesses: which launches are in them, real ones, damaged ones, and compared."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from log_folders import FIXTURES, judged, names_of, read, text_of, words_of, write
from paribus.core import Case, ParseError
from paribus.logs.logs import find_logs
from paribus.readers.harness import Failed, Measured
from paribus.readers.known import HARNESSES, harnesses, readers
from paribus.readers.units import canonical
from studies import paribus
from test_benchmarks_contract import damaged

GOOD = sorted(p for name in HARNESSES for p in (FIXTURES / name).glob("good-*.out"))
LAUNCHES = {
    "dcgm_diag/good-handmade-v3": (1, 14, 0),
    "dcgm_diag/good-handmade-v4": (1, 12, 0),
    "google_benchmark/good-debug_build": (1, 8, 0),
    "hyperfine/good-two_commands": (20, 20, 0),
    "io500/good-handmade-isc24": (1, 13, 0),
    "io500/good-real-readme": (1, 13, 0),
    "io500/good-real-sc20": (1, 13, 0),
    "llama_bench/good-handmade-csv": (1, 2, 0),
    "llama_bench/good-handmade-table": (1, 4, 0),
    "llama_bench/good-real-8cf427ff": (1, 2, 0),
    "megatron/good-handmade-arguments": (1, 2, 0),
    "megatron/good-handmade-steps": (1, 2, 0),
    "phoronix/good-GVNO2": (26, 26, 1),
    "phoronix/good-GVNO3": (35, 35, 1),
    "pyperf/good-fast": (10, 10, 0),
    "pytest_benchmark/good-two_tests": (1, 2, 0),
    "reframe/good-perflog": (2, 2, 0),
    "reframe/good-report": (2, 2, 0),
    "superbench/good-training": (1, 8, 0),
    "superbench/good-two_nodes": (3, 44, 1),
    "torchtitan/good-handmade-old": (1, 2, 0),
    "torchtitan/good-handmade-one_rank": (1, 2, 0),
    "vllm_serving/good-real-cvs": (1, 6, 0),
    "vllm_serving/good-real-docs": (1, 6, 0),
    "vllm_serving/good-real-dgx_spark": (1, 6, 0),
}
"""Launches that were measured, samples of all, and launches that failed: counted by hand."""

UNCOUNTED = ("good-handmade-csv", "good-handmade-table")
"""Outputs of llama-bench that do not show whether a row is missing."""

HYPERFINE = (FIXTURES / "hyperfine" / "good-two_commands.out").read_text()
GOOGLE = (FIXTURES / "google_benchmark" / "good-debug_build.out").read_text()
PYTEST = (FIXTURES / "pytest_benchmark" / "good-two_tests.out").read_text()
PYPERF = (FIXTURES / "pyperf" / "good-fast.out").read_text()
REPORT = (FIXTURES / "reframe" / "good-report.out").read_text()
PERFLOG = (FIXTURES / "reframe" / "good-perflog.out").read_text()
SUPERBENCH = (FIXTURES / "superbench" / "good-training.out").read_text()
PHORONIX = (FIXTURES / "phoronix" / "good-GVNO2.out").read_text()
OTHER_BATCHES = "local batch size 4, global batch size 8, sequence length 9, total steps 2"
TITAN = (FIXTURES / "torchtitan" / "good-handmade-old.out").read_text()


def measured(harness: str, text: str) -> list[Measured]:
    return [one for one in harnesses()[harness].read(text) if isinstance(one, Measured)]


def failed(harness: str, text: str) -> list[str]:
    return [one.cause for one in harnesses()[harness].read(text) if isinstance(one, Failed)]


def said(launches: Iterable[Measured]) -> list[tuple[list[Any], list[str]]]:
    return [
        (
            [(s.metric, s.case, sorted(s.values)) for s in one.reading.samples],
            [metric.better for metric in one.metrics],
        )
        for one in launches
    ]


def hyperfine(
    times: dict[str, list[float]], codes: dict[str, list[int | None]] | None = None
) -> str:
    """Return a file of hyperfine with these times."""
    results = [
        {
            "command": command,
            "mean": fmean(values),
            "median": median(values),
            "min": min(values),
            "max": max(values),
            "times": values,
            "exit_codes": (codes or {}).get(command, [0] * len(values)),
        }
        for command, values in times.items()
    ]
    return json.dumps({"results": results}, indent=2)


def many(level: float, count: int = 10) -> list[float]:
    return [level * (1 + 0.001 * ((7 * i) % 10)) for i in range(count)]


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_process_is_a_launch_and_what_it_repeats_are_its_samples(path: Path) -> None:
    name = path.parent.name
    found = measured(name, path.read_text())
    samples = [sample for one in found for sample in one.reading.samples]
    launches = (len(found), len(samples), len(failed(name, path.read_text())))
    assert launches == LAUNCHES[f"{name}/{path.stem}"]
    assert {one.reading.benchmark for one in found} == {name}
    for one in found:
        assert {s.metric for s in one.reading.samples} <= {m.name for m in one.metrics}


def test_repetitions_rounds_and_values_of_a_worker_are_samples() -> None:
    (google,), (tests,) = measured("google_benchmark", GOOGLE), measured("pytest_benchmark", PYTEST)
    assert {len(sample.values) for sample in google.reading.samples} == {3}
    assert {len(sample.values) for sample in tests.reading.samples} == {7}
    assert {len(one.reading.samples[0].values) for one in measured("pyperf", PYPERF)} == {2}


def test_units_and_directions_are_the_same_in_all_files() -> None:
    """Figures as they stand in the files, such as 12345.6 MB/s, and 4983.3 Mflops."""
    firsts = {}
    for name, text in (("google_benchmark", GOOGLE), ("pytest_benchmark", PYTEST)):
        firsts[name] = measured(name, text)[0]
    firsts |= {"pyperf": measured("pyperf", PYPERF)[0], "reframe": measured("reframe", REPORT)[0]}
    firsts["phoronix"] = measured("phoronix", PHORONIX)[0]
    assert {
        name: (one.reading.samples[0].values[0], one.metrics[0].unit, one.metrics[0].better)
        for name, one in firsts.items()
    } == {
        "google_benchmark": (pytest.approx(982.0276, abs=1e-3), "ns", "lower"),
        "pytest_benchmark": (pytest.approx(13.3789, abs=1e-3), "us", "lower"),
        "pyperf": (pytest.approx(27.39837, abs=1e-3), "us", "lower"),
        "reframe": (12345.6, "MB/s", "higher"),
        "phoronix": (pytest.approx(4.9833), "Gflop/s", "higher"),
    }
    assert [canonical(one) for one in ("GiB/s", "sign/s")] == [(1073.741824, "MB/s"), (1, "sign/s")]


def test_a_perflog_and_its_report_say_the_same() -> None:
    assert said(measured("reframe", PERFLOG)) == said(measured("reframe", REPORT))


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_recognised_by_content_and_as_nothing_else(path: Path) -> None:
    text = path.read_text()
    assert [name for name, one in harnesses().items() if one.recognise(text)] == [path.parent.name]
    assert not [name for name, one in readers().items() if one.recognise(text)]


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_damage_is_refused_or_harmless(
    path: Path, sample: Callable[[Iterable[Any]], list[Any]]
) -> None:
    """Or costs the launch that it is in: that one has failed, none has another figure.

    Whether a row of a perflog or of llama-bench is missing, or a name is another, nothing shows.
    SuperBench rounds small bandwidths to 0.0.
    """
    name, good = path.parent.name, path.read_text()
    right = said(measured(name, good))
    slipped, refused = [], 0
    # Two figures of a list, such as a value and its reference, may have changed their places.
    every = (one for one in damaged(good.splitlines()) if not one[0].endswith("next swapped"))
    # Logs of trainings have many lines before the first step whose damage is harmless: a seventh
    # to a quarter of it is refused, so all of it is tried.
    training = name in ("megatron", "torchtitan")
    tried = [*every] if training else sample(every)
    for what, text in tried:
        try:
            found = harnesses()[name].read(text)
        except ParseError:
            refused += 1
            continue
        mine = said(one for one in found if isinstance(one, Measured))
        lost = len(found) - len(mine) - LAUNCHES[f"{name}/{path.stem}"][2]
        if name == "superbench":
            figures = {repr(one) for launch in right for one in launch[0]}
            if {repr(one) for launch in mine for one in launch[0]} <= figures:
                continue
        rows = path.stem == "good-perflog" and len(mine) < len(right)
        if path.stem in UNCOUNTED and what.endswith(("dropped", "is the last")):
            continue
        if any(one not in right for one in mine) or (len(mine) + lost != len(right) and not rows):
            slipped.append(what)
    assert not slipped
    assert refused > len(tried) / (8 if training else 4)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_what_a_batch_script_prints_around_files_is_harmless(tmp_path: Path, path: Path) -> None:
    text, count = path.read_text(), LAUNCHES[f"{path.parent.name}/{path.stem}"][0]
    tool = path.parent.name
    echoed = f"now {tool} runs: mpirun ./{tool} --config {tool}.conf"
    files = {
        "1.log": f"Job 4711 starts\n{text}\nended\n",
        "2.log": f"{text}\n{text}",
        "3.log": f"{echoed}\n{text}\n",
    }
    write(tmp_path, files)
    for number, file in ((1, 1), (2, 2), (1, 3)):
        _, logs, _ = find_logs([tmp_path / f"{file}.log"])
        assert len(logs) == number * count
        assert len({log.name for log in logs}) == len(logs)


# --- what is refused -----------------------------------------------------------------------------

OTHERS = {
    "hyperfine without times": ("hyperfine", HYPERFINE, '"times"', '"all"', "such as 1.20"),
    "a command twice": ("hyperfine", HYPERFINE, "sleep 0.01", "sleep 0.02", "name of its own"),
    "another schema": (
        *("google_benchmark", GOOGLE, '"context": {', '"context": {"json_schema_version": 2,'),
        "is of schema 2; Paribus reads 1",
    ),
    "an old Google Benchmark": (
        *("google_benchmark", GOOGLE, '"run_type"', '"kind"'),
        "Google Benchmark 1.5 or newer",
    ),
    "a benchmark that failed": (
        *("google_benchmark", GOOGLE, '"threads": 1,', '"error_occurred": true,'),
        "'BM_Triad/1024' failed",
    ),
    "only calibrated": ("pyperf", PYPERF, '"values"', '"valves"', "has values|neither values"),
    "another format of pyperf": ("pyperf", PYPERF, '"1.0"', '"2.0"', "`pyperf convert`"),
    "a count": ("pyperf", PYPERF, '"second"', '"integer"', "less need not be better"),
    "no test": (
        *(
            "pytest_benchmark",
            PYTEST,
            PYTEST[PYTEST.find("        {") : PYTEST.find('    ],\n    "da')],
        ),
        *("", "reports no test"),
    ),
    "no command": ("hyperfine", HYPERFINE[: HYPERFINE.find("    {")], "[\n", "[]}", "no command"),
    "every benchmark skipped": (
        *("google_benchmark", GOOGLE, '"repetitions": 3,', '"skipped": true,'),
        "every benchmark was skipped, such as 'BM_Triad/1024'",
    ),
    "an infinite counter": (
        *("google_benchmark", GOOGLE, '"threads": 1,', '"threads": 1, "hits": 1e400,'),
        "counter 'hits' is not finite",
    ),
    "a benchmark twice": (
        "pyperf",
        PYPERF,
        "}]}],",
        '}]}, {"metadata": {"name": "timeit"}, "runs": [{"values": [1.0]}]}],',
        "is there twice",
    ),
    "fewer cases than announced": (
        *("reframe", REPORT, '"num_cases": 2', '"num_cases": 3'),
        "has 2 test cases, not the 3",
    ),
    "an unknown result": ("reframe", REPORT, '"result": "pass"', '"result": "odd"', "unknown"),
    "no number": ("reframe", PERFLOG, "|12345.6|", "|fast|", "triad is 'fast', not a number"),
    "two trainings": (
        *(
            "torchtitan",
            TITAN,
            "- INFO - step: 24",
            f"{OTHER_BATCHES} - INFO - step: 24",
        ),
        "two trainings with other batches",
    ),
    "an old report": ("reframe", REPORT, '"data_version": "4.2"', '"data_version": "3.1"', "4.7"),
    "no exit code": ("reframe", PERFLOG, "job_exitcode|", "exit|", "lacks name or job_exitcode"),
    "no node": ("superbench", SUPERBENCH, '"node": ', '"host": ', "names no node"),
    "no known figure": ("superbench", SUPERBENCH, "model-benchmarks", "monitor", "known unit"),
    "an entity": (
        "phoronix",
        PHORONIX,
        "<?xml",
        '<!DOCTYPE a [<!ENTITY b "c">]>\n<?xml',
        "declares entities",
    ),
    "not XML": ("phoronix", PHORONIX, "</Data>", "</Date>", "is not whole XML: mismatched tag"),
    "a system without a name": ("phoronix", PHORONIX, "<System>", "<Sys>", "XML"),
    "no direction of a test": ("phoronix", PHORONIX, ">LIB<", "><", "higher or lower is better"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_another_version_or_without_proof_is_refused_with_the_fix(what: str) -> None:
    name, text, old, new, cause = OTHERS[what]
    assert old in text
    with pytest.raises(ParseError, match=cause) as caught:
        harnesses()[name].read(text.replace(old, new))
    assert 10 < len(caught.value.cause) < 250
    assert "\n" not in caught.value.cause


def test_a_launch_that_failed_is_named_and_no_figure() -> None:
    text = hyperfine({"a": [1.0, 2.0, 3.0]}, {"a": [0, 1, None]})
    assert [one.reading.samples[0].values for one in measured("hyperfine", text)] == [(1.0,)]
    assert failed("hyperfine", text) == [
        "a start of 'a' ended with exit code 1",
        "a start of 'a' was ended by a signal",
    ]
    assert failed("phoronix", PHORONIX) == ["'FLAC Audio Encoding, s' has no figure of a run"]
    row = PERFLOG.replace("|0|vm|", "|1|vm|", 1)
    assert failed("reframe", row) == ["'sleepy %n=1' ended with exit code 1"]
    two = (FIXTURES / "superbench" / "good-two_nodes.out").read_text()
    assert failed("superbench", two) == ["'mem-bw' ended with return code 1"]
    sanity = REPORT.replace('"fail_phase": null', '"fail_phase": "sanity"', 1)
    sanity = sanity.replace('"result": "pass"', '"result": "fail"', 1)
    assert failed("reframe", sanity) == ["'sleepy %n=1' failed in sanity: 'None'"]


def test_a_job_outside_the_limits_of_reframe_counts() -> None:
    """Without it an arm would lose its slow launches."""
    slow = REPORT.replace('"result": "pass"', '"result": "fail"', 1)
    slow = slow.replace('"fail_phase": null', '"fail_phase": "performance"', 1)
    assert said(measured("reframe", slow)) == said(measured("reframe", REPORT))
    slow = PERFLOG.replace("pass|", "fail|", 1)
    assert said(measured("reframe", slow)) == said(measured("reframe", REPORT))


def test_retries_of_reframe_do_not_count_and_reruns_do() -> None:
    table = json.loads(REPORT)
    table["runs"] *= 2
    assert len(measured("reframe", json.dumps(table, indent=2))) == 4
    table["session_info"]["cmdline"] += " --max-retries=1"
    assert len(measured("reframe", json.dumps(table, indent=2))) == 2


@pytest.mark.parametrize("indent", [None, 2])
def test_sessions_of_the_database_of_reframe_are_those_of_its_reports(
    indent: int | None, tmp_path: Path
) -> None:
    """`reframe --describe-stored-sessions` prints an array of reports, and so does `jq -s .`."""
    table = json.loads(REPORT)
    write(tmp_path, {"a.json": json.dumps(table), "b.json": json.dumps([table] * 2, indent=indent)})
    (_, one, _), (_, two, unread) = (find_logs([tmp_path / f"{name}.json"]) for name in "ab")
    assert [log.reading for log in two] == [log.reading for log in one] * 2
    assert [log.date for log in two] == [log.date for log in one] * 2
    assert not unread
    write(tmp_path, {"cut.json": json.dumps([table] * 2)[:-1]})
    _, logs, _ = find_logs([tmp_path / "cut.json"])
    assert not logs


def test_launches_of_a_perflog_that_grew_are_no_new_ones(tmp_path: Path) -> None:
    """ReFrame appends: this month's perflog still has the launches of last month's."""
    heading, row, _ = PERFLOG.splitlines()
    rows = [
        row.replace("12345.6", f"{12000 + 31.37 * n % 97:.1f}").replace("5363144", f"{5363144 + n}")
        for n in range(16)
    ]
    write(tmp_path / "may", {"sleepy.log": "\n".join((heading, *rows[:8], ""))})
    write(tmp_path / "june", {"sleepy.log": "\n".join((heading, *rows, ""))})
    found = judged(tmp_path / "may", tmp_path / "june")
    assert words_of(found) == {"reframe": "withheld"}
    assert "and 7 other groups are alike" in text_of(found, "copies")
    write(tmp_path / "june", {"sleepy.log": "\n".join((heading, *rows[8:], ""))})
    assert "copies" not in names_of(judged(tmp_path / "may", tmp_path / "june"))


def test_runs_of_phoronix_that_count_what_never_scatters_are_no_copies(tmp_path: Path) -> None:
    """Its runs have the date of their system: the same figure in each is no copied file."""
    raw = re.search(r"<RawString>([^:<]+):[^<]+</RawString>", PHORONIX)
    assert raw
    text = re.sub(r"<Value>[^<]+</Value>", "<Value>41.23456789</Value>", PHORONIX)
    text = re.sub(
        r"<RawString>[^<]+<", lambda m: f"<RawString>{':'.join(['41.23456789'] * 3)}<", text
    )
    for arm in "ab":
        dates = text if arm == "a" else re.sub(r"(<TimeStamp>.*):\d\d<", r"\1:07<", text)
        write(tmp_path / arm, {"composite.xml": dates})
    assert "copies" not in names_of(judged(tmp_path / "a", tmp_path / "b"))


def test_one_threshold_alone_says_what_is_better_before_the_unit() -> None:
    lower = PERFLOG.replace("12000.0|-0.1|0.1", "12000.0|null|0.1")
    assert {one.metrics[0].better for one in measured("reframe", lower)} == {"lower"}


def test_aggregates_alone_count_with_their_median_and_what_was_skipped_is_said() -> None:
    table = json.loads(GOOGLE)
    table["benchmarks"] = [r for r in table["benchmarks"] if r["run_type"] == "aggregate"]
    table["benchmarks"].append({"name": "BM_X", "run_type": "iteration", "skipped": True})
    (one,) = measured("google_benchmark", json.dumps(table, indent=2))
    assert [len(sample.values) for sample in one.reading.samples] == [1] * 8
    assert one.reading.samples[0].values == (pytest.approx(1615.65659),)
    assert "skipped by the program: BM_X" in one.reading.guards
    assert any("built as debug" in guard for guard in one.reading.guards)
    scaled = GOOGLE.replace('"cpu_scaling_enabled": false', '"cpu_scaling_enabled": true')
    assert len(measured("google_benchmark", scaled)[0].reading.guards) == 2


def test_a_saved_file_of_pytest_benchmark_without_rounds_counts_with_their_median() -> None:
    table = json.loads(PYTEST)
    for test in table["benchmarks"]:
        del test["stats"]["data"]
    (one,) = measured("pytest_benchmark", json.dumps(table, indent=4))
    assert [s.values for s in one.reading.samples] == [
        (pytest.approx(12.917100, abs=1e-6),),
        (pytest.approx(4.406500, abs=1e-6),),
    ]


def test_a_file_made_to_fill_the_memory_is_refused_before_it_is_read() -> None:
    bomb = PHORONIX.replace("<Notes></Notes>", "<a/>" * (3 << 20), 1)
    with pytest.raises(ParseError, match="more than 8,388,608 characters"):
        harnesses()["phoronix"].read(bomb)


# --- compared ------------------------------------------------------------------------------------


def test_two_commands_in_one_file_of_hyperfine_are_two_arms(tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    path.write_text(hyperfine({"old": many(1.0), "new": many(1.2)}))
    done = paribus("compare", path, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (head,) = json.loads(done.stdout)["headlines"]
    assert (head["arm"], head["verdict"]["word"]) == ("new", "slower")
    done = paribus("compare", path, "--reference", "new", "--brief", cwd=tmp_path)
    assert done.stdout.startswith("arm old is faster in hyperfine")
    assert "not in turns" in done.stdout  # hyperfine starts one command after the other


def test_each_file_of_hyperfine_is_an_arm_and_each_command_is_compared_with_itself(
    tmp_path: Path,
) -> None:
    texts = {
        "a.json": hyperfine({"one": many(1.0), "two": many(3.0)}),
        "b.json": hyperfine({"two": many(3.6), "one": many(1.0001)}),
    }
    write(tmp_path, texts)
    found = judged(tmp_path / "a.json", tmp_path / "b.json")
    assert words_of(found) == {
        "hyperfine (command one)": "equivalent",
        "hyperfine (command two)": "slower",
    }


def test_other_commands_in_two_files_are_not_compared_and_the_fix_is_said(tmp_path: Path) -> None:
    write(tmp_path, {f"{n}.json": hyperfine({f"./{n}": many(1.0)}) for n in ("a", "b")})
    done = paribus("compare", "a.json", "b.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "hyperfine -n" in done.stderr
    done = paribus("compare", "a.json", cwd=tmp_path)
    assert (done.returncode, "is one arm only" in done.stderr) == (2, True)


def test_starts_that_fail_withhold_the_verdict_on_their_command_alone(tmp_path: Path) -> None:
    text = hyperfine({"good": many(1.0), "bad": many(1.0)})
    codes: dict[str, list[int | None]] = {"bad": [0] * 8 + [1, None]}
    other = hyperfine({"good": many(1.3), "bad": many(1.3)}, codes)
    write(tmp_path, {"a.json": text, "b.json": other})
    found = judged(tmp_path / "a.json", tmp_path / "b.json")
    assert words_of(found) == {
        "hyperfine (command good)": "slower",
        "hyperfine (command bad)": "withheld",
    }
    assert "2 of 10 of b" in text_of(found, "launches failed")


def test_rounds_and_repetitions_never_become_launches(tmp_path: Path) -> None:
    """Seven rounds, or three repetitions, of one process: one launch, so no interval."""
    for name, text in (("google_benchmark", GOOGLE), ("pytest_benchmark", PYTEST)):
        folder = write(tmp_path / name, {"a.json": text, "b.json": text.replace("22T15", "22T16")})
        found = judged(folder / "a.json", folder / "b.json")
        assert words_of(found) == {name: "withheld"}
        assert "one launch for each arm" in found.design


def test_several_files_are_several_launches(tmp_path: Path) -> None:
    for arm, factor in (("a", 1.0), ("b", 1.1)):
        texts = {}
        for number, level in enumerate(many(factor, 8)):
            table = json.loads(PYTEST)
            for test in table["benchmarks"]:
                stats = test["stats"]
                stats["data"] = [level * one for one in stats["data"]]
                stats |= {key: level * stats[key] for key in ("min", "max", "mean", "median")}
            table["datetime"] = f"2026-11-22T15:{number:02}:00+00:00"
            texts[f"{number}.json"] = json.dumps(table, indent=4)
        write(tmp_path / arm, texts)
    found = judged(tmp_path / "a", tmp_path / "b")
    assert words_of(found) == {"pytest_benchmark": "slower"}
    assert len(found.cases) == 2


def test_a_copy_of_a_file_is_no_second_arm(tmp_path: Path) -> None:
    write(tmp_path, {"a.json": HYPERFINE, "b.json": HYPERFINE})
    found = judged(tmp_path / "a.json", tmp_path / "b.json")
    assert set(words_of(found).values()) == {"withheld"}
    assert "identical files" in text_of(found, "copies")


def test_two_launches_with_the_same_figure_in_one_file_are_no_copies(tmp_path: Path) -> None:
    for number in ("2", "3"):
        text = (FIXTURES / "phoronix" / f"good-GVNO{number}.out").read_text()
        write(tmp_path, {f"O{number}.xml": text})
    found = judged(tmp_path / "O2.xml", tmp_path / "O3.xml")
    assert "copies" not in names_of(found)
    assert words_of(found)["phoronix (test OpenSSL: Algorithm: RSA4096, sign/s)"] == "withheld"


def test_systems_in_one_file_of_phoronix_are_its_arms(tmp_path: Path) -> None:
    other = (FIXTURES / "phoronix" / "good-GVNO3.out").read_text()
    begin, end = other.find("  <System>"), other.find("  <Result>")
    text = PHORONIX.replace("  <Result>", f"{other[begin:end]}  <Result>", 1)
    entries = other.split("<Data>\n")[1:]
    for entry, part in zip(entries, text.split("<Data>\n")[1:], strict=True):
        mine = entry[: entry.find("    </Data>")]
        text = text.replace(part, part.replace("    </Data>", f"{mine}    </Data>"))
    write(tmp_path, {"merged.xml": text})
    logs = read(tmp_path / "merged.xml")
    assert logs.arms == ("GVNO2", "GVNO3")
    assert {kind.label for kind in logs.kinds} >= {
        "phoronix (test OpenSSL: Algorithm: RSA4096, sign/s)"
    }


def test_a_hostile_name_is_shown_and_obeyed_by_nothing(tmp_path: Path) -> None:
    names = ["x\x1b[31m\n" + "yz" * 50_000, "x\x1b[31m\n" + "yz" * 50_001]
    path = tmp_path / "both.json"
    path.write_text(hyperfine({names[0]: many(1.0), names[1]: many(2.0)}))
    done = paribus("compare", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert len(done.stdout) < 10_000


def test_list_names_the_harnesses_and_says_what_a_launch_is(tmp_path: Path) -> None:
    shown = paribus("list", cwd=tmp_path).stdout
    assert all(f"\n   {name} " in shown for name in HARNESSES)
    assert "a repetition is a sample" in paribus("list", "google_benchmark", cwd=tmp_path).stdout
    table = json.loads(paribus("list", "--json", cwd=tmp_path).stdout)
    assert list(table["files"]) == list(HARNESSES)
    for name, one in harnesses().items():
        origin = "public text, no run" if one.from_text else "outputs of real runs"
        assert f"read after {origin}; " in table["files"][name]
        assert one.from_text == all(
            "-handmade" in p.stem or "-real" in p.stem
            for p in GOOD
            if (p.parent.name == name and name not in ("phoronix", "superbench"))
        ) or name in ("phoronix", "superbench")


def test_why_a_single_file_holds_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(PYPERF.replace('"1.0"', '"2.0"'))
    done = paribus("compare", "a.json", cwd=tmp_path)
    assert (done.returncode, "`pyperf convert`" in done.stderr) == (2, True)


# --- trainings, diagnoses, IO500 -----------------------------------------------------------------


def text_good(harness: str, form: str) -> str:
    return (FIXTURES / harness / f"good-{form}.out").read_text()


def test_steps_of_a_training_are_samples_without_the_first_and_those_that_were_skipped() -> None:
    (one,) = measured("megatron", text_good("megatron", "handmade-arguments"))
    assert one.reading.samples[0].values == (12068.8, 12036.3, 12072.4, 12090.5, 12099.3)
    assert one.reading.parameters == {"batch": 1024}
    assert one.reading.ranks == 8
    assert one.reading.guards == ("16 iterations were skipped, and their lines left out",)
    (titan,) = measured("torchtitan", text_good("torchtitan", "handmade-one_rank"))
    assert titan.reading.samples[0].values == (9951, 10051, 10050, 10007, 10061)
    assert [(m.unit, m.better) for m in (*one.metrics, *titan.metrics)] == [
        ("ms", "lower"),
        ("TFLOP/s", "higher"),
        ("tokens/s", "higher"),
        ("TFLOP/s", "higher"),
    ]


def test_lines_of_several_ranks_are_one_sample_a_step() -> None:
    text = text_good("torchtitan", "handmade-one_rank")
    twice = "".join(
        line * (1 + (" step: " in line)) for line in text.splitlines(keepends=True)
    ).replace("10,051  tflops: 314.72", "10,053  tflops: 314.78", 1)
    (one,) = measured("torchtitan", twice)
    assert one.reading.samples[0].values == (9951, 10052, 10050, 10007, 10061)


TRAININGS = {
    "a loss that is no number": ("megatron", "lm loss: 7.748981E+00", "lm loss: nan", "diverged"),
    "NaN": ("megatron", "nan iterations:   0", "nan iterations:   1", "1 iterations with NaN"),
    "another batch": ("megatron", "size:  1024 |", "size:   512 |", "iterations or batch"),
    "a missing line": ("megatron", "iteration       40/", "iteration       41/", "two outputs"),
    "other work": ("megatron", "GPU): 876.0", "GPU): 976.0", "other work than above"),
    "it was ended": ("megatron", "      80 |", "      99 |", "no line says that it ended"),
    "a diverged loss": ("torchtitan", "loss:  7.07623", "loss:      nan", "diverged"),
    "a missing step": ("torchtitan", "step:  3", "step:  4", "other ranks|a line is missing"),
    "it did not complete": ("torchtitan", "Training completed", "Training", "is missing"),
    "no batch": ("torchtitan", "Trainer is initialized with local", "Trainer", "batches"),
}


@pytest.mark.parametrize("what", TRAININGS)
def test_a_training_that_did_not_end_or_diverged_is_no_launch(what: str) -> None:
    name, old, new, cause = TRAININGS[what]
    forms = {"megatron": "handmade-arguments", "torchtitan": "handmade-one_rank"}
    text = text_good(name, forms[name])
    assert old in text
    with pytest.raises(ParseError, match=cause):
        harnesses()[name].read(
            text.replace(old, new) if what == "it was ended" else text.replace(old, new, 1)
        )


def test_a_diagnosis_that_failed_is_a_launch_that_failed() -> None:
    text = text_good("dcgm_diag", "handmade-v4")
    worse = text.replace(
        '"status": "Pass"', '"status": "Fail", "warnings": [{"warning": "ECC"}]', 1
    )
    assert failed("dcgm_diag", worse) == ["the test 'software' failed: ECC"]
    for name in ("handmade-v3", "handmade-v4"):
        (one,) = measured("dcgm_diag", text_good("dcgm_diag", name))
        figures = {(s.metric, s.case): s.values[0] for s in one.reading.samples}
        assert figures["bandwidth", Case.of(gpu=1, way="GPU-Host")] == 24.11
        assert figures["latency", Case.of(gpu=0, way="bidirectional")] == 5.019
    quiet = json.loads(text)
    for category in quiet["DCGM Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            for result in test["results"]:
                result.pop("info", None)
    with pytest.raises(ParseError, match="diag -r 2 -j -v"):
        harnesses()["dcgm_diag"].read(json.dumps(quiet, indent=1))


def test_the_score_of_io500_is_that_of_its_phases_and_what_is_invalid_is_said() -> None:
    (one,) = measured("io500", text_good("io500", "real-sc20"))
    assert one.reading.samples[0] == ("score", one.reading.samples[0].case, (6.548076,), 1)
    assert one.reading.guards == ()
    (short,) = measured("io500", text_good("io500", "real-readme"))
    assert short.reading.guards == ("IO500 marks its score as INVALID",)
    marked = text_good("io500", "handmade-isc24").replace(
        "300.331 seconds", "30.3 seconds [INVALID]"
    )
    (other,) = measured("io500", marked)
    assert other.reading.guards == ("IO500 marks ior-easy-write as INVALID",)
    with pytest.raises(ParseError, match="not the mean of the phases"):
        harnesses()["io500"].read(marked.replace("0.146316", "0.246316"))


def test_what_is_in_a_file_is_shown_to_whoever_writes_a_reader() -> None:
    trial = import_module("paribus.readers.try")
    text = (FIXTURES / "llama_bench" / "good-real-8cf427ff.out").read_text()
    lines = list(trial.shown("llama_bench", text))
    assert lines[0] == "llama_bench 8cf427ff (5163)"
    assert "  speed at test=pp512: 6863.1, 7147.55, 7136.37, 7115.79, 7237.21" in lines
    assert "  flash_attn = False" in lines


def test_what_a_reader_declares_wrongly_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks by which no file of it is found, and a sample of no metric."""
    trial = import_module("paribus.readers.try")
    text = next((FIXTURES / "torchtitan").glob("good-*")).read_text()
    right = harnesses()["torchtitan"]
    (one, *_) = right.read(text)
    assert isinstance(one, Measured)
    said = list(trial.shown("torchtitan", text))
    wrong = {"torchtitan": replace(right, marks=("Titan: ",))}
    for name in ("every", "harnesses"):
        monkeypatch.setattr(trial, name, lambda: wrong)
    *same, last = trial.shown("torchtitan", text)
    assert (same, last.endswith("no mark is in it: Titan: ")) == (said, True)
    renamed = replace(right, of_plain=lambda _: [one._replace(metrics=one.metrics[1:])])
    with pytest.raises(ParseError, match="which is none of its metrics"):
        renamed.read(text)


def test_a_case_that_all_outputs_of_an_arm_share_can_be_a_part_of_the_arm(tmp_path: Path) -> None:
    """So a model with an empty context is compared with one that has 512 tokens in it."""
    [row, *_] = json.loads((FIXTURES / "llama_bench" / "good-real-8cf427ff.out").read_text())
    for arm, depth in (("empty", 0), ("full", 512)):
        write(tmp_path, {f"{arm}/1.json": json.dumps([{**row, "n_depth": depth}], indent=2)})
    apart = paribus("compare", "empty", "full", cwd=tmp_path, code=2)
    assert "(test=pp512 at 512): 1 log of full, none of empty" in apart.stderr
    given = ("--part-of-arm", "test")
    together = paribus("compare", "empty", "full", *given, cwd=tmp_path, code=3).stdout
    assert "printed.arm.test: pp512 -> pp512 at 512" in together


def test_times_that_a_benchmark_of_vllm_was_not_asked_for_are_left_out() -> None:
    """`--metric-percentiles 95`, and `--percentile-metrics ttft`: no line of them is there."""
    whole = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    other = whole.replace("P99 ", "P95 ")
    begin, end = (other.index(word) for word in ("-----Time per Output", "---------------Inter"))
    every, tails, one = (
        [sample.metric for sample in launch.reading.samples]
        for text in (whole, other, other[:begin] + other[end:])
        for launch in harnesses()["vllm_serving"].read(text)
        if isinstance(launch, Measured)
    )
    assert tails == [name for name in every if not name.endswith("_p99")] != every
    assert one == [name for name in tails if name != "each_token"] != tails
    with pytest.raises(ParseError, match=r"P99 TTFT \(ms\)"):
        harnesses()["vllm_serving"].read(whole.replace("P99 TTFT", "P9 TTFT"))


def test_a_job_whose_exit_code_reframe_does_not_know_is_a_launch() -> None:
    """Such as of the scheduler squeue; there limits that a test does not have are None."""
    reframe = harnesses()["reframe"]
    unknown = PERFLOG.replace("|0|vm|", "|null|vm|")
    assert unknown != PERFLOG
    assert reframe.read(unknown) == reframe.read(PERFLOG)
    of_unit, of_limit = (
        one.metrics[0].better
        for limits in ("None|None", "None|0.1")
        for one in reframe.read(unknown.replace("-0.1|0.1", limits))[:1]
        if isinstance(one, Measured)
    )
    assert (of_unit, of_limit) == ("higher", "lower")
    ended = reframe.read(PERFLOG.replace("|0|vm|", "|1|vm|"))
    assert all(isinstance(one, Failed) for one in ended)


def test_rates_of_vllm_that_are_printed_with_few_digits_are_computed() -> None:
    """A large model answers 50 requests in 893.3 s, which is printed as 0.06 requests/s."""
    text = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    for key, word in {
        "Benchmark duration (s)": "893.30",
        "Request throughput (req/s)": "0.01",
        "Output token throughput (tok/s)": "2.48",
    }.items():
        text = re.sub(rf"({re.escape(key)}: +)\S+", rf"\g<1>{word}", text)
    [launch] = harnesses()["vllm_serving"].read(text)
    assert isinstance(launch, Measured)
    rates = {sample.metric: sample.values for sample in launch.reading.samples}
    assert rates["requests"] == (10 / 893.3,)
    assert rates["output"] == (2212 / 893.3,)


def vllm_twice(folder: Path, arm: str, seed: int) -> None:
    """Write three launches of vLLM's client, each as it is printed, in Markdown, and as JSON.

    Figures of a saved result are those of the summary, with all digits (vllm/benchmarks/serve.py).
    """
    text = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    for n in range(3):
        draw = random.Random(seed + n)
        seconds, first, each = (times * draw.uniform(1, 2) for times in (5.7, 70.0, 7.0))
        figures = {
            "Benchmark duration (s)": ("duration", seconds),
            "Request throughput (req/s)": ("request_throughput", 10 / seconds),
            "Output token throughput (tok/s)": ("output_throughput", 2212 / seconds),
            "Median TTFT (ms)": ("median_ttft_ms", first),
            "P99 TTFT (ms)": ("p99_ttft_ms", 2 * first),
            "Median TPOT (ms)": ("median_tpot_ms", each),
            "P99 TPOT (ms)": ("p99_tpot_ms", 2 * each),
        }
        printed = text
        for row, (_, value) in figures.items():
            printed = re.sub(rf"({re.escape(row)}: +)\S+", rf"\g<1>{value:.2f}", printed)
        saved: dict[str, Any] = {
            "date": f"20260806-07442{n}",
            "tokenizer_id": "m",
            "num_prompts": 10,
        }
        saved |= {"request_rate": "inf", "max_concurrency": None, "completed": 10, "failed": 0}
        saved |= {"total_input_tokens": 1369, "total_output_tokens": 2212, **dict(figures.values())}
        markdown = f"**Model:** m\n\n## Results\n\n{printed}"
        traffic = f"Traffic request rate: inf\n{printed}"
        texts = {"log": traffic, "md": markdown, "json": json.dumps(saved)}
        write(folder / arm, {f"{n}.{form}": of for form, of in texts.items()})


def test_a_result_that_vllm_saved_is_its_summary_and_counts_once(tmp_path: Path) -> None:
    for arm, seed in (("a", 1), ("b", 11)):
        vllm_twice(tmp_path, arm, seed)
    _, logs, unread = find_logs([tmp_path / "a" / "1.log"])
    _, saved, _ = find_logs([tmp_path / "a" / "1.json"])
    assert not unread
    assert [log.reading.samples for log in saved] == [log.reading.samples for log in logs]
    assert [log.date for log in saved] == [(1786002261.0, False)]
    [kind] = read(tmp_path / "a", tmp_path / "b").kinds
    assert len(kind.logs) == 6
    text = (tmp_path / "a" / "1.json").read_text().replace('"failed": 0, ', "")
    [lost] = harnesses()["vllm_serving"].read(
        text.replace('"num_prompts": 10', '"num_prompts": 12')
    )
    assert isinstance(lost, Failed)
    assert lost.cause == "2 requests failed"
    with pytest.raises(ParseError, match="date is missing"):  # as in what SGLang's client saves
        harnesses()["vllm_serving"].read(text.replace('"date"', '"tag"'))


def test_the_table_of_another_program_is_not_that_of_llama_bench(tmp_path: Path) -> None:
    """llama-benchy measures a server, and prints a table like it."""
    head = "| model |         test |      t/s (total) |      peak t/s |        ttfr (ms) |\n"
    row = "| gemma |  pp1024 (c1) | 2387.55 ± 566.54 |               |  556.16 ± 124.32 |\n"
    write(tmp_path, {"1.log": f"llama-benchy (0.4.0)\n\n{head}{row}"})
    _, logs, [unread] = find_logs([tmp_path / "1.log"])
    assert not logs
    assert not unread.tool


def test_what_sglangs_client_measured_is_not_compared_with_vllms(tmp_path: Path) -> None:
    """It took the summary over; the rows are those that its bench_serving.py prints above."""
    text = (FIXTURES / "vllm_serving" / "good-real-docs.out").read_text()
    title, _, rows = text.partition("\n")
    above = "".join(
        f"{key:<40} {value}\n"
        for key, value in (("Backend:", "vllm"), ("Traffic request rate:", "inf"))
    )
    write(tmp_path, {"vllm.txt": text, "sglang.txt": f"{title}\n{above}{rows}"})
    refused = paribus("compare", "vllm.txt", "sglang.txt", cwd=tmp_path, code=2)
    assert "vllm_serving (client sglang): 1 log of sglang, none of vllm" in refused.stderr


def test_llama_bench_in_json_lines_says_the_same_and_each_start_is_a_launch(tmp_path: Path) -> None:
    text = (FIXTURES / "llama_bench" / "good-real-8cf427ff.out").read_text()
    lines = "".join(f"{json.dumps(row)}\n" for row in json.loads(text))
    write(tmp_path, {"array/one.json": text, "lines/several.jsonl": lines * 3})
    (array,), launches = (find_logs([tmp_path / arm])[1] for arm in ("array", "lines"))
    assert [one.reading for one in launches] == [array.reading] * 3
    harmed = lines.replace('"samples_ts"', '"samples_t"', 1)
    with pytest.raises(ParseError, match="samples_ts"):
        harnesses()["llama_bench"].read(harmed)


def test_llama_bench_in_a_table_or_csv_is_a_launch_with_the_mean_of_each_test(
    tmp_path: Path,
) -> None:
    table, csv = (
        (FIXTURES / "llama_bench" / f"good-handmade-{form}.out").read_text()
        for form in ("table", "csv")
    )
    [of_table] = measured("llama_bench", table)
    assert [(str(one.case), one.values) for one in of_table.reading.samples] == [
        ("test=pp512, n_batch=512", (7012.34,)),
        ("test=tg128 at 4096, n_batch=512", (141.07,)),
        ("test=pp512, n_batch=2048", (7420.95,)),
        ("test=pp512+tg128, n_batch=2048", (665.58,)),
    ]
    [of_csv] = measured("llama_bench", csv)
    assert [(str(one.case), round(one.values[0], 1)) for one in of_csv.reading.samples] == [
        ("test=pp512", 7013.9),
        ("test=tg128 at 4096", 141.1),
    ]
    assert of_csv.reading.facts["printed.llama_bench.gpu_info"] == "NVIDIA H100 PCIe, 80 GB"
    read = harnesses()["llama_bench"].read
    with pytest.raises(ParseError, match="without its line 'build"):
        read(table.partition("build:")[0])
    with pytest.raises(ParseError, match="no row of the table"):
        read(table.replace("7012.34 ± 41.20", "7012.34"))
    with pytest.raises(ParseError, match="is not 512 tokens by its time"):
        read(csv.replace('"73000000"', '"74000000"'))
    write(tmp_path, {"old/all.log": table * 3, "new/all.log": table.replace("CUDA ", "ROCm ") * 3})
    shown = paribus("compare", "old", "new", cwd=tmp_path, code=3).stdout
    assert "backends: CUDA -> ROCm" in shown
    assert "3 launches of arm new" in " ".join(shown.split())
