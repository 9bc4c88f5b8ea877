"""OSU and IMB: forms of output of which no whole capture is at hand, and what each refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outputs import read, reading, refusal, text_of
from paribus.benchmarks import get
from paribus.core import Case, ParseError, Reading, Request


def values(reading: Reading) -> dict[tuple[str, str], float]:
    return {(s.metric, str(s.case)): s.values[0] for s in reading.samples}


# --- OSU ------------------------------------------------------------------------------------------


def test_the_datatype_may_follow_the_heading_as_in_7_2() -> None:
    text = (
        "# OSU MPI-CUDA Bandwidth Test v7.2\n"
        "# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
        "# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n"
        "1                       1.01\n2                       2.03\n"
    )
    found = read("osu_bw", text)
    assert values(found) == {("bandwidth", "1 B"): 1.01, ("bandwidth", "2 B"): 2.03}
    assert found.version == "7.2"
    assert found.parameters["device"] == "CUDA"
    assert found.parameters["buffers"] == "DEVICE HOST"
    assert found.parameters["datatype"] == "MPI_CHAR"


def test_tabs_and_percentiles_of_bandwidths_are_read() -> None:
    text = (
        "# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"
        "# Size      Bandwidth (MB/s)  P50 Tail BW(MB/s)  P99 Tail BW(MB/s)\n"
        "8\t215.00\t230.00\t190.00\n"
    )
    assert values(read("osu_bw", text))["bandwidth", "8 B"] == 215.0


def test_percentiles_are_metrics_and_demanded_when_asked_for() -> None:
    plain, tailed = text_of("osu_latency/good-shm"), text_of("osu_latency/good-z_shm")
    assert values(read("osu_latency", tailed))["latency_p99", "4 KiB"] > 0
    asked = Request({"bytes": [2**i for i in range(23)], "tail": True}, 2)
    with pytest.raises(ParseError, match="latency_p99 at 1 B is missing"):
        get("osu_latency").parse(plain, asked)


def test_osu_runs_the_range_and_only_the_sizes_asked_for_are_judged() -> None:
    benchmark = get("osu_latency")
    asked = Request({"bytes": benchmark.parameters["bytes"].read(["4 MiB", "1 B", "64 KiB"])}, 2)
    assert benchmark.command(asked).argv == ("osu_latency", "-m", "1:4194304")
    text = text_of("osu_latency/good-shm")
    parsed = benchmark.parse(text, asked)
    assert [str(s.case) for s in parsed.samples] == ["1 B", "64 KiB", "4 MiB"]
    with pytest.raises(ParseError, match="latency at 0 B is there but was not asked for"):
        benchmark.parse(text.replace("\n1 ", "\n0  0.10\n1 "), asked)
    short = Request({"bytes": [1, 8 << 20]}, 2)
    with pytest.raises(ParseError, match="latency at 8 MiB is missing"):
        benchmark.parse(text, short)


def test_of_all_types_only_the_sizes_asked_for_are_judged() -> None:
    asked = Request({"bytes": [1, 16, 1024], "datatype": "all"}, 2)
    found = get("osu_latency").parse(text_of("osu_latency/good-alltypes_shm"), asked)
    assert {(c["datatype"], c["bytes"]) for c in (dict(s.case.items) for s in found.samples)} == {
        *(("MPI_CHAR", 1), ("MPI_CHAR", 16), ("MPI_CHAR", 1024)),
        *(("MPI_INT", 16), ("MPI_INT", 1024), ("MPI_FLOAT", 16), ("MPI_FLOAT", 1024)),
    }


def test_validation_that_was_asked_for_must_be_there() -> None:
    asked = Request({"bytes": [2**i for i in range(23)], "validation": True}, 2)
    with pytest.raises(ParseError, match="validation = True was asked for, the output says False"):
        get("osu_latency").parse(text_of("osu_latency/good-shm"), asked)


def test_ranks_are_counted_where_the_output_reports_them() -> None:
    assert reading("osu_latency/good-shm").ranks == 2
    assert reading("osu_allreduce/good-full_shm").ranks is None
    pairs = text_of("osu_mbw_mr/good-shm").replace("pairs: 1", "pairs: 3")
    assert read("osu_mbw_mr", pairs).ranks == 6
    with pytest.raises(ParseError, match="4 ranks were asked for, the output says 2"):
        get("osu_init").parse(text_of("osu_init/good-shm"), Request({}, 4))


@pytest.mark.parametrize(
    ("name", "stem", "old", "new", "cause"),
    [
        ("osu_latency", "shm", "Latency Test", "Bandwidth Test", "expected 'Latency', got"),
        ("osu_latency", "z_shm", "# Size ", "# Sighs ", "no table was printed"),
        ("osu_bw", "c_shm", "2712.68              Pass", "2712.68              Fail", "row 13"),
        ("osu_allreduce", "full_shm", "0.20              0.17", "0.20              0.21", "mean"),
        ("osu_mbw_mr", "shm", "25.55       25552880.49", "26.55       25552880.49", "not 2555288"),
        ("osu_barrier", "full_shm", "0.13", "0.00", "too small for what the program prints"),
        ("osu_latency", "shm", "412.66", "nan", "a row after the end of the table: '4194304 "),
        ("osu_latency", "shm", "412.66", "-inf", "a row after the end of the table: '4194304 "),
        ("osu_latency", "shm", "\n16  ", "\n17  ", "the size after 8 is 17"),
        ("osu_latency", "shm", "# Size ", "# Size  Latency (us)\n# Size ", "a second heading"),
        ("osu_latency", "z_shm", "0.14\n8 ", "0.11\n8 ", "a higher percentile is below a lower"),
        ("osu_latency", "alltypes_shm", "# Datatype: MPI_INT.\n", "", "not of which MPI type"),
        ("osu_barrier", "full_shm", "1000\n", "1000\n 0.13 0.13 0.13 1000\n", "second row without"),
        ("imb_bcast", "five", "# Allgather\n", "# Allgather\n# Gather\n", "Gather is in the list"),
        ("imb_bcast", "five", "4194304           10       278.51", "#", "expected a row or table"),
        ("imb_bcast", "five", "    0.26         0.16", "    0.26         0.36", "the mean 0.36"),
        ("imb_pingpong", "five", "0.10         9.95", "0.50         9.95", "not 1 bytes in 0.5"),
        ("imb_uniband", "shm", "14235830", "24235830", "not 24235830.0 messages/s"),
        ("imb_bcast", "np4", "# #processes = 4 ", "# #processes = 3 ", "for the 4 of"),
        ("imb_pingpong", "five", f"  4194304 {10:12} {264.74:12} {15843.09:12}\n", "", "longest"),
        ("imb_pingpong", "five", "       512         1000         0.20", "", "row or table"),
        ("imb_barrier", "multi1_np4", "            1           20         1.60", "", "or table"),
        ("imb_pingpong", "five", "Fri Nov 20", "Fry Nov 20", "not a date"),
        ("imb_pingpong", "five", "20 23:10:05", "20 24:10:05", "not a date"),
        ("imb_bcast", "np4", "# Machine", "Invalid benchmark name Gather\n# Machine", "not know"),
        ("imb_bcast", "np4", "Finalize\n", "Finalize\n# !! Bcast invalid for 3 !!\n", "so many"),
        ("imb_bcast", "np4", "# All proc", "# All", "the last line, 'All processes .* missing"),
        ("imb_bcast", "np4", "\n# All proc", "\n4 ranks\n# All proc", "table, got .4 ranks"),
        ("imb_allreduce", "multi1_np4", " 1            4 ", " 0            4 ", "a group"),
        ("imb_allreduce", "multi1_np4", " 1            4 ", "01            4 ", "a row"),
        ("imb_allreduce", "multi1_np4", " 1            4 ", " 1            8 ", "a size is not"),
    ],
)
def test_what_is_damaged_is_refused(name: str, stem: str, old: str, new: str, cause: str) -> None:
    refusal(f"{name}/good-{stem}", old, new, cause)


@pytest.mark.parametrize(
    ("name", "stem", "old", "new"),
    [
        ("osu_latency", "shm", "\n16  ", "\n17  "),
        ("osu_latency", "shm", "# Size ", "# Size  Latency (us)\n# Size "),
        ("osu_bcast", "full_shm", "0.22        1000\n2 ", "0.12        1000\n2 "),
        ("osu_bw", "c_shm", "49.98              Pass", "49.98              Fail"),
        ("imb_bcast", "np4", "0.25         0.36         0.30", "0.25         0.36         0.40"),
        ("imb_pingpong", "five", "20.07", "10.07"),
        ("imb_uniband", "np4", "67.08", "76.08"),
    ],
)
def test_a_refusal_names_the_line(name: str, stem: str, old: str, new: str) -> None:
    good = text_of(f"{name}/good-{stem}")
    damaged = good.replace(old, new, 1)
    pairs = zip(good.split("\n"), damaged.split("\n"), strict=False)
    changed = next(i for i, (one, other) in enumerate(pairs, 1) if one != other)
    refused = refusal(f"{name}/good-{stem}", old, new, times=1)
    # Of two headings it is the second that is too many.
    assert refused.line == changed + (old == "# Size ")


def test_osu_programs_that_nobody_reads_may_stand_around_one_that_is_read() -> None:
    text = text_of("osu_get_latency/good-real-v5_8")
    found = read("osu_get_latency", text)
    more = f"{text}# OSU MPI_Put multi-pair latency Test v5.8\n# Size  Latency (us)\n8  0.62\n"
    assert read("osu_get_latency", more).samples == found.samples
    more = f"# OSU NCCL Latency Test v7.5\n1  9.99\n{text}# OSU NCCL Bandwidth Test v7.5\n1  9.99\n"
    assert read("osu_get_latency", more).samples == found.samples
    after = text_of("osu_init/good-real-after_hello")
    assert read("osu_init", f"{after}# OSU MPI Hello World Test v5.6.3\n").samples
    with pytest.raises(ParseError, match="3 titles of OSU programs"):
        read("osu_init", f"{after}# OSU MPI Latency Test v5.6.3\n")
    with pytest.raises(ParseError, match="2 titles of OSU programs"):
        read("osu_get_latency", text * 2)


def test_managed_buffers_of_device_and_host_are_distinguished() -> None:
    text = "# OSU MPI-CUDA Latency Test v7.2\n# Send Buffer on MANAGED DEVICE (MD) and"
    text += " Receive Buffer on MANAGED HOST (MH)\n# Size  Latency (us)\n1  1.01\n"
    assert read("osu_latency", text).parameters["buffers"] == "MANAGED DEVICE MANAGED HOST"


# --- IMB ------------------------------------------------------------------------------------------


def test_one_output_of_several_parts_gives_each_its_own() -> None:
    text = text_of("imb_pingpong/good-five")
    assert values(read("imb_pingpong", text))["latency", "0 B"] == 0.09
    found = values(read("imb_alltoall", text))
    assert found["time", "4 MiB"] == 543.12
    assert found["time_max", "4 MiB"] == 544.54
    assert ("time", "0 B") not in found
    with pytest.raises(ParseError, match="no table of Barrier: the list has PingPong, Bcast"):
        read("imb_barrier", text)


def test_a_checking_build_must_find_no_defect() -> None:
    text = text_of("imb_barrier/good-shm").replace("t_avg[usec]", "t_avg[usec]      defects")
    good = text.replace("0.16\n", "0.16         0.00\n")
    assert values(read("imb_barrier", good)) == {("time", "all"): 0.16, ("time_max", "all"): 0.16}
    with pytest.raises(ParseError, match="defects is not zero"):
        read("imb_barrier", text.replace("0.16\n", "0.16         1.00\n"))


def test_settings_that_change_the_measurement_are_parameters() -> None:
    text = text_of("imb_pingpong/good-msglen").replace(
        "-iter 10 PingPong", "-iter 10 -off_cache 2 -sync off PingPong"
    )
    assert read("imb_pingpong", text).parameters["options"] == "-off_cache 2 -sync off"
    assert "options" not in reading("imb_pingpong/good-msglen").parameters


def test_repetitions_are_a_parameter_where_they_were_set() -> None:
    found = reading("imb_pingpong/good-five")
    assert found.parameters == {"datatype": "MPI_BYTE"}
    fixed = reading("imb_pingpong/good-msglog_shm")
    assert fixed.parameters["iterations"] == 1000


def test_until_4_1_a_mbyte_of_imb_is_2_20_bytes() -> None:
    text = text_of("imb_pingpong/good-real-4_1")
    suite = text.replace("MPI Benchmarks 4.1", "MPI Benchmark Suite V3.2")
    assert read("imb_pingpong", suite).samples == read("imb_pingpong", text).samples
    with pytest.raises(ParseError, match=r"0\.49 MB/s are not 1 bytes in 1\.93 us"):
        read("imb_pingpong", text.replace("Benchmarks 4.1", "Benchmarks 2018"))
    newer = text_of("imb_pingpong/good-2018_title").replace("Benchmarks 2018", "Benchmarks 4.1")
    with pytest.raises(ParseError, match="MB/s are not"):
        read("imb_pingpong", newer)


def test_two_outputs_of_imb_in_one_are_refused() -> None:
    one = text_of("imb_bcast/good-np4")
    for text in (one + one, one + one[: len(one) // 3], one + one[-len(one) // 3 :]):
        with pytest.raises(ParseError, match="two outputs in one"):
            read("imb_bcast", text)


def test_commands_ask_for_exactly_what_is_wanted() -> None:
    def asked(name: str, ranks: int, **own: object) -> tuple[str, ...]:
        defaults = {key: p.default for key, p in get(name).parameters.items()}
        return get(name).command(Request({**defaults, **own}, ranks)).argv[1:]

    sizes = ("-msglen", "{scratch}/imb-lengths")
    assert asked("imb_bcast", 4, bytes=[8]) == ("Bcast", *sizes, "-npmin", "4")
    assert asked("imb_bcast", 4, bytes=[8], growing=True) == ("Bcast", *sizes)
    assert asked("imb_barrier", 4, multi=1) == ("Barrier", "-multi", "1")
    program = get("imb_bcast").command(Request({"bytes": [8, 1000]}, 2))
    assert program.files == {"imb-lengths": "8\n1000\n"}
    full = asked(
        "osu_bcast", 2, bytes=[8, 16], full=True, validation=True, tail=True, datatype="all"
    )
    assert full == ("-m", "8:16", "-f", "-c", "-z99", "-T", "all")
    assert asked("osu_init", 2) == ()


def test_of_all_types_only_sizes_that_a_type_can_have_are_asked_for() -> None:
    text = text_of("osu_latency/good-alltypes_shm")
    request = Request({"bytes": [2**i for i in range(11)], "datatype": "all"}, 2)
    found = {s.case for s in get("osu_latency").parse(text, request).samples}
    assert Case.of(bytes=2, datatype="MPI_CHAR") in found
    assert Case.of(bytes=2, datatype="MPI_INT") not in found


@given(st.integers(0, 22), st.floats(1.0, 5e4))
def test_rates_of_bytes_and_of_messages_agree_as_they_are_rounded(power: int, rate: float) -> None:
    """At 1 MiB, half a step of the messages is more than that of the MB/s."""
    size = 1 << power
    text = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
        "# [ pairs: 1 ] [ window size: 64 ]\n# Datatype: MPI_CHAR.\n"
        "# Size                  MB/s        Messages/s\n"
        f"{size:<10}{rate:>20.2f}{{:>20.2f}}\n"
    )
    messages = 1e6 * rate / size
    reading = read("osu_mbw_mr", text.format(messages))
    assert reading.samples[0].case == Case.of(bytes=size)
    with pytest.raises(ParseError, match="are not"):
        read("osu_mbw_mr", text.format(messages * 1.1 + 0.1))
