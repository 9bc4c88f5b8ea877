"""Which logs are compared: those of one tool with the same parameters; others are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from log_folders import FIXTURES, judged, many, names_of, osu, text_of, words_of, write
from paribus.core import Case, UserError
from paribus.logs.comparable import distinguished, names_of_cases
from studies import paribus


def test_nothing_to_compare_is_exit_2_and_says_what_was_found(tmp_path: Path) -> None:
    imb = (FIXTURES / "imb_pingpong").glob("good-*.out")
    write(tmp_path / "a", {"x.log": osu(), "odd.txt": "?"})
    write(tmp_path / "b", {"y.log": next(imb).read_text()})
    done = paribus("compare", "a", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said = " ".join(done.stderr.split())
    assert "osu_latency: 1 log of arm a, none of b" in said
    assert "imb_pingpong" in said
    assert "1 log of b, none of arm a" in said
    assert "two tools differ by 14 % on the same latency" in said
    (tmp_path / "c").mkdir()
    done = paribus("compare", "a", "c", cwd=tmp_path)
    assert done.returncode == 2
    assert "14 %" not in done.stderr
    done = paribus("compare", "a", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    done = paribus("compare", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "a: is one arm only" in done.stderr


def test_other_parameters_are_left_out_by_name(tmp_path: Path) -> None:
    other = osu().replace("MPI_CHAR", "MPI_FLOAT")
    a = write(tmp_path / "a", {"x.log": osu(), "y.log": other})
    b = write(tmp_path / "b", {"x.log": osu(1.2)})
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "withheld"}
    assert text_of(found, "not comparable") == (
        "Skipped, no matching log in the other arm: osu_latency (datatype MPI_FLOAT): 1 log of"
        " arm a, none of b."
    )


def test_cases_that_one_arm_lacks_are_left_out_by_name(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", many()), write(tmp_path / "b", many(1.1))
    (b / "run3.log").write_text(osu(1.1, sizes=5))
    found = judged(a, b)
    assert words_of(found) == {"osu_latency": "slower"}
    assert "osu_latency, b: run3.log lacks 3 of 8 cases (32 B, 64 B, 128 B)" in text_of(
        found, "truncated logs"
    )
    assert found.headlines[0].arm_value is not None
    assert found.headlines[0].arm_value.launches == 11
    for i in (1, 2, 4, 5):
        (b / f"run{i}.log").write_text(osu(1.1, sizes=5))
    assert text_of(judged(a, b), "truncated logs").endswith(
        "osu_latency, b: run1.log, run2.log, run3.log, and 2 more, lack 3 of 8 cases"
        " (32 B, 64 B, 128 B)."
    )
    for path in b.iterdir():
        path.write_text(osu(1.1, sizes=6))
    found = judged(a, b)
    assert "2 cases not in every arm, in arm a: 64 B, 128 B" in text_of(found, "cases left out")
    assert len(found.cases) == 6


def of_sizes(*sizes: int, level: float = 1.0) -> str:
    """Return an output of osu_latency for these sizes in bytes."""
    heading, unit, _ = osu().partition("(us)\n")
    rows = (f"{size:<10}{level * (10 + place):17.2f}\n" for place, size in enumerate(sizes))
    return heading + unit + "".join(rows)


@pytest.mark.parametrize("launches", [1, 8])
def test_each_size_in_a_log_of_its_own_is_compared_with_its_like(
    tmp_path: Path, launches: int
) -> None:
    for arm, level in (("a", 1.0), ("b", 1.5)):
        for size in (8, 4096, 65536) if arm == "a" else (8, 4096):
            for n in range(launches):
                text = of_sizes(size, level=level * (1 + 0.002 * n))
                write(tmp_path / arm, {f"{size}B-{n}.log": text})
    found = judged(tmp_path / "a", tmp_path / "b")
    word = "slower" if launches > 1 else "withheld"
    assert words_of(found) == {"osu_latency (8 B)": word, "osu_latency (4 KiB)": word}
    assert f"osu_latency (64 KiB): {launches} log" in text_of(found, "not comparable")
    assert text_of(found, "not comparable").endswith(" of arm a, none of b.")
    assert "truncated logs" not in names_of(found)


@pytest.mark.parametrize(
    ("fixture", "changes", "one", "other"),
    [
        (
            "hpcg/good-benchmark_np2",
            [("Global nx=64", "Global nx=32"), ("Dimensions::nx=32", "Dimensions::nx=16")],
            "hpcg (nx 32)",
            "hpcg (nx 16)",
        ),
        (
            "npb_cg/good-a_2",
            [("=                       15", "=                       30"), ("0.22\n", "0.45\n")],
            "npb_cg (iterations 15)",
            "npb_cg (iterations 30)",
        ),
        (
            "npb_cg/good-a_2",
            [("=                        A", "=                        B")],
            "npb_cg (class A)",
            "npb_cg (class B)",
        ),
        (
            "npb_cg/good-a_2",
            [("=                        2", "=                        4"), ("3340.02", "1670.01")],
            "npb_cg (2 ranks)",
            "npb_cg (4 ranks)",
        ),
    ],
    ids=["grid", "iterations", "class", "ranks"],
)  # fmt: skip
def test_what_differs_between_logs_that_are_not_compared_is_named(
    tmp_path: Path, fixture: str, changes: list[tuple[str, str]], one: str, other: str
) -> None:
    text = changed = (FIXTURES / f"{fixture}.out").read_text()
    for before, after in changes:
        assert before in changed
        changed = changed.replace(before, after)
    a, b = write(tmp_path / "a", {"x.log": text}), write(tmp_path / "b", {"x.log": changed})
    with pytest.raises(UserError) as refused:
        judged(a, b)
    assert f"{one}: 1 log of arm a, none of b; {other}: 1 log of b, none of arm a" in str(
        refused.value
    )


def test_logs_with_other_cases_are_not_compared_and_what_differs_is_named(tmp_path: Path) -> None:
    one = (FIXTURES / "hpl" / "good-multi_np2.out").read_text()
    other = one.replace("P      :       1 ", "P      :       2 ").replace(
        "Q      :       2 ", "Q      :       1 "
    )
    other = other.replace("     1     2    ", "     2     1    ")
    a, b = write(tmp_path / "a", {"x.log": one}), write(tmp_path / "b", {"x.log": other})
    with pytest.raises(UserError) as refused:
        judged(a, b)
    assert (
        "hpl (p=1, q=2): 1 log of arm a, none of b; hpl (p=2, q=1): 1 log of b, none of arm a"
        in str(refused.value)
    )
    write(a, {"y.log": other})
    assert words_of(judged(a, b)) == {"hpl": "withheld"}


def test_sweeps_that_overlap_are_compared_where_all_do(tmp_path: Path) -> None:
    sizes = (of_sizes(1, 2, 4, 8), of_sizes(4, 8, 16, 32))
    for arm in "ab":
        write(tmp_path / arm, {f"{i}.log": text for i, text in enumerate(sizes)})
    found = judged(tmp_path / "a", tmp_path / "b")
    assert {str(f.case) for f in found.cases} == {"4 B", "8 B"}
    assert text_of(found, "cases left out") == (
        "Cases skipped: osu_latency: 4 cases not in every log: 1 B, 2 B, 16 B, 32 B."
    )
    for arm in "ab":
        write(tmp_path / arm, {f"{size}.log": of_sizes(size, 2 * size) for size in (8, 16, 32, 64)})
        (tmp_path / arm / "0.log").unlink()
        (tmp_path / arm / "1.log").unlink()
    with pytest.raises(UserError, match="osu_latency: no case is in all of its logs"):
        judged(tmp_path / "a", tmp_path / "b")


def test_parts_that_only_their_metrics_distinguish_have_labels_of_their_own() -> None:
    size = Case.of(bytes=8)
    groups = [frozenset({("latency", size)}), frozenset({("bandwidth", size)})]
    assert distinguished(groups) == ["latency at 8 B", "bandwidth at 8 B"]


def test_cases_with_several_metrics_are_counted_once(tmp_path: Path) -> None:
    names = ("24_gpu_mib", "200g_all_sizes_gbits")
    one, sweep = (
        (FIXTURES / "ib_write_bw" / f"good-real-{name}.out").read_text() for name in names
    )
    a, b = write(tmp_path / "a", {"x.log": one}), write(tmp_path / "b", {"x.log": sweep})
    found = judged(a, b)
    assert text_of(found, "cases left out").endswith(
        "ib_write_bw: 22 cases not in every arm, in b: 2 B, 4 B, 8 B, 16 B, ...."
    )
    assert text_of(found, "versions differ").startswith("ib_write_bw may be of different")
    size, p99 = Case.of(bytes=8), "latency_p99"
    assert names_of_cases({(p99, size)}, {(p99, size), ("latency", size)}) == ["latency_p99 at 8 B"]


def test_several_problems_are_called_by_what_distinguishes_them(tmp_path: Path) -> None:
    text = (FIXTURES / "lammps" / "good-lj_2ranks.out").read_text()
    other = text.replace("    0.7574531   ", "    1.2574531   ")
    a = write(tmp_path / "a", {"x.log": text, "y.log": other})
    found = judged(a, write(tmp_path / "b", {"x.log": text, "y.log": other}))
    assert set(words_of(found)) == {"lammps, Temp 0.7574531", "lammps, Temp 1.2574531"}
    found = judged(a, write(tmp_path / "c", {"x.log": text}))
    assert text_of(found, "not comparable").endswith(
        "lammps, Temp 1.2574531 (y.log): 1 log of arm a, none of c."
    )


def test_versions_are_reported(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"x.log": osu()})
    found = judged(a, write(tmp_path / "b", {"x.log": osu(version="7.5")}))
    assert "osu_latency is not of one version: arm a 7.4; b 7.5" in text_of(
        found, "versions differ"
    )
    assert "osu_latency 7.4, osu_latency 7.5" in found.design


def test_a_version_that_a_tool_does_not_print_is_not_reported(tmp_path: Path) -> None:
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
    assert "do not compare figures of different programs" in text_of(found, "tools not mixed")
    assert not found.layers


def test_a_label_has_no_setting_that_follows_from_another(tmp_path: Path) -> None:
    """Pairs are half of the ranks; the window parts what the ranks do not."""
    text = (FIXTURES / "osu_mbw_mr" / "good-shm.out").read_text()
    assert "pairs: 1 ] [ window size: 64" in text
    for arm in ("a", "b"):
        for pairs, window in ((1, 64), (2, 64), (4, 32)):
            said = f"pairs: {pairs} ] [ window size: {window}"
            name = f"p{pairs}w{window}.out"
            write(tmp_path / arm, {name: text.replace("pairs: 1 ] [ window size: 64", said)})
    both = tmp_path / "a", tmp_path / "b"
    labels = {f"osu_mbw_mr ({ranks} ranks)" for ranks in (2, 4, 8)}
    assert set(words_of(judged(*both))) == labels
    for arm in ("a", "b"):
        said = text.replace("pairs: 1 ] [ window size: 64", "pairs: 4 ] [ window size: 64")
        write(tmp_path / arm, {"p4w64.out": said})
    assert set(words_of(judged(*both))) == {
        *("osu_mbw_mr (window 64, 2 ranks)", "osu_mbw_mr (window 64, 4 ranks)"),
        *("osu_mbw_mr (window 32, 8 ranks)", "osu_mbw_mr (window 64, 8 ranks)"),
    }
