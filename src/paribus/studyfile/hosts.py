"""The keys of an arm that name its hosts: a nodeset, a hostfile, a pocket cluster, a scheduler.

hosts = "node[1-2]" or "./hostfile" are hosts over ssh; "pocket:2" are two network namespaces of
this machine; `scheduler = { name = "slurm", nodes = 2, time = "2 h" }` asks for an allocation.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from paribus.border import Place, decoded, fields, read_bounded
from paribus.core import (
    Adapter,
    Address,
    Arm,
    Hosts,
    Link,
    Scheduler,
    Ssh,
    Study,
    check_names,
    count,
    expand,
    nodes_of,
    parse_seconds,
    parts,
    size,
)

if TYPE_CHECKING:
    from paribus.schedulers.dialect import Dialect


MOST_NODES = 10_000
"""The most nodes of an allocation."""

MOST_SLOTS = 10_000
"""The most slots of a node."""


def scheduler_of(place: Place) -> Scheduler:
    """Return the key `scheduler` of the arm at `place`; notes or raises StudyError as Place."""
    from paribus.schedulers import manifest
    from paribus.schedulers.known import DIALECTS

    table = place.within(f"{place.path}.scheduler", place.table["scheduler"])
    name = table.need("name", fields.one_of(*DIALECTS), 'name = "slurm"')
    dialect = DIALECTS[name]
    keys = ("nodes", "time", *dialect.KEYS, *(["options"] if dialect.GIVEN else []))
    for key in sorted({"options", *(key for one in DIALECTS.values() for key in one.KEYS)}):
        if key in table.table and key not in keys:
            table.refuse(key, None, f"is not for {dialect.TITLE}", f"use: {', '.join(keys)}")
    table.only(("name", *keys))
    for key, example in dialect.NEEDED.items():
        if key not in table.table:
            table.refuse(key, None, "is missing", f"add it: {example}")
    word = _value if name == "slurm" else _node_word
    return Scheduler(
        name=name,
        nodes=table.need("nodes", fields.whole(1, MOST_NODES), "nodes = 2"),
        time_s=table.need("time", _minutes, 'time = "2 h"'),
        partition=table.read("partition", word, ""),
        account=table.read("account", word, ""),
        constraint=table.read("constraint", _labels if name == "kubernetes" else _value, ""),
        options=table.read("options", _options(dialect), ()),
        slots=table.read("slots", fields.whole(1, MOST_SLOTS), 0),
        parallel_environment=table.read("parallel_environment", word, ""),
        namespace=table.read("namespace", _label, ""),
        image=table.read("image", word, ""),
        resources=table.read("resources", _resources, ()),
        kind=table.read("kind", fields.one_of("Job", "JobSet", "MPIJob"), "Job"),
        autoscaled=table.read("autoscaled", fields.one_of(True, False), False),
        pod=table.read("pod", _fields(manifest.OF_POD), ""),
        container=table.read("container", _fields(manifest.OF_CONTAINER), ""),
    )


def check_one_scheduler(top: Place, arms: Sequence[Arm]) -> None:
    """Refuse arms whose nodes come from different batch systems, or parts of one."""
    from paribus.schedulers.known import DIALECTS

    schedulers = [(a.name, a.hosts.scheduler) for a in arms if a.hosts and a.hosts.scheduler]
    for name, asked in schedulers:
        first = schedulers[0][1]
        if asked.name != first.name:
            fix = f'use name = "{first.name}", or reach the nodes of the other as `hosts`'
            title = DIALECTS[first.name].TITLE
            cause = f"another arm asks {title}, and a study asks one scheduler"
            top.refuse(f"arms.{name}.scheduler.name", asked.name, cause, fix)
        for key in ("namespace", "kind"):
            own, other = getattr(asked, key), getattr(first, key)
            if own != other:
                cause = f"another arm asks for {other or 'none'}, and one command lists all pods"
                top.refuse(f"arms.{name}.scheduler.{key}", own, cause, "use the same in all arms")


def check_same_nodes(top: Place, study: Study) -> None:
    """Refuse `same_nodes` where the arms cannot have the same nodes: those of one allocation."""
    from paribus.schedulers.known import DIALECTS

    first = study.arms[0]
    for arm in study.arms:
        asked = arm.hosts.scheduler if arm.hosts else None
        if asked is None:
            cause = f"arm {arm.name} asks no scheduler for nodes"
            top.refuse("plan.same_nodes", True, cause, "give each arm the same `scheduler`")
        elif not DIALECTS[asked.name].named(("n1",)):
            cause = f"Paribus does not ask {DIALECTS[asked.name].TITLE} for nodes by name"
            fix = "remove it: arms whose `scheduler` is equal share the nodes of each allocation"
            top.refuse("plan.same_nodes", True, cause, fix)
        elif first.hosts and asked != first.hosts.scheduler:
            cause = f"no node is in two allocations at a time, and {first.name} asks for another"
            fix = "ask for the same in all arms, which then share one; or remove plan.same_nodes"
            top.refuse(f"arms.{arm.name}.scheduler", None, cause, fix)
        for one in study.benchmarks:
            in_first, in_arm = nodes_of(first, one), nodes_of(arm, one)
            if in_first != in_arm:
                cause = f"{one.label} has ranks on {count(in_arm, 'node')}"
                cause += f", and on {in_first} in {first.name}"
                fix = "give the arms the same ranks_per_host, or remove plan.same_nodes"
                top.refuse(f"arms.{arm.name}.ranks_per_host", None, cause, fix)


def _minutes(value: Any) -> float:
    """Return a duration in seconds that a batch system can count: whole minutes, at least one."""
    seconds = parse_seconds(value)
    if seconds < 60 or seconds % 60:
        raise ValueError('write whole minutes, as batch systems count them: "90 min"')
    return seconds


def _value(value: Any) -> str:
    """Return a text that is one word of an argument and one line of a script."""
    text = fields.text(value)
    if not text.isprintable() or " " in text:
        raise ValueError("write it as one word, without spaces")
    return text


def _node_word(value: Any) -> str:
    """Return a text that is one word and cannot be taken for an option."""
    text = _value(value)
    if text.startswith("-"):
        raise ValueError("it must not begin with '-'")
    return text


def _label(value: Any) -> str:
    """Return a name of Kubernetes: RFC 1123's label."""
    word = fields.text(value)
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", word):
        raise ValueError("write lower-case letters, digits and '-'")
    return word


