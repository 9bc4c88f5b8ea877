"""Which differences can be switched one by one, how, and the command that finds the guilty one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from paribus.core import Arm, Difference, Judgement, Study, Word, count, matches
from paribus.core.changes import MOST, changes, of_variable, parts_of
from paribus.probes.variables import shown
from paribus.report import lookup
from paribus.report.wording import clean
from paribus.stats.parts import least_launches
from paribus.words.lists import listed

WAYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("env.LD_LIBRARY_PATH", "lib.", "program."), "build, or env = { LD_LIBRARY_PATH = ... }"),
    (("env.",), "env"),
    (("mpi.transport",), "transport"),
    (("mpi.", "kernel.build", "ucx.version", "libfabric.version"), "mpi"),
    (("container.", "layers.", "cgroup."), "container"),
    (("command.",), "argv"),
    (("build.",), "build"),
    (("wrapper.", "process."), "wrap"),
    (("placement.launcher",), "launcher"),
    (("placement.link", "placement.network"), "network, link"),
    (("placement.", "rank.hosts"), "hosts"),
    (("limits.", "net.", "rdma.", "storage.", "cpu.governor", "cpu.frequency."), "before, after"),
    (("cpu.idle.", "memory.thp", "numa.balancing", "switch."), "before, after"),
)
"""Facts, and the keys of an arm that may switch them, the nearest first."""

LONGEST = 40
"""Characters of a value that a command line names; of longer lists the audit shows a part."""

NOWHERE = "(absent)"
"""How the audit shows that a side lacks a fact."""

KINDS = ("unexplained", "accepted", "factor")


def way(key: str) -> str:
    """Return which key of an arm may switch a fact; "" for what needs another machine or boot.

    >>> way("env.OMP_PLACES"), way("os.kernel")
    ('env', '')
    """
    return next((said for keys, said in WAYS if matches(key, keys)), "")


def how_to_tell(study: Study, differences: Sequence[Difference]) -> list[str]:
    """Return in lines how each difference can be switched, likeliest first, and the command.

    Nothing where fewer than two can be.
    """
    own = [one for one in differences if one.kind in KINDS and not one.node]
    ranked = sorted(own, key=lambda one: -one.rank)
    ways = {one.key: way(one.key) for one in ranked}
    by_hand = [key for key, said in ways.items() if said]
    if len(by_hand) < 2:
        return []
    fixed = [key for key, said in ways.items() if not said]
    lines = [f"{key}: switched by `{ways[key]}`" for key in by_hand[:MOST]]
    if len(by_hand) > MOST:
        more = count(len(by_hand) - MOST, "more difference")
        lines.append(f"{more} can be switched: put them into groups, [parts]")
    if fixed:
        lines.append(f"cannot be separated from each other: {', '.join(fixed[:MOST])}")
    return [clean(line) for line in (*lines, _command(study, ranked, len(by_hand)))]


def next_step(judgement: Judgement) -> list[str]:
    """Return the step after *slower* on an arm with several changes, or after failures."""
    study = judgement.study
    if parts_of(study):
        return _failing(judgement)
    slower = {h.arm for h in judgement.headlines if h.verdict.word is Word.SLOWER}
    if not slower or not judgement.complete:
        return []
    if not lookup.measured(judgement):
        return how_to_tell(study, judgement.differences)
    for arm in study.arms[1:]:
        keys = changes(study.arms[0], arm)
        if arm.name in slower and len(keys) >= 2:
            return [
                clean(
                    f"Slower by which of {len(keys)} changes: {_of_study(study, arm, len(keys))}."
                )
            ]
    return []


def _failing(judgement: Judgement) -> list[str]:
    """Return what to do where combinations of changes fail, and neither of the arms does."""
    arms = {arm.name for arm in judgement.study.arms}
    failed = {one.arm for one in judgement.tallies if one.failures or one.warm_up_failed}
    if not failed or failed & arms:
        return []
    named = listed(sorted(failed), 3)
    way_on = "group changes that belong together under [parts], or say which one needs another"
    return [clean(f"Combinations fail that no arm is ({named}): {way_on}.")]


def explaining(study: Study) -> str:
    """Return the command that explains a study; "" for one that explains nothing."""
    return _between(study, *study.arms) if parts_of(study) else ""


def _between(study: Study, reference: Arm, arm: Arm) -> str:
    first, second = map(shlex.quote, (reference.name, arm.name))
    path = shlex.quote(study.path)
    return f"paribus explain {path} --reference {first} --arm {second}"


def _of_study(study: Study, arm: Arm, several: int) -> str:
    alone = f"paribus explain {shlex.quote(study.path)}"
    command = _between(study, study.arms[0], arm) if study.arms[2:] else alone
    return f"`{command}`, {_price(several)}"


def _price(several: int) -> str:
    return f"{count(least_launches(min(several, MOST)), 'launch')} or more"


def _command(study: Study, ranked: Sequence[Difference], several: int) -> str:
    """Return the command that tells changes apart: of the study, or of what two machines set."""
    if study.path and len(study.arms) > 1 and len(changes(*study.arms[:2])) > 1:
        arm = study.arms[1]
        return _of_study(study, arm, len(changes(study.arms[0], arm)))
    words = ["paribus", "explain", "--a", "./program", "--b", "./program"]
    for one in ranked:
        name = of_variable(one.key)
        for side, value in (("a", one.reference_value), ("b", one.arm_value)):
            short = len(value) <= LONGEST and value != NOWHERE
            if name and short and shown(name, value):
                words += [f"--{side}-env", f"{name}={value}"]
    return f"`{shlex.join(words)}`, {_price(several)}"
