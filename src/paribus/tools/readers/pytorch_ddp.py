"""What four kinds of training scripts print of their speed: images, tokens, samples per second."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from paribus.core import OF_WORK, Case, Reading, Row, Sample, Scalar, grouped, of_tool
from paribus.readers.figures import count, counts, figure, figures, near
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import columns, found, line_at, line_of, once, refuse, within

IMAGES = "images/s"

# 1. Our own convention: docs/benchmarks.md, "Images per second".
_PER = "j_per_"
"""The prefix of a word in the last line: joules for a unit of work, such as j_per_image=0.5."""

OURS = "paribus-throughput begin "
_WORDS = r"((?: [a-z_]+=\S+)*)[ \t]*$"
_BEGIN = re.compile(rf"paribus-throughput begin model=(\S+) batch=(\d+) ranks=(\d+){_WORDS}", re.M)
_INTERVAL = re.compile(r"\nparibus-throughput (\d+)/(\d+) (\d+(?:\.\d+)?) (\S+)[ \t]*$", re.M)
_RATE = re.compile(r"[A-Za-z]\w*/s")
_END = re.compile(rf"\nparibus-throughput end{_WORDS}", re.M)

# 2. pytorch_synthetic_benchmark.py of Horovod, and the copies of it that use DDP.
SYNTHETIC = "Running warmup..."
_SAID = re.compile(
    r"\n(?:Iter #(?P<number>\d+): (?P<speed>\d+\.\d) img/sec per (?:GPU|CPU)"
    r"|Model: (?P<model>\S+)"
    r"|Batch size: (?P<batch>\d+)"
    r"|Number of (?:GPU|CPU)s: (?P<devices>\d+)"
    r"|Img/sec per (?:GPU|CPU): (?P<mean>\d+\.\d) \+-(?P<spread>\d+\.\d)"
    r"|Total img/sec on (?P<of>\d+) (?:GPU|CPU)\(s\): (?P<total>\d+\.\d) \+-\d+\.\d)[ \t]*$",
    re.M,
)

# 3. references/classification/train.py of torchvision.
TORCHVISION = "  img/s: "
_SPACE = re.compile(r"\nNamespace\((.+)\)[ \t]*$", re.M)
_STEP = re.compile(
    r"\nEpoch: \[(\d+)\] +\[ *(\d+)/(\d+)\]  eta: [^\n]{0,400}?  img/s: (\d+\.\d+)(?: \(\S+\))?"
    r"  [^\n]{0,400}time: \d+\.\d+  data: \d+\.\d+(?:  max mem: \d+)?[ \t]*$",
    re.M,
)
_ARGUMENT = re.compile(r"\b(\w+)='?([\w.+-]+)'?")
_EPOCH = re.compile(r"\nEpoch: \[(\d+)\] Total time: \S[^\n]*$", re.M)

# 4. dllogger on stdout: image_classification of NVIDIA's DeepLearningExamples, PyTorch.
DLLOGGER = "train.total_ips : "
_LOGGED = re.compile(
    r"\nDLL \S+ \S+ - (?:Epoch: (\d+) (?:Iteration: (\d+) )?|(Summary:)) *[^\n]{0,400}?"
    r"\btrain\.total_ips : (\d+\.\d+) (?:img|images)/s\b",
    re.M,
)
IMAGENET = "Epoch: [0]["
_DIVERGED = re.compile(r"[^\n]*?(\bloss ?[:=] ?[-+]?(?:nan|inf)\b)", re.I)
_TRACEBACK = "Traceback (most recent call last)"
_KNOWN = (_TRACEBACK, OURS, SYNTHETIC, TORCHVISION, DLLOGGER)
MARKS = (OURS, SYNTHETIC, "Start training\n", TORCHVISION, " - PARAMETER ", DLLOGGER, IMAGENET)
"""Marks of each kind; those of torchvision and dllogger begin with a line that is there once."""

_HEADS = (
    Head(OURS),
    Head(
        SYNTHETIC,
        above=r"Model: \S+|Batch size: \d+|Number of (?:GPU|CPU)s: \d+",
    ),
    Head(
        "Start training",
        r"Start training[ \t]*(?=\n)",
        above=r"Namespace\(.*|Loading .*|Took .*|Creating .*|Not using distributed mode"
        r"|\| distributed init .*|Saving .*|Using .*",
    ),
    Head("DLL ", r"DLL \S+ \S+ - PARAMETER ", block=r"[^\n]*\n?"),
    Head(IMAGENET, block=r"(?:Epoch: \[[^\n]*\n?)+"),
)

_BEGUN = re.compile(r"Epoch: \d+ Iteration: (?!\d+ +Validation)")
_ENDED = re.compile(r"\nDLL \S+ \S+ - Summary: *[^\n]{0,400}?\btrain\.total_ips : ")
_PARAMETER = re.compile(r"\nDLL \S+ \S+ - PARAMETER [^\n]*$", re.M)
_SETTING = re.compile(r"\b(\w+) : ([\w.+-]+)")


def read(text: str) -> Reading:
    """Return the images (or tokens, ...) per second of all ranks together, interval by interval."""
    known = within(_KNOWN, text)
    if diverged := found(text, "loss", _DIVERGED):
        refuse(
            f"the loss is no number, so the training diverged: {diverged[0][1]}",
            line_of(text, diverged[0].start(1)),
        )
    if _TRACEBACK in known:
        refuse("the script ended with a Python traceback", line_of(text, text.find(_TRACEBACK)))
    kinds = {OURS: _ours, SYNTHETIC: _synthetic, TORCHVISION: _torchvision, DLLOGGER: _dllogger}
    marks = [mark for mark in kinds if mark in known]
    if len(marks) > 1:
        refuse(
            "lines of two kinds of scripts: two outputs in one",
            line_of(text, text.find(marks[1])),
            alone=True,
        )
    reader = kinds[marks[0]] if marks else None
    if reader is None and (at := text.find(IMAGENET)) >= 0:
        seconds = "the imagenet example of PyTorch prints seconds per step"
        cause = f"{seconds}, but not how many images a step has: images/s are not in it"
        refuse(cause, line_of(text, at))
    if reader is None:
        refuse("no line of the four kinds that are understood (docs: Images per second)")
    return reader(text)


def _ours(text: str) -> Reading:
    """Return the reading of lines of our convention."""
    begin = _BEGIN.match(text, once(text, OURS, "the line 'paribus-throughput begin'"))
    lines = f"\n{text}"
    intervals = _INTERVAL.findall(lines)
    ends = _END.findall(lines)
    if begin is None:
        needed = "must continue with model=NAME batch=N ranks=N, in this order"
        refuse(f"'paribus-throughput begin' {needed}", line_of(text, text.find(OURS)))
    if len(ends) != 1:
        last = text.rfind("paribus-throughput ")
        refuse("the line 'paribus-throughput end' is not there once and whole", line_of(text, last))
    wanted = [(str(number), str(len(intervals))) for number in range(1, len(intervals) + 1)]
    if [(one, of) for one, of, *_ in intervals] != wanted or text.count(
        "paribus-throughput "
    ) != len(intervals) + 2:
        refuse("the intervals are not numbered 1/N to N/N, or one is damaged")
    unit = _unit(text, [unit for *_, unit in intervals])
    values = [figure(value) for _, _, value, _ in intervals]
    reading = _reading("paribus", begin[1], count(begin[2]), count(begin[3]), values)
    more, at_end = (
        dict(word.split("=", 1) for word in words.split()) for words in (begin[4], ends[0])
    )
    per = {key: at_end.pop(key) for key in [*at_end] if key.startswith(_PER)}
    facts: dict[str, Scalar] = {f"pytorch_ddp.{key}": value for key, value in at_end.items()}
    facts |= {f"{OF_WORK}{key.removeprefix(_PER)}": figure(value) for key, value in per.items()}
    more |= {} if unit == IMAGES else {"unit": unit}
    return replace(reading, parameters={**more, **reading.parameters}, facts=facts)


def _unit(text: str, units: Sequence[str]) -> str:
    """Return the one unit of all intervals, a rate."""
    for unit in units:
        line = line_of(text, text.find(f" {unit}"))
        if not _RATE.fullmatch(unit):
            refuse(f"{unit[:20]!r} is no rate: write images/s, tokens/s or the like", line)
        if unit != units[0]:
            refuse(f"values in {units[0]} and in {unit}", line)
    return units[0] if units else IMAGES


def _synthetic(text: str) -> Reading:
    """Return the reading of Horovod's synthetic benchmark."""
    once(text, SYNTHETIC)
    lines = columns(text, _SAID)
    if any(len(lines[key]) != 1 for key in ("model", "batch", "devices", "mean", "total")):
        refuse("model, batch size, devices, or the last two lines are not there once and whole")
    if lines["number"] != [str(number) for number in range(len(lines["number"]))]:
        refuse("the iterations are not numbered from 0")
    values = figures(lines["speed"])
    if text.count("Iter #") != len(values) or len(values) < 2:
        refuse("a line 'Iter #' is damaged, or there are fewer than two")
    (batch,), (ranks,) = counts(lines["batch"]), counts(lines["devices"])
    average, spread, total = (float(lines[key][0]) for key in ("mean", "spread", "total"))
    mean = math.fsum(values) / len(values)
    if abs(mean - average) > 0.11:
        refuse(f"the iterations have {mean:.1f} on average, not {average}")
    # 1.96 standard deviations of the population, as numpy.std has it.
    wide = 1.96 * math.dist(values, [mean] * len(values)) / math.sqrt(len(values))
    if abs(wide - spread) > 0.16:
        refuse(f"the iterations spread by {wide:.1f}, not by {spread}")
    if lines["of"] != [str(ranks)] or abs(total - ranks * average) > 0.06 * ranks:
        refuse(f"{ranks} times {average} are not {total} on {lines['of'][0]} devices")
    return _reading("synthetic", lines["model"][0], batch, ranks, [ranks * v for v in values])


