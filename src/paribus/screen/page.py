"""The answer of a screen as one HTML page, screen.html.

A tile for each node, or a matrix of all pairs, coloured by speed; what an operator must look at
with its evidence and facts; the commands for operators; and a table of all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import Difference, fold, format_change
from paribus.report.markup import Html, document, element, escape, join, table
from paribus.report.unequal import LIKELY
from paribus.screen import operators, words
from paribus.screen.answer import Answer, Line, Two
from paribus.screen.links import Pair, of_nodes

STYLE = """\
:is(.fleet, .pairs) .a { background: var(--slow-a); }
:is(.fleet, .pairs) .b { background: var(--slow-b); }
:is(.fleet, .pairs) .c { background: var(--slow-c); }
:is(.fleet, .pairs) .f { background: var(--fast-a); }
.fleet { display: flex; flex-wrap: wrap; gap: 3px; margin: .4em 0 1em; }
.fleet span { min-width: 1.1em; padding: .15em .35em; border-radius: 3px; font-size: .72rem;
  background: var(--box); border: 1px solid var(--line); }
.fleet .gone { background: none; border-style: dashed; color: var(--soft); }
.fleet .named { outline: 2px solid var(--slower); font-weight: 600; }
.pairs { border-collapse: collapse; font-size: .72rem; width: auto; }
.pairs td, .pairs th { border: 1px solid var(--line); padding: .1em .35em; text-align: right; }
.pairs thead th { border-top: none; }
.pairs .named { outline: 2px solid var(--slower); outline-offset: -2px; font-weight: 600; }
pre { overflow-x: auto; }
"""

MOST_FIGURES = 64
"""Nodes up to which each tile of the fleet shows its figure, not only when it is pointed at."""

MOST_IN_A_MATRIX = 128
"""Nodes up to which all pairs are drawn."""

MOST_WRITTEN = 24
"""Nodes up to which the cells of the matrix show their figures."""

COLOURS = {"slow": "slower", "failed": "slower", "undecided": "open"}


def page(answer: Answer, *, kubernetes: bool = False) -> str:
    """Return the whole HTML page, with the commands of Slurm or those of Kubernetes."""
    promise = [element("li", escape(one)) for one in words.promise(answer)]
    hosts, what = answer.screen.hosts, "links" if answer.screen.links else f"{words.noun(answer)}s"
    body = join(
        element(
            "header",
            element("p", escape(f"Which {what} of {hosts} are slow?"), kind="question"),
            element("h1", escape(words.headline(answer))),
            element("p", escape(words.measured(answer))),
        ),
        *(_group_section(two) for two in answer.groups),
        _odd(answer),
        _pairs(answer) if answer.screen.links else _fleet(answer),
        element("section", element("h2", "What this means"), element("ul", *promise)),
        _commands(answer, kubernetes),
        _all(answer),
    )
    return document(f"Screen of {hosts}", body, STYLE)


def _group_section(two: Two) -> Html:
    text = element("p", escape(words.group(two)))
    return element("section", element("h2", "Two groups"), text, _facts(two.facts))


def _odd(answer: Answer) -> Html:
    """Return the section of what an operator must look at: nodes and links, with their facts."""
    parts = []
    for one in (*answer.ways, *answer.lines):
        if colour := COLOURS.get(one.word):
            chip = element("span", escape(words.TITLES[one.word]), kind=f"chip {colour}")
            parts.append(element("h3", escape(f"{one.node or words.way(one)} "), chip))
            parts.append(element("p", escape(words.cause(answer, one))))
            parts.append(_facts(one.facts))
    return element("section", element("h2", "What to look at"), *parts) if parts else Html("")


def _facts(facts: tuple[Difference, ...]) -> Html:
    """Return the table of facts that differ from those of the peers."""
    rows = [
        [
            element("code", escape(one.key)),
            *map(escape, (one.arm_value, one.reference_value, f"{LIKELY[one.rank]}: {one.reason}")),
        ]
        for one in facts
    ]
    head = ["Fact", "Here", "Others", "Why it matters"]
    caption = "Differs from its peers, the likeliest cause first"
    return table(head, rows, caption, range(4)) if rows else Html("")


def _fleet(answer: Answer) -> Html:
    """Return a section with a tile for each node, for each benchmark."""
    lines = sorted(answer.lines, key=lambda one: (len(one.node), one.node))
    tiles = {label: [_tile(answer, one, label) for one in lines] for label in answer.screen.margins}
    note = (
        "Speed against the median of the fleet in the rounds of all nodes. Outlined: proved slow on"
        " fresh rounds."
    )
    boxes = {label: element("div", *cells, kind="fleet") for label, cells in tiles.items()}
    return _pictures("The fleet", note, boxes)


def _pictures(title: str, note: str, of: Mapping[str, Html]) -> Html:
    """Return a section with a picture for each benchmark."""
    shown = [part for label, box in of.items() for part in (element("h3", escape(label)), box)]
    return element("section", element("h2", title), element("p", note, kind="small"), *shown)


def _tile(answer: Answer, line: Line, label: str) -> Html:
    speed = line.speeds.get(label)
    if speed is None:
        title = f"{line.node}: {line.why or words.TITLES[line.word]}"
        return element("span", escape(line.node), kind="gone", title=title)
    slow = any(one.word == "slow" and one.metric == label for one in line.suspects)
    kind = _grade(speed, answer.screen.margins[label], named=slow)
    title = f"{line.node}: {format_change(speed)}"
    shown = title if len(answer.lines) <= MOST_FIGURES else line.node
    return element("span", escape(shown), kind=kind, title=title)


def _grade(speed: float, margin: float, *, named: bool) -> str | None:
    """Return the CSS classes of a cell; `speed` is a ratio to the median, `margin` a share.

    "a", "b", "c": ever farther below the median; "f": faster than it by a margin; "named": slow.
    """
    below = 1 - speed
    grades = ((3 * margin, "c"), (margin, "b"), (margin / 2, "a"))
    kind = next((name for bound, name in grades if below > bound), "f" if -below > margin else "")
    return " ".join(filter(None, (kind, "named" if named else ""))) or None


def _pairs(answer: Answer) -> Html:
    """Return a matrix of all pairs for each benchmark: rows send, columns receive."""
    of, number = of_nodes(answer.screen.racks), len(answer.screen.nodes)
    nodes = sorted(answer.screen.nodes, key=lambda node: (of.get(node, ""), len(node), node))
    if number > MOST_IN_A_MATRIX:
        note = f"answer.json has all pairs: a matrix of {number} nodes is too large to read."
        return element("section", element("h2", "All pairs"), element("p", note))
    note = (
        "Speed against the median of its round. Rows send, columns receive. Outlined: slow, an end"
        " at its name. Empty: not measured before the proofs."
    )
    scrolls = {"kind": "scroll", "tabindex": "0", "role": "region"}
    drawn = {label: _matrix(answer, label, nodes) for label in answer.speeds}
    boxes = {m: element("div", one, **scrolls, aria_label=m) for m, one in drawn.items()}
    return _pictures("All pairs", note, boxes)


def _matrix(answer: Answer, label: str, nodes: Sequence[str]) -> Html:
    """Return the table of all pairs."""
    slow = [one.cause for one in answer.course.of(label) if one.word == "slow"]
    ends = {one.name for one in slow if one.kind == "end"}
    ways = [one for one in slow if one.kind != "end"]

    def name(node: str, scope: str) -> Html:
        return element("th", escape(node), kind="named" if node in ends else None, scope=scope)

    def cell(pair: Pair) -> Html:
        speed = answer.speeds[label].get(pair)
        if speed is None:
            return element("td")
        named = any(one.covers(pair) for one in ways)
        kind = _grade(speed, answer.screen.margins[label], named=named)
        shown = f"{(speed - 1) * 100:+.0f}" if len(nodes) <= MOST_WRITTEN else ""
        return element("td", shown, kind=kind, title=f"{' to '.join(pair)}: {format_change(speed)}")

    top = element("thead", element("tr", element("td"), *(name(node, "col") for node in nodes)))
    rows = (element("tr", name(one, "row"), *(cell((one, to)) for to in nodes)) for one in nodes)
    return element("table", top, element("tbody", *rows), kind="pairs")


def _commands(answer: Answer, kubernetes: bool) -> Html:
    out, back = operators.reported(answer, kubernetes=kubernetes)
    lines = [element("pre", Html("\n").join(map(escape, texts))) for texts in (out, back)]
    after = (element("p", "After the repair:"), lines[1]) if back else ()
    title = element("h2", "For operators")
    return element("section", title, lines[0], *after) if out else Html("")


def _all(answer: Answer) -> Html:
    labels = [*answer.screen.margins]
    rows = []
    for line in answer.lines:
        speeds = (format_change(line.speeds[m]) if m in line.speeds else "-" for m in labels)
        evidence = words.cause(answer, line)
        rows.append([*map(escape, (line.node, words.TITLES[line.word], *speeds, evidence))])
    head = ["Node", "Answer", *(f"{label}, rounds of all" for label in labels), "Evidence"]
    caption, left = f"All nodes: {fold(answer.screen.nodes)}", (0, 1, len(head) - 1)
    return table(head, rows, caption, left, fold=True)
