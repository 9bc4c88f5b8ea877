"""`paribus topology show|diff|predict|switch|emulate TREE`: the PCIe tree of a server."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import as_error
from paribus.cli import add_action
from paribus.cli.hosts import accepts_keys, add_host_keys

if TYPE_CHECKING:
    from paribus.topology.capacities import Capacities
    from paribus.topology.tree import Tree

EXAMPLE = """\
example:
  paribus topology show                          # of this machine
  paribus topology show node7                    # of a host that ssh reaches
  paribus topology show lstopo.xml --svg tree.svg
  paribus topology diff balance cascade          # two profiles that ship
  paribus topology predict                       # the three profiles, beside study 3
  paribus topology predict lstopo.xml cascade --load ring-allreduce
  paribus topology switch node7 cascade --through bmc.toml --dry-run
  paribus topology emulate /tmp/bmc              # a BMC to try this on

TREE is a file (hwloc's XML, NCCL's XML, the output of `nvidia-smi topo -m`, JSON of this verb, a
recording of `paribus record`), the root of a recorded /sys, a host, or a profile that ships:
balance, common, cascade. Without one it is this machine.
"""
DIFFER = 3
MOST = 6
"""Trees of one prediction: more are no table that a page holds."""

_TREE = "a file, a host or a profile"
_JSON = 'print JSON, schema "paribus.topology{}/1"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of the verb, each with its arguments."""
    from paribus.bmc.verb import add_emulate, add_switch

    parser.description = (
        "Show how GPUs, network adapters and NVMe hang together in a server, and name the shape;"
        " say in words what differs between two servers; predict what their links carry;"
        " switch it through the server's BMC."
    )
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    _add_show(add_action(actions, "show", "print the tree of a server, and name its shape", _show))
    _add_diff(add_action(actions, "diff", "say what differs between two trees", _diff))
    _add_predict(add_action(actions, "predict", "predict what links carry under a load", _predict))
    add_switch(actions)
    add_emulate(actions)


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tree", metavar="TREE", nargs="?", default="/", help=_TREE)
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a picture too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print the tree for Graphviz")
    form.add_argument("--nccl-xml", action="store_true", help="print the tree for NCCL_TOPO_FILE")
    form.add_argument("--shape", action="store_true", help="print the name of the shape alone")
    form.add_argument("--json", action="store_true", help=_JSON.format(""))
    add_host_keys(parser)


def _add_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="TREE", help=_TREE)
    parser.add_argument("other", metavar="OTHER", help="a second one")
    parser.add_argument("--json", action="store_true", help=_JSON.format(".diff"))
    add_host_keys(parser)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    from paribus.topology.predict import LOADS

    parser.add_argument("trees", metavar="TREE", nargs="*", help=f"{_TREE}; up to {MOST}")
    parser.add_argument(
        "--load", choices=LOADS, action="append", help="predict this one only (repeatable)"
    )
    parser.add_argument(
        "--capacities", metavar="FILE", type=Path, help="what links carry, instead of study 3's"
    )
    for name, text in (
        ("gradient-mb", "MB (10^6 B) of gradients of a model of your own, on each GPU"),
        ("input-mb", "MB of its input per step, on each GPU"),
        ("compute-ms", "ms of compute of its step"),
    ):
        parser.add_argument(f"--{name}", metavar="N", type=float, help=text)
    parser.add_argument(
        "--window",
        metavar="FILE",
        type=Path,
        help="draw which tree is best, by compute time and input bytes",
    )
    parser.add_argument("--json", action="store_true", help=_JSON.format(".prediction"))
    add_host_keys(parser)