def _torchvision(text: str) -> Reading:
    """Return the reading of torchvision's train.py."""
    once(text, "Training time ", "the last line, 'Training time',")
    lines = f"\n{text}"
    space = _SPACE.findall(lines)
    if len(space) != 1:
        refuse(f"the line of arguments, 'Namespace(...)', is there {len(space)} times, not once")
    arguments = dict(_ARGUMENT.findall(space[0]))
    missing = {"model", "batch_size", "epochs"} - arguments.keys()
    if missing:
        refuse(f"the line of arguments says nothing of {', '.join(sorted(missing))}")
    ranks, epochs = count(arguments.get("world_size", "1")), count(arguments["epochs"])
    steps, ended = _STEP.findall(lines), _EPOCH.findall(lines)
    if text.count("img/s: ") != len(steps):
        refuse("a line with img/s is damaged")
    _check_steps([(int(e), int(step), int(of)) for e, step, of, _ in steps])
    first = count(arguments.get("start_epoch", "0"))
    if [int(e) for e in ended] != list(range(first, epochs)):
        refuse(f"{len(ended)} epochs have ended, {epochs - first} were to be made")
    if sorted({int(e) for e, *_ in steps}) != sorted(map(int, ended)):
        refuse("an epoch has no line of its speed, or has not ended")
    # The first step of an epoch waits for the workers that load the data.
    values = [ranks * figure(value) for _, step, _, value in steps if step != "0"]
    if not values:
        refuse("one line per epoch, and the first of an epoch waits for its data")
    return _reading(
        "torchvision", arguments["model"], count(arguments["batch_size"]), ranks, values
    )


