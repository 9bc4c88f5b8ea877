"""The readers of pytorch_ddp.py: what four kinds of training scripts print of images per second."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from itertools import pairwise

from paribus.benchmarks._apps import near
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, refuse
from paribus.model import Case, Reading, Sample, Scalar

# 1. Our own convention: docs/benchmarks.md, "Images per second".
OURS = "paribus-throughput begin "
_BEGIN = re.compile(r"paribus-throughput begin model=(\S+) batch=(\d+) ranks=(\d+)[ \t]*$", re.M)
_INTERVAL = re.compile(r"^paribus-throughput (\d+)/(\d+) (\d+(?:\.\d+)?) images/s[ \t]*$", re.M)
_END = re.compile(r"^paribus-throughput end[ \t]*$", re.M)

# 2. pytorch_synthetic_benchmark.py of Horovod, and the copies of it that use DDP.
SYNTHETIC = "Running warmup..."
_MODEL = re.compile(r"^Model: (\S+)[ \t]*$", re.M)
_BATCH = re.compile(r"^Batch size: (\d+)[ \t]*$", re.M)
_DEVICES = re.compile(r"^Number of (GPU|CPU)s: (\d+)[ \t]*$", re.M)
_ITERATION = re.compile(r"^Iter #(\d+): (\d+\.\d) img/sec per (?:GPU|CPU)[ \t]*$", re.M)
_MEAN = re.compile(r"^Img/sec per (?:GPU|CPU): (\d+\.\d) \+-(\d+\.\d)[ \t]*$", re.M)
_TOTAL = re.compile(
    r"^Total img/sec on (\d+) (?:GPU|CPU)\(s\): (\d+\.\d) \+-(\d+\.\d)[ \t]*$", re.M
)

# 3. references/classification/train.py of torchvision.
TORCHVISION = "  img/s: "
_SPACE = re.compile(r"^Namespace\((.+)\)[ \t]*$", re.M)
_STEP = re.compile(
    r"^Epoch: \[(\d+)\] +\[ *(\d+)/(\d+)\]  eta: [^\n]{0,400}?  img/s: (\d+\.\d+)(?: \(\S+\))?"
    r"  [^\n]{0,400}?time: \d+\.\d+  data: \d+\.\d+(?:  max mem: \d+)?[ \t]*$",
    re.M,
)
_EPOCH = re.compile(r"^Epoch: \[(\d+)\] Total time: \S[^\n]*$", re.M)

# 4. dllogger on stdout: image_classification of NVIDIA's DeepLearningExamples, PyTorch.
DLLOGGER = "train.total_ips : "
_LOGGED = re.compile(
    r"^DLL \S+ \S+ - (?:Epoch: (\d+) (?:Iteration: (\d+) )?|(Summary:)) *[^\n]{0,400}?"
    r"\btrain\.total_ips : (\d+\.\d+) (?:img|images)/s\b",
    re.M,
)
IMAGENET = "Epoch: [0]["
MARKS = (OURS, SYNTHETIC, "Start training\n", TORCHVISION, " - PARAMETER ", DLLOGGER, IMAGENET)
"""What shows each kind; torchvision's and dllogger's begin with a line that comes once."""

_BEGUN = re.compile(r"Epoch: \d+ Iteration: (?!\d+ +Validation)")
_PARAMETER = re.compile(r"^DLL \S+ \S+ - PARAMETER [^\n]*$", re.M)


def read(text: str) -> Reading:
    """Return the images per second of all ranks together, interval by interval."""
    if (at := text.find("Traceback (most recent call last)")) >= 0:
        refuse("the script ended with a Python traceback", line_of(text, at))
    kinds = {OURS: _ours, SYNTHETIC: _synthetic, TORCHVISION: _torchvision, DLLOGGER: _dllogger}
    marks = [mark for mark in kinds if mark in text]
    if len(marks) > 1:
        refuse(
            "lines of two kinds of scripts: two outputs in one", line_of(text, text.find(marks[1]))
        )
    reader = kinds[marks[0]] if marks else None
    if reader is None and (at := text.find(IMAGENET)) >= 0:
        said = "the imagenet example of PyTorch prints seconds per step"
        refuse(
            f"{said}, but not how many images a step has: images/s are not in it", line_of(text, at)
        )
    if reader is None:
        refuse("no line of the four kinds that are understood (docs: Images per second)")
    return reader(text)


def _ours(text: str) -> Reading:
    begin = _BEGIN.match(text, once(text, OURS, "the line 'paribus-throughput begin'"))
    intervals = _INTERVAL.findall(text)
    if begin is None or len(_END.findall(text)) != 1:
        refuse("the lines 'paribus-throughput begin' and 'end' are not there once and whole")
    wanted = [(str(number), str(len(intervals))) for number in range(1, len(intervals) + 1)]
    if [(one, of) for one, of, _ in intervals] != wanted or text.count(
        "paribus-throughput "
    ) != len(intervals) + 2:
        refuse("the intervals are not numbered 1/N to N/N, or one is damaged")
    values = [figure(value) for _, _, value in intervals]
    return _reading("paribus", begin[1], count(begin[2]), count(begin[3]), values)


def _synthetic(text: str) -> Reading:
    once(text, SYNTHETIC)
    model, batch, devices = _MODEL.findall(text), _BATCH.findall(text), _DEVICES.findall(text)
    mean, total = _MEAN.findall(text), _TOTAL.findall(text)
    if not len(model) == len(batch) == len(devices) == len(mean) == len(total) == 1:
        refuse("model, batch size, devices, or the last two lines are not there once and whole")
    found = _ITERATION.findall(text)
    if [number for number, _ in found] != [str(number) for number in range(len(found))]:
        refuse("the iterations are not numbered from 0")
    if text.count("Iter #") != len(found) or len(found) < 2:
        refuse("a line 'Iter #' is damaged, or there are fewer than two")
    values = [figure(value) for _, value in found]
    ranks = count(devices[0][1])
    spread = 1.96 * statistics.pstdev(values)
    if abs(statistics.fmean(values) - float(mean[0][0])) > 0.11:
        refuse(f"the iterations have {statistics.fmean(values):.1f} on average, not {mean[0][0]}")
    if abs(spread - float(mean[0][1])) > 0.16:
        refuse(f"the iterations spread by {spread:.1f}, not by {mean[0][1]}")
    if (
        total[0][0] != str(ranks)
        or abs(float(total[0][1]) - ranks * float(mean[0][0])) > 0.06 * ranks
    ):
        refuse(f"{ranks} times {mean[0][0]} are not {total[0][1]} on {total[0][0]} devices")
    return _reading("synthetic", model[0], count(batch[0]), ranks, [ranks * v for v in values])


def _torchvision(text: str) -> Reading:
    once(text, "Training time ", "the last line, 'Training time',")
    space = _SPACE.findall(text)
    if len(space) != 1:
        refuse(f"the line of arguments, 'Namespace(...)', is there {len(space)} times, not once")
    said = dict(re.findall(r"\b(\w+)='?([\w.+-]+)'?", space[0]))
    missing = {"model", "batch_size", "epochs"} - said.keys()
    if missing:
        refuse(f"the line of arguments says nothing of {', '.join(sorted(missing))}")
    ranks, epochs = count(said.get("world_size", "1")), count(said["epochs"])
    steps, ended = _STEP.findall(text), _EPOCH.findall(text)
    if text.count("img/s: ") != len(steps):
        refuse("a line with img/s is damaged")
    _check_steps([(int(e), int(step), int(of)) for e, step, of, _ in steps])
    first = count(said.get("start_epoch", "0"))
    if [int(e) for e in ended] != list(range(first, epochs)):
        refuse(f"{len(ended)} epochs have ended, {epochs - first} were to be made")
    if sorted({int(e) for e, *_ in steps}) != sorted(map(int, ended)):
        refuse("an epoch has no line of its speed, or has not ended")
    # The first step of an epoch waits for the workers that load the data.
    values = [ranks * figure(value) for _, step, _, value in steps if step != "0"]
    if not values:
        refuse("one line per epoch, and the first of an epoch waits for its data")
    return _reading("torchvision", said["model"], count(said["batch_size"]), ranks, values)


def _check_steps(steps: Sequence[tuple[int, int, int]]) -> None:
    """Refuse steps of epochs that are not 0, f, 2f, ... up to the last before the epoch's end."""
    by_epoch: dict[int, list[tuple[int, int]]] = {}
    for epoch, step, of in steps:
        by_epoch.setdefault(epoch, []).append((step, of))
    for epoch, rows in by_epoch.items():
        stride = rows[1][0] if len(rows) > 1 else rows[0][1]
        lengths = {of for _, of in rows}
        if len(lengths) != 1 or stride < 1:
            refuse(f"the lines of epoch {epoch} do not agree on its length")
        if [step for step, _ in rows] != list(range(0, lengths.pop(), stride)):
            refuse(f"the lines of epoch {epoch} are not every {stride} steps to its end")


