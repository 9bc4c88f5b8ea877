"""Settings that would change nothing are refused: options, keys of study files, pairs of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paribus import benchmarks
from paribus.__main__ import main
from paribus.cli import VERBS, parser_of
from paribus.core import (
    Benchmark,
    ParibusError,
    Request,
    StoreError,
    StudyError,
    parse_bytes,
    parse_rate,
    parse_seconds,
)
from paribus.designs import DESIGNS, design_of
from paribus.designs.calibrate import calibrated
from paribus.designs.explain import explained
from paribus.designs.monitored import monitored
from paribus.plan import check_same, freeze
from paribus.plan.frozen import seeded
from paribus.studyfile.load import load_study
from studies import paribus, stored, write_study

HERE = '[arms.a]\nenv = { X = "1" }\n[arms.b]\nenv = { X = "2" }\n'
ALONE = 'name = "command"\nargv = ["true"]'


def load(folder: Path, *, arms: str = HERE, bench: str = ALONE, more: str = "") -> Any:
    """Return the study of these tables."""
    path = folder / "study.toml"
    top = 'question = "q"\nfactor = "env"\nexplains = ["*"]\n'
    path.write_text(f"{top}{arms}\n[[benchmarks]]\n{bench}\n{more}\n")
    return load_study(path)


def refused(folder: Path, key: str, cause: str, **tables: str) -> None:
    """Assert that loading the study raises a StudyError about `key` that says its cause."""
    with pytest.raises(StudyError) as caught:
        load(folder, **tables)
    assert key in caught.value.cause, caught.value
    assert cause in caught.value.cause, caught.value
    assert caught.value.fix


# --- options -------------------------------------------------------------------------------------


def parsers(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[Any]:
    """Yield the words of each verb and action, and its parser."""
    [choices] = [one.choices for one in parser._actions if isinstance(one.choices, dict)] or [None]
    if choices is None:
        yield words, parser
    for name, below in (choices or {}).items():
        yield from parsers(below, (*words, name))


ALL = [found for verb in VERBS for found in parsers(parser_of([verb]), ()) if found[0][0] == verb]
VALUES = ("2", "88mm", "2 h", "lower", "x=1")


NEEDED = re.compile(r"with (--[a-z-]+)[:,]")


def given(parser: argparse.ArgumentParser, option: argparse.Action) -> Iterator[list[str]]:
    """Yield an option with each of VALUES, one of which it can read."""
    for value in [""] if option.nargs == 0 else VALUES:
        yield [option.option_strings[-1], *filter(None, [value])]


def partners(parser: argparse.ArgumentParser, option: argparse.Action) -> list[str]:
    """Return the options, with values, that an option needs by its help."""
    if not (needed := NEEDED.match(option.help or "")):
        return []
    one = parser._option_string_actions[needed[1]]
    return [needed[1], *["2 h"] * (one.nargs != 0), *partners(parser, one)]


def test_an_option_is_refused_without_the_one_that_its_help_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = 0
    for words, parser in ALL:
        for one in parser._actions:
            if not (one.option_strings and (one.help or "").startswith("with --")):
                continue
            needed = partners(parser, one)
            if not needed:  # two ways: the verb itself refuses it
                assert one.dest == "trust"
                continue
            if parser._option_string_actions[needed[0]].required:
                continue
            seen += 1
            every = [a for a in parser._actions if a.required]
            fill = [word for a in every for word in (*a.option_strings[:1], "x")]
            said = ""
            for line in given(parser, one):
                with pytest.raises(SystemExit) as ended:
                    parser_of(words).parse_args([*words, *fill, *line])
                assert ended.value.code == 2
                said += capsys.readouterr().err
            assert f"applies to {needed[0]}" in said, (words, one.dest, said)
    assert seen > 30


def test_no_other_words_say_that_an_option_belongs_to_another() -> None:
    """What begins otherwise ("only with", "of --x:") would be accepted without effect."""
    for words, parser in ALL:
        for one in parser._actions:
            assert not re.match(r"(only |if |for |beside |of |needs )--", one.help or ""), (
                words,
                one,
            )


def test_what_is_recorded_printed_or_screened_already_takes_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = write_study(tmp_path, plan="blocks = 8")
    stored(study, tmp_path / "done", lambda _: {})
    for option in ("--reference=x", "--margin=2 %", "--by=name", "--key=x", "--better=lower"):
        assert main(["compare", "roce-2024", option]) == 2
        assert "are published figures" in capsys.readouterr().err
    for option in ("--hosts=a=n1", "--accept-host-keys"):
        assert main(["audit", "done", option]) == 2
        assert "reaches no host" in capsys.readouterr().err
    (tmp_path / "screen").mkdir()
    (tmp_path / "screen" / "screen.json").write_text("{}")
    shows = {"json", "earlier", "drain", "kubectl", "fail_on", "help"}
    [(_, parser)] = [one for one in ALL if one[0] == ("screen",)]
    options = [one for one in parser._actions if one.option_strings and one.dest not in shows]
    assert len(options) > 25
    for one in options:
        for line in given(parser, one):
            try:
                code: Any = main(["screen", "screen", *line, *partners(parser, one)])
            except SystemExit as ended:
                code = ended.code
            assert code == 2, line
        assert "is shown again, and nothing is launched" in capsys.readouterr().err, one.dest


def test_options_of_links_and_models_are_refused_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "x" * 16)
    model = "--gradient-mb 1 --input-mb 1 --compute-ms 1"
    for line, said in (
        ("serve . --share 1h --token-env TOKEN", "--share: is for links to a port here"),
        ("serve . --host-name x --socket s", "--host-name: is for links to a port here"),
        ("serve . --host-name x --address 127.0.0.2", "--host-name: is for links to a port here"),
        (f"topology predict balance --load p2p {model}", "--gradient-mb: is of another load"),
    ):
        assert main(line.split()) == 2
        assert said in capsys.readouterr().err
    assert main(f"topology predict balance --load p2p {model} --window w.svg".split()) == 0


def test_a_forecast_says_when_its_second_study_is_of_other_arms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(write_study(tmp_path, plan="blocks = 8"), tmp_path / "on", lambda _: {})
    arms = "[arms.c]\n[arms.d]\n"
    stored(write_study(tmp_path, arms=arms, plan="blocks = 8"), tmp_path / "one", lambda _: {})
    assert main(["forecast", "lammps", "--on", "on", "--one-node", "one"]) == 2
    assert "says nothing of these arms" in capsys.readouterr().err


def test_a_dry_run_shows_what_the_plan_sets(tmp_path: Path) -> None:
    study = write_study(tmp_path, plan='margin = "7 %"\nmonitor = true\nevery = "9 s"')
    done = paribus("run", study, "--dry-run", "--no-pilot", cwd=tmp_path, code=0)
    assert "seed 1; margin 7 %; a round every 9.0 s\n" in done.stdout


def test_trust_and_a_dry_run(tmp_path: Path) -> None:
    study = write_study(tmp_path, arms=HERE, factor="nothing", plan="blocks = 8")
    done = paribus("run", study, "--trust", "0" * 12, cwd=tmp_path, code=2)
    assert "--trust: applies to --resume and FILE.zip" in done.stderr
    assert "--resume" in paribus("run", study, "--dry-run", "--resume", cwd=tmp_path, code=2).stderr
    paribus("run", study, "--dry-run", cwd=tmp_path, code=3)
    paribus("run", study, "--dry-run", "--accept", "env.X=it is tried", cwd=tmp_path, code=0)


# --- keys of a study file ------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0 s", "1e-400 s", "1e10 s", "1e300 d", "1e308 d", "99999999 d"])
@pytest.mark.parametrize("key", ["budget", "timeout", "every"])
def test_durations_that_no_clock_has_are_refused(key: str, text: str, tmp_path: Path) -> None:
    line = f'{key} = "{text}"'
    if key == "timeout":
        refused(tmp_path, key, text, bench=f"{ALONE}\n{line}")
    else:
        refused(tmp_path, key, text, more=f"[plan]\n{line}" + "\nmonitor = true" * (key == "every"))


def test_quantities_without_a_number_are_refused() -> None:
    for read, text in (
        (parse_bytes, "1e308 TiB"),
        (parse_rate, "1e308 Gbit"),
        (parse_seconds, "0 s"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            read(text)


@pytest.mark.parametrize("value", ["1", "0", "1.0", '"true"'])
def test_a_number_is_not_true(value: str, tmp_path: Path) -> None:
    for key in ("monitor", "same_nodes"):
        refused(tmp_path, key, "cannot be used", more=f"[plan]\n{key} = {value}")
    arms = HERE + f'container = {{ engine = "podman", image = "x", bind_mpi = {value} }}\n'
    refused(tmp_path, "bind_mpi", "cannot be used", arms=arms)
    arms = arms.replace(f"bind_mpi = {value}", "bind_mpi = true")
    load(tmp_path, arms=arms)
    refused(tmp_path, "bind_mpi", "one MPI", arms=arms.replace('image = "x", ', ""))


def test_keys_of_ranks_are_refused_where_none_are_started(tmp_path: Path) -> None:
    values = {"mpi": '"x"', "transport": '"tcp"', "network": '"lo"', "order": '"host"'}
    for key, value in {**values, "ranks_per_host": "1"}.items():
        arms = HERE + f'hosts = "pocket:2"\n{key} = {value}\n'
        refused(tmp_path, f"arms.b.{key}", "no benchmark is started with MPI", arms=arms)
        load(tmp_path, arms=arms, bench=f"{ALONE}\nranks = 2")
        load(tmp_path, arms=arms, bench=f'{ALONE}\n[[benchmarks]]\nname = "latency"')


def defaults(one: Benchmark) -> dict[str, Any]:
    return {key: parameter.default for key, parameter in one.parameters.items()}


@pytest.mark.parametrize("name", ["TMPDIR", "PARIBUS_SEED", "PARIBUS_RANK"])
def test_variables_that_each_launch_has_are_refused(name: str, tmp_path: Path) -> None:
    """With a factor of TMPDIR both arms had that of the launch, and a verdict."""
    arms = HERE + f'[arms.c]\nenv = {{ {name} = "/x" }}\n'
    refused(tmp_path, f"env.{name}", "each launch", arms=arms)


def test_ranks_change_the_program_or_are_refused(tmp_path: Path) -> None:
    alone = 0
    for name in benchmarks.BENCHMARKS:
        one = benchmarks.get(name)
        if any(parameter.required for parameter in one.parameters.values()) or name == "command":
            continue
        if not one.command(Request(defaults(one), one.ranks)).mpi:
            alone += 1
            bench = f'name = "{name}"\nranks = {one.ranks + 2}'
            refused(tmp_path, "ranks", "is not started with MPI", bench=bench)
    assert alone > 10


def test_a_parameter_that_another_makes_idle_is_refused(tmp_path: Path) -> None:
    idle = {
        "iperf3": "rate = 5",
        "babelstream": 'backend = "cuda"\nthreads = 2',
        "mixbench": 'backend = "cuda"\nthreads = 2',
        "qe": 'input = "/x"\npseudo_dir = "/y"',
        "many_to_one": 'receiver = "10.0.0.1"',
        "conjugate_gradient": "sets = 2\nseconds = 3",
    }
    needing = {
        name
        for name in benchmarks.BENCHMARKS
        if any(one.needs for one in benchmarks.get(name).parameters.values())
    }
    assert needing == set(idle)
    for name, lines in idle.items():
        key = lines.split("\n")[-1].split()[0]
        refused(tmp_path, key, "changes nothing beside", bench=f'name = "{name}"\n{lines}')


def test_what_no_benchmark_uses_is_refused(tmp_path: Path) -> None:
    load(tmp_path, more='[tools]\nosu = "/opt/osu"')  # a site has one table for all its studies
    arms = '[arms.a]\nargv = ["true"]\n[arms.b]\nargv = ["false"]\n'
    refused(tmp_path, "benchmarks", "every arm has one in its place", arms=arms)
    load(tmp_path, arms=arms, bench='name = "command"')
    arms = HERE.replace("X", "OMP_NUM_THREADS")
    load(tmp_path, arms=arms, bench='name = "stream"')
    load(tmp_path, bench='name = "stream"\nthreads = 2')
    bench = 'name = "stream"\nthreads = 2'
    refused(tmp_path, "benchmarks", "takes the place of threads", arms=arms, bench=bench)


@pytest.mark.parametrize(
    "bench", [ALONE, 'name = "latency"\nsamples = 99', 'name = "gpu_gemm"\nsamples = 20']
)
def test_an_endpoint_of_more_samples_than_there_are_is_refused(bench: str, tmp_path: Path) -> None:
    """All launches would be made for "no data"."""
    refused(tmp_path, "endpoints", "samples", bench=f'{bench}\nendpoints = ["p99", "median"]')
    load(tmp_path, bench=f'{bench}\nendpoints = ["median", "p99"]')


def test_what_changes_before_a_study_goes_on_is_named_as_it_is_written(tmp_path: Path) -> None:
    frozen = freeze(seeded(load(tmp_path)), {})
    for key, tables in {
        "plan.budget": {"more": '[plan]\nbudget = "5 s"'},
        "benchmarks.command.timeout": {"bench": f'{ALONE}\ntimeout = "5 s"'},
        "parts": {"more": '[parts]\nnames = { "env.X" = "x" }'},
    }.items():
        with pytest.raises(StoreError) as caught:
            check_same(frozen, load(tmp_path, **tables), {})
        assert f"`{key}" in caught.value.cause


# --- designs -------------------------------------------------------------------------------------


NODES = 'scheduler = { name = "slurm", nodes = 2, time = "1 h" }\n'
OTHERS = {
    "few": ("", 'design = "few"'),
    "explain": ("", 'design = "explain"'),
    "series": ('[arms.c]\nenv = { X = "3" }\n[series]\nover = "env"\n', ""),
    "allocations": (NODES, "allocations = 4"),
    "session": ("", 'unit = "session"'),
    "scaling": ("", ""),
}


REFUSED = {
    monitored: set(OTHERS),
    explained: {"session", "scaling", "allocations"},
    calibrated: {"allocations"},
}
"""What a verb, or the option --monitor, cannot keep of a study that it is given."""


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("verb", REFUSED)
def test_no_design_is_dropped_for_that_of_an_option_or_a_verb(
    name: str, verb: Any, tmp_path: Path
) -> None:
    more, plan = OTHERS[name]
    arms = HERE.replace('"1" }', '"1", Y = "1" }') if name == "explain" else HERE
    arms = arms.replace("env", f"{NODES}env") if name == "allocations" else arms + more
    bench = 'name = "allreduce"' + "\n[scaling]\nranks = [2, 4]" * (name == "scaling")
    study = load(tmp_path, arms=arms, bench=bench, more=f"[plan]\n{plan}")
    if name in REFUSED[verb]:
        with pytest.raises(ParibusError) as caught:
            verb(study)
        assert caught.value.fix
    elif verb is calibrated:
        assert verb(study).settings.unit == study.settings.unit


def test_a_plan_that_names_two_designs_has_both_or_none(tmp_path: Path) -> None:
    plans = {
        ("design", "few"): 'design = "few"',
        ("unit", "session"): 'unit = "session"',
        ("layout", "duet"): 'layout = "duet"',
        ("monitor", True): "monitor = true",
        ("design", "explain"): 'design = "explain"',
    }
    arms = '[arms.a]\nenv = { X = "1", Y = "1" }\n[arms.b]\nenv = { X = "2", Y = "2" }\n'
    pairs = [(one, other) for one in plans for other in plans if one[0] < other[0]]
    assert len(pairs) == 9
    for pair in pairs:
        try:
            more = "\n".join(plans[one] for one in pair)
            study = load(tmp_path, arms=arms, more=f"[plan]\n{more}")
        except StudyError:
            continue
        names = {one.__name__ for one in type(design_of(study)).__mro__}
        assert {DESIGNS[one].split(":")[1] for one in pair} <= names, pair