def _labels(value: Any) -> str:
    """Return labels that a node must have: key=value, several with commas."""
    text = fields.text(value)
    one = r"[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]*"
    if not re.fullmatch(f"{one}(,{one})*", text):
        raise ValueError('write labels of nodes, several with commas: "gpu=h100,pool=hpc"')
    return text


def _resources(value: Any) -> tuple[tuple[str, str], ...]:
    """Return what each pod has: quantities by the names that Kubernetes gives resources."""
    found = fields.table(value)
    for name, amount in found.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9./_-]*", name):
            raise ValueError(f"{name!r} is no name of a resource")
        if isinstance(amount, bool) or not re.fullmatch(
            r"[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i?)?", str(amount)
        ):
            raise ValueError(f'{name} = {amount!r}: write a quantity such as 16, "500m" or "64Gi"')
    if not {"cpu", "memory"} <= found.keys():
        example = '{ cpu = 16, memory = "64Gi" }'
        raise ValueError(f"name cpu and memory, or pods of others share them: {example}")
    return tuple((name, str(amount)) for name, amount in found.items())


def _fields(given: Sequence[str]) -> Callable[[Any], str]:
    """Return a reader of fields of a pod or container, as JSON.

    It refuses those `given`, which Paribus sets itself.
    """

    def read(value: Any) -> str:
        found = fields.table(value)
        if mine := sorted({*given} & found.keys()):
            raise ValueError(f"{mine[0]} is given by Paribus; remove it")
        return json.dumps(found, sort_keys=True, default=str)

    return read


def _options(dialect: Dialect) -> Callable[[Any], tuple[str, ...]]:
    """Return a reader of options for the scheduler's command; it refuses those Paribus sets."""
    given = dialect.GIVEN

    def read(value: Any) -> tuple[str, ...]:
        options = fields.texts(value)
        for one in options:
            if not re.fullmatch(r"--?[^\s-]\S*( \S+)*", one) or not one.isprintable():
                raise ValueError(
                    f'{one!r} is no option; write one with its value: "--qos=short", "-P lab"'
                )
            # Where letter and value may be joined, -Plab is the option -P.
            name = re.split("[= ]", one)[0]
            name = name[:2] if dialect.JOINED and name[:2] in given else name
            if name in given:
                fix = f"as `{given[name]}`" if given[name] else "so that launches find their nodes"
                raise ValueError(f"{name} is given by Paribus {fix}; remove it")
        return options

    return read