def _dllogger(text: str) -> Reading:
    found = list(_LOGGED.finditer(text))
    if text.count(DLLOGGER) != len(found):
        at = text.find(DLLOGGER)
        refuse(f"a line of dllogger is damaged, such as {line_at(text, at)[:60]!r}")
    if sum(match[3] is not None for match in found) != 1 or found[-1][3] is None:
        refuse("the last line of speed, 'Summary:', is not there once")
    settings = _PARAMETER.findall(text)
    said: dict[str, str] = {}
    for line in settings:
        said |= dict(re.findall(r"\b(\w+) : ([\w.+-]+)", line))
    if not {"arch", "batch_size"} <= said.keys():
        refuse("no line 'PARAMETER' says arch and batch_size")
    steps = [match for match in found if match[2] is not None]
    numbers = [(int(match[1]), int(match[2])) for match in steps]
    if numbers != sorted(set(numbers)) or len(steps) < 2 or len(_BEGUN.findall(text)) > len(steps):
        refuse("fewer than two iterations, not in order, or one without its speed")
    stride = numbers[1][1] - numbers[0][1]
    for (epoch, one), (other_epoch, other) in pairwise(numbers):
        if epoch == other_epoch and other - one != stride:
            refuse(f"an iteration between {one} and {other} of epoch {epoch} is missing")
    # Iterations are counted from 1 in versions of 2020, from 0 in later ones.
    starts = {epoch: min(n for e, n in numbers if e == epoch) for epoch, _ in numbers}
    if set(starts.values()) not in ({0}, {1}):
        refuse("the first iteration of an epoch is missing")
    values = [figure(m[4]) for m in steps if int(m[2]) != starts[int(m[1])]]
    summary = figure(found[-1][4])
    if not near(statistics.fmean(values), summary, 0.5):
        refuse(
            f"the iterations have {statistics.fmean(values):.0f} images/s, the summary {summary}"
        )
    return _reading("dllogger", said["arch"], count(said["batch_size"]), None, values)


def _reading(
    kind: str, model: str, batch: int, ranks: int | None, values: Sequence[float]
) -> Reading:
    """Return the values with what two outputs must share; `batch` is that of one rank."""
    parameters: dict[str, Scalar] = {"model": model, "batch": batch, "intervals": len(values)}
    samples = (Sample("throughput", Case(), tuple(values)),) if values else ()
    return Reading("pytorch_ddp", kind, {**parameters, "lines": kind}, ranks, samples)
