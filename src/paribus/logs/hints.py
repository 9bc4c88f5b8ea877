"""Hints: what a text most likely is that no reader takes, and what it lacks.

A table that was cut from an output, or the output of a program that is not read, shows itself by a
line that only one tool prints. So the refusal says "HPL's title and settings are missing", rather
than that the tool is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paribus.core import Unreadable
from paribus.logs.log import Unread
from paribus.readers.known import TOOLS
from paribus.readers.text import HEAD, line_of


def _refused(tool: str, lacks: str, line: int, *, form: bool = False) -> Unread:
    """Return that a text of a tool, or a family of tools, was refused, and what it lacks.

    `line` is the number of the line that shows the tool. It counts as a launch of the tool that
    failed, unless the launch did what it was asked for, and only the `form` of its output is why.
    """
    return Unread(Unreadable.REFUSED, f"{tool}: {lacks}", "" if form else tool, line=line)


_WHOLE = "give the whole output of the program"

_CUT = (
    ("imb", "#bytes #repetitions ", "IMB-MPI1's title and last line are missing"),
    (
        "p2p_bandwidth",
        " P2P=",
        "the title '[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]' is missing",
    ),
    ("nccl_tests", "algbw   busbw", "the line of settings, 'nThread ... nGpus ...', is missing"),
    ("perftest", "#bytes     #iterations ", "the title, such as 'RDMA_Write BW Test', is missing"),
    ("perftest", "#bytes #iterations ", "the title, such as 'RDMA_Write Latency Test', is missing"),
    ("hpl", "T/V                N    NB     P     Q", "HPL's title and settings are missing"),
    ("iperf3", "[ ID] Interval ", "iperf3's first line, 'Connecting to host ...', is missing"),
    (
        "netperf",
        "bytes  bytes   bytes    secs.",
        "netperf's title, 'TEST from ...', is missing",
    ),
    ("stream", "Function    Best Rate MB/s", "STREAM's version and sizes are missing"),
    ("ior", "access    bw(MiB/s)", "IOR's title and options are missing"),
    ("mdtest", "SUMMARY rate", "mdtest's first line, 'mdtest-... was launched', is missing"),
    ("osu", "# Size          Latency (us)", "the title, '# OSU MPI ... Test', is missing"),
    ("osu", "# Size      Bandwidth (MB/s)", "the title, '# OSU MPI ... Test', is missing"),
    ("osu", "# Size       Avg Latency(us)", "the title, '# OSU MPI ... Test', is missing"),
)
"""Tool, the heading of its table, and what stands above and below it in a whole output."""

_TEXT = "its text lacks single runs and is not read; give the file of"

_OTHER_FORMS = (
    ("iperf3", "Client connecting to ", "iperf 2 is not read, iperf3 is"),
    ("iperf3", "Server listening on TCP port ", "iperf 2 is not read, iperf3 is"),
    ("iperf3", "Server listening on ", "this is what the server prints; the client's is read"),
    ("reframe", "|reframe 3.", "perflogs of ReFrame 3 are not read, those of 4 are"),
    ("reframe", "|reframe 4.", "of perflogs the default format is read, not one of your own"),
    (
        "io500",
        "[RESULT] BW   phase ",
        "the summary of the script of 2018 to 2020 is not read, that of the program io500 is",
    ),
    ("hyperfine", "Time (mean ± ", f"{_TEXT} --export-json FILE"),
    ("pyperf", "Mean +- std dev: ", f"{_TEXT} -o FILE"),
    ("pytest_benchmark", "Name (time in ", f"{_TEXT} --benchmark-json FILE"),
    ("google_benchmark", "  CPU   Iterations", f"{_TEXT} --benchmark_out=FILE"),
    ("reframe", "[ReFrame Setup]", f"{_TEXT} --report-file=FILE, or the perflogs"),
    ("nccl_tests", '"average_bus_bandwidth"', "its JSON (-J) is not read; give what it prints"),
    *(
        ("Ramble", phrase, "a summary is not read; give the folder experiments of the workspace")
        for phrase in ("From Workspace: ", "workspace_hash: ", '"workspace_hash": ')
    ),
    ("MLPerf", ":::MLLOG ", "it is not read; seconds from run_start to run_stop make a table"),
)
"""Tool, a phrase of a form of output that is not read, and the sentence on it."""

_OSU = re.compile(r"^# OSU (?:MPI|[NR]CCL|OpenSHMEM|UPC\+?\+?)\S* .*\bTest\b.*$", re.M)


OURS = "paribus-throughput "
"""How lines begin that a user's training script prints for Paribus (docs/tutorials/training.md)."""

_THROUGHPUT = re.compile(rf"^{OURS.strip()}\b.*$", re.M)
_BEGIN, _END = "paribus-throughput begin model=NAME batch=N ranks=N", "paribus-throughput end"


def _of_throughput(text: str, lines: Sequence[str]) -> Unread:
    """Return the hint on lines of a training script without the first, or also the last, line."""
    lacking = [f"the line '{_BEGIN}' above them"]
    lacking += [] if _END in lines else [f"the line '{_END}' below them"]
    begin, end = (line_of(text, place) for place in (text.find(lines[0]), text.rfind(lines[-1])))
    be = "is" if len(lacking) == 1 else "are"
    where = f"lines {begin} to {end} begin with 'paribus-throughput'"
    lacks = f"{where}, and {' and '.join(lacking)} {be} missing (docs/tutorials/training.md)"
    return _refused("pytorch_ddp", lacks, begin)


def hint(text: str) -> Unread | None:
    """Return of which tool a text is that no reader takes, and why; None if no line shows it."""
    head = text[:HEAD]
    if match := _OSU.search(head):
        title = match[0][2:].strip()[:80]
        lacks = f"{title!r} is not read; `paribus list OSU` names the {len(TOOLS['osu'])} that are"
        return _refused("osu", lacks, line_of(head, match.start()))
    if lines := _THROUGHPUT.findall(text):
        return _of_throughput(text, lines)
    for tool, phrase, lacks in _OTHER_FORMS:
        if (at := head.find(phrase)) >= 0:
            return _refused(tool, lacks, line_of(head, at), form=True)
    for tool, phrase, lacks in _CUT:
        if (at := head.find(phrase)) >= 0:
            return _refused(tool, f"{lacks}: {_WHOLE}", line_of(head, at))
    return None