_ADAPTER_KEYS = ("device", "port", "gid_index")


def adapter_of(place: Place) -> Adapter | None:
    """Return the adapter that the arm at `place` names, None if it names none.

    A text is DEVICE or DEVICE:PORT. Notes or raises StudyError as Place does.
    """
    given = place.table.get("adapter")
    if given is None:
        return None
    from paribus.tools.perftest import device, gid_index

    if given == "?":
        place.refuse(
            "adapter",
            None,
            "this study has no adapter of its own",
            'name its RDMA device (`rdma link` lists them): adapter = "mlx5_0"; `paribus new NAME`'
            " writes a copy of the study to edit",
        )
    if place.table.get("transport", "auto") != "auto":
        place.refuse("transport", place.table["transport"], "leaves the adapter out", "remove it")
    if not isinstance(given, dict):
        return place.read("adapter", _adapter, None)
    table = place.within(f"{place.path}.adapter", given)
    table.only(_ADAPTER_KEYS)
    return Adapter(
        device=table.need("device", device, 'device = "mlx5_0"'),
        port=table.read("port", fields.whole(1, 255), 1),
        gid_index=table.read("gid_index", gid_index, None),
    )


def _adapter(value: Any) -> Adapter:
    """Return the adapter of a text, DEVICE or DEVICE:PORT."""
    from paribus.tools.perftest import device

    name, _, port = fields.text(value).partition(":")
    if port and not (port.isdecimal() and 1 <= int(port) <= 255):
        raise ValueError('write DEVICE or DEVICE:PORT, such as "mlx5_0:1"')
    return Adapter(device(name), int(port or 1))


MOST_POCKET = 64
"""The most hosts of a pocket cluster: they share one machine."""

MOST_FILE_BYTES = 16 << 20
"""The most bytes of a hostfile."""

_SSH_KEYS = ("user", "port", "jump", "config", "identity", "known_hosts")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")
_PORTS = re.compile(r"([^:\[\]]+):([0-9]{1,5})(?:-([0-9]{1,5}))?")  # gate:2201-2216
_COUNTED = re.compile(r"(\S+?)(?::([0-9]+))?((?:\s+[a-z_-]+=\S+)*)")  # node1:2, node1 slots=2

_IGNORED = ("max_slots", "max-slots")
"""Keys of a hostfile's line without effect here: they allow oversubscription, never asked for."""


def hosts_of(place: Place, folder: Path) -> Hosts | None:
    """Return the hosts that the arm at `place` names, None for this machine.

    Paths are relative to `folder`, that of the study file. Notes or raises StudyError as Place.
    """
    if "launcher" in place.table and "scheduler" not in place.table:
        fix = "remove it: the MPI's own launcher starts the ranks"
        place.refuse("launcher", None, "srun starts ranks on nodes of `scheduler` only", fix)
    if "scheduler" in place.table:
        return _allocated(place, folder)
    if "hosts" not in place.table:
        for key in ("ssh", "link", "network", "order", "adapter", "hypervisors"):
            if key in place.table:
                place.refuse(key, None, "this arm has no hosts", 'add hosts = "node[1-4]"')
        return None
    text = place.need("hosts", fields.text, 'hosts = "node[1-4]"').strip()
    if text == "?":
        arm = shlex.quote(place.path.removeprefix("arms."))
        fix = f"name them: --hosts {arm}='node[1-4]', or a hostfile: --hosts {arm}=./hosts.txt"
        place.refuse("hosts", None, "this study has no hosts of its own", fix)
    if text.startswith("pocket:") or text == "pocket":
        return _pocket(place, text)
    if "link" in place.table:
        fix = 'hosts = "pocket:2" makes hosts whose link Paribus can shape'
        place.refuse("link", None, "only a pocket cluster has one", fix)
    ssh = _ssh(place, folder)
    try:
        found = _of_file(folder / text) if "/" in text else _of_text(text)
    except OSError as error:
        fix = "name a hostfile, or write node[1-4]"
        place.refuse("hosts", text, f"cannot be read: {error.strerror}", fix)
    except ValueError as error:
        place.refuse("hosts", text, "cannot be used", str(error))
    none: tuple[Address, ...] = ()
    hypervisors = place.read("hypervisors", _hypervisors(found), none)
    return replace(_common(place), addresses=found, ssh=ssh, hypervisors=hypervisors)


