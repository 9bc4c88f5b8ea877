"""A copy of a study without names that show whose it is, with the same verdicts.

Each name of a host or user, and each address, is replaced by another, the same everywhere: "gpu-7"
becomes "node1" in facts, logs and plan. Values that differed still differ, so the audit finds the
same differences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from paribus.audit.accepted import add_accepted, read_accepted
from paribus.border import KEPT_BYTES, read_bounded
from paribus.core import Facts
from paribus.plan import Plan
from paribus.plan import frozen as plans
from paribus.probes.environment import UNLISTED
from paribus.probes.scrub import HOME, IPV4, LONG_HEX, MAC, URL, UUID, hashed
from paribus.store import Store
from paribus.store.damage import unreadable

MOST_LOG = 4 * KEPT_BYTES
"""The most bytes of a log: a shortened output has half of them."""

_KEPT = {"127.0.0.1", "0.0.0.0", "255.255.255.255"}
_VERSION = re.compile(r"version|release|firmware|fw_ver", re.IGNORECASE)
"""Keys of facts in which four numbers with dots are no address."""


class Names:
    """Replaces what is private in texts: `names`, and what looks like an address or an id.

    Equal texts are replaced by equal ones, different texts by different ones.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._replacements: dict[str, str] = {}
        self._numbers = count(1)
        words = sorted({one for one in names if len(one) > 1}, key=len, reverse=True)
        inside = "|".join(map(re.escape, words))
        self._words = re.compile(rf"(?<![\w.-])(?:{inside})(?![\w-])") if words else None

    def text(self, text: str, key: str = "") -> str:
        """Return `text`, the value of the fact `key`, without what is private."""
        by = self._replacer
        if self._words is not None:
            text = self._words.sub(by("node{}"), text)
        text = UUID.sub(by("00000000-0000-0000-0000-{:012d}"), text)
        text = URL.sub(by("url{}"), text)
        text = HOME.sub(lambda found: found[1] + by("user{}")(found), text)
        text = MAC.sub(by("02:00:00:00:00:{:02x}"), text)
        if key.endswith(("id", "sha256", "digest")) or _VERSION.search(key):
            return text
        text = LONG_HEX.sub(by("{:032x}"), text)
        return IPV4.sub(by("192.0.2.{}"), text)

    def value(self, value: Any, key: str = "") -> Any:
        """Return a value, or a dataclass of values, with all texts replaced; keys stay."""
        if isinstance(value, str):
            return self.text(value, key)
        if is_dataclass(value) and not isinstance(value, type):
            values = {f.name: getattr(value, f.name) for f in fields(value)}
            return replace(value, **{k: self.value(v, k) for k, v in values.items()})
        if isinstance(value, list | tuple):
            made = (self.value(one, key) for one in value)
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        if isinstance(value, Mapping):
            return {name: self.value(one, f"{key}.{name}") for name, one in value.items()}
        return value

    def _replacer(self, form: str) -> Callable[[re.Match[str]], str]:
        """Return a function for re.sub: `form` with a number, the same for equal texts."""

        def replaced(found: re.Match[str]) -> str:
            old = found[0]
            if old in _KEPT:
                return old
            if old not in self._replacements:
                self._replacements[old] = form.format(next(self._numbers))
            return self._replacements[old]

        return replaced


def scrub(directory: Path, target: Path) -> Plan:
    """Write a scrubbed copy of the study in `directory` to the new `target`; return its plan.

    What can be computed anew (reports, tables) is left out. Raises StoreError.
    """
    frozen = plans.read_plan(directory)
    with Store(directory) as store:
        store.check_plan(frozen.sha256)
        gathered = store.gathered()
        names = Names(_private(frozen, store))
        plan = _plan(frozen, names)
        target.mkdir()
        plans.write_plan(plan, target)
        with Store(target, write=True) as copy:
            copy.bind_plan(plan.sha256)
            copy.keep_gathered(
                [
                    replace(one, node=names.text(one.node), facts=names.value(unnamed(one.facts)))
                    for one in gathered
                ]
            )
            for one in store.launches(void=True):
                outcome = replace(
                    one.outcome,
                    argv=tuple(map(names.text, one.outcome.argv)),
                    facts=names.value(one.outcome.facts),
                    error=names.text(one.outcome.error),
                )
                copy.append(one.launch, outcome, void=one.void and names.text(one.void))
    add_accepted(target, {k: names.text(v) for k, v in read_accepted(directory).items()})
    _logs(directory / "logs", target / "logs", names)
    return plan


