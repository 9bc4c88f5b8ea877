"""The section "Not held equal" of terminal and HTML: differences between arms, by kind.

It also says how changes could be separated: by which key of an arm, and by which command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from paribus.audit.values import ERROR
from paribus.core import (
    TREE,
    Arm,
    Difference,
    Judgement,
    Study,
    Word,
    count,
    expand,
    matches,
    units,
)
from paribus.core.changes import MOST, changes, of_variable, parts_of, within_of
from paribus.probes.variables import WITH_PATHS, shown
from paribus.report import lookup, sentences
from paribus.report.markup import Html, attribute, element, escape, join, section, table
from paribus.report.printing import heading, item, line
from paribus.report.wording import clean
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console


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
"""Keys of facts, as `matches` takes them, with the keys of an arm that may switch them."""

LONGEST = 40
"""The most characters of a value in a command: of longer lists the audit shows only a part."""

NOWHERE = "(absent)"
"""The value in the audit of a fact that a side lacks."""

KINDS = ("unexplained", "accepted", "factor")


def way(key: str) -> str:
    """Return the keys of an arm that may switch a fact; "" if that needs another machine or boot.

    >>> way("env.OMP_PLACES"), way("os.kernel")
    ('env', '')
    """
    return next((by for facts, by in WAYS if matches(key, facts)), "")


def how_to_separate(
    study: Study, differences: Sequence[Difference], kinds: Sequence[str] = KINDS
) -> list[str]:
    """Return lines on how each difference of these kinds can be switched, and the command.

    The likeliest to matter come first; none if fewer than two can be switched.
    """
    of_arms = [one for one in differences if one.kind in kinds and not one.node]
    ranked = sorted(of_arms, key=lambda one: -one.rank)
    ways = {one.key: way(one.key) for one in ranked}
    if ranked and (keys := _switched(study)):  # these are switched, whatever follows from each
        ways = {key: key for key in keys} | {key: by for key, by in ways.items() if not by}
    switchable = [key for key, by in ways.items() if by]
    if len(switchable) < 2:
        return []
    fixed = [key for key, by in ways.items() if not by]
    lines = [f"{key}: switched by `{ways[key]}`" for key in switchable[:MOST]]
    if len(switchable) > MOST:
        more = count(len(switchable) - MOST, "more difference")
        lines.append(f"{more} can be switched: put them into groups, [parts]")
    if fixed:
        lines.append(f"cannot be separated from each other: {', '.join(fixed[:MOST])}")
    return [clean(line) for line in (*lines, _command(study, ranked, len(switchable)))]


def next_step(judgement: Judgement) -> list[str]:
    """Return what to do about a slower arm with several changes, or combinations that fail."""
    study = judgement.study
    if parts_of(study):
        return _failing(judgement)
    slower = {h.arm for h in judgement.headlines if h.verdict.word is Word.SLOWER}
    if not slower or not judgement.complete:
        return []
    if not lookup.measured(judgement):  # without a factor, all differences are "noted"
        open_ = (d for d in judgement.differences if d.kind != "noted" or (d.rank and way(d.key)))
        return how_to_separate(study, list(open_), (*KINDS, "noted"))
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
    """Return what to do if combinations of changes fail, and neither of the arms does."""
    arms = {arm.name for arm in judgement.study.arms}
    failed = {one.arm for one in judgement.tallies if one.failures or one.warm_up_failed}
    if not failed or failed & arms:
        return []
    named = listed(sorted(failed), 3)
    way_on = "group changes that belong together under [parts], or say which one needs another"
    return [clean(f"Combinations fail that no arm is ({named}): {way_on}.")]


def explaining(study: Study) -> str:
    """Return the command `paribus explain ...` that made a study; "" for other studies."""
    groups = "".join(f" --within {shlex.quote(one)}" for one in within_of(study))
    return _between(study, *study.arms) + groups if parts_of(study) else ""


def _between(study: Study, reference: Arm, arm: Arm) -> str:
    first, second = map(shlex.quote, (reference.name, arm.name))
    path = shlex.quote(study.path)
    return f"paribus explain {path} --reference {first} --arm {second}"


def _switched(study: Study) -> Sequence[str]:
    """Return the keys in which the first two arms of a study file differ."""
    return changes(*study.arms[:2]) if study.path and len(study.arms) > 1 else ()


def _of_study(study: Study, arm: Arm, several: int) -> str:
    alone = f"paribus explain {shlex.quote(study.path)}"
    command = _between(study, study.arms[0], arm) if study.arms[2:] else alone
    return f"`{command}`, {_price(several)}"


def _price(several: int) -> str:
    from paribus.stats.parts import least_launches

    return f"{count(least_launches(min(several, MOST)), 'launch')} or more"


def _command(study: Study, ranked: Sequence[Difference], several: int) -> str:
    """Return the command that separates the changes of a study, or of what two machines set."""
    if _switched(study):
        return _of_study(study, study.arms[1], several)
    words = ["paribus", "explain", "--a", "./program", "--b", "./program"]
    for one in ranked:
        name = of_variable(one.key)
        for side, value in (("a", one.reference_value), ("b", one.arm_value)):
            short = len(value) <= LONGEST and value != NOWHERE
            if name and short and shown(name, value) and name not in WITH_PATHS:
                words += [f"--{side}-env", f"{name}={value}"]
    return f"`{shlex.join(words)}`, {_price(several)}"


MEANS: Mapping[str, str] = {
    "unexplained": "UNEXPLAINED",
    "accepted": "accepted",
    "factor": "changed by the factor",
    "explained": "follow from the factor",
    "noted": "noted",
    "unknown": "unknown",
}
"""The title of each kind of difference, in the order in which they are shown."""

LIKELY = (
    "no known effect on these figures",
    "rarely affects these figures",
    "often affects these figures",
    "almost always affects these figures",
)
"""The meaning of each `Difference.rank`."""

MOST_OF_NAMES = 60
"""The most characters of a nodeset that are shown."""

MOST_SHOWN = 6
"""The most differences of a kind that are shown with values; all unexplained ones are shown."""


def print_differences(
    differences: Sequence[Difference],
    equal: str,
    console: Console,
    *,
    several: bool = False,
    everything: bool = False,
) -> None:
    """Print differences by kind, most pressing first; `equal` is a sentence on the equal facts.

    With `several` arms, each difference names its arms. Unless `everything` is asked for, unknown
    facts are only counted, and long lists cut.
    """
    for kind, means in MEANS.items():
        of_kind = joined(_sorted([d for d in differences if d.kind == kind]))
        if not of_kind:
            continue
        if kind == "unknown" and not everything:
            line(console, f"{means}: {len(of_kind)}", indent=2, style="dim")
            for one, arms in of_kind:
                if one.key == ERROR:
                    error = f"{', '.join(arms)}: {one.arm_value}"
                    line(console, error, indent=4, hang=2, style="bold", name="no facts")
            continue
        line(console, f"{means}: {len(of_kind)}", indent=2, style="bold" if kind in _OPEN else "")
        cut = not everything and kind != "unexplained"
        for one, arms in of_kind[: MOST_SHOWN if cut else None]:
            _print_one(one, arms if several or _among_nodes(one) else (), console)
        if cut and len(of_kind) > MOST_SHOWN:
            rest = ", ".join(dict.fromkeys(one.key for one, _ in of_kind[MOST_SHOWN:]))
            line(console, f"{len(of_kind) - MOST_SHOWN} more: {rest}", indent=4, hang=2, most=2)
    item(console, equal, style="dim")


def _print_one(one: Difference, arms: Sequence[str], console: Console) -> None:
    if _among_nodes(one):
        others = f"{one.reference_value} on the other nodes ({', '.join(arms)})"
        item(console, f"{one.key}: {one.arm_value} on {cut_names(one.node)}, {others}", indent=4)
        return
    who = f" on {cut_names(one.node)}" if one.node else ""
    who += f" ({', '.join(arms)})" if arms else ""
    change = f"{one.key}{who}: {one.reference_value} -> {one.arm_value}"
    change = _short(change, console)
    if one.kind == "unexplained":
        item(console, change, style="bold", indent=4)
        if one.reason:
            item(console, f"{LIKELY[one.rank]}: {one.reason}", indent=6)
    elif one.kind == "accepted":
        item(console, f"{change}; reason given: {one.reason}", indent=4)
    elif one.reference_value == one.arm_value:  # left open in all arms
        item(console, f"{one.key}: {one.arm_value} in all arms; {one.reason}", indent=4)
    else:
        item(console, change, indent=4)


def _short(text: str, console: Console) -> str:
    """Return `text` with long hashes cut to 12 digits, if a person reads it at a terminal."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1", text) if console.is_terminal else text


