"""What a screen says: JSON by its schema, the page, the facts beside a slow node, lists."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from paribus.audit.audit import Question, audit
from paribus.core import (
    Address,
    Arm,
    Command,
    Completed,
    Facts,
    Hosts,
    Settings,
    Study,
    UserError,
)
from paribus.launch.gathering import SLOW, screened
from paribus.launch.local import Captured
from paribus.report.printing import console_on
from paribus.screen import operators, plan, slurm, words
from paribus.screen.answer import Answer, answer_of
from paribus.screen.before import OLDEST_S, with_earlier, with_screens
from paribus.screen.page import page
from paribus.screen.printed import print_answer, print_commands, to_json
from paribus.screen.slurm import partition_of
from paribus.store import Gathered, Store
from screen.fleets import Node, executed, linked, screen_of
from screen.test_rounds import nodes_of
from studies import paribus, write_study


def study(factor: str, *, first: str = "n1", second: str = "n5") -> Study:
    arms = tuple(
        Arm(name, hosts=Hosts((Address(node, node),)))
        for name, node in (("a", first), ("b", second))
    )
    return Study("Which is faster?", factor, arms, (), Settings())


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A screen of twelve nodes, of which n5 is slow, that was made now."""
    folder = tmp_path_factory.mktemp("screen")
    nodes = nodes_of(12, {5: 0.15})
    made = replace(screen_of(nodes), at=time.time())
    plan.write(made, folder)
    executed(made, nodes, folder)
    return folder


@pytest.mark.parametrize(
    ("factor", "kind"), [("mpi", "unexplained"), ("cluster", "factor"), ("instance", "factor")]
)
def test_a_node_that_is_slow_in_one_arm_withholds_unless_nodes_are_the_factor(
    factor: str, kind: str, screen: Path
) -> None:
    asked, reported = with_screens(study(factor), [screen], time.time())
    assert [one.partition(": command -")[0] for one in reported] == [f"slow in {screen}: n5"]
    of = {name: {name: screened(asked, f"{name}.cluster")} for name in ("n1", "n5")}
    [found] = audit(of["n1"], of["n5"], Question(asked, "b", ["memory"])).differences
    assert (found.key, found.kind, found.rank) == (SLOW, kind, 3)
    assert found.reference_value == "no"
    assert found.arm_value.startswith("command -1")


def test_a_node_that_is_slow_in_both_arms_is_equal(screen: Path) -> None:
    asked, _ = with_screens(study("mpi", first="n5"), [screen], time.time())
    facts = {"n5": screened(asked, "n5")}
    assert audit(facts, facts, Question(asked, "b")).differences == ()


def test_a_study_without_a_screen_has_no_such_fact() -> None:
    assert screened(study("mpi"), "n5") == {}


def test_an_old_screen_is_refused_and_nodes_that_are_not_in_it_are_reported(screen: Path) -> None:
    _, reported = with_screens(study("mpi", second="n77"), [screen], time.time())
    assert reported == [f"not screened, failed or undecided in {screen}: n77"]
    with pytest.raises(UserError, match="a week is the most"):
        with_screens(study("mpi"), [screen], time.time() + OLDEST_S + 60)


def test_of_two_screens_each_says_what_is_slow_among_its_nodes(
    screen: Path, tmp_path: Path
) -> None:
    """Twelve nodes and, a day before, eight of these and others; the newer one counts."""
    nodes = nodes_of(16, {2: 0.15, 14: 0.15})
    made = replace(screen_of(nodes), at=time.time() - 86400)
    plan.write(made, tmp_path)
    executed(made, nodes, tmp_path)
    asked = study("mpi", first="n14", second="n99")
    for several in ([screen, tmp_path], [tmp_path, screen]):
        found, reported = with_screens(asked, several, time.time())
        assert sorted(found.asked["screen"]) == ["n14", "n5"], "n2 is well in the newer one"
        assert reported[0].endswith(f" in {several[0]}, {several[1]}: n99")
        assert reported[1].startswith(f"slow in {tmp_path}: n14: ")
    alone, _ = with_screens(asked, [tmp_path], time.time())
    assert sorted(alone.asked["screen"]) == ["n14", "n2"]