def unnamed(facts: Facts) -> Facts:
    """Return facts with hashes in place of names of variables, of the control group, and of init.

    What the kernel hands on to init, after `--`, is left out: it is no parameter of the kernel.
    """
    found = dict(facts)
    if isinstance(names := found.get(UNLISTED), list):
        found[UNLISTED] = sorted(hashed(str(name)) for name in names)
    if isinstance(path := found.get("cgroup.path"), str) and path != "/":
        found["cgroup.path"] = f"/{hashed(path)}"
    if isinstance(line := found.get("os.cmdline"), list):
        of_kernel = line[: line.index("--")] if "--" in line else line
        found["os.cmdline"] = [_init(str(one)) for one in of_kernel]
    return found


def _init(parameter: str) -> str:
    """Return a parameter of the kernel; the path of init is hashed."""
    name, _, value = parameter.partition("=")
    return f"{name}={hashed(value)}" if name in ("init", "rdinit") else parameter


def _private(frozen: Plan, store: Store) -> set[str]:
    """Return the names of hosts and users in a study; of a name with dots also its first part."""
    found: set[str] = set()
    for one in store.gathered():
        found |= {one.node, *_texts(one.facts.get("rank.hosts"))}
    for launch in store.launches(samples=False, void=True):
        found |= set(_texts(launch.outcome.facts.get("rank.hosts")))
    for arm in frozen.study.arms:
        if arm.hosts is not None:
            found |= {arm.hosts.ssh.user, arm.hosts.ssh.jump}
            for host in (*arm.hosts.addresses, *arm.hosts.hypervisors):
                found |= {host.name, host.address}
    short = {one.partition(".")[0] for one in found if not one[:1].isdigit()}
    return {name for name in found | short if name not in ("", "root", "localhost")}


def _texts(value: object) -> list[str]:
    several = value if isinstance(value, list | tuple) else [value]
    return [one for one in several if isinstance(one, str)]


def _plan(frozen: Plan, names: Names) -> Plan:
    """Return the plan of the copy; names of arms and benchmarks stay, as launches have them."""
    study = frozen.study
    return plans.sealed(
        replace(
            frozen,
            study=replace(
                study,
                question=names.text(study.question),
                path=Path(study.path).name,
                hosts={},
                arms=tuple(replace(names.value(arm), name=arm.name) for arm in study.arms),
                benchmarks=tuple(
                    replace(
                        one,
                        parameters=names.value(one.parameters),
                        file=one.file and Path(one.file).name,
                    )
                    for one in study.benchmarks
                ),
            ),
            software=names.value(frozen.software, "version"),
        )
    )


def _logs(source: Path, target: Path, names: Names) -> None:
    if not source.is_dir():
        return
    target.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_symlink() or path.is_dir():
            continue
        try:
            data = read_bounded(path, MOST_LOG, "a log")
        except OSError as error:
            raise unreadable(error, path) from error
        text = names.text(data.decode("utf-8", "surrogateescape"))
        (target / path.name).write_bytes(text.encode("utf-8", "surrogateescape"))


def same_verdicts(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether two verdict.json have the same headlines, cases, layers, endpoints, pairs."""
    kept = ("headlines", "cases", "layers", "endpoints", "pairs")
    return json.dumps([before[k] for k in kept]) == json.dumps([after[k] for k in kept])
