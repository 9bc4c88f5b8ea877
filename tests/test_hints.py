"""What an error or a report says to type is typed, in directories with the worst of names."""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import log_folders
from paribus.__main__ import main
from paribus.bmc.profiles import read_access, secret_of
from paribus.border import Place
from paribus.cli import parser_of
from paribus.cli.hosts import hosts_by_arm
from paribus.core import StudyError, UserError
from paribus.plan import check_same, read_plan
from paribus.report.advice import reproduce_commands, run_command
from paribus.report.stored import read_report
from paribus.studyfile.load import load_study
from paribus.studyfile.shipping import shipped_folder
from processes import ran
from studies import stored, write_study

WORST = "it's a $(touch gone) &"


def words_of(line: str) -> list[str]:
    """Return the words of a line, as a shell makes them."""
    done = ran(["sh", "-c", f"printf '%s\\0' {line}"], code=0)
    return done.stdout.split("\0")[:-1]


def execute(line: str) -> int:
    """Return the exit code of a command of Paribus that was shown."""
    name, *words = words_of(line)
    assert name == "paribus"
    return main(words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a study of the worst of names, run, and packed."""
    folder = tmp_path_factory.mktemp("hints") / WORST
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = write_study(Path(), arms="[arms.a]\n[arms.b]\n", plan="blocks = 8")
        path.rename(f"{WORST}.toml")
        main(["run", f"{WORST}.toml"])
        main(["pack", f"{WORST}.study", "--out", f"{WORST}.zip"])
    return folder


@pytest.fixture
def errors(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def said(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 2
        return capsys.readouterr().err

    return said


def test_what_is_no_study_directory_is_answered_with_what_to_type(
    made: Path, monkeypatch: pytest.MonkeyPatch, errors: Callable[..., str]
) -> None:
    monkeypatch.chdir(made)
    study, directory = f"{WORST}.toml", f"{WORST}.study"
    [report] = re.findall("`(paribus report .*)` shows", errors("report", study))
    assert execute(report) in (0, 3)
    [opened] = re.findall("`(paribus pack --open .*)` unpacks", errors("report", f"{WORST}.zip"))
    assert execute(f"{opened} --out opened") == 0
    shown = errors("run", directory)
    [report] = re.findall("`(paribus report .*)` shows", shown)
    assert execute(report) in (0, 3)
    [again] = re.findall("`(paribus run STUDY .*)` continues", shown)
    assert execute(again.replace("STUDY", "./*.toml")) in (0, 3)
    Path("other one.toml").write_text(Path(study).read_text())
    [run] = re.findall("`(paribus run .*)` measures", errors("report", "other one.toml"))
    assert execute(f"{run} --dry-run --no-pilot") == 0
    assert not Path("gone").exists()


def test_the_commands_of_a_report_do_what_it_says(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    judgement = read_report(Path(f"{WORST}.study/verdict.json"))
    assert execute(f"{run_command(judgement)} --resume") in (0, 3)
    for _, command in reproduce_commands(judgement):
        assert execute(command) in (0, 3)
    plan = read_plan(Path(f"{WORST}.study-again"))
    assert plan.study.benchmarks == read_plan(Path(f"{WORST}.study")).study.benchmarks
    assert not Path("gone").exists()


def test_the_command_that_continues_names_the_hosts_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study file has none of its own, so that without them it is not even loaded."""
    monkeypatch.chdir(tmp_path)
    arms = '[arms.a]\nhosts = "?"\n[arms."b c"]\nhosts = "?"\n'
    study = write_study(tmp_path, arms=arms, factor="x")
    Path("my hosts.txt").write_text("node3\nnode4\n")
    given = hosts_by_arm(["a=node[1-2]", "b c=./my hosts.txt"])
    judgement = stored(Path(study.name), tmp_path / "out", lambda _: {}, given)
    for back in (judgement, read_report(tmp_path / "out" / "verdict.json")):
        commands = [run_command(back), reproduce_commands(back)[0][1]]
        for words in map(words_of, commands):
            arguments = parser_of(words[1:]).parse_args(words[1:])
            plan = read_plan(tmp_path / "out")
            again = load_study(Path(arguments.study), None, hosts_by_arm(arguments.hosts))
            check_same(plan, again, plan.software)
    with pytest.raises(StudyError, match="no hosts of its own"):
        load_study(study)
    assert "my hosts" in (tmp_path / "out" / "report.html").read_text()


def test_a_second_study_says_how_the_first_one_goes_on(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    capsys.readouterr()
    main(["run", f"{WORST}.toml", "--dry-run", "--no-pilot"])
    main(["run", f"{WORST}.toml", "--brief"])
    [out] = re.findall(r"give (--out .*) with --resume or --replace", capsys.readouterr().err)
    assert main(["run", f"{WORST}.toml", *words_of(out), "--resume"]) in (0, 3)


def test_files_that_are_not_as_they_must_be_are_made_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: Callable[..., str]
) -> None:
    folder = tmp_path / WORST
    folder.mkdir()
    monkeypatch.chdir(folder)
    secret = folder / "my password"
    secret.write_text("hush\n")
    secret.chmod(0o644)
    table = {
        "address": "bmc",
        "user": "me",
        "password": {"file": secret.name},
        "fingerprint": f"sha256:{64 * '0'}",
    }
    access = read_access(Place("bmc.toml", "bmc", table))
    with pytest.raises(UserError, match="others than its owner") as refused:
        secret_of(access, str(folder / "bmc.toml"))
    subprocess.run(["sh", "-c", refused.value.fix], check=True)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret_of(access, str(folder / "bmc.toml")) == "hush"

    solver = Path("my solver")
    solver.write_text("#!/bin/sh\necho done\n")
    words = ("ab", "--a", "'./my solver'", "--b", "'./my solver' x", "--blocks", "8", "--brief")
    [chmod] = re.findall("`(chmod .*)`", errors(*words))
    subprocess.run(["sh", "-c", chmod], check=True)
    assert main(list(words)) in (0, 3)
    assert not Path("gone").exists()


def test_a_recording_and_a_new_study_say_how_they_are_shown_and_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    errors: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = f"{WORST}.tar.gz"
    assert main(["record", "--out", recording]) == 0
    [show] = re.findall("(paribus record --from .*)", capsys.readouterr().out)
    assert execute(show) == 0
    [show] = re.findall("(paribus record --from .*)", errors("audit", recording))
    assert execute(show) == 0
    for name, effect in (("arm's a", 1.0), ("$b", 1.2)):
        log_folders.write(tmp_path / name, log_folders.many(effect))
    logs = ("compare", "arm's a", "$b")
    [facts] = re.findall("(--facts .*)", errors(*logs, "--facts", recording))
    given = [one.replace("FILE", recording) for one in words_of(facts)]
    assert main([*logs, *given]) in (0, 3)
    assert main(["new", "my own.toml"]) == 0
    audit, run = capsys.readouterr().out.splitlines()[-1].partition(": ")[2].split("; ")
    for shown in (audit, run):  # its benchmarks may need an MPI that is not here
        words = words_of(shown)[1:]
        assert "my own.toml" in words
        parser_of(words).parse_args(words)
    assert not Path("gone").exists()


def test_published_figures_are_laid_beside_as_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = next((shipped_folder() / "published").glob("*.toml"))
    figures = f"{WORST}.toml"
    Path(figures).write_text(shipped.read_text())
    for name, effect in (("a", 1.0), ("b", 1.2)):
        log_folders.write(tmp_path / name, log_folders.many(effect))
    [beside] = re.findall("(--beside .*)", errors("compare", "a", figures))
    assert words_of(beside) == ["--beside", figures]
    assert main(["compare", "a", "b", *words_of(beside)]) in (0, 3)
    study = write_study(tmp_path)
    [run] = re.findall("(paribus run .*)", errors("compare", "a", "b", "--beside", str(study)))
    assert words_of(run) == ["paribus", "run", str(study)]


def test_an_arm_without_hosts_is_given_them(tmp_path: Path) -> None:
    arms = '[arms.a]\n[arms."my arm"]\nhosts = "?"\n'
    study = write_study(tmp_path, arms=arms)
    with pytest.raises(UserError, match="no hosts of its own") as refused:
        load_study(study)
    (tmp_path / "hosts.txt").write_text("node1\n")
    for shown in re.findall(r"--hosts ([^,]*)(?:,|$)", refused.value.fix):
        [given] = words_of(shown)
        hosts = hosts_by_arm([given.replace("./", f"{tmp_path}/")])
        assert load_study(study, hosts=hosts).arms[1].hosts is not None


@pytest.mark.parametrize("name", ["loop", "x" * 300])
def test_a_place_where_nothing_can_be_is_not_to_be_made_readable(
    name: str, tmp_path: Path, errors: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    said = errors("ab", "--a", "true", "--b", "true", "--out", name)
    assert "name another directory" in said
    assert "readable" not in said


@pytest.mark.parametrize("verb", ["run study.toml", "calibrate study.toml", "screen pocket:2"])
def test_a_plan_is_not_printed_where_json_is_asked_for(
    verb: str, tmp_path: Path, errors: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(Path(), arms="[arms.a]\n[arms.b]\n")
    assert "leave --json out" in errors(*verb.split(), "--dry-run", "--json")


def test_one_table_in_place_of_a_list_is_given_its_brackets(tmp_path: Path) -> None:
    path = write_study(tmp_path, arms="[arms.a]\n[arms.b]\n")
    path.write_text(path.read_text().replace("[[benchmarks]]", "[benchmarks]"))
    with pytest.raises(StudyError, match=r"write \[\[benchmarks\]\]"):
        load_study(path)