def _check_steps(steps: Sequence[tuple[int, int, int]]) -> None:
    """Refuse steps of epochs that are not 0, f, 2f, ... up to the last before the epoch's end."""
    for epoch, rows in grouped((epoch, (step, of)) for epoch, step, of in steps).items():
        stride = rows[1][0] if len(rows) > 1 else rows[0][1]
        lengths = {of for _, of in rows}
        if len(lengths) != 1 or stride < 1:
            refuse(f"the lines of epoch {epoch} do not agree on its length")
        if [step for step, _ in rows] != list(range(0, lengths.pop(), stride)):
            refuse(f"the lines of epoch {epoch} are not every {stride} steps to its end")


def _dllogger(text: str) -> Reading:
    """Return the reading of dllogger's lines."""
    text = f"\n{text}"
    if len(_ENDED.findall(text)) > 1:
        refuse("the last line of speed, 'Summary:', is there twice: two outputs in one", alone=True)
    logged = _LOGGED.findall(text)
    if text.count(DLLOGGER) != len(logged):
        at = text.find(DLLOGGER)
        refuse(f"a line of dllogger is damaged, such as {line_at(text, at)[:60]!r}")
    if sum(summary != "" for _, _, summary, _ in logged) != 1 or not logged[-1][2]:
        refuse("the last line of speed, 'Summary:', is not there once")
    settings = {k: v for line in _PARAMETER.findall(text) for k, v in _SETTING.findall(line)}
    if not {"arch", "batch_size"} <= settings.keys():
        refuse("no line 'PARAMETER' says arch and batch_size")
    steps = [(epoch, step, speed) for epoch, step, _, speed in logged if step]
    numbers = [(int(epoch), int(step)) for epoch, step, _ in steps]
    if numbers != sorted(set(numbers)) or len(steps) < 2 or len(_BEGUN.findall(text)) > len(steps):
        refuse("fewer than two iterations, not in order, or one without its speed")
    stride = numbers[1][1] - numbers[0][1]
    for (epoch, one), (other_epoch, other) in pairwise(numbers):
        if epoch == other_epoch and other - one != stride:
            refuse(f"an iteration between {one} and {other} of epoch {epoch} is missing")
    # Iterations are counted from 1 in versions of 2020, from 0 in later ones.
    starts = dict(reversed(numbers))
    if set(starts.values()) not in ({0}, {1}):
        refuse("the first iteration of an epoch is missing")
    values = figures([speed for epoch, n, speed in steps if int(n) != starts[int(epoch)]])
    if not values:
        refuse("one line per epoch, and the first of an epoch waits for its data")
    summary = figure(logged[-1][3])
    mean = math.fsum(values) / len(values)
    if not near(mean, summary, 0.5):
        refuse(f"the iterations have {mean:.0f} images/s, the summary {summary}")
    ranks = count(settings["world_size"]) if "world_size" in settings else None
    return _reading("dllogger", settings["arch"], count(settings["batch_size"]), ranks, values)


def _reading(
    kind: str, model: str, batch: int, ranks: int | None, values: Sequence[float]
) -> Reading:
    """Return the reading of values of a `kind` of lines; `batch` is that of one rank."""
    parameters: dict[str, Scalar] = {"model": model, "batch": batch, "intervals": len(values)}
    samples = (Sample("throughput", Case(), tuple(values)),) if values else ()
    return Reading("pytorch_ddp", kind, {**parameters, "lines": kind}, ranks, samples)


READER = Reader(
    "pytorch_ddp",
    read,
    marks=MARKS,
    heads=_HEADS,
    versions="the four kinds of lines of the table Images per second",
    proof=(
        "first and last line of its kind once, every value of a numbered sequence, no traceback,"
        " mean and total where they are printed, ranks, model and batch as asked"
    ),
    means=(
        "a value per interval that the script times; whether loading the data is in it depends on"
        " the script; kinds of lines are never compared with each other"
    ),
    facts=(
        Row(("pytorch_ddp.loss",), "volatile", "it varies with the order of sums", {"other": 0}),
        of_tool("pytorch_ddp.", reason="another version of PyTorch, or another way to communicate"),
    ),
)
