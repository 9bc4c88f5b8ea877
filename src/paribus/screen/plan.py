"""The plan of a screen: what it measures, where, and by which margins, frozen in screen.json.

From the options of `paribus screen` (`--with`, `--margin`, `--rack`, ...) comes a Screen, which is
written before the first launch and read again by `--resume`. It lies beside launches.db (store/),
in which a block is a round, and an arm is a unit, named "node3", "node3:gpu0" (one GPU of a node)
or "node3|node4" (a link, launched from node3).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from paribus.benchmarks import benchmark_of
from paribus.border import Place, of_json, open_anew, read_json
from paribus.core import (
    GPU_ARRAY,
    Metric,
    Request,
    Selection,
    StoreError,
    UserError,
    commandline,
    count,
    expand,
    fold,
    parse_share,
)
from paribus.screen.course import Course
from paribus.screen.links import LEAST_NODES, Links
from paribus.screen.nodes import LEAST_UNITS, Nodes
from paribus.store import Lock, lock

NAME = "screen.json"
SCHEMA = "paribus.screen-plan/7"
MOST_BYTES = 64 << 20
LATEST = 2.0**36
"""Seconds since the epoch, in the year 4147: later ones have no date on some systems."""

MARGIN = 0.04
MARGINS = {"gpu_gemm": 0.08}
"""Margins of benchmarks whose healthy units differ by more.

At its power limit a GPU has the clock that its silicon allows: by P. Sinha et al., "Not all GPUs
are created equal", SC22, those of a cluster differ in such work by 8 % as a rule.
"""

DEFAULT = ("memory_bandwidth", "ep")
ON_ALL_CORES = ("memory_bandwidth", "ep")
"""Benchmarks that have a rank on every core of a node where no number is named."""

LINKS = ("latency bytes=8", "bandwidth bytes=65536 samples=10")

_NO_LABEL = re.compile(r"[^A-Za-z0-9._-]+")
"""What a label cannot hold of a network, such as the "/" of 10.1.0.0/16."""

MOST_GPUS = 64


@dataclass(frozen=True, slots=True)
class Screen:
    """The frozen plan of a screen; a *label* is the name of one of its `selections`.

    `hosts`, `network`, `mpi`: as the command line named them. `nodes`: those it began with;
    `absent`: those that could not be used, with the reason. `margins`: by label, as shares (0.04).
    `at`: when it was frozen, in seconds since the epoch. `at_once`: on how many nodes launches run
    at the same time; `step`: how many launches begin in one second; 0 for all. `links`: its units
    are pairs of nodes; `racks`: the nodes of each, empty where they are not known. `gpus`: how many
    GPUs of each node are units. `boots`: the boot id of each node. `families`: a batch has the
    share 1/families of the error. `networks`: the network of each label, where there are several.
    """

    hosts: str
    nodes: tuple[str, ...]
    selections: tuple[Selection, ...]
    margins: Mapping[str, float]
    seed: int
    at: float
    network: str = ""
    mpi: str = ""
    at_once: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    links: bool = False
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    boots: Mapping[str, str] = field(default_factory=dict)
    step: int = 0
    families: float = 1.0
    networks: Mapping[str, str] = field(default_factory=dict)

    @property
    def bounds(self) -> dict[str, float]:
        """The margins as log ratios above 0: 4 % is a speed of 0.96."""
        return {label: -math.log1p(-share) for label, share in self.margins.items()}

    @property
    def least(self) -> int:
        """The fewest units (nodes where it is of links) that can be compared with each other."""
        return LEAST_NODES if self.links else LEAST_UNITS

    def selection(self, label: str) -> Selection:
        """Return the benchmark and parameters that a label stands for."""
        [found] = [one for one in self.selections if one.label == label]
        return found

    def metric(self, label: str) -> Metric:
        """Return the figure of merit of a benchmark."""
        selection = self.selection(label)
        benchmark = benchmark_of(selection)
        choose = benchmark.choose
        return (choose(selection.parameters) if choose else benchmark.metrics)[0]

    def units(self, label: str) -> tuple[str, ...]:
        """Return the units that a benchmark is measured on: the nodes, or each of their GPUs."""
        if not (self.gpus and uses_one_gpu(self.selection(label))):
            return self.nodes
        return tuple(f"{node}:gpu{i}" for node in self.nodes for i in range(self.gpus.get(node, 0)))

    def noun(self, labels: Iterable[str]) -> str:
        """Return what a unit of these benchmarks is called: "pair", "GPU" or "node"."""
        if self.links:
            return "pair"
        return "GPU" if all(self.units(label) != self.nodes for label in labels) else "node"

    def both_ways(self, label: str) -> bool:
        """Return whether pairs are launched in both orders: a rate, not a latency, has a way."""
        return self.links and self.metric(label).better == "higher"

    def course(self) -> Course:
        """Return the course of this screen as it stands before the first round."""
        if self.links:
            one_way = [label for label in self.margins if self.both_ways(label)]
            return Links(self.nodes, self.racks, self.bounds, self.seed, one_way)
        units = {label: self.units(label) for label in self.margins}
        return Nodes(units, self.bounds, self.seed, self.families)

    @property
    def digest(self) -> str:
        """The SHA-256 by which stored launches are bound to this plan."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def uses_one_gpu(selection: Selection) -> bool:
    """Return whether a launch measures the first GPU that it sees, and no other."""
    return benchmark_of(selection).layer == "gpu" and selection.parameters.get("gpus") == 1


