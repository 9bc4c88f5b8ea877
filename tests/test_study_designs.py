"""Sessions, duets, monitoring, endpoints, layers, rankings and what a machine does to a study:
whole studies of programs that take milliseconds, started like any other."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from paribus.core import ParibusError, State
from paribus.plan import read_plan
from paribus.store import Store
from studies import command, launches_in, paribus, write_arms

SPOKEN = """
import json
from paribus.core.errors import ParseError
from paribus.core.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Sample

def command(request):
    return Program(("/bin/sh", "-c", request.parameters["script"]), mpi=False)

def parse(text, request):
    said = json.loads(text)
    samples = [
        Sample("time", Case.of(n=int(case)), tuple(values))
        for case, values in said["time"].items()
    ]
    return Parsed(tuple(samples), said.get("facts", {}))

BENCHMARK = Benchmark(
    "spoken", "shell", "prints what awk draws", (Metric("time", "us", "lower"),),
    command, parse, {"script": Parameter("", str, "what sh executes")}, ranks=1,
)
"""

ARMS = '[arms.fast]\n[arms.slow]\nenv = { FACTOR = "1.1" }\n'
TWINS = "[arms.one]\n[arms.two]\n"


def awk(body: str) -> str:
    """Return a script whose awk program is `body`; f is the arm's factor, g() a normal draw."""
    return (
        "awk -v s=$((PARIBUS_SEED % 2147483647)) -v f=${FACTOR:-1} '"
        "function g() { return sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()) } "
        "BEGIN { srand(s); for (i = 0; i < 9; i++) rand(); " + body + " }'"
    )


ONE = awk(r'printf "{\"time\": {\"1\": [%.9f]}}", 5 * f * exp(0.005 * g())')
"""One sample of one case, scattering by 0.5 %."""


def write(folder: Path, scripts: dict[str, str], *, arms: str = TWINS, plan: str = "") -> Path:
    (folder / "spoken.py").write_text(SPOKEN)
    benchmarks = "".join(
        f"[[benchmarks]]\nfile = \"spoken.py\"\nlabel = \"{label}\"\nscript = '''{script}'''\n"
        for label, script in scripts.items()
    )
    path = folder / "study.toml"
    factor = "nothing" if arms == TWINS else "env"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n{arms}\n{benchmarks}\n'
        f"[plan]\nseed = 3\n{plan}\n"
    )
    return path


