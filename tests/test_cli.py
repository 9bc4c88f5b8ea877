"""The command line as a user meets it: exit codes, messages, files. Every study is really run."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.cli import VERBS, exits, parser_of
from paribus.core import State
from processes import ran
from studies import RANDOM, command, launches_in, paribus, write_arms, write_study

SLOWER = """if [ "$FACTOR" = slow ]; then echo 3.5; else echo 2.50013; fi"""
READ_ONLY = 'mount --bind {0} {0} && mount -o remount,ro,bind {0} && "$@"'
ARMS = '[arms.plain]\n[arms.slow]\nenv = { FACTOR = "slow" }\n'


def verdict(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((folder / "verdict.json").read_text())
    return loaded


def test_a_known_difference_is_found_and_everything_is_written(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=SLOWER, arms=ARMS)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    assert "slow is slower in steady (1.400x)" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "  report:     out/report.html\n" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    wanted = "plan.json launches.db logs verdict.json cases.csv launches.csv report.html"
    assert {*wanted.split()} <= names
    with (tmp_path / "out" / "launches.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18  # eight blocks of two arms, and the warm-up block
    page = (tmp_path / "out" / "report.html").read_text()
    assert "slow is slower in steady (1.400x)" in page


def test_identical_arms_are_equivalent_and_json_is_all_that_json_prints(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    done = paribus("run", study, "--out", "out", "--json", cwd=tmp_path, code=0)
    table = json.loads(done.stdout)
    assert table == verdict(tmp_path / "out")
    assert table["schema"] == "paribus.verdict/1"
    assert "equivalent" in done.stdout


@pytest.mark.slow
def test_report_makes_the_same_report_again_also_elsewhere(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=SLOWER, arms=ARMS)
    first = paribus("run", study, "--out", "out", cwd=tmp_path)
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "moved"
    (tmp_path / "out").rename(moved)
    (tmp_path / "steady.py").unlink()
    study.unlink()
    again = paribus("report", moved, "--to", "svg", "--to", "png", cwd=tmp_path)
    assert again.returncode == first.returncode == 0, again.stderr
    assert first.stdout.splitlines()[0] == again.stdout.splitlines()[0]
    figures = {path.suffix for path in (moved / "figures").iterdir()}
    assert figures == {".svg", ".png"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "state", "reported"),
    [
        ("true", State.INVALID, "expected one number, got ''"),
        ("echo nan", State.INVALID, "nan is not a measurement"),
        ("echo 2.50013; echo boom >&2; exit 7", State.FAILED, "exit code 7: boom"),
        ("echo 2.50013; kill -SEGV $$", State.FAILED, "signal 11"),
    ],
)
def test_a_launch_without_proof_is_no_data(
    tmp_path: Path, script: str, state: State, reported: str
) -> None:
    study = write_study(tmp_path, script=script)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=4)
    assert "No data" in done.stdout
    stored = launches_in(tmp_path / "out", void=True)
    assert {one.outcome.state for one in stored} == {state}
    assert reported in stored[0].outcome.error
    assert "logs/" in stored[0].outcome.error
    # The warm-up and its one retry: more of the same would say nothing new.
    assert len(stored) == 4


@pytest.mark.slow
def test_a_warm_up_beyond_the_limit_does_not_give_the_benchmark_up(tmp_path: Path) -> None:
    """The first launch of all is slow: caches are cold."""
    script = f"[ -e {tmp_path}/warm ] || {{ touch {tmp_path}/warm; sleep 60; }}; echo 2.50013"
    study = write_study(tmp_path, script=script, more='timeout = "2 s"', plan="blocks = 8")
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    assert "given up" not in done.stdout
    states = [one.outcome.state for one in launches_in(tmp_path / "out")]
    assert states.count(State.TIMEOUT) == 1
    assert len(states) == 18


@pytest.mark.slow
def test_without_a_limit_of_its_own_a_launch_has_twenty_times_the_warm_up(tmp_path: Path) -> None:
    """One launch after the warm-up hangs: it is ended after 10 s, and its block rerun."""
    count = f"{tmp_path}/count"
    script = (
        f"n=$(cat {count} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {count};"
        " [ $n -ne 5 ] || sleep 200; echo 2.50013"
    )
    study = write_study(tmp_path, script=script)
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    void = [one for one in launches_in(tmp_path / "out", void=True) if one.void]
    assert [one.outcome.state for one in void if one.outcome.state is not State.OK] == [
        State.TIMEOUT
    ]
    assert len(void) == 2
    assert 9.5 < max(one.outcome.wall_s for one in void) < 60


def test_a_difference_beyond_the_factor_withholds_the_verdict(tmp_path: Path) -> None:
    source = write_study(tmp_path, script=SLOWER, arms=ARMS)
    module = tmp_path / "steady.py"
    module.write_text(
        module.read_text().replace(
            "return Parsed((Sample(",
            "facts = {'lib.blas': 'one' if float(lines[0]) < 3 else 'other'}\n"
            "    return Parsed(facts=facts, samples=(Sample(",
        )
    )
    done = paribus("run", source, "--out", "out", cwd=tmp_path, code=3)
    assert "withheld" in done.stdout
    assert "lib.blas" in done.stdout
    explained = source.read_text().replace('factor = "env"', 'factor = "env"\nexplains = ["lib."]')
    source.write_text(explained)
    paribus("run", source, "--out", "second", cwd=tmp_path, code=0)


def test_an_env_that_only_one_arm_sets_is_a_second_factor(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=SLOWER, arms=ARMS, factor="network")
    done = paribus("run", study, "--out", "out", "--anyway", cwd=tmp_path, code=3)
    assert "env.FACTOR" in done.stdout
    assert "`explains`" in " ".join((tmp_path / "out" / "verdict.json").read_text().split())
    # The value stands in the study file; among facts, which are passed on, it may be a secret.
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    unexplained = {d["key"]: d for d in verdict["differences"] if d["kind"] == "unexplained"}
    difference = unexplained["env.FACTOR"]
    assert set(unexplained) <= {"env.FACTOR", "env.unlisted"}
    assert "slow" not in str(difference["arm_value"])


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["launch", "session"])
def test_unexplained_differences_stop_a_study_before_its_first_launch(
    tmp_path: Path, unit: str
) -> None:
    script = f"touch {tmp_path}/launched; echo 2.50013"
    plan = "" if unit == "launch" else 'unit = "session"\nlaunches = 3'
    study = write_study(tmp_path, script=script, arms=ARMS, factor="network", plan=plan)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=3)
    assert "env.FACTOR (slow)" in done.stderr
    assert "do not differ in the factor (network); " in done.stderr
    assert "--anyway" in done.stderr
    if unit == "launch":
        assert not (tmp_path / "launched").exists()
        done = paribus("run", study, "--dry-run", cwd=tmp_path)
        assert (done.returncode, "env.FACTOR (slow)" in done.stderr) == (3, True)
    accept = ("--resume", "--accept", "env.FACTOR=both are tried", "--accept", "env.unlisted=so")
    paribus("run", study, "--out", "out", *accept, cwd=tmp_path, code=0)


def test_arms_that_do_not_differ_are_refused_before_the_first_launch(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/launched; echo 2.50013"
    study = write_study(tmp_path, script=script, factor="network")
    done = paribus("run", study, "--out", "out", "--anyway", cwd=tmp_path, code=3)
    assert "nothing differs between the arms a and b, not even the factor (network)" in done.stderr
    assert not (tmp_path / "launched").exists()
    audited = paribus("audit", study, cwd=tmp_path, code=3)
    assert "Nothing differs between the arms a and b" in " ".join(audited.stdout.split())


@pytest.mark.slow
def test_a_budget_ends_the_study_at_a_block(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=RANDOM, plan='budget = "1 s"\nblocks = 1000')
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    assert "undecided" in done.stdout
    count = len(launches_in(tmp_path / "out"))
    assert count % 2 == 0
    assert 2 <= count < 400


def test_before_and_after_surround_every_launch(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    arms = (
        f"[arms.a]\n[arms.b]\nbefore = [\"sh -c 'echo before >> {trace}'\"]\n"
        f"after = [\"sh -c 'echo after >> {trace}'\"]\n"
    )
    study = write_study(tmp_path, script=f"echo launch >> {trace}; echo 2.50013", arms=arms)
    assert paribus("run", study, "--out", "out", cwd=tmp_path).returncode == 0
    words = trace.read_text().split()
    # Around its 9 launches, and around the facts that are gathered before the first and at the end.
    assert words.count("before") == words.count("after") == 9 + 2
    assert " ".join(words).count("before launch after") == 9
    assert words[:2] == words[-2:] == ["before", "after"]


def test_after_an_interruption_the_factor_is_switched_back(tmp_path: Path) -> None:
    arms = (
        f'[arms.a]\n[arms.b]\nbefore = "touch {tmp_path}/switched"\n'
        f'after = "rm -f {tmp_path}/switched"\n'
    )
    script = f"[ ! -e {tmp_path}/switched ] || sleep 60; echo 2.50013"
    study = write_study(tmp_path, script=script, arms=arms)
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "out"), stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "switched").exists():
            time.sleep(0.02)
        time.sleep(0.2)
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert not (tmp_path / "switched").exists()


def test_a_before_command_that_fails_stops_the_study(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, arms="[arms.a]\n[arms.b]\nbefore = \"sh -c 'echo no >&2; exit 9'\"\n"
    )
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "arms.b.before" in done.stderr
    assert "exit code 9: no" in done.stderr


def test_an_existing_directory_is_refused_without_resume(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    assert paribus("run", study, "--out", "out", cwd=tmp_path).returncode == 0
    again = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "--resume" in again.stderr
    study.write_text(study.read_text().replace("seed = 1", "seed = 2"))
    changed = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=2)
    assert "`plan.seed` has changed" in changed.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    paribus("run", study, "--out", "other", cwd=tmp_path, code=2)
    assert (tmp_path / "other" / "thesis.tex").read_text() == "precious"


def test_killed_before_the_plan_was_frozen_a_study_starts_again(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.draft").write_text('{"half": ')
    paribus("run", write_study(tmp_path), "--out", "out", cwd=tmp_path, code=0)
    assert not (tmp_path / "out" / "plan.draft").exists()


def test_resume_of_nothing(tmp_path: Path) -> None:
    done = paribus("run", write_study(tmp_path), "--out", "none", "--resume", cwd=tmp_path, code=2)
    assert "not a study directory" in done.stderr


def test_a_database_from_a_newer_version(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    assert paribus("run", study, "--out", "out", cwd=tmp_path).returncode == 0
    db = sqlite3.connect(tmp_path / "out" / "launches.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    for words in (["run", study, "--out", "out", "--resume"], ["report", "out"]):
        done = paribus(*words, cwd=tmp_path, code=2)
        assert "schema version 99" in done.stderr
        assert "update Paribus" in done.stderr


def test_more_launches_than_a_day_has_seconds_are_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    more = "".join(f'[[benchmarks]]\nfile = "steady.py"\nlabel = "b{i}"\n' for i in range(60))
    study = write_study(tmp_path, plan="blocks = 1000", more=more)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "122,000 launches" in done.stderr
    assert not (tmp_path / "out").exists()


def mounted(script: str, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return how `script` (sh) ended, whose "$@" is `paribus WORDS`; its mounts are its own."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting needs root and unshare")
    return ran(["unshare", "--mount", "sh", "-c", script, "sh", *command(*words)], cwd=folder)


def test_a_full_disk(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=RANDOM, plan="blocks = 1000")
    small, kept = tmp_path / "small", tmp_path / "kept"
    small.mkdir()
    script = (
        f'mount -t tmpfs -o size=1200k none {small} && "$@"; c=$?; cp -a {small} {kept}; exit $c'
    )
    done = mounted(script, ["run", str(study), "--out", "small/out"], tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "space" in done.stderr
    assert "--resume" in done.stderr
    assert len(launches_in(kept / "out")) > 10


def test_a_full_disk_leaves_no_part_of_a_study_file(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    filled = f"mount -t tmpfs -o size=16k none {small} && cd {small} && dd if=/dev/zero of=fill"
    words = ["ab", "--a", "true", "--b", "true"]
    done = mounted(f'{filled} bs=1k; "$@"; echo code $?; ls', words, tmp_path)
    assert done.stdout.split() == ["code", "2", "fill"]
    assert "ab.toml: cannot be written: No space left on device" in done.stderr


def test_a_report_from_a_read_only_place(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    assert paribus("run", study, "--out", "fixed", cwd=tmp_path).returncode == 0
    setup = READ_ONLY.format(tmp_path / "fixed")
    done = mounted(setup, ["report", "fixed"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "equivalent" in done.stdout


def test_dry_run_shows_the_plan_and_launches_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=f"touch {tmp_path}/launched; echo 1")
    done = paribus("run", study, "--dry-run", "--no-pilot", cwd=tmp_path, code=0)
    assert "looks after 8, 12, 18, 27, 40, 60 blocks" in done.stdout
    refused = paribus("run", study, "--no-pilot", cwd=tmp_path, code=2)
    assert "--no-pilot: applies to --dry-run" in refused.stderr
    assert not (tmp_path / "launched").exists()
    assert not list(tmp_path.glob("*.study"))


def test_dry_run_reports_durations_from_a_pilot_and_keeps_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, script="sleep 0.05; echo 1.00017", plan='budget = "3 s"')
    done = paribus("run", study, "--dry-run", cwd=tmp_path, code=0)
    said = " ".join(done.stdout.split())
    assert re.search(r"steady: a 0\.0[5-9]\d*, b 0\.0[5-9]", said), said
    assert "if every benchmark is decided at its first look" in said
    assert re.search(r"the budget of 3\.0 s suffices for about \d+ blocks", said), said
    left = {path.name for path in tmp_path.iterdir() if "cache" not in path.name}
    assert left == {"steady.py", "study.toml"}


def test_a_dry_run_names_the_nodes_of_each_benchmark(tmp_path: Path) -> None:
    """Two ranks of four nodes are on two, or on one where the arm puts two on each."""
    arms = "".join(
        f'[arms.{name}]\nscheduler = {{ name = "slurm", nodes = 4, time = "9 min" }}\n{keys}'
        for name, keys in (("spread", ""), ("packed", "ranks_per_host = 2\n"))
    )
    names = ("latency", 2), ("allreduce", 8), ("iperf3", 2)
    benchmarks = "".join(f'[[benchmarks]]\nname = "{n}"\nranks = {r}\n' for n, r in names)
    text = f'question = "q"\nfactor = "nodes"\n{arms}{benchmarks}'
    (tmp_path / "study.toml").write_text(text)
    said = paribus("run", "study.toml", "--dry-run", cwd=tmp_path, code=0).stdout
    assert "  latency: 2 ranks on nodes: spread 2, packed 1; " in said
    assert "  allreduce: 8 ranks on 4 nodes; " in said
    assert "  iperf3: 2 ranks on 2 nodes; " in said  # a server and its client are on two hosts


def test_a_dry_run_whose_launches_fail_fails_and_keeps_their_output(tmp_path: Path) -> None:
    study = write_study(tmp_path, script="echo no input file >&2; exit 5")
    done = paribus("run", study, "--dry-run", cwd=tmp_path, TMPDIR=str(tmp_path), code=4)
    (kept,) = tmp_path.glob("paribus-pilot-*")
    assert str(kept) in done.stderr
    assert "no estimate of the duration: pilot launches failed" in done.stdout
    assert "the study takes" not in done.stdout
    assert {path.read_text() for path in kept.glob("*.err")} == {"no input file\n"}


def test_a_dry_run_switches_no_platform(tmp_path: Path) -> None:
    mark = tmp_path / "switched"
    study = write_study(tmp_path, arms=f'[arms.a]\nbefore = "touch {mark}"\n[arms.b]\n')
    done = paribus("run", study, "--dry-run", cwd=tmp_path, code=0)
    assert "a dry run must not do that" in " ".join(done.stdout.split())
    assert not mark.exists()


@pytest.mark.parametrize("value", ["", ".", "5", "-1", "no such", "a\nb", "\udcff", "9" * 5000])
@pytest.mark.parametrize(
    "line", ["ab --a /none --b /none", "explain --a /none --b /none", "screen --scheduler slurm:x"]
)
def test_whatever_an_option_is_given_is_no_defect(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    value: str,
) -> None:
    """Nothing is launched: no program and no partition is there."""
    monkeypatch.chdir(tmp_path)
    words = line.split()
    [verbs] = (one.choices for one in parser_of(words)._actions if isinstance(one.choices, dict))
    options = [one for one in verbs[words[0]]._actions if one.nargs is None and one.option_strings]
    assert len(options) > 15
    for one in options:
        try:
            code: object = main([*words, f"{one.option_strings[-1]}={value}"])
        except SystemExit as ended:  # of argparse
            code = ended.code
        assert code == 2, one
        assert "defect of Paribus" not in capsys.readouterr().err, one
    assert [*tmp_path.iterdir()] == []


def test_no_verb_and_an_unknown_one(tmp_path: Path) -> None:
    nothing = paribus(cwd=tmp_path, code=2)
    assert "first steps" in nothing.stdout
    unknown = paribus("rnu", cwd=tmp_path, code=2)
    assert unknown.stderr.startswith("paribus: 'rnu': no such verb\n  did you mean 'run'?")
    assert paribus("help", cwd=tmp_path).stdout == nothing.stdout
    helped = paribus("help", "run", cwd=tmp_path, code=0)
    assert helped.stdout == paribus("run", "--help", cwd=tmp_path).stdout
    assert "did you mean 'report'" in paribus("help", "reprot", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("line", "says", "fix"),
    [
        (
            "run x.toml --resme",
            "run --resme: no such option",
            "did you mean --resume? `paribus run",
        ),
        ("topology diff a b --load hpl", "topology diff --load: no such option", "`paribus topo"),
        (
            "cluster check x --distribution rhel",
            "cluster check --distribution: no such option",
            "`paribus cluster check",
        ),
        ("run x.toml y.toml", "run 'y.toml': one argument too many", "`paribus run --help`"),
        ("report x --to word", "report --to: invalid choice: 'word'", "`paribus report --help`"),
        ("topology diff a", "topology diff: the following arguments are required: OTHER", "`par"),
        ("list --\x1b[31m", "list --\\x1b[31m: no such option", "`paribus list --help`"),
    ],
)
def test_a_command_line_is_refused_with_place_and_next_step(
    capsys: pytest.CaptureFixture[str], line: str, says: str, fix: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split(" "))
    assert ended.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"paribus: {says}")
    assert second.startswith(f"  {fix}")


def test_the_help_of_each_verb_has_an_example_options_of_the_page_and_exit_codes(
    tmp_path: Path,
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
    assert set(exits.OF_VERBS) < set(VERBS)
    for verb in VERBS:
        shown = paribus(verb, "--help", cwd=tmp_path, code=0).stdout
        assert f"paribus {verb}" in re.split("examples?:", shown, maxsplit=1)[1]
        options = {w.strip("[],:;") for w in shown.split() if w.startswith(("--", "[--"))}
        assert [one for one in options - {"--help"} if one not in page] == [], verb
        said = shown.partition("\nexit codes:\n")[2]
        codes = [int(line.split()[0]) for line in said.splitlines() if line[2:3].isdigit()]
        assert codes == [*exits.of(verb)]
        assert {0, 2, 130, 141} <= set(codes) <= {0, 1, 2, 3, 4, 130, 141}


def test_list_names_every_benchmark_and_study(tmp_path: Path) -> None:
    shown = paribus("list", cwd=tmp_path).stdout
    table = json.loads(paribus("list", "--json", cwd=tmp_path).stdout)
    assert {b["name"] for b in table["benchmarks"]} >= {"latency", "loader", "triad", "alltoall"}
    for benchmark in table["benchmarks"]:
        assert benchmark["name"] in shown
    assert set(table["studies"]) >= {"same", "container-network", "mpi-transport"}
    for name in (*table["studies"], *table["publications"]):
        assert name in shown
    assert "roce-2024" in table["publications"]
    lines = shown.splitlines()
    assert len(lines) < 2 * len(table["benchmarks"]), "one line a benchmark"
    assert not any("parameters:" in line for line in lines)


def test_list_names_what_never_ran_on_the_real_thing(tmp_path: Path) -> None:
    table = json.loads(paribus("list", "--json", cwd=tmp_path).stdout)["platforms"]
    never = {name for name in table if table[name].endswith(", never run on the real thing")}
    assert never == {"pbs", "torque", "flux", "msmpi"}
    real = {name for name in table if table[name].endswith(", run on the real thing")}
    assert real == {"slurm", "gridengine", "kubernetes", "openmpi", "mpich", "intelmpi"}
    for name in never:
        (file,) = (Path(__file__).parents[1] / "src" / "paribus").rglob(f"{name}.py")
        said = ast.get_docstring(ast.parse(file.read_text()))
        assert said is not None
        assert "Never run on the real thing" in said
    assert f"{table['pbs']}\n" in paribus("list", "pbs", cwd=tmp_path).stdout


def test_list_shows_all_about_a_name_or_a_word(tmp_path: Path) -> None:
    one = paribus("list", "osu_bw", cwd=tmp_path).stdout
    assert one.startswith("osu_bw: point to point\n")
    assert all(word in one for word in ("bytes: ", "MB/s", "to get it:", "validation: "))
    assert "osu_bibw" not in one
    assert "class: size of the problem, S to D (A)" in paribus("list", "cg", cwd=tmp_path).stdout
    sizes = paribus("list", "many_to_one", cwd=tmp_path).stdout
    assert "(64 B, 4 KiB, 64" in sizes
    assert "(1, 16)" in sizes
    reported = paribus("list", "storage", "gpu_stream", "random_access", cwd=tmp_path).stdout
    assert "size: bytes of each rank (64 MiB)" in reported
    assert "bytes: bytes of one of three arrays" in reported
    assert "134217728" not in reported
    table = json.loads(paribus("list", "one-sided", "roce-2024", "--json", cwd=tmp_path).stdout)
    sided = [b["name"] for b in table["benchmarks"]]
    assert sided[:2] == ["osu_put_latency", "osu_get_latency"]
    assert {b["layer"] for b in table["benchmarks"]} == {"one-sided"}
    assert (list(table["publications"]), table["studies"]) == (["roce-2024"], {})
    table = json.loads(paribus("list", "NPB", "--json", cwd=tmp_path).stdout)
    named = {b["name"][:4] for b in table["benchmarks"]}
    assert named == {"npb_", "bt", "cg", "ep", "ft", "is", "lu", "mg", "sp"}
    margins = paribus("list", "latency", "storage", cwd=tmp_path).stdout
    assert "latency: us, lower is better, margin 2 %, below 2 us 5 % (decides)" in margins
    assert "rate: 1/s, higher is better, margin 5 %\n" in margins
    assert table["benchmarks"][0]["metrics"][0]["margin"] == 0.02
    wrong = paribus("list", "osu_latancy", cwd=tmp_path, code=2)
    assert "did you mean 'osu_latency'?" in wrong.stderr


def test_list_asks_a_question_for_every_layer_and_says_what_is_missing(tmp_path: Path) -> None:
    lines = paribus("list", cwd=tmp_path).stdout.splitlines()
    heads = lines[: lines.index(next(line for line in lines if line.startswith("+ ")))]
    assert all(line.startswith(" ") or line.endswith("?") for line in heads)
    (gpu,) = (line for line in lines if " gpu_stream " in line)
    lacks = json.loads(paribus("list", "gpu_stream", "--json", cwd=tmp_path).stdout)["benchmarks"]
    assert gpu.startswith(" + ") == (not lacks[0]["lacks"])
    assert all(what in gpu for what in lacks[0]["lacks"])
    assert any("how long a launch takes here" in line for line in lines)


def test_list_says_where_no_mpi_compiler_is(tmp_path: Path) -> None:
    if (Path(sys.executable).parent / "mpicxx").exists():
        pytest.skip("an MPI lies beside this Python")
    lines = paribus("list", cwd=tmp_path, PATH=str(tmp_path)).stdout.splitlines()
    shown = {line[3:].split()[0]: line for line in lines if line[:1] == " " and line[3:].strip()}
    for name in ("latency", "ep", "gpu_stream"):
        assert not shown[name].startswith(" + ")
        assert "(needs mpicxx" in shown[name]
    assert shown["command"].startswith(" + ")


@pytest.mark.slow
def test_list_shows_how_long_a_launch_took_here(tmp_path: Path) -> None:
    """Of the study directories at hand; nothing is estimated."""
    asked = ("list", "command", "--json")
    before = json.loads(paribus(*asked, cwd=tmp_path).stdout)
    assert before["benchmarks"][0]["launch_s"] is None
    arms = [f'argv = ["sleep", "{seconds}"]' for seconds in ("0.1", "0.10")]
    write_arms(tmp_path, *arms, benchmark='name = "command"', factor="command", plan="blocks = 8")
    done = paribus("run", "study.toml", "--out", "o", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    after = json.loads(paribus(*asked, cwd=tmp_path).stdout)
    assert 0.1 < after["benchmarks"][0]["launch_s"] < 60
    assert "a launch takes " in paribus("list", "command", cwd=tmp_path).stdout
    (tmp_path / "o" / "launches.db").write_bytes(b"damaged")
    assert paribus("list", cwd=tmp_path).returncode == 0


def test_a_study_that_does_not_exist(tmp_path: Path) -> None:
    done = paribus("run", "container-netwrok", cwd=tmp_path, code=2)
    assert "did you mean 'container-network'" in done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("paribus ", {"run", "report", "list"}),
        ("paribus run --re", {"--resume"}),
        ("paribus run mpi", {"mpi-transport"}),
        ("paribus report --t", {"--to", "--title"}),
        ("paribus report --to p", {"pdf", "png"}),
    ],
)
def test_completion(tmp_path: Path, line: str, expected: set[str]) -> None:
    """What a shell asks and hears: the line in the environment, the answer on descriptor 8."""
    pytest.importorskip("argcomplete")
    env = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    answer = tmp_path / "answer"
    subprocess.run(
        ["sh", "-c", 'exec "$@" 8>answer 9>/dev/null', "sh", *command()],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        check=False,
    )
    words = {word.strip() for word in answer.read_text().split("\n")}
    assert expected <= words