def _among_nodes(one: Difference) -> bool:
    """Return whether nodes of one arm differ from each other, not from themselves before."""
    return bool(one.node) and one.kind == "noted"


def print_section(judgement: Judgement, console: Console) -> None:
    """Print the section of the report."""
    heading(console, "Not held equal")
    print_differences(
        judgement.differences,
        sentences.equal_text(judgement),
        console,
        several=len(judgement.study.arms) > 2,
    )


def print_short(judgement: Judgement, console: Console) -> None:
    """Print one line on the differences between arms measured elsewhere, if there are any."""
    kinds = ("unexplained", "noted")
    found = joined(_sorted([d for d in judgement.differences if d.kind in kinds]))
    if lookup.measured(judgement) or not found:
        return
    shown = [f"{one.key} {one.reference_value} -> {one.arm_value}" for one, _ in found[:MOST_SHOWN]]
    more = [f"{len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
    line(console, "; ".join([*shown, *more]), hang=9, name="Not held equal")


def unexplained(judgement: Judgement) -> bool:
    """Return whether unexplained differences withhold verdicts: they then come first."""
    return any(d.kind == "unexplained" for d in judgement.differences)


def html_section(judgement: Judgement) -> Html:
    """Return the section of the page: counts, tables of pressing differences, the rest folded."""
    by_kind = {
        kind: found
        for kind in MEANS
        if (found := _sorted([d for d in judgement.differences if d.kind == kind]))
    }
    counts = {kind: len({d.key for d in found}) for kind, found in by_kind.items()}
    folded = [_folded(found, judgement) for kind, found in by_kind.items() if kind not in _OPEN]
    if judgement.facts:
        counts = {"equal": judgement.equal_facts, **counts}
    pressing = (
        _table(found, judgement, MEANS[kind].capitalize())
        for kind, found in by_kind.items()
        if kind in _OPEN
    )
    top = _keys(counts) if counts else element("p", escape(sentences.equal_text(judgement)))
    rest = element("details", element("summary", "What else differs"), *folded) if folded else ""
    drawn = _layers(judgement) if judgement.facts else ""
    return element(
        "div", section("Not held equal", "unequal", top, drawn, *pressing, rest), kind="unequal"
    )


_OPEN = ("unexplained", "accepted")
"""The kinds of differences that are not folded."""


def _keys(counts: Mapping[str, int]) -> Html:
    """Return the numbers of facts by kind, each with a square of its colour."""
    key = '<svg width="12" height="12"><rect class="{}" width="12" height="12"/></svg> '
    texts = ((kind, escape(f"{n} {MEANS.get(kind, kind)}")) for kind, n in counts.items())
    keys = (element("span", Html(key.format(kind)), text, kind="key") for kind, text in texts)
    return element("p", "Facts: ", *keys)


def _shares(counts: Mapping[str, int], y: int) -> Iterator[str]:
    """Yield the parts of the bar of a layer, one for each kind; `y` is its place in px."""
    whole = sum(counts.values())
    shares = {kind: max(number / whole, LEAST) for kind, number in counts.items()}
    at, room = NAMES, (100.0 - NAMES) / sum(shares.values())
    for kind, share in shares.items():
        size = f'y="{y}" width="{share * room:.2f}%" height="{ROW - 5}"'
        title = f"<title>{counts[kind]} {MEANS.get(kind, kind)}</title>"
        yield f'<rect class="{kind}" x="{at:.2f}%" {size}>{title}</rect>'
        at += share * room


LAYERS: Mapping[str, tuple[str, ...]] = {
    "hardware": ("cpu", "memory", "machine", "numa", "pci", "gpu", "storage"),
    "system": ("os", "limits", "load", "cgroup", "process", "clock", "layers"),
    "network": ("net", "rdma", "libfabric", "ucx"),
    "MPI": ("mpi", "lib", "rank", "arm", "software", "compiler"),
    "container": ("container",),
    "environment": ("env",),
}
"""Layers of a platform, from below, with the first parts of the keys of their facts."""

ROW, NAMES = 18, 22.0
"""Height in px of the bar of a layer, and percent of the width that its name takes."""


def _layers(judgement: Judgement) -> Html:
    """Return a figure with a bar for each layer: the shares of its facts by kind."""
    layer_of = {start: name for name, starts in LAYERS.items() for start in starts}
    kinds = {key: "equal" for facts in judgement.facts.values() for key in facts if key != TREE}
    order = list(MEANS)
    for one in sorted(judgement.differences, key=lambda d: -order.index(d.kind)):
        kinds[one.key] = one.kind
    found: dict[str, dict[str, int]] = {}
    for key, kind in kinds.items():
        counts = found.setdefault(layer_of.get(key.partition(".")[0], "other"), {})
        counts[kind] = counts.get(kind, 0) + 1
    named = [name for name in (*LAYERS, "other") if name in found]
    drawn = []
    for number, name in enumerate(named):
        counts = {kind: n for kind in ("equal", *MEANS) if (n := found[name].get(kind))}
        y = number * ROW
        drawn.append(f'<text x="0" y="{y + 11}">{escape(name)}</text>')
        drawn += _shares(counts, y)
    reported = "; ".join(
        f"{name}: {', '.join(f'{n} {kind}' for kind, n in found[name].items())}" for name in named
    )
    size = f'width="100%" height="{ROW * len(named)}" role="img" aria-label="{attribute(reported)}"'
    shown = Html(f'<svg class="audit strip" {size}>{"".join(drawn)}</svg>')
    return element("figure", element("figcaption", "Facts by layer", kind="unseen"), shown)


LEAST = 0.01
"""The least share of the bar of a kind, so that one unexplained fact is seen beside hundreds."""


def _table(
    differences: Sequence[Difference], judgement: Judgement, caption: str, summary: str = ""
) -> Html:
    of_nodes = any(d.node for d in differences)  # a node before and after, or among its arm
    several = of_nodes or len(judgement.study.arms) > 2
    head = ["Fact", *(["Arm"] if several else [])]
    if of_nodes:
        head += ["From", "To"]
    else:
        in_arm = "In the arm" if several else f"In {differences[0].arm}"
        head += [f"In {judgement.reference}", in_arm]
    # Facts that the factor changes have the same reason, unknown ones have none.
    why = differences[0].kind not in ("factor", "unknown")
    head += ["Why"] if why else []
    rows = [_cells(d, several=several, why=why) for d in differences]
    return table(head, rows, caption, left=range(len(head)), summary=summary)


def _folded(differences: Sequence[Difference], judgement: Judgement) -> Html:
    kind = differences[0].kind
    keys = list(dict.fromkeys(d.key for d in differences))
    named = keys[:MOST_SHOWN] if kind != "unknown" else []
    more = f", and {len(keys) - len(named)} more" if len(keys) > len(named) else ""
    names = f" ({', '.join(named)}{more})" if named else ""
    caption = differences[0].reason if kind == "factor" else MEANS[kind]
    return _table(differences, judgement, caption, f"{MEANS[kind]}: {len(keys)}{names}")


def _cells(d: Difference, *, several: bool, why: bool) -> list[Html]:
    reason = escape(d.reason)
    if d.kind == "unexplained" and d.reason:
        likely = element("summary", escape(LIKELY[d.rank]))
        reason = element("details", likely, element("p", reason))
    return [
        join(element("code", escape(d.key)), escape(f" on {cut_names(d.node)}" if d.node else "")),
        *([escape(d.arm)] if several else []),
        escape(d.reference_value + (" on the other nodes" if _among_nodes(d) else "")),
        escape(d.arm_value),
        *([reason] if why else []),
    ]


def _sorted(differences: Sequence[Difference]) -> list[Difference]:
    kinds = list(MEANS)
    return sorted(differences, key=lambda d: (kinds.index(d.kind), -d.rank))


def joined(differences: Sequence[Difference]) -> list[tuple[Difference, list[str]]]:
    """Return the differences, equal ones of several arms once, each with its arms."""
    grouped: dict[tuple[object, ...], tuple[Difference, list[str]]] = {}
    for d in differences:
        alike = (d.key, d.reference_value, d.arm_value, d.kind, d.node)
        grouped.setdefault(alike, (d, []))[1].append(d.arm)
    return list(grouped.values())


def cut_names(names: str) -> str:
    """Return a nodeset; a long one is cut to its beginning and the number of its nodes."""
    if len(names) <= MOST_OF_NAMES:
        return names
    with suppress(ValueError):
        return f"{names[:MOST_OF_NAMES]} ... ({units.count(len(expand(names)), 'node')})"
    return f"{names[:MOST_OF_NAMES]} ..."
