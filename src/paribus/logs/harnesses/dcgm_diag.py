"""What `dcgmi diag -j` writes: which tests of GPUs passed, and the figures beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paribus.core import Case, Metric, Reading, Sample
from paribus.readers.figures import figure
from paribus.readers.harness import NOT_WRITTEN, Failed, Harness, Measured, name_of
from paribus.readers.heads import Head
from paribus.readers.json import document, inner
from paribus.readers.text import refuse

OLD, NEW = '"DCGM GPU Diagnostic"', '"DCGM Diagnostic"'
"""The key of all results until 3.3, and from 4.0 on."""

METRICS = {
    "bandwidth": Metric("bandwidth", "GB/s", "higher"),
    "speed": Metric("speed", "Gflop/s", "higher"),
    "latency": Metric("latency", "us", "lower"),
}
_LINK = re.compile(
    r"(?:GPU (\d+) )?(GPU to Host|Host to GPU|bidirectional) (bandwidth|latency):\s+"
    r"(\d+\.\d{2,3}) (?:GB/s|us)(?![\w/])"
)
"""A figure of PCIe: "GPU 1 Host to GPU bandwidth:\\t\\t25.87 GB/s"."""

_SPEED = re.compile(r"GPU (\d+) calculated at approximately (\d+\.\d\d) gigaflops")


def read(text: str) -> list[Measured | Failed]:
    """Return the one launch in it, which failed if a test did; raises ParseError for damage."""
    mark = NEW if NEW in text else OLD
    tree = document(text, mark)
    whole = inner(tree, mark.strip('"'))
    if error := whole.get("runtime_error") or tree.get("runtime_error"):
        return [Failed(f"dcgmi says {str(error)[:160]!r}", {})]
    found: dict[tuple[str, str], dict[int, float]] = {}
    warned, passed = [], 0
    for test, result in _results(whole):
        status = str(inner(result, "status")).upper()
        name = name_of(test, "name")
        if status.startswith("FAIL"):
            return [Failed(f"the test {name!r} failed: {_why(result)}", {})]
        if status.startswith("WARN"):
            warned.append(f"dcgmi warns in {name!r}: {_why(result)}")
        passed += status.startswith("PASS")
        for kind, gpu, value in _figures(result):
            if found.setdefault(kind, {}).setdefault(gpu, value) != value:
                refuse(f"{' '.join(kind)} of GPU {gpu} is there twice")
    if not passed or not found:
        refuse("no figure is in it: `dcgmi diag -r 2 -j -v` writes some with the tests of PCIe")
    gpus = {gpu for of in found.values() for gpu in of}
    for (metric, what), of in found.items():
        if lacking := gpus - of.keys():
            refuse(f"GPU {min(lacking)} lacks {metric} {what}".rstrip())
    links = {kind for kind in found if kind[0] != "speed"}
    if links and len(links) != 6:
        refuse(f"of the six figures of PCIe there are {len(links)}")
    samples = [
        Sample(metric, Case.of(gpu=gpu, **({"way": what} if what else {})), (value,))
        for (metric, what), of in found.items()
        for gpu, value in sorted(of.items())
    ]
    metrics = tuple(one for name, one in METRICS.items() if any(k[0] == name for k in found))
    metadata = tree.get("metadata", {})
    version = str(metadata.get("version") or whole.get("version") or NOT_WRITTEN)
    reading = Reading("dcgm_diag", version, {}, None, tuple(samples), guards=tuple(warned))
    return [Measured(reading, None, metrics)]


def _results(whole: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each test with each of its results."""
    for category in inner(whole, "test_categories"):
        for test in inner(category, "tests"):
            if test is None:
                continue  # between two tests of some versions
            for result in inner(test, "results"):
                yield test, result


def _why(result: Any) -> str:
    """Return the first warning of a result, which older versions write without a list."""
    warnings = result.get("warnings", "")
    first = warnings[0] if isinstance(warnings, list) and warnings else warnings
    text = first.get("warning", "") if isinstance(first, dict) else first
    return " ".join(str(text).split())[:160] or "no reason given"


def _figures(result: Any) -> Iterator[tuple[tuple[str, str], int, float]]:
    """Yield the figures in the lines of a result: metric and way, such as Host-GPU, GPU, value."""
    info = result.get("info", ())
    for line in [info] if isinstance(info, str) else info:
        for one in _LINK.finditer(str(line)):
            gpu = int(one[1]) if one[1] is not None else inner(result, "entity_id")
            if type(gpu) is not int or gpu < 0:
                refuse(f"{gpu!r} is no GPU")
            way = one[2].replace(" to ", "-")
            yield (one[3], way), gpu, figure(one[4])
        for one in _SPEED.finditer(str(line)):
            yield ("speed", ""), int(one[1]), figure(one[2])


HARNESS = Harness(
    "dcgm_diag",
    read,
    marks=(OLD, NEW),
    heads=(Head("{", r'"DCGM (?:GPU )?Diagnostic"\s*:'),),
    launches=(
        "a file is one launch, and each GPU a case: what the tests of PCIe and of the arithmetic"
        " say; a test that failed has failed the launch"
    ),
    versions="3.1 to 4.4",
    proof="the status of every test, all six figures of PCIe, of every GPU of which one is there",
    from_text=True,
)
