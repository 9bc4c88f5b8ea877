"""`paribus list`: benchmarks, studies and publications that ship, harnesses, launchers."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.border import under
from paribus.core import (
    Benchmark,
    Metric,
    Parameter,
    UserError,
    count,
    format_bytes,
    format_seconds,
)

Took = Mapping[str, tuple[float, int]]
"""By benchmark, the median seconds of a launch, and of how many launches that is."""

EXAMPLE = """\
example:
  paribus list                 # one line for each
  paribus list osu_bw          # all about one
  paribus list storage         # all that have to do with a word
"""
NAME = 24
"""Columns of a name in the short list."""

TIME = 11
"""Columns of the time that a launch took."""

QUESTIONS = {
    "point to point": "how fast do two ranks exchange messages?",
    "one-sided": "how fast does a rank reach another's memory?",
    "network": "what do networks and their adapters carry?",
    "collective": "how fast do all ranks together exchange messages?",
    "memory": "how fast is a node's memory?",
    "compute": "how fast does a node compute, or many of them together?",
    "gpu": "how fast are GPUs, their memory, and the links between them?",
    "storage": "how fast are files?",
    "start-up": "how long do programs take to start?",
    "application": "what do whole applications make of it?",
}
"""The question that the benchmarks of each layer answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the benchmarks, the studies and publications that ship, the harnesses whose files"
        " `paribus compare` reads, and the batch systems and MPI launchers. With words: all about"
        " those that have one of these names, or that a word occurs in."
    )
    parser.add_argument("words", metavar="NAME|WORD", nargs="*", help="show all about these")
    parser.add_argument("--json", action="store_true", help='print JSON, schema "paribus.list/1"')
    parser.set_defaults(execute=list_all)


