"""Messages about files that are not read: the tool, the line, and what is missing."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from log_folders import FIXTURES, many, write
from paribus.__main__ import main
from paribus.benchmarks import BENCHMARKS
from paribus.core import ParseError, Request
from paribus.logs import recognise
from paribus.logs.hints import hint
from paribus.logs.reading import is_log, read_files
from paribus.readers.known import HARNESSES, readers
from paribus.readers.text import plain

TOOLS = sorted(readers().keys() - {"paribus"})
JSON = sorted(
    path
    for name in (*TOOLS, *HARNESSES)
    for path in (FIXTURES / name).glob("good-*.out")
    if path.read_text(errors="replace").lstrip().startswith(("{", "["))
    and not path.read_text().startswith('{"paribus_kernel"')
)


def readings(path: Path) -> list[str]:
    (held,) = read_files([(str(path), path.stat().st_size)])
    assert not [one for one in held.problems if not one.of]
    return [repr((one.reading, one.metrics)) for one in held.found]


def again(text: str, style: str) -> str:
    """Return JSON, a document or one a line, as another program writes it."""
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    forms = {
        "jq": {"indent": 2},
        "jq -c": {"separators": (",", ":")},
        "json.tool": {"indent": 4},
        "json.dumps": {},
        "tabs": {"indent": "\t"},
    }
    return "\n".join(json.dumps(one, **forms[style]) for one in documents) + "\n"  # type: ignore[arg-type]


@pytest.mark.parametrize("style", ["jq", "jq -c", "json.tool", "json.dumps", "tabs"])
def test_json_with_other_blanks_is_the_same_json(style: str, tmp_path: Path) -> None:
    assert len(JSON) > 15
    for path in JSON:
        try:
            text = again(path.read_text(), style)
        except ValueError:  # several documents, or text around them
            continue
        other = tmp_path / "other.json"
        other.write_text(text)
        assert is_log(other), path
        assert readings(other) == readings(path), path


CUT = {
    "imb_pingpong": "IMB-MPI1's title and last line are missing",
    "osu_latency": "the title, '# OSU MPI ... Test', is missing",
    "ib_write_bw": "the title, such as 'RDMA_Write BW Test', is missing",
    "nccl_tests": "'nThread ... nGpus ...', is missing",
    "stream": "STREAM's version",
    "hpl": "HPL's title",
    "ior": "IOR's title",
}
HEADINGS = re.compile(r"^ *#bytes|^# Size|^# +size  |^Function  |^T/V     +N|^access    bw", re.M)


@pytest.mark.parametrize("tool", CUT)
def test_a_table_without_its_title_is_no_table_of_numbers(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As most issues have them: the rows alone, pasted."""
    for path in sorted((FIXTURES / tool).glob("good-*.out")):
        text = path.read_text()
        begin = HEADINGS.search(text)
        if begin is None or text.startswith("{"):
            continue
        rows = "\n".join(text[begin.start() :].splitlines()[:8]) + "\n"
        made = write(tmp_path, {"a.log": f"$ ./program\n{rows}", "b.log": rows})
        assert main(["compare", str(made / "a.log"), str(made / "b.log")]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert CUT[tool] in said
        assert "line 2" in said
        assert "no header" not in said
        break
    else:
        pytest.fail("no fixture with such a heading")


UNKNOWN = {
    "a log that begins with a bracket": " [2024-05-01 10:00:01] iteration 10/500 | loss 7.1\n",
    "a batch script's": "Workspace: osu\nfigures of merit:\n  Latency at 8 = 1.92 us\n",
    "JSON of another program": '{\n  "name": "solver",\n  "speed": 3.0\n}\n',
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_an_unknown_tool_is_called_that(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write(tmp_path, {"a.log": UNKNOWN[what], "b.log": UNKNOWN[what]})
    assert main(["compare", str(made / "a.log"), str(made / "b.log")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is not the output of a known tool" in said
    assert "`paribus list` names" in said
    assert "JSON array" not in said


def test_a_program_that_is_not_read_names_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# OSU MPI Ireduce Latency Test v7.3\n# Size       Overall(us)\n1  2.00\n"
    for folder in ("a", "b"):
        write(tmp_path / folder, {"run.log": text})
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'OSU MPI Ireduce Latency Test v7.3' is not read" in said
    assert "`paribus list OSU` names the" in said
    assert "no log of a known tool" not in said


def test_no_good_output_and_no_text_of_chance_has_a_hint_instead_of_its_reader() -> None:
    draw = random.Random(3)
    words = ("time", "size", "rank", "1.5", "us", "#", "total", "[INFO]")
    for _ in range(200):
        assert hint("\n".join(" ".join(draw.choices(words, k=6)) for _ in range(20))) is None


# --- what is no success, and what the short report keeps ---------------------------------------

LOSS = re.compile(r"(loss ?[:=] ?)(\d[\d.e+-]*)")


@pytest.mark.parametrize("word", ["nan", "-inf", "NaN"])
def test_a_training_that_diverged_is_no_launch(word: str) -> None:
    reader = readers()["pytorch_ddp"]
    tried = 0
    for path in sorted((FIXTURES / "pytorch_ddp").glob("good-*.out")):
        text = path.read_text()
        for match in list(LOSS.finditer(text))[:20]:
            damaged = text[: match.start(2)] + word + text[match.end(2) :]
            with pytest.raises(ParseError, match="diverged") as refused:
                reader.read(damaged)
            assert refused.value.line == text.count("\n", 0, match.start()) + 1
            tried += 1
    assert tried > 10


def test_the_short_report_keeps_what_changes_the_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["arm,block,benchmark,metric,unit,better,value,threads"]
    for block in range(10):
        rows += [f"host,{block},tool,time,s,lower,{1 + 0.001 * block},64"]
        rows += [f"cont,{block},tool,time,s,lower,{2 + 0.001 * block},32"]
    made = write(tmp_path, {"t.csv": "\n".join(rows) + "\n"})
    assert main(["compare", str(made / "t.csv"), "--brief"]) == 0
    assert "Not held equal: column.threads 64 -> 32" in capsys.readouterr().out
    for arm in "ab":
        write(tmp_path / arm, {**many(count=3), "notes.txt": "Measured on a Saturday.\n"})
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--brief"]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "2 files not read" in said
    assert "Withheld (osu_latency): " in said


@pytest.mark.parametrize(
    ("header", "fix"),
    [
        ("Arm,Benchmark,Metric,Value,Block", "Only the capitals differ: write 'arm', 'benchmark'"),
        ("arm,benchmark,metric,value [GB/s],block", "did you mean 'value [GB/s]'? Call it 'value'"),
        ("arm,benchmark,metric,values,block", "did you mean 'values'? Call it 'value'"),
    ],
)
def test_a_column_that_is_nearly_right_is_named(
    header: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write(tmp_path, {"t.csv": f"{header}\nhost,tool,time,1.0,1\ncont,tool,time,1.1,1\n"})
    assert main(["compare", str(made / "t.csv")]) == 2
    assert fix in " ".join(capsys.readouterr().err.split())


# --- forms that are read, and what is missing --------------------------------------------------


def nccl_of_types() -> str:
    """Return a table of nccl-tests with two types and two operations, as -d and -o print it."""
    text = (FIXTURES / "nccl_tests" / "good-handmade_all_reduce_iterations.out").read_text()
    lines = text.split("\n")
    rows = [n for n, line in enumerate(lines) if re.match(r" +\d+ +\d+ +float +sum ", line)]
    first, last = rows[0], rows[-1] + 1
    whole = lines[first:last]
    several = [
        line.replace(" float ", kind).replace(" sum ", operation)
        for kind in (" float ", "  half ")
        for operation in (" sum ", " max ")
        for line in whole
    ]
    return "\n".join([*lines[:first], *several, *lines[last:]])


def test_types_and_operations_of_one_nccl_table_are_cases() -> None:
    reader = readers()["nccl_tests"]
    text = (FIXTURES / "nccl_tests" / "good-handmade_all_reduce_iterations.out").read_text()
    one, four = reader.read(text), reader.read(nccl_of_types())
    assert len(four.samples) == 4 * len(one.samples)
    cases = {tuple(dict(sample.case.items)) for sample in four.samples}
    assert cases == {("bytes", "type", "redop")}
    assert not {"type", "redop"} & four.parameters.keys()
    assert {(s.case.get("type"), s.case.get("redop")) for s in four.samples} == {
        (kind, operation) for kind in ("float", "half") for operation in ("sum", "max")
    }
    moved = nccl_of_types().split("\n")
    row = next(n for n, line in enumerate(moved) if " half " in line and " max " in line)
    moved.append(moved.pop(row))
    with pytest.raises(ParseError):
        reader.read("\n".join(moved))


def test_ranks_of_nccl_that_measured_themselves_are_named() -> None:
    text = (FIXTURES / "nccl_tests" / "fail-handmade_one_rank.out").read_text()
    mixed = "\n".join(line for one in text.split("\n") for line in (one, one))
    with pytest.raises(ParseError, match="built without MPI=1, so that each rank measured itself"):
        readers()["nccl_tests"].read(text)
    with pytest.raises(ParseError, match="rank 0 is listed 2 times") as refused:
        readers()["nccl_tests"].read(mixed)
    assert refused.value.line


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("ib_write_bw", ["BW min{unit}"]),
        ("ib_write_bw", ["CPU_Util[%]"]),
        ("ib_write_bw", ["BW min{unit}", "CPU_Util[%]"]),
        ("ib_write_lat", ["CPU_Util[%]"]),
    ],
)
def test_more_columns_of_perftest_are_passed_over_and_an_unknown_one_is_named(
    name: str, more: list[str]
) -> None:
    """Of builds that print the least bandwidth, and of --cpu_util; for a time as for a number."""
    reader = readers()[name]
    tried = 0
    for path in sorted((FIXTURES / name).glob("good-*.out")):
        text = path.read_text()
        if " #bytes" not in text:
            continue
        lines = text.split("\n")
        unit = re.search(r"BW peak(\[\S+\])", text)
        at = next(n for n, line in enumerate(lines) if " #bytes" in line)
        end = next(n for n in range(at, len(lines)) if lines[n].startswith("----"))
        names = "".join(f"    {one.format(unit=unit and unit[1])}" for one in more)
        wider = [
            *lines[:at],
            lines[at].rstrip() + names,
            *(line + "\t\t  12.50" * len(more) for line in lines[at + 1 : end]),
            *lines[end:],
        ]
        assert reader.read("\n".join(wider)) == reader.read(text)
        for other, columns in ((f"{lines[at].rstrip()}   Jitter[us]", 0), (wider[at], 1)):
            rows = [line + "\t\t  12.50" * (len(more) - 1) * columns for line in lines[at + 1 :]]
            with pytest.raises(ParseError) as refused:
                reader.read("\n".join([*lines[:at], other, *rows]))
            assert refused.value.line == at + 1 + columns
        tried += 1
    assert tried


def test_a_card_without_double_is_read() -> None:
    reader = readers()["mixbench"]
    tried = 0
    for path in sorted((FIXTURES / "mixbench").glob("good-*.out")):
        text = path.read_text()
        heads = [line for line in text.split("\n") if line.startswith("Experiment ID")]
        if heads[0].split(",")[5].strip() != "Double precision ops":
            continue
        rows = []
        for line in text.split("\n"):
            cells = line.split(",")
            if cells[0].strip().isdigit() and len(cells) > 9:
                cells[6:9] = ["    0.00", "     inf", "    inf"]
            rows.append(",".join(cells))
        whole, less = reader.read(text), reader.read("\n".join(rows))
        assert {s.metric for s in whole.samples} - {s.metric for s in less.samples} == {"dp"}
        table = json.loads(path.with_suffix(".json").read_text())
        asked = Request(table["parameters"], table["ranks"])
        launched = BENCHMARKS["mixbench"].parse("\n".join(rows), asked)
        assert launched.samples == less.samples
        tried += 1
    assert tried


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_that_ends_after_its_title_is_that_tool_s(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a table, and never "no log of a known tool"."""
    marks = readers()[tool].marks
    for path in sorted((FIXTURES / tool).glob("good-*.out"))[:2]:
        text = path.read_text(errors="replace")
        ends = [text.find(mark) + len(mark) for mark in marks if mark in text[:60_000]]
        if not ends:
            continue
        end = text.find("\n", max(ends)) + 1 or len(text)
        if end == len(text):
            continue
        made = write(tmp_path / path.stem, {"a.txt": text[:end], "b.txt": text[:end]})
        code = main(["compare", str(made / "a.txt"), str(made / "b.txt")])
        said = " ".join(capsys.readouterr().err.split())
        assert code in (2, 3)
        if code == 2:
            assert "no log of a known tool" not in said
            assert "column names" not in said
            assert "has no column" not in said
            assert re.search(r"not read: .*: \w+: \S", said) or "nothing to compare" in said


def test_a_table_without_title_above_another_output_is_named() -> None:
    good = (FIXTURES / "osu_latency" / "good-shm.out").read_text()
    other = (
        FIXTURES / "stream" / sorted(p.name for p in (FIXTURES / "stream").glob("good-*.out"))[0]
    )
    pasted = "".join(line for line in good.splitlines(keepends=True) if "OSU MPI" not in line)
    text = f"latency:\n{pasted}\n{other.read_text()}"
    held = recognise.readings(plain(text))
    assert (held.outputs, held.read) == (2, 1)
    (problem,) = held.problems
    assert (problem.tool, problem.code) == ("osu", "refused")
    line = text[: text.index("# Size")].count("\n") + 1
    assert problem.line == line
    assert recognise.readings(plain(other.read_text())).problems == []


BEGIN = "paribus-throughput begin model=toy batch=32 ranks=1\n"
STEPS = (
    "loaded\nparibus-throughput 1/2 10.5 samples/s\nlost 0.3\nparibus-throughput 2/2 11 samples/s\n"
)
END = "paribus-throughput end\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STEPS, ("lines 2 to 4", "begin model=NAME", "end' below them are missing")),
        (STEPS + END, ("lines 2 to 5", "begin model=NAME", "above them is missing")),
        (f"paribus-throughput begin\n{STEPS}{END}", ("lines 1 to 6", "begin model=NAME")),
        (BEGIN + STEPS, ("'paribus-throughput end' is not there once", "line 5")),
        ("x\n" * 50_000 + STEPS, ("lines 50002 to 50004", "begin model=NAME")),
    ],
)
@pytest.mark.parametrize("given", ["files", "folders"])
def test_lines_of_throughput_without_begin_or_end_say_what_is_missing(
    text: str, said: tuple[str, ...], given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was "no log of a known tool"."""
    logs = [tmp_path / "a" / "1.log", tmp_path / "b" / "1.log"]
    for number, log in enumerate(logs):
        write(log.parent, {log.name: text + "y\n" * number})
    paths = logs if given == "files" else [log.parent for log in logs]
    assert main(["compare", *map(str, paths)]) == 2
    reported = capsys.readouterr().err
    assert "pytorch_ddp" in reported
    for part in said:
        assert part in reported


def test_what_stands_within_json_of_another_program_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    """It was "22 titles of OSU programs", "fio version is missing", or that no program began."""
    osu = (FIXTURES / "osu_latency" / "good-alltypes_shm.out").read_text()
    fio = json.loads((FIXTURES / "fio" / "good-read-json.out").read_text())
    for tool, document in (("osu", {"data": osu.splitlines()}), ("fio", {"data": [fio]})):
        path = tmp_path / f"{tool}.json"
        for before in ("", "ok: [node1] => ")[: 1 + (tool == "osu")]:
            path.write_text(before + json.dumps(document, indent=4))
            (held,) = read_files([(str(path), path.stat().st_size)])
            assert not held.found
            (problem,) = held.problems
            assert problem.tool.startswith(tool)
            assert "within JSON of another program" in problem.detail


@pytest.mark.parametrize(
    "said", ["sshpass -p S3cret", "curl -u me:S3cret", "load --password S3cret", "TOKEN=S3cret"]
)
def test_a_line_that_a_refusal_quotes_shows_no_secret(said: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(f"$ {said} osu_latency: srun: error: node1: task 0: Exited\n")
    (held,) = read_files([(str(path), path.stat().st_size)])
    (problem,) = held.problems
    assert "srun: error" in problem.detail
    assert "hidden-" in problem.detail
    assert "S3cret" not in problem.detail


def test_what_ior_says_between_its_rows() -> None:
    """With -v the hints of MPI-IO; where a file was too small, other bytes than asked for."""
    reader = readers()["ior"]
    text = (FIXTURES / "ior" / "good-real-3_3_64_tasks.out").read_text()
    row = "write     6335"
    hints = (
        "hints passed to MPI_File_open() {\n\tromio_ds_write = disable\n\tcb_config_list = *:1\n}\n"
    )
    stamp = "Using Time Stamp 2909738047 (0xad6f143f) for Data Signature\n"
    assert reader.read(text.replace(row, hints + stamp + row)) == reader.read(text)
    smaller = "WARNING: Using actual aggregate bytes moved = 23116319293440\n"
    with pytest.raises(ParseError, match="the file had not the size") as caught:
        reader.read(text.replace(row, smaller + row))
    assert caught.value.form  # no launch failed


def test_damaged_json_with_other_blanks_has_the_line_of_its_own_file(tmp_path: Path) -> None:
    """Not that of a text that nobody sees."""
    text = again((FIXTURES / "superbench" / "good-training.out").read_text(), "json.tool")
    lines = text.splitlines()
    at = next(n for n, line in enumerate(lines) if "steptime" in line or "step_time" in line)
    lines[at] = lines[at].replace(": ", " ")
    path = tmp_path / "results.json"
    path.write_text("\n".join(lines))
    (held,) = read_files([(str(path), path.stat().st_size)])
    assert not held.found
    assert held.problems[0].line == at + 1