def test_a_node_of_the_slower_group_is_slow_and_a_failed_one_is_not_known(tmp_path: Path) -> None:
    nodes = nodes_of(16, dict.fromkeys(range(8), 0.15))
    nodes[12].does = dict.fromkeys(range(1, 9), "dies")
    made = replace(screen_of(nodes), at=time.time())
    plan.write(made, tmp_path)
    executed(made, nodes, tmp_path)
    asked, reported = with_screens(study("mpi", first="n12", second="n5"), [tmp_path], time.time())
    assert sorted(asked.asked["screen"]) == [f"n{i}" for i in range(8)]
    assert reported[0] == f"not screened, failed or undecided in {tmp_path}: n12"
    assert reported[1].startswith(f"slow in {tmp_path}: n5: command -1")
    assert reported[1].endswith("as the slower of two groups")


SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "screen-schema.json").read_text())


def answered(folder: Path, nodes: list[Node], facts: dict[str, Facts] | None = None) -> Answer:
    screen = screen_of(nodes)
    executed(screen, nodes, folder)
    with Store(folder, write=True) as store:
        store.keep_gathered([Gathered(n, n, 0.0, one) for n, one in (facts or {}).items()])
        return answer_of(screen, store)


def text_of(answer: Answer, *, kubernetes: bool = False) -> str:
    out = StringIO()
    console = console_on(out, width=100)
    print_answer(answer, console)
    print_commands(answer, console, kubernetes=kubernetes)
    return out.getvalue()