def _hypervisors(guests: tuple[Address, ...]) -> Callable[[Any], tuple[Address, ...]]:
    """Return a reader of the machines that `guests`, the hosts of the arm, run on."""

    def read(value: Any) -> tuple[Address, ...]:
        found = _of_text(fields.text(value))
        if len(guests) % len(found):
            raise ValueError(
                f"{len(found)} for {len(guests)} hosts: name one for each host, or one for as many"
                " hosts in a row"
            )
        if both := {one.name for one in found} & {one.name for one in guests}:
            raise ValueError(f"{min(both)} is a host of this arm: name the machine that it runs on")
        return found

    return read


def _allocated(place: Place, folder: Path) -> Hosts:
    """Return the hosts of an arm that asks a scheduler for them: placeholders n1, n2, ..."""
    from paribus.schedulers.known import DIALECTS

    for key in ("hosts", "link", "hypervisors"):
        if key in place.table:
            place.refuse(key, None, "this arm's nodes come from its scheduler", f"remove {key}")
    asked = scheduler_of(place)
    if "ssh" in place.table and "ssh" not in DIALECTS[asked.name].PROGRAMS:
        cause = f"{DIALECTS[asked.name].TITLE} itself leads to this arm's nodes"
        place.refuse("ssh", None, cause, "remove ssh")
    names = tuple(f"n{number}" for number in range(1, asked.nodes + 1))
    addresses = tuple(Address(name, name) for name in names)
    ssh = _ssh(place, folder)
    launcher: Literal["", "srun"] = place.read("launcher", fields.one_of("srun"), "")
    if launcher and asked.name != "slurm":
        fix = "remove it: the MPI's own launcher starts the ranks"
        place.refuse("launcher", launcher, f"{DIALECTS[asked.name].TITLE} has no srun", fix)
    common = _common(place)
    return replace(common, addresses=addresses, scheduler=asked, ssh=ssh, launcher=launcher)


def _pocket(place: Place, text: str) -> Hosts:
    from paribus.hosts.links import read_link

    number = text.removeprefix("pocket").removeprefix(":")  # text: "pocket:4"
    if not number.isdecimal() or not 1 <= int(number) <= MOST_POCKET:
        fix = f'write the number of hosts, from 1 to {MOST_POCKET}: hosts = "pocket:4"'
        place.refuse("hosts", text, "is not a pocket cluster", fix)
    if "hypervisors" in place.table:
        place.refuse("hypervisors", None, "pocket hosts are no virtual machines", "remove it")
    if "ssh" in place.table:
        place.refuse("ssh", None, "a pocket cluster has keys of its own", "remove it")
    return replace(_common(place), pocket=int(number), link=place.read("link", read_link, Link()))


def _common(place: Place) -> Hosts:
    return Hosts(
        network=place.read("network", fields.text, ""),
        order=place.read("order", fields.one_of("slot", "host"), "slot"),
    )


def _ssh(place: Place, folder: Path) -> Ssh:
    table = place.within(f"{place.path}.ssh", place.table.get("ssh", {}))
    table.only(_SSH_KEYS)

    def path(key: str) -> str:
        given = table.read(key, fields.text, "")
        return str((folder / Path(given).expanduser()).absolute()) if given else ""

    return Ssh(
        user=table.read("user", _word, ""),
        port=table.read("port", fields.whole(1, 65535), 0),
        jump=table.read("jump", _jumps, ""),
        config=path("config"),
        identity=path("identity"),
        known_hosts=path("known_hosts"),
    )


def _word(value: Any) -> str:
    """Return a word that ssh cannot take for an option or for two words."""
    word = fields.text(value)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*", word):
        raise ValueError("use only letters, digits, '.', '_' and '-'")
    return word


def _jumps(value: Any) -> str:
    """Return jump hosts as ssh's ProxyJump takes them: [USER@]HOST[:PORT], with commas between."""
    text = fields.text(value)
    one = r"([A-Za-z0-9_][A-Za-z0-9_.\\-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?"
    if not re.fullmatch(rf"{one}(,{one})*", text):
        raise ValueError('write [USER@]HOST[:PORT], several with commas: "me@gate.example:2222"')
    return text


