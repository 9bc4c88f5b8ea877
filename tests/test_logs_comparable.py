"""Which logs are compared: those of one tool with the same parameters; others are named."""

from __future__ import annotations

from pathlib import Path

from log_folders import FIXTURES, judged, many, osu, text_of, words_of, write
from studies import paribus


def test_nothing_to_compare_is_exit_2_and_says_what_was_found(tmp_path: Path) -> None:
    imb = (FIXTURES / "imb_pingpong").glob("good-*.out")
    write(tmp_path / "a", {"x.log": osu(), "odd.txt": "?"})
    write(tmp_path / "b", {"y.log": next(imb).read_text()})
    done = paribus("compare", "a", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.split())
    assert "osu_latency: 1 log of a, none of b" in said
    assert "imb_pingpong" in said
    assert "1 log of b, none of a" in said
    assert "two tools differ by 14 % on the same latency" in said
    (tmp_path / "c").mkdir()
    done = paribus("compare", "a", "c", cwd=tmp_path)
    assert done.returncode == 2
    done = paribus("compare", "a", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    done = paribus("compare", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_other_parameters_are_left_out_by_name(tmp_path: Path) -> None:
    other = osu().replace("MPI_CHAR", "MPI_FLOAT")
    a = write(tmp_path / "a", {"x.log": osu(), "y.log": other})
    b = write(tmp_path / "b", {"x.log": osu(1.2)})
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert text_of(found, "not comparable") == (
        "Left out, for want of the like: osu_latency (datatype MPI_FLOAT): 1 log of a, none of b."
    )


def test_cases_that_one_arm_lacks_are_left_out_by_name(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many()), write(tmp_path / "b", many(1.1))
    (b / "run3.log").write_text(osu(1.1, sizes=5))
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower"}
    assert "osu_latency, b: run3.log lacks 3 of 8 cases (32 B, 64 B, 128 B)" in text_of(
        found, "logs cut short"
    )
    assert found.headlines[0].comparison is not None
    assert found.headlines[0].comparison.blocks == 11
    for path in b.iterdir():
        path.write_text(osu(1.1, sizes=6))
    found = judged(a, b)
    assert "2 cases not in every arm, in a: 64 B, 128 B" in text_of(found, "cases left out")
    assert len(found.cases) == 6


def test_versions_are_told(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"x.log": osu()})
    found = judged(a, write(tmp_path / "b", {"x.log": osu(version="7.5")}))
    assert "osu_latency is not of one version: a 7.4; b 7.5" in text_of(found, "versions differ")
    assert "osu_latency 7.4, osu_latency 7.5" in found.design


def test_a_version_that_a_tool_does_not_print_is_not_told(tmp_path: Path) -> None:
    text = (FIXTURES / "incast" / "good-handmade-three-senders.out").read_text()
    write(tmp_path, {"a.log": text, "b.log": text})
    found = judged(tmp_path / "a.log", tmp_path / "b.log")
    assert found.design.startswith("2 logs of incast, paired: one log of each arm.")
    shown = {(f.metric.name, str(f.case)) for f in found.cases}
    assert {("sender", f"queue_pairs={q}, sender={n}") for q in (4, 16, 64) for n in (1, 2, 3)} < (
        shown
    )


def test_two_tools_are_never_mixed_and_the_report_says_so(tmp_path: Path) -> None:
    imb = next(iter(sorted((FIXTURES / "imb_pingpong").glob("good-*.out")))).read_text()
    for arm in ("a", "b"):
        write(tmp_path / arm, {"imb.log": imb, "osu.log": osu()})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert set(words_of(found)) == {"osu_latency", "imb_pingpong"}
    assert "no figure of one is to be held against" in text_of(found, "tools not mixed")
    assert not found.layers