@pytest.fixture(scope="module")
def one_slow(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """Sixteen nodes: n5 is slow and unlike its peers, n3 has died."""
    nodes = nodes_of(16, {5: 0.15})
    nodes[3].does = dict.fromkeys(range(1, 9), "dies")
    facts: dict[str, Facts] = {
        f"n{i}": {"cpu.governor": "performance", "cpu.model": "EPYC", "machine.serial": f"s{i}"}
        for i in range(16)
    }
    facts["n5"] = {**facts["n5"], "cpu.governor": "powersave"}
    return answered(tmp_path_factory.mktemp("screen"), nodes, facts)


def test_json_is_as_its_schema_says(one_slow: Answer) -> None:
    found = to_json(one_slow)
    jsonschema.validate(found, SCHEMA)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["exclude"] == "--exclude=n[3,5]"
    assert [one["node"] for one in found["nodes"][:2]] == ["n5", "n3"]
    assert len(found["nodes"]) == 16


def test_beside_a_slow_node_stands_what_its_brothers_have_otherwise(one_slow: Answer) -> None:
    [slow] = one_slow.having("slow")
    assert [one.key for one in slow.facts] == ["cpu.governor"]
    said = text_of(one_slow)
    assert "cpu.governor powersave, others: performance" in said
    assert "n[0-2,4,6-15]" in said


def test_the_promise_names_what_would_have_been_found(one_slow: Answer) -> None:
    first, second = words.promise(one_slow)
    assert "at most 5 %" in first
    assert "if disturbances do not last from round to round" in first
    share = one_slow.found["command"]
    assert share is not None
    assert 0.04 < share < 0.15
    assert f"{share * 100:g} % below" in second


def test_coarse_figures_are_said_and_count(tmp_path: Path, one_slow: Answer) -> None:
    """As the seconds of a short command on hosts whose date(1) knows no fractions."""
    assert not one_slow.coarse
    steps = (100, 90, 110, 100, 100, 110, 100)
    nodes = [Node(f"n{i}", lambda launch: steps[launch % len(steps)]) for i in range(8)]
    answer = answered(tmp_path, nodes)
    assert answer.coarse == {"command": 0.1}
    reported, found = " ".join(words.promise(answer)), answer.found["command"]
    assert "command: its figures come in steps of 10 %. A node is called slow only" in reported
    assert "scatter too much" not in reported
    assert found is not None
    assert found > 0.1


def test_a_difference_that_a_coarse_clock_enlarges_names_nobody(tmp_path: Path) -> None:
    """n3 is 1 % slower, which looks like 10 %; n5 is 40 % slower."""
    names = [f"n{i}" for i in range(8)]
    steps = {name: {"n3": 99.5, "n5": 60.2}.get(name, 100.4) // 10 * 10 for name in names}

    def node(name: str) -> Node:
        return Node(name, lambda _: steps[name])

    nodes = [node(name) for name in names]
    answer = answered(tmp_path / "nodes", nodes)
    assert [one.node for one in answer.having("slow")] == ["n5"]
    [open_] = answer.having("undecided")
    assert open_.node == "n3"
    assert "-10.0 %" in words.cause(answer, open_)
    assert "not proved to be below the margin of 4 % and a step of 10 % by" in words.cause(
        answer, open_
    )
    fleet = linked(nodes, lambda one, other: min(steps[one], steps[other]))
    screen = screen_of(nodes, links=True)
    (tmp_path / "links").mkdir()
    executed(screen, nodes, tmp_path / "links", fleet)
    with Store(tmp_path / "links") as store:
        answer = answer_of(screen, store)
    assert answer.coarse
    assert [one.node for one in answer.having("slow")] == ["n5"]


def test_commands_are_words_that_a_shell_takes(one_slow: Answer) -> None:
    [drain], [resume] = operators.commands(one_slow)
    assert resume == "scontrol update NodeName=n5 State=RESUME"
    argv = shlex.split(drain)
    assert argv[:4] == ["scontrol", "update", "NodeName=n5", "State=DRAIN"]
    assert argv[4].startswith("Reason=paribus: command -1")
    for said in (text_of(one_slow, kubernetes=True), page(one_slow, kubernetes=True)):
        assert "kubectl cordon n5" in said
        assert "kubectl uncordon n5" in said
        assert "scontrol" not in said
        assert "--exclude" not in said


def test_where_only_nodes_failed_kubernetes_is_asked_nothing(one_slow: Answer) -> None:
    failed = replace(one_slow, lines=tuple(one_slow.having("failed")))
    for made in (text_of, page):
        assert "--exclude=n3" in made(failed)
        assert "For operators" not in made(failed, kubernetes=True)


def test_slow_again_is_who_was_slow_on_another_day(one_slow: Answer) -> None:
    day = replace(one_slow, screen=replace(one_slow.screen, at=one_slow.screen.at + 3 * 86400))
    lines = with_earlier(day, one_slow).lines
    assert {one.node for one in lines if one.again} == {"n5"}
    assert "slow again, as on 19" in words.cause(day, lines[0])
    healthy = replace(one_slow, lines=tuple(one for one in one_slow.lines if one.word != "slow"))
    assert not any(one.again for one in with_earlier(day, healthy).lines)
    with pytest.raises(UserError, match="with no reboot of a node between them"):
        with_earlier(one_slow, one_slow)


def test_slow_again_is_who_was_slow_before_a_reboot(one_slow: Answer) -> None:
    def at(later_s: float, boot: str) -> Answer:
        boots = {"n5": boot, "n6": "one"}
        screen = replace(one_slow.screen, at=one_slow.screen.at + later_s, boots=boots)
        return replace(one_slow, screen=screen)

    before = at(0.0, "one")
    again = {one.node: one.again for one in with_earlier(at(60.0, "two"), before).lines}
    assert again.pop("n5").endswith(", before a reboot")
    assert not any(again.values())
    for wrong in (at(60.0, "one"), at(-60.0, "two")):
        with pytest.raises(UserError, match="no reboot"):
            with_earlier(wrong, before)


class Tags(HTMLParser):
    """Collects what is open at the end, and all titles of the fleet's tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.titles += [value for key, value in attrs if key == "title" and value]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_a_tile_for_each_node_and_nothing_of_a_node_is_markup(
    one_slow: Answer,
) -> None:
    tags = Tags()
    tags.feed(page(one_slow))
    assert tags.open == []
    assert len(tags.titles) == 16
    evil = replace(one_slow.lines[0], node="<script>x</script>")
    tags = Tags()
    tags.feed(page(replace(one_slow, lines=(evil, *one_slow.lines[1:]))))
    assert tags.scripts == 0


def test_a_rack_with_another_setting_is_a_group_with_the_fact_that_divides_it(
    tmp_path: Path,
) -> None:
    nodes = nodes_of(24, dict.fromkeys(range(6), 0.2))
    facts: dict[str, Facts] = {
        f"n{i}": {"cpu.governor": "powersave" if i < 6 else "performance"} for i in range(24)
    }
    answer = answered(tmp_path, nodes, facts)
    [two] = answer.groups
    assert set(two.lower) == {f"n{i}" for i in range(6)}
    assert [one.key for one in two.facts] == ["cpu.governor"]
    assert {one.node for one in answer.having("lower group")} == set(two.lower)
    assert answer.slow
    assert operators.exclude(answer) == ""
    jsonschema.validate(to_json(answer), SCHEMA)
    assert "Two groups by command: n[0-5] (6 of 24 nodes)" in " ".join(text_of(answer).split())


@pytest.mark.parametrize(("waits", "reported"), [(80.0, 1), (3.0, 0)])
def test_a_number_that_varies_is_reported_beyond_those_of_all_brothers(
    waits: float, reported: int, tmp_path: Path
) -> None:
    key = "load.cpu_pressure_10s"
    facts: dict[str, Facts] = {f"n{i}": {key: 2.0 * (i % 4)} for i in range(8)}
    facts["n2"] = {key: waits}
    [slow] = answered(tmp_path, nodes_of(8, {2: 0.2}), facts).having("slow")
    assert len(slow.facts) == reported
    assert all((one.arm_value, one.reference_value) == ("80", "0 to 6") for one in slow.facts)


def test_what_is_busy_on_the_slow_node_alone_is_the_first_cause(tmp_path: Path) -> None:
    nodes = nodes_of(8, {2: 0.2})
    for node in nodes:
        node.beside = ("sshd", "miner") if node.name == "n2" else ("sshd",)

    class Once(Node):
        """Beside its first launch alone something else is busy too."""

        def run(self, command: Command, **how: Any) -> Completed:
            done = super().run(command, **how)
            return replace(done, beside=("sshd", "miner", "cron")) if self.launched == 1 else done

    slow_one = nodes[2]
    nodes[2] = Once("n2", slow_one.speed)
    nodes[2].beside = slow_one.beside
    facts: dict[str, Facts] = {one.name: {"cpu.model": "EPYC"} for one in nodes}
    [slow] = answered(tmp_path, nodes, facts).having("slow")
    [reported] = slow.facts
    assert (reported.key, reported.arm_value, reported.rank) == (
        "load.during.consumers",
        "miner",
        3,
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the two says which nodes"),
        (["pocket:3", "--scheduler", "slurm:p"], "one of the two says which nodes"),
        (["pocket:3", "--unit", "s"], "--unit: applies to --regex"),
        (["pocket:3", "--regex", "(.*)"], "--regex: applies to --command"),
        (["pocket:3", "--command", "x", "--regex", "(.*)", "--unit", "it/s"], "is a rate: more"),
        (["--scheduler", "pbs:q"], "is no partition of Slurm"),
    ],
)
def test_command_lines_that_ask_for_nothing_are_refused(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    done = paribus("screen", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    ["--resume", "--margin 5%", "--with ep", "--links", "--dry-run", "--out x", "--budget 1h"],
)
def test_what_a_stored_screen_would_not_obey_is_refused(
    words: str, screen: Path, tmp_path: Path
) -> None:
    done = paribus("screen", screen, *words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"paribus: {words.split()[0]}: ")
    assert "--out " in done.stderr
    shown = ("--json", "--fail-on", "slow", "--kubectl")
    assert paribus("screen", screen, *shown, cwd=tmp_path).returncode == 1


def test_margins_are_shares_of_what_is_measured() -> None:
    several = plan.selections(["ep", "memory_bandwidth", "gpu_gemm"], "", {}, 2)
    usual = {"ep": 0.04, "memory_bandwidth": 0.04, "gpu_gemm": 0.08}
    assert plan.margins_of([], several) == usual
    assert plan.margins_of(["ep=2%"], several) == {**usual, "ep": 0.02}
    assert plan.margins_of(["2%", "ep=8%"], several) == {**dict.fromkeys(usual, 0.02), "ep": 0.08}
    for wrong in ("0", "100%", "120%", "is=2%", "x"):
        with pytest.raises(UserError):
            plan.margins_of([wrong], several)


@pytest.mark.parametrize("text", ["slurm", "slurm:", "p", "pbs:q"])
def test_only_partitions_of_slurm_are_taken(text: str) -> None:
    with pytest.raises(UserError, match="is no partition"):
        partition_of(text)


@pytest.fixture
def stored_one(tmp_path: Path) -> Path:
    """Return the directory of a screen of four nodes, as it stands after its last round."""
    nodes = nodes_of(4, {})
    plan.write(screen_of(nodes), tmp_path)
    executed(screen_of(nodes), nodes, tmp_path)
    return tmp_path


def test_what_is_written_goes_through_no_link(stored_one: Path) -> None:
    """A directory that somebody sent may have links where the answer goes."""
    mine = stored_one / "mine"
    mine.write_text("mine")
    for name in ("answer.json", "screen.html"):
        (stored_one / name).symlink_to(mine)
    done = paribus("screen", stored_one, cwd=stored_one, timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert mine.read_text() == "mine"
    assert json.loads((stored_one / "answer.json").read_text())["nodes"]


def test_the_answer_needs_no_file(stored_one: Path) -> None:
    (stored_one / "answer.json").mkdir()
    done = paribus("screen", stored_one, cwd=stored_one, timeout_s=60)
    assert done.stdout.startswith("4 nodes: no sign of slowness.")
    assert (done.returncode, "answer.json: cannot be written" in done.stderr) == (0, True)


def test_a_screen_in_which_nothing_was_measured_is_no_pass(tmp_path: Path) -> None:
    """Its command is wrong, say: a pipeline must not read that as no sign of slowness."""
    nodes = nodes_of(4)
    for one in nodes:
        one.does = dict.fromkeys(range(40), "dies")
    plan.write(screen_of(nodes), tmp_path)
    executed(screen_of(nodes), nodes, tmp_path)
    for more in ((), ("--fail-on", "slow")):
        done = paribus("screen", tmp_path, *more, cwd=tmp_path, code=4)
        assert done.stdout.startswith("n[0-3] failed.")


def test_two_screens_of_one_directory_are_not_mixed(tmp_path: Path) -> None:
    where = tmp_path / "out"
    with plan.claimed(where):
        words = ("screen", "pocket:4", "--with", "ep", "--out", where)
        for more in ((), ("--resume",)):
            done = paribus(*words, *more, cwd=tmp_path, timeout_s=60)
            assert done.returncode == 2
            assert "screen" in done.stderr.splitlines()[0]
        assert "another Paribus is at work" in paribus(*words, cwd=tmp_path).stderr
    assert not where.exists()  # nothing was measured


def test_the_first_line_counts_nodes_that_were_not_screened(stored_one: Path) -> None:
    nodes = nodes_of(4, {})
    screen = replace(screen_of(nodes), absent={"n8": "drained in Slurm"})
    with Store(stored_one) as store:
        answer = answer_of(screen, store)
    assert words.headline(answer) == "4 nodes: no sign of slowness; 1 node not screened."


@pytest.mark.parametrize("name", ["ALL", "n[1-9]", "n1,n2"])
def test_only_single_nodes_are_drained(one_slow: Answer, name: str) -> None:
    """Whoever wrote a screen that was sent may call a node ALL; nothing is asked of Slurm."""
    lines = tuple(replace(one, node=name) for one in one_slow.having("slow"))
    with pytest.raises(UserError, match="no name of one node"):
        operators.drain(replace(one_slow, lines=lines))


@pytest.mark.parametrize(
    ("state", "why", "is_drained"),
    [
        ("IDLE", "", True),
        ("IDLE+DRAIN", "paribus: command -9.0 %", True),
        ("IDLE+POWERED_DOWN", "", True),
        ("IDLE", "watch its memory", False),
        ("IDLE+DRAIN", "fan", False),
        ("DOWN*", "", False),
    ],
)
def test_another_owners_reason_is_never_overwritten(
    state: str, why: str, is_drained: bool, one_slow: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def scontrol(argv: Sequence[str], **_: object) -> Captured:
        asked.append(argv[1])
        reason = f"\n   Reason={why} [root@2026-11-29T07:00:00]" if why else ""
        return Captured(0, f"NodeName=n5 CPUs=4\n   State={state} Threads=1{reason}\n", "")

    monkeypatch.setattr(slurm, "capture", scontrol)
    [said] = operators.drain(one_slow)
    assert ("update" in asked) is is_drained
    assert (said == "n5: drained") is is_drained


def test_the_margin_is_a_share_of_the_speed(one_slow: Answer) -> None:
    screen = replace(one_slow.screen, margins={"command": 0.2})
    assert math.exp(-screen.bounds["command"]) == pytest.approx(0.8)


def test_what_a_study_measures_and_no_screen_did_is_reported(screen: Path) -> None:
    asked = replace(study("mpi"), benchmarks=plan.selections(["ep", "cg"], "", {}, 2))
    _, reported = with_screens(asked, [screen], time.time())
    assert reported[0] == f"not measured in {screen}: ep, cg"


def test_run_says_it_as_a_sentence_of_its_own(screen: Path, tmp_path: Path) -> None:
    words = ("--dry-run", "--no-pilot", "--screen", screen)
    said = paribus("run", write_study(tmp_path), *words, cwd=tmp_path).stderr
    assert f"paribus: not measured in {screen}: steady\n" in said