def list_all(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus list`."""
    from paribus.benchmarks import BENCHMARKS, suite_of
    from paribus.cli.shipped import publications
    from paribus.judge.evidence import launch_seconds
    from paribus.readers.known import harnesses
    from paribus.studyfile.shipping import question_of, shipped_studies

    studies = {name: question_of(path) for name, path in shipped_studies().items()}
    published = {name: one.source for name, one in publications().items()}
    files = {
        name: f"{one.versions}, read after {_origin(from_text=one.from_text)}; {one.launches}"
        for name, one in harnesses().items()
    }
    platforms = _platforms()
    texts = {
        **{b.name: f"{b.layer} {suite_of(b.name)} {b.program} {b.summary}" for b in _every()},
        **studies,
        **published,
        **files,
        **platforms,
    }
    wanted = _wanted(arguments.words, texts)
    benchmarks = [one for one in BENCHMARKS.values() if one.name in wanted]
    studies = {name: text for name, text in studies.items() if name in wanted}
    published = {name: text for name, text in published.items() if name in wanted}
    files = {name: text for name, text in files.items() if name in wanted}
    platforms = {name: text for name, text in platforms.items() if name in wanted}
    took = launch_seconds(Path())
    if arguments.json:
        rows = [_row(one, took) for one in benchmarks]
        table = {"schema": "paribus.list/1", "benchmarks": rows, "studies": studies}
        table |= {"publications": published, "files": files, "platforms": platforms}
        print(json.dumps(table, indent=2))
        return 0
    if arguments.words:
        for benchmark in benchmarks:
            _print_long(benchmark, took)
    else:
        _print_short(benchmarks, took)
    whole = bool(arguments.words)
    _print_shipped("studies that ship (paribus run NAME)", studies, whole=whole)
    title = "publications that ship (paribus compare ... --beside NAME)"
    _print_shipped(title, published, whole=whole)
    if not arguments.words:
        files = {name: text.partition(";")[0] for name, text in files.items()}
    title = "harnesses whose files are read (paribus compare FILE ...)"
    _print_shipped(title, files, whole=whole)
    _print_shipped("batch systems, and MPI launchers", platforms, whole=whole)
    return 0


def _platforms() -> dict[str, str]:
    """Return a text on each batch system and family of MPI, and whether Paribus ever ran on it."""
    from paribus.launch.launchers import LAUNCHERS, NEVER_RUN
    from paribus.schedulers.known import DIALECTS

    ran = {name: (f"scheduler: {one.TITLE}", one.RAN) for name, one in DIALECTS.items()}
    ran |= {name: ("MPI", name not in NEVER_RUN) for name in LAUNCHERS}
    tested = {True: "run on the real thing", False: "never run on the real thing"}
    return {name: f"{text}, {tested[real]}" for name, (text, real) in ran.items()}


def _every() -> Iterable[Benchmark]:
    from paribus.benchmarks import BENCHMARKS

    return BENCHMARKS.values()


def _wanted(words: list[str], texts: Mapping[str, str]) -> set[str]:
    """Return the names that `words` ask for, all without words; `texts` by name.

    A word is a name, or it occurs in the name or text of some. Raises UserError for one that occurs
    nowhere.
    """
    found: set[str] = set() if words else set(texts)
    for word in words:
        low = word.lower()
        here = [n for n, text in texts.items() if low in n.lower() or low in text.lower()]
        if not here:
            close = difflib.get_close_matches(word, texts, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            fix = f"{hint}`paribus list` shows all"
            raise UserError("nothing has this name or word", place=repr(word), fix=fix)
        found |= {word} if word in texts else set(here)
    return found


def _row(b: Benchmark, took: Took) -> dict[str, Any]:
    """Return the row of a benchmark by schema paribus.list/1."""
    return {
        "name": b.name,
        "layer": b.layer,
        "summary": b.summary,
        "metrics": [
            {"name": m.name, "unit": m.unit, "better": m.better, "margin": m.margin}
            for m in b.metrics
        ],
        "parameters": {key: p.help for key, p in b.parameters.items()},
        "program": b.program or None,
        "found": _found(b),
        "get": b.get or None,
        "lacks": _lacks(b),
        "launch_s": took[b.name][0] if b.name in took else None,
        "means": b.means or None,
    }


def _print_short(benchmarks: Iterable[Benchmark], took: Took) -> None:
    """Print a line for each benchmark, by layer; on a terminal no wider than that."""
    width = shutil.get_terminal_size().columns if under(sys.stdout).isatty() else 1000
    layers: dict[str, list[Benchmark]] = {}
    for one in benchmarks:
        layers.setdefault(one.layer, []).append(one)
    column = TIME * bool(took)
    say = _speaker()
    for layer, several in sorted(layers.items(), key=lambda one: _place(one[0])):
        there = {b.name for b in several if (_found(b) if b.program else not _lacks(b))}
        say(f"{layer}: {QUESTIONS[layer]}" if layer in QUESTIONS else layer, "bold")
        for one in several:
            lacks = _lacks(one)
            here = "+" if one.name in there else " "
            time = f"{format_seconds(took[one.name][0]) if one.name in took else '':>{column}}"
            text = f"{one.summary} (needs {', '.join(lacks)})" if lacks else one.summary
            summary = textwrap.shorten(text, max(20, width - NAME - 4 - column), placeholder=" ...")
            shown = f" {here} {one.name:{NAME}}{time} {summary}".rstrip()
            say(shown, "" if one.name in there else "dim")
        if under(sys.stdout).isatty():
            say(f"   {len(there)} of {len(several)} here", "green" if there else "dim")
    print(
        "+ the program is here, or is compiled at first use. `paribus list NAME` and"
        " `paribus list WORD`\n  show parameters, metrics, and how to get a program"
    )
    if took:
        print("The time is that of a launch: the median of those in the study directories here.")
    else:
        print("In a folder with study directories it also shows how long a launch takes here.")


def _speaker() -> Callable[[str, str], None]:
    """Return the function that prints a line in a style: on a terminal in colour, else plainly."""
    if not under(sys.stdout).isatty():
        return lambda text, style: print(text)
    from rich.text import Text

    from paribus.report.printing import console_on, raw

    console = console_on(sys.stdout)
    return lambda text, style: raw(console, Text(text, style=style))


def _place(layer: str) -> int:
    """Return the place of a layer in the list: that of its question, or the last."""
    return [*QUESTIONS, layer].index(layer)


def _print_long(benchmark: Benchmark, took: Took) -> None:
    """Print all about a benchmark."""
    from paribus.readers.known import reader_of

    print(f"{benchmark.name}: {benchmark.layer}")
    _print_filled(benchmark.summary)
    for metric in benchmark.metrics:
        unit = f"{metric.unit}, " if metric.unit else ""
        decides = " (decides)" if metric is benchmark.metrics[0] else ""
        margin = f"margin {_margin(metric)}"
        _print_filled(f"{metric.name}: {unit}{metric.better} is better, {margin}{decides}")
    if benchmark.program:
        where = _found(benchmark)
        _print_filled(f"here: {where}" if where else f"not found; to get it: {benchmark.get}")
    if lacks := _lacks(benchmark):
        get = f"; to get it: {benchmark.get}" if benchmark.get else ""
        _print_filled(f"needs what is not here: {', '.join(lacks)}{get}")
    if benchmark.name in took:
        seconds, number = took[benchmark.name]
        of = f"median of {count(number, 'launch')} in the study directories here"
        _print_filled(f"a launch takes {format_seconds(seconds)}: {of}")
    if benchmark.means:
        _print_filled(f"what its figures mean: {benchmark.means}")
        text = reader_of(benchmark.name).from_text
        _print_filled(f"read after: {_origin(from_text=text)}")
    print("    parameters:")
    for key, one in benchmark.parameters.items():
        _print_filled(f"{key}: {one.help}{_default(key, one)}", "      ")
    print()


def _margin(metric: Metric) -> str:
    """Return the margin of a metric as "2 %, below 2 us 5 %"."""
    small = f", below {metric.small_us:g} us {metric.small_margin * 100:g} %"
    return f"{metric.margin * 100:g} %{small if metric.small_us else ''}"


def _origin(*, from_text: bool) -> str:
    """Return what a reader was written after."""
    return "public text, no run" if from_text else "outputs of real runs"


def _default(key: str, parameter: Parameter) -> str:
    """Return the default of a parameter as " (8 B, 1 KiB)", "" for a switch or without one."""
    value = parameter.default
    if value is None or isinstance(value, bool) or value in ("", [], ()):
        return ""
    values = value if isinstance(value, list | tuple) else [value]
    if key == "bytes" or parameter.help.startswith("bytes of"):
        values = [format_bytes(one) if isinstance(one, int) else one for one in values]
    text = f"{values[0]} ... {values[-1]}" if len(values) > 6 else ", ".join(map(str, values))
    return f" ({text})"


def _print_filled(text: str, indent: str = "    ") -> None:
    print(textwrap.fill(text, 80, initial_indent=indent, subsequent_indent=f"{indent}  "))


def _print_shipped(heading: str, texts: Mapping[str, str], *, whole: bool) -> None:
    """Print names and texts; on a terminal a text is cut to one line, unless `whole`."""
    if texts:
        _speaker()(f"\n{heading}:", "bold")
    cut = under(sys.stdout).isatty() and not whole
    width = shutil.get_terminal_size().columns if cut else 1000
    for name, text in texts.items():
        shown = textwrap.shorten(text, max(20, width - NAME - 4), placeholder=" ...")
        print(f"   {name:{NAME}} {shown}")


def _found(benchmark: Benchmark) -> str | None:
    """Return the path of a benchmark's program; None where it is missing, and for our kernels."""
    from paribus.border import find_program

    return find_program(benchmark.program) if benchmark.program else None


def _lacks(benchmark: Benchmark) -> list[str]:
    """Return what one of our own benchmarks lacks on this machine, with its default parameters."""
    from paribus.core import Request
    from paribus.launch.machine import HERE
    from paribus.launch.programs import lacking

    if benchmark.program:
        return []
    defaults = {key: one.default for key, one in benchmark.parameters.items()}
    return lacking(benchmark.command(Request(defaults, benchmark.ranks)), HERE)