def racks_of(texts: Sequence[str], nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each rack, by its nodeset; `texts` are nodesets as `--rack` names them.

    Nodes that no rack names are one more; empty where that leaves fewer than two racks. Raises
    UserError for a node in two racks.

    >>> racks_of(["n[1-2]"], ["n1", "n2", "n3", "n4"])
    {'n[1-2]': ('n1', 'n2'), 'n[3-4]': ('n3', 'n4')}
    """
    found, taken = dict[str, tuple[str, ...]](), set[str]()
    for text in texts:
        try:
            named = {*expand(text)}
        except ValueError as error:
            raise UserError(str(error), place=f"--rack {text}", fix="write node[1-16]") from None
        members = tuple(node for node in nodes if node in named)
        if twice := [node for node in members if node in taken]:
            cause, fix = f"{fold(twice)} is in another rack too", "name each node once"
            raise UserError(cause, place=f"--rack {text}", fix=fix)
        taken.update(members)
        found |= {fold(members): members} if members else {}
    rest = tuple(node for node in nodes if node not in taken)
    found |= {fold(rest): rest} if found and rest else {}
    return found if len(found) > 1 else {}


def selections(
    benchmarks: Sequence[str],
    command: str,
    figure: Mapping[str, Any],
    cores: int,
    *,
    links: bool = False,
) -> tuple[Selection, ...]:
    """Return the selections that `--with` and `--command` ask for, on nodes of so many `cores`.

    `benchmarks`: texts of `--with`, such as "cg ranks=4". `figure`: keys of a study file that say
    what the command prints (regex, unit, better). With `links` a launch is on two nodes. Raises
    UserError for whatever a study file may not say.
    """
    from paribus.studyfile.load import selections_of
    from paribus.studyfile.written import split

    usual = LINKS if links else DEFAULT
    tables = [_table(text, cores) for text in benchmarks or ([] if command else usual)]
    if command:
        argv = list(split(command, "--command"))
        tables.append({"name": "command", "argv": argv, **figure})
    top, found = Place("command line", "", {"benchmarks": tables}), list[Selection]()
    for one in selections_of(top, Path(), None)[0]:
        if links:
            _check_pair(one)
        # Without a size each node would choose its own: here all GPUs have arrays of one size.
        is_open = benchmark_of(one).arrays and one.parameters["bytes"] is None
        size = {"bytes": [GPU_ARRAY]} if is_open else {}
        found.append(replace(one, parameters={**one.parameters, **size}))
    return tuple(found)


def over(
    selections: Sequence[Selection], networks: Sequence[str]
) -> tuple[tuple[Selection, ...], dict[str, str]]:
    """Return each selection once per network, and the network of each label.

    A label then ends in its network: "latency.ib0". With one network, or none, the selections
    stay as they are, and no label has a network. Raises UserError for a network named twice.
    """
    if len(networks) < 2:
        return tuple(selections), {}
    found = [
        (replace(one, label=f"{one.label}.{_NO_LABEL.sub('-', net)}"), net)
        for net in networks
        for one in selections
    ]
    of = {one.label: net for one, net in found}
    if len(of) < len(found):
        twice = "each network is measured once"
        raise UserError(twice, place=f"--network {' '.join(networks)}", fix="name it once")
    return tuple(one for one, _ in found), of


def _check_pair(selection: Selection) -> None:
    """Raise UserError for a benchmark of other than two processes."""
    wanted = benchmark_of(selection).command(Request(selection.parameters, selection.ranks))
    if not wanted.server and not (wanted.mpi and selection.ranks == 2):
        raise UserError(
            "a link is measured by two processes, one on each node",
            place=f"--links --with {selection.label}",
            fix="choose a benchmark of two ranks, such as latency, bandwidth, osu_latency",
        )


def _table(text: str, cores: int) -> dict[str, Any]:
    """Return the table of a study file for a text of `--with`, such as "cg ranks=4"."""
    name, *words = commandline.split(text) or ("",)
    table: dict[str, Any] = {"name": name}
    if name in ON_ALL_CORES:
        table["ranks"] = cores
    for word in words:
        key, given, value = word.partition("=")
        if not given:
            fix = f'write --with "{name} KEY=VALUE"'
            raise UserError("sets no parameter", place=f"--with {text}", fix=fix)
        table[key] = int(value) if value.isascii() and value.isdigit() else value
    return table


def margins_of(texts: Sequence[str], several: Sequence[Selection]) -> dict[str, float]:
    """Return the margin of each selection by label, as a share.

    `texts` are those of `--margin`, "4%" for all or "ep=2%" for one label. Raises UserError.
    """
    found = {one.label: MARGINS.get(one.benchmark, MARGIN) for one in several}
    for text in texts:
        label, given, share = text.rpartition("=")
        if given and label not in found:
            fix = f"name one of {', '.join(found)}"
            raise UserError("is not measured here", place=f"--margin {text}", fix=fix)
        try:
            value = parse_share(share)
        except ValueError as error:
            raise UserError(str(error), place=f"--margin {text}", fix="write 4%") from error
        found |= {label: value} if given else dict.fromkeys(found, value)
    return found


def batches(directory: Path) -> list[Path]:
    """Return the directories of batches below `directory`, batch-1 first; none without `--wait`."""
    found: list[Path] = []
    while (one := directory / f"batch-{len(found) + 1}" / NAME).exists():
        found.append(one.parent)
    return found


def write(screen: Screen, directory: Path, *, anew: bool = False) -> None:
    """Write screen.json; raises StoreError where one is there already, unless it may be `anew`."""
    if not anew:
        check_free(directory)
    table = {"schema": SCHEMA, "sha256": screen.digest, **asdict(screen)}
    put(directory / NAME, json.dumps(table, indent=2) + "\n")


def put(path: Path, text: str) -> None:
    """Write a file of a screen, whole or not at all; raises StoreError."""
    draft = path.with_name(f"{path.name}.draft")
    try:
        with open_anew(draft, encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except OSError as error:
        fix = "check permissions and space, or choose another directory with --out"
        cause, at = f"cannot be written: {error.strerror}", error.filename2 or error.filename
        raise StoreError(cause, place=str(at or path), fix=fix) from error


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Hold the lock of `directory`, which is made; without a screen at the end it is removed.

    So is the lock in a directory that was there. Raises AtWorkError while another process screens
    there.
    """
    path = directory / lock.NAME
    was_there = path.exists()
    held = Lock(directory).take()
    try:
        yield
    finally:
        if not (directory / NAME).exists():
            if held.made:
                shutil.rmtree(directory, ignore_errors=True)
            elif not was_there:
                path.unlink(missing_ok=True)
        held.release()


def check_free(directory: Path) -> None:
    """Raise StoreError where `directory` holds a screen."""
    if (directory / NAME).exists():
        fix = "continue it with --resume, or choose another directory with --out"
        raise StoreError("holds a screen already", place=str(directory), fix=fix)


def read(directory: Path) -> Screen:
    """Return the screen frozen in `directory`; raises StoreError for none, or a changed one."""
    path = directory / NAME
    try:
        table = read_json(path, MOST_BYTES, "a screen")
        if table.pop("schema") != SCHEMA:
            raise ValueError("it is of another version of Paribus")
        digest = table.pop("sha256")
        screen: Screen = of_json(Screen, table)
        if any(one.file for one in screen.selections):
            raise ValueError("it names a file to execute, which no screen does")
        if screen.digest != digest:
            raise ValueError("it was changed since it was frozen")
        _check_sound(screen)  # which asks its benchmarks, so that none may be a file
    except FileNotFoundError:
        fix = "name the directory that `paribus screen` made"
        cause = f"holds no screen: no file {NAME}"
        raise StoreError(cause, place=str(directory), fix=fix) from None
    except (OSError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        fix = "restore it, or screen again"
        raise StoreError(f"cannot be read: {reason}", place=str(path), fix=fix) from error
    return screen


def _check_sound(screen: Screen) -> None:
    """Raise ValueError for a plan that Paribus cannot have written.

    Its hash proves nothing: whoever writes another plan can write its hash, too.
    """
    labels = [one.label for one in screen.selections]
    shares = all(0 < share < 1 for share in screen.margins.values())
    alike = sorted(labels) == sorted(screen.margins) and labels and screen.seed >= 0
    dated = 0 <= screen.at < LATEST and 1 <= screen.families < math.inf and screen.step >= 0
    if not (shares and alike and dated and len({*screen.nodes}) == len(screen.nodes)):
        raise ValueError("its nodes, benchmarks, margins or date are of no screen")
    in_racks = sorted(node for members in screen.racks.values() for node in members)
    whole = not in_racks or in_racks == sorted(screen.nodes)
    over_each = not screen.networks or sorted(screen.networks) == sorted(labels)
    if not (whole and over_each) or any(number > MOST_GPUS for number in screen.gpus.values()):
        raise ValueError("its racks, networks or GPUs are of no screen")
    for label in labels:
        of_json(Metric, asdict(screen.metric(label)))
    check_enough(screen)


def check_enough(screen: Screen) -> None:
    """Raise UserError for fewer nodes or GPUs than can be compared with each other."""
    number = min(len(screen.units(label)) for label in screen.margins)
    if number < screen.least:
        noun = "GPU" if screen.gpus else "node"
        raise UserError(
            f"{count(number, noun)} can be screened, and {screen.least} are the least",
            place=screen.hosts,
            fix="name more nodes: slow means slower than their median",
        )


def check_same(frozen: Screen, new: Screen, directory: Path, what: str = "selections") -> None:
    """Raise StoreError where the command line asks for another screen than was frozen.

    `what` is the field that says what is measured: "selections", or "margins", whose keys are the
    labels, where batches are compared: ranks follow the cores of a batch's nodes.
    """
    for key in ("hosts", what, "margins", "links", "network", "networks", "mpi"):
        ours, theirs = (json.dumps(asdict(one)[key]) for one in (frozen, new))
        if ours != theirs:
            raise StoreError(
                f"{key}: not what the command line names",
                place=str(directory / NAME),
                fix="repeat the command line that began it, or start anew with --out",
            )
