"""A copy of a study without what shows whose it is, with the same verdicts.

Each name, address and user is replaced by one of its own, the same everywhere: what differed
differs still, so that the audit finds what it found.
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
"""Bytes of a log: what is kept of an output has half of them."""

_KEPT = {"127.0.0.1", "0.0.0.0", "255.255.255.255"}
_VERSION = re.compile(r"version|release|firmware|fw_ver", re.IGNORECASE)
"""Facts in which four numbers with dots are no address."""


class Names:
    """Replaces what is private in texts; equal texts become equal, different ones different."""

    def __init__(self, names: Iterable[str]) -> None:
        self._given: dict[str, str] = {}
        self._numbers = count(1)
        words = sorted({one for one in names if len(one) > 1}, key=len, reverse=True)
        inside = "|".join(map(re.escape, words))
        self._words = re.compile(rf"(?<![\w.-])(?:{inside})(?![\w-])") if words else None

    def text(self, text: str, key: str = "") -> str:
        """Return `text`, the value of the fact `key`, without what is private."""
        given = self._given_for
        if self._words is not None:
            text = self._words.sub(given("node{}"), text)
        text = UUID.sub(given("00000000-0000-0000-0000-{:012d}"), text)
        text = URL.sub(given("url{}"), text)
        text = HOME.sub(lambda found: found[1] + given("user{}")(found), text)
        text = MAC.sub(given("02:00:00:00:00:{:02x}"), text)
        if key.endswith(("id", "sha256", "digest")) or _VERSION.search(key):
            return text
        text = LONG_HEX.sub(given("{:032x}"), text)
        return IPV4.sub(given("192.0.2.{}"), text)

    def value(self, value: Any, key: str = "") -> Any:
        """Return a value, or a dataclass of values, with all texts replaced; keys stay."""
        if isinstance(value, str):
            return self.text(value, key)
        if is_dataclass(value) and not isinstance(value, type):
            own = {f.name: getattr(value, f.name) for f in fields(value)}
            return replace(value, **{k: self.value(v, k) for k, v in own.items()})
        if isinstance(value, list | tuple):
            made = (self.value(one, key) for one in value)
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        if isinstance(value, Mapping):
            return {name: self.value(one, f"{key}.{name}") for name, one in value.items()}
        return value

    def _given_for(self, form: str) -> Callable[[re.Match[str]], str]:
        def replaced(found: re.Match[str]) -> str:
            old = found[0]
            if old in _KEPT:
                return old
            if old not in self._given:
                self._given[old] = form.format(next(self._numbers))
            return self._given[old]

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
    """Return facts with hashes of names that are no settings: variables, the control group, init.

    What the kernel hands on to init, behind `--`, is left out: it is no parameter of the kernel.
    """
    found = dict(facts)
    if isinstance(names := found.get(UNLISTED), list):
        found[UNLISTED] = sorted(hashed(str(name)) for name in names)
    if isinstance(path := found.get("cgroup.path"), str) and path != "/":
        found["cgroup.path"] = f"/{hashed(path)}"
    if isinstance(line := found.get("os.cmdline"), list):
        own = line[: line.index("--")] if "--" in line else line
        found["os.cmdline"] = [_init(str(one)) for one in own]
    return found


def _init(parameter: str) -> str:
    name, _, value = parameter.partition("=")
    return f"{name}={hashed(value)}" if name in ("init", "rdinit") else parameter


def _private(frozen: Plan, store: Store) -> set[str]:
    """Return the names of hosts and users that a study knows, long and short."""
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
    """Return the plan of the copy: names of arms and benchmarks stay, launches carry them."""
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
    """Return whether two judgements as JSON say the same of every headline and case."""
    kept = ("headlines", "cases", "layers", "endpoints", "pairs")
    return json.dumps([before[k] for k in kept]) == json.dumps([after[k] for k in kept])