def executed(folder: Path, study: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """Return what a study printed, on one line, and its verdict.json."""
    done = paribus("run", study, "--out", "out", *options, cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    verdict = json.loads((folder / "out" / "verdict.json").read_text())
    return " ".join(done.stdout.split()), verdict


def notices(verdict: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [notice for notice in verdict["notices"] if notice["name"] == name]


# --- sessions ------------------------------------------------------------------------------------


def session_arms(trace: Path, switch_s: float = 0) -> str:
    return "".join(
        f"[arms.{arm}]\nbefore = [\"sh -c 'sleep {switch_s}; echo on-{arm} >> {trace}'\"]\n"
        f'after = ["sh -c \'echo off-{arm} >> {trace}\'"]\nenv = {{ FACTOR = "{factor}" }}\n'
        for arm, factor in (("fast", 1), ("slow", 1.1))
    )


@pytest.mark.slow
def test_a_session_switches_once_and_its_median_counts_once(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    study = write(
        tmp_path,
        {"work": f"echo launch >> {trace}; {ONE}"},
        arms=session_arms(trace, switch_s=0.2),
        plan='unit = "session"\nlaunches = 3\nblocks = 8',
    )
    _, verdict = executed(tmp_path, study)
    head = verdict["headlines"][0]
    assert head["verdict"]["word"] == "slower"
    assert head["comparison"]["blocks"] == 8
    said = trace.read_text().split()
    # A session of 1 warm-up and 3 launches; two of the same arm in a row are not switched between.
    parts = re.findall(r"on-(\w+)((?: launch)+) off-\1", " ".join(said))
    assert " ".join(f"on-{arm}{launches} off-{arm}" for arm, launches in parts) == " ".join(said)
    assert {len(launches.split()) % 4 for _, launches in parts} == {0}
    assert sum(len(launches.split()) for _, launches in parts) == 2 * 8 * 4
    assert all(one != other for (one, _), (other, _) in itertools.pairwise(parts))
    assert [t["counted"] for t in verdict["tallies"]] == [24, 24]
    (notice,) = notices(verdict, "sessions")
    figures = notice["figures"]
    assert figures["switch_s"] > 0.2 > figures["launch_s"] > 0
    assert 3 <= figures["launches"] <= 50
    assert figures["per_session"] == 3
    assert "per session (here 3)" in notice["fix"]


@pytest.mark.slow
def test_too_few_switches_are_not_attributable(tmp_path: Path) -> None:
    """Seed 3 of 8 blocks switches 5 times to one arm; with 20 blocks it is often enough."""
    reported = {}
    for blocks in (8, 20):
        folder = tmp_path / str(blocks)
        folder.mkdir()
        plan = f'unit = "session"\nlaunches = 1\nblocks = {blocks}\nmargin = "0.01 %"'
        study = write(folder, {"work": ONE}, arms=session_arms(folder / "trace"), plan=plan)
        said, verdict = executed(folder, study)
        switched = (folder / "trace").read_text().split()
        found = notices(verdict, "one installation each")
        # The very first session is no switch: nobody knows what came before.
        first = switched[0].removeprefix("on-")
        least = min(switched.count(f"on-{arm}") - (arm == first) for arm in ("fast", "slow"))
        assert bool(found) == (least < 6)
        assert ("not attributable to the factor" in said) == bool(found)
        reported[blocks] = bool(found)
    assert not reported[20]


@pytest.mark.slow
def test_killed_sessions_go_on(tmp_path: Path) -> None:
    study = write(
        tmp_path,
        {"work": f"sleep 0.02; {ONE}"},
        plan='unit = "session"\nlaunches = 2\nblocks = 8\nmargin = "0.01 %"',
    )
    for kill in range(3):
        options = ["--resume"] if kill else []
        with subprocess.Popen(
            command("run", study, "--out", "out", *options), cwd=tmp_path, stderr=subprocess.DEVNULL
        ) as process:
            while not (tmp_path / "out" / "launches.db").exists():
                time.sleep(0.02)
            time.sleep(0.7)
            process.kill()
    _, verdict = executed(tmp_path, study, "--resume")
    assert verdict["complete"]
    assert [t["counted"] for t in verdict["tallies"]] == [16, 16]
    numbers = sorted(one.launch.number for one in launches_in(tmp_path / "out"))
    assert numbers == [launch.number for launch in read_plan(tmp_path / "out").launches]


# --- duet ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_arms_of_a_duet_run_at_the_same_time_on_cores_of_their_own(tmp_path: Path) -> None:
    script = f"echo $(date +%s%N) $(taskset -cp $$) >> {tmp_path}/when-$FACTOR; sleep 0.1; {ONE}"
    arms = ARMS.replace("[arms.fast]", '[arms.fast]\nenv = { FACTOR = "1" }')
    study = write(tmp_path, {"work": script}, arms=arms, plan='layout = "duet"\nblocks = 12')
    said, verdict = executed(tmp_path, study)
    assert verdict["headlines"][0]["verdict"]["word"] == "slower"
    assert "same time" in said
    fast, slow = ((tmp_path / f"when-{factor}").read_text().splitlines() for factor in ("1", "1.1"))
    apart = [abs(int(a.split()[0]) - int(b.split()[0])) for a, b in zip(fast, slow, strict=True)]
    assert sorted(apart)[len(apart) // 2] < 80e6, "launches of a pair began after one another"
    cores = [(a.split()[-1], b.split()[-1]) for a, b in zip(fast, slow, strict=True)]
    assert all(a != b for a, b in cores)
    assert len({a for a, _ in cores}) > 1, "the arms never swapped their cores"
    assert not [d for d in verdict["differences"] if d["kind"] == "unexplained"]


def test_a_duet_without_cores_for_all_is_refused(tmp_path: Path) -> None:
    benchmark = 'name = "barrier"\nranks = 4096'
    study = write_arms(tmp_path, benchmark=benchmark, plan='layout = "duet"')
    done = paribus("run", study, cwd=tmp_path, code=2)
    assert "each arm of a duet" in done.stderr


# --- monitoring ----------------------------------------------------------------------------------


def wait_for_launches(directory: Path, least: int) -> None:
    """Wait until the study in `directory` has stored so many launches."""
    for _ in range(600):
        time.sleep(0.1)
        if (directory / "launches.db").exists():
            try:
                with Store(directory) as store:
                    if len(store.counting()) >= least:
                        return
            except ParibusError:
                pass
    raise AssertionError(f"{least} launches never came")


@pytest.mark.slow
def test_a_monitored_study_goes_on_until_stopped_and_is_valid_at_any_moment(
    tmp_path: Path,
) -> None:
    study = write(tmp_path, {"work": f"sleep 0.01; {ONE}"}, arms=ARMS)
    counts: list[int] = []
    for options in (["--monitor"], ["--resume"]):
        with subprocess.Popen(
            command("run", study, "--out", "out", *options),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_for_launches(tmp_path / "out", 40 * (len(counts) + 1))
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
        head = verdict["headlines"][0]
        assert head["verdict"]["word"] == "slower", printed
        assert not head["verdict"]["final"]
        assert head["comparison"]["low"] < 1.1 < head["comparison"]["high"]
        counts.append(head["comparison"]["blocks"])
    assert counts[1] > counts[0] > 12
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["launches"] == []


@pytest.mark.slow
def test_rounds_of_a_monitored_study_keep_their_interval(tmp_path: Path) -> None:
    plan = 'monitor = true\nevery = "1 s"\nbudget = "0.7 s"'
    study = write(tmp_path, {"work": f"sleep 0.1; {ONE}"}, plan=plan)
    begin = time.monotonic()
    _, verdict = executed(tmp_path, study)
    rounds = max(launch["block"] for launch in verdict["launches"])
    assert rounds >= 2
    assert time.monotonic() - begin > rounds - 1.5


def test_monitoring_refuses_what_needs_an_end(tmp_path: Path) -> None:
    study = write(tmp_path, {"work": ONE}, plan='unit = "session"')
    done = paribus("run", study, "--monitor", cwd=tmp_path, code=2)
    assert "monitor" in done.stderr
    study = write(tmp_path, {"work": ONE}, plan="monitor = true\nblocks = 12")
    done = paribus("run", study, cwd=tmp_path, code=2)
    assert "plan.blocks: a monitored study has no last block" in done.stderr


# --- what decides --------------------------------------------------------------------------------

TAIL = awk(
    r'printf "{\"time\": {\"1\": ["; for (i = 0; i < 200; i++) { '
    r"slow = (f > 1 && i % 25 == 0) ? 2 : 1; "
    r'printf "%s%.9f", (i ? "," : ""), 5 * slow * exp(0.02 * g()) } printf "]}}"'
)
"""200 samples; in the slow arm 4 % of them take twice as long."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("endpoints", "word"), [("", "equivalent"), ('endpoints = ["p99", "median"]', "slower")]
)
def test_a_tail_is_found_only_where_it_was_said_beforehand_that_it_decides(
    endpoints: str, word: str, tmp_path: Path
) -> None:
    study = write(tmp_path, {"work": TAIL}, arms=ARMS, plan="blocks = 12")
    study.write_text(study.read_text().replace('label = "work"', f'label = "work"\n{endpoints}'))
    said, verdict = executed(tmp_path, study)
    head = verdict["headlines"][0]
    assert head["verdict"]["word"] == word
    beside = {f["metric"]["name"]: f for f in verdict["endpoints"]}
    if word == "equivalent":
        assert beside["time p99"]["verdict"]["word"] == "slower"
        assert beside["time p99"]["margin"] == pytest.approx(0.10)
        assert "Other endpoints" in said
    else:
        assert head["metric"]["name"] == "time p99"
        assert beside["time"]["verdict"]["word"] == "equivalent"
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["metrics"]["work"][0]["name"] == head["metric"]["name"]


@pytest.mark.slow
def test_too_few_samples_have_no_p99(tmp_path: Path) -> None:
    study = write(tmp_path, {"work": ONE}, plan="blocks = 8")
    _, verdict = executed(tmp_path, study)
    assert verdict["endpoints"] == []
    study.write_text(
        study.read_text().replace('label = "work"', 'label = "work"\nendpoints = "p99"')
    )
    paribus("run", study, "--out", "again", cwd=tmp_path, code=4)
    assert "too few samples per launch for p99" in (tmp_path / "again" / "verdict.json").read_text()


MANY = awk(
    r'printf "{\"time\": {"; for (c = 1; c <= 10; c++) { '
    r"sd = (c == 10) ? 0.12 : 0.005; "
    r'printf "%s\"%d\": [%.9f]", (c > 1 ? "," : ""), c, 5 * c * (c % 2 ? f : 1) * exp(sd * g()) } '
    r'printf "}}"'
)
"""Ten cases: the odd ones slower in the slow arm, the tenth so noisy that it is never decided."""


def test_cases_are_judged_as_a_family_and_a_noisy_one_holds_nothing_up(tmp_path: Path) -> None:
    study = write(tmp_path, {"work": MANY}, arms=ARMS, plan='decides = "cases"\nblocks = 40')
    _, verdict = executed(tmp_path, study)
    words = {case["case"]["n"]: case["verdict"]["word"] for case in verdict["cases"]}
    assert [words[n] for n in range(1, 10)] == ["slower", "equivalent"] * 4 + ["slower"]
    assert words[10] == "undecided"
    blocks = {case["comparison"]["blocks"] for case in verdict["cases"]}
    assert blocks < {8, 12, 18, 27}, "cases are judged at a look, before the last block"


# --- what a machine does to a study --------------------------------------------------------------

PROBED = awk(
    r'getline n < "COUNT"; n++; print n > "COUNT"; close("COUNT"); '
    r"state = (n >= 30 && n <= 30 + LENGTH) ? 3 : 1; "
    r'printf "{\"time\": {\"1\": [%.9f]}, \"facts\": {\"probe.before.core_to_core_ns\": %.6f, '
    r'\"probe.after.core_to_core_ns\": %.6f}}", 5 * state * exp(0.03 * g()), '
    r"50 * state * exp(0.01 * g()), 50 * state * exp(0.01 * g())"
)
"""From the 30th launch on the machine is three times slower, and its probe says so."""


@pytest.mark.slow
def test_a_block_in_two_states_is_done_again_whole_and_counted(tmp_path: Path) -> None:
    script = PROBED.replace("COUNT", f"{tmp_path}/count").replace("LENGTH", "41")
    study = write(tmp_path, {"work": script}, plan='blocks = 60\nmargin = "0.2 %"')
    said, verdict = executed(tmp_path, study)
    void = [one for one in launches_in(tmp_path / "out", void=True) if one.void]
    assert {one.void for one in void} == {
        "the machine changed its state during this block; the block was rerun"
    }
    blocks = {one.launch.block for one in void}
    assert 1 <= len(blocks) <= 2
    assert len(void) == 2 * len(blocks)
    (reported,) = notices(verdict, "blocks rerun")
    assert reported["figures"]["blocks"] == len(blocks)
    assert "is bimodal (modes" in said


def test_no_more_than_a_fifth_of_the_blocks_is_done_again(tmp_path: Path) -> None:
    """Every third launch finds the other state: more blocks than may be repeated."""
    script = awk(
        r'state = (rand() < 0.4) ? 3 : 1; printf "{\"time\": {\"1\": [%.9f]}, \"facts\": '
        r'{\"probe.before.core_to_core_ns\": %.6f}}", 5 * exp(0.03 * g()), '
        r"50 * state * exp(0.01 * g())"
    )
    study = write(tmp_path, {"work": script}, plan='blocks = 40\nmargin = "0.1 %"')
    executed(tmp_path, study)
    void = {one.launch.block for one in launches_in(tmp_path / "out", void=True) if one.void}
    assert 3 <= len(void) <= 8


@pytest.mark.slow
def test_launches_cut_off_by_the_limit_count_as_slowest_and_withhold_the_size(
    tmp_path: Path,
) -> None:
    """A third of the slow arm's launches run into the study's own limit."""
    script = 'if [ -n "$FACTOR" ] && [ $((PARIBUS_SEED % 3)) = 0 ]; then sleep 20; fi; ' + ONE
    study = write(tmp_path, {"work": script}, arms=ARMS, plan="blocks = 12")
    study.write_text(
        study.read_text()
        .replace('label = "work"', 'label = "work"\ntimeout = "0.3 s"')
        .replace("seed = 3", "seed = 4")
    )
    _, verdict = executed(tmp_path, study)
    stored = launches_in(tmp_path / "out", void=True)
    cut = [one for one in stored if one.outcome.state is State.TIMEOUT and one.launch.block]
    assert len(cut) >= 2
    assert not any(one.void for one in stored), "slow launches are not weeded out"
    (reported,) = notices(verdict, "time-outs")
    assert reported["level"] == "warning"
    assert "withheld" in reported["text"]
    word = verdict["headlines"][0]["verdict"]
    assert word["word"] in ("reliability differs", "withheld") or not word["size_known"]


def test_constants_that_were_printed_too_coarsely_are_withheld(tmp_path: Path) -> None:
    study = write(tmp_path, {"work": """echo '{"time": {"1": [2.5]}}'"""}, plan="blocks = 8")
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=3)
    assert "too coarse for the margin" in " ".join(done.stdout.split())