def _show(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus topology show`."""
    from paribus.topology import nccl, stored

    name = arguments.tree
    tree = _tree(name, arguments)
    if arguments.dot:
        from paribus.topology.svg import to_dot

        print(to_dot(tree), end="")
    elif arguments.shape:
        from paribus.topology.shape import shape_of

        print(shape_of(tree).name)
    elif arguments.nccl_xml:
        print(nccl.to_nccl(tree), end="")
    elif arguments.json:
        print(json.dumps(stored.to_json(tree), indent=1))
    else:
        from paribus.report.printing import console_on
        from paribus.topology.printed import print_tree

        place = "this machine" if name == "/" else name
        print_tree(tree, f"{place} ({tree.source})", console_on(sys.stdout))
    if arguments.svg is not None:
        from paribus.topology.svg import svg

        _write(arguments.svg, svg(tree))
    return 0


def _write(path: Path, text: str) -> None:
    from paribus.core import UserError

    with as_error(UserError, path, "choose another file"):
        path.write_text(text, encoding="utf-8")


def _diff(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus topology diff`."""
    from paribus.topology.diff import difference

    one, other = (_tree(name, arguments) for name in (arguments.one, arguments.other))
    found = difference(one, other)
    if arguments.json:
        print(json.dumps({"schema": "paribus.topology.diff/1", **asdict(found)}, indent=1))
    else:
        from paribus.report.printing import console_on
        from paribus.topology.printed import print_difference

        print_difference(found, (one, other), console_on(sys.stdout))
    return DIFFER if found else 0


def _predict(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus topology predict`."""
    from paribus.core import UserError
    from paribus.topology.capacities import read_capacities, shipped
    from paribus.topology.predict import LOADS, Network, beside_published, forecasts, pairs_of
    from paribus.topology.read import PROFILES

    names = arguments.trees or list(PROFILES)
    if len(names) > MOST:
        raise UserError(f"{len(names)} trees", place="topology predict", fix=f"name up to {MOST}")
    trees = [_tree(name, arguments) for name in names]
    for name, tree in zip(names, trees, strict=True):
        if len(tree.gpus) < 2:
            raise UserError(
                "fewer than two GPUs, so nothing is transferred between them",
                place=name,
                fix="name a tree with more, such as `balance`",
            )
    path = arguments.capacities
    stated = _with_own_model(read_capacities(path or shipped()), arguments)
    found = forecasts(trees, arguments.load or LOADS, stated)
    beside = beside_published(trees, stated) if not arguments.load else []
    if arguments.json:
        table = {
            "schema": "paribus.topology.prediction/1",
            "measured": False,
            "trees": names,
            "predicted": [asdict(one) for one in found],
            "pairs": [asdict(pairs_of(tree, stated)) for tree in trees],
            "beside": [asdict(one) for one in beside],
        }
        print(json.dumps(table, indent=1))
    else:
        from paribus.report.printing import console_on
        from paribus.topology.printed import print_beside, print_forecasts, print_pairs

        console = console_on(sys.stdout)
        source = str(path) if path else "capacities.toml of Paribus (study 3)"
        called = [Path(name).name for name in names]
        print_forecasts(found, called, source, console)
        if arguments.load:
            each = [(one, pairs_of(tree, stated)) for one, tree in zip(called, trees, strict=True)]
            print_pairs(each, arguments.load, console)
        if beside:
            print_beside(beside, console)
    if arguments.window is not None:
        from paribus.topology.printed import window_svg

        rates = [Network(tree, stated).rates for tree in trees]
        _write(arguments.window, window_svg(names, rates, stated))
    return 0


def _with_own_model(stated: Capacities, arguments: argparse.Namespace) -> Capacities:
    """Return `stated` with the model that the options describe in place of those of the file."""
    from paribus.core import UserError
    from paribus.topology.capacities import Model

    given = (arguments.gradient_mb, arguments.input_mb, arguments.compute_ms)
    if given == (None, None, None):
        return stated
    if None in given or not all(0 < value < 1e9 for value in given):
        fix = "give --gradient-mb, --input-mb and --compute-ms"
        raise UserError("a model needs three positive numbers", place="predict", fix=fix)
    if "training" not in (arguments.load or ["training"]) and arguments.window is None:
        fix = "add --load training, or leave it out"
        raise UserError("is of another load", place="--gradient-mb", fix=fix)
    gradient, inputs, compute = given
    return replace(stated, models={"own": Model(gradient, 1, inputs, compute)}, published={})


def _tree(name: str, arguments: argparse.Namespace) -> Tree:
    """Return the tree that the command line names: a profile, a file, a /sys, or a host."""
    from paribus.border import exists
    from paribus.core import UserError
    from paribus.topology.read import PROFILES, from_path, profile

    if name in PROFILES and not exists(Path(name)):
        return profile(name)
    if exists(Path(name)):
        tree = from_path(Path(name))
        if name == "/":
            from paribus.topology.nvml import with_nvml

            return with_nvml(tree)
        return tree
    if "/" in name or name.endswith((".xml", ".json", ".txt")):
        raise UserError("no such file", place=name, fix="name a file, a host or a profile")
    from paribus.cluster.opened import tree_of_host

    return tree_of_host(name, accepts_keys(arguments.accept_host_keys))