def _of_text(text: str) -> tuple[Address, ...]:
    """Return the hosts of a nodeset, of which a part may name ports of one address.

    gate:2201-2202 stands for the hosts gate-2201 and gate-2202.
    """
    parts_with_ports = [(part, _ports(part)) for part in _parts(text)]
    check_names(sum(len(ports) if ports else size(part) for part, ports in parts_with_ports))
    found: list[Address] = []
    for part, ports in parts_with_ports:
        name = part.partition(":")[0]
        found += [Address(f"{name}-{port}", name, port) for port in ports]
        found += [] if ports else [Address(one, one) for one in expand(part)]
    return _checked(found)


def _ports(part: str) -> range:
    """Return the ports of a part such as gate:2201-2216; none of a part without ports."""
    match = _PORTS.fullmatch(part)
    if match is None:
        return range(0)
    first = int(match[2])
    last = int(match[3] or first)
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"{part}: ports are 1 to 65535, the lower first")
    return range(first, last + 1)


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a nodeset between commas outside of brackets."""
    for part in parts(text):
        if not part.strip():
            raise ValueError("nothing stands between two commas; write names such as node[1-4,7]")
        yield part.strip()


def _of_file(path: Path) -> tuple[Address, ...]:
    """Return the hosts of a hostfile: Open MPI's, MPICH's, Intel MPI's, or one name per slot.

    `node1 slots=2 max_slots=4`, `node1:2`, `node[1-4]`, or node1 on two lines.
    """
    rows: list[tuple[str, str, int | None]] = []  # place for errors, nodeset, slots
    several = 0
    text = decoded(read_bounded(path, MOST_FILE_BYTES, "a hostfile"))
    for number, line in enumerate(text.splitlines(), 1):
        if line := line.partition("#")[0].strip():
            place = f"line {number} of {path.name}, {line[:60]!r}"
            with _at(place):
                names, count = _line(line)
                # Lines of a single name are not counted: a name may have a line for each slot.
                several += many if (many := size(names)) > 1 else 0
                check_names(several)
            rows.append((place, names, count))
    slots: dict[str, int] = {}
    known: dict[str, tuple[str, ...]] = {}
    # Slots are given if any line has their number, or any name stands there twice.
    given = False
    for place, names, count in rows:
        if names not in known:
            with _at(place):
                known[names] = expand(names)
        given = given or count is not None
        for name in known[names]:
            given = given or name in slots
            slots[name] = slots.get(name, 0) + (1 if count is None else count)
    return _checked([Address(name, name, 0, n if given else 0) for name, n in slots.items()])


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Put `place` before the cause of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _line(line: str) -> tuple[str, int | None]:
    """Return the nodeset of a hostfile's line and the slots of each node, None if not given."""
    match = _COUNTED.fullmatch(line)
    if match is None:
        raise ValueError("write NAME, NAME:SLOTS, or NAME slots=N")
    counts = [match[2]] if match[2] else []
    for word in match[3].split():
        key, _, value = word.partition("=")
        if key in ("slots", "slot"):
            counts.append(value)
        elif key not in _IGNORED:
            raise ValueError(_refusal(key))
    if not all(one.isdecimal() for one in counts):
        raise ValueError("the number of slots is not a whole number")
    numbers = [int(one) for one in counts]
    if 0 in numbers:
        raise ValueError("it gives 0 slots, so no rank could be placed; write 1 or more")
    return match[1], numbers[0] if numbers else None


def _refusal(key: str) -> str:
    """Return why a hostfile's `key=` is refused: to ignore it would change what is measured."""
    if key == "user":
        return "user= is not taken from a hostfile; write ssh.user in the study"
    close = difflib.get_close_matches(key, ["slots", *_IGNORED], n=1)
    return f"{key}= is not known" + (f"; did you mean {close[0]}=?" if close else "")


def _checked(found: list[Address]) -> tuple[Address, ...]:
    """Return `found`; raises ValueError for none, a name twice, and what is no host name."""
    if not found:
        raise ValueError("no host is named; write names such as node[1-4]")
    seen: set[str] = set()
    for one in found:
        if not _NAME.fullmatch(one.address):
            said = f"{one.address!r} is not a host name"
            raise ValueError(f"{said}; write names such as node[1-4,7], with commas between")
        if one.name in seen:
            raise ValueError(f"{one.name} is named twice; name each host once")
        seen.add(one.name)
    return tuple(found)
