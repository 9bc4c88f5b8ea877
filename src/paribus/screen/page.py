"""The answer of a screen as one HTML page: the fleet or all pairs, and the odd ones opened."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Difference, fold, format_change
from paribus.report.markup import Html, document, element, escape, join, table
from paribus.report.unequal import LIKELY
from paribus.screen import operators, words
from paribus.screen.answer import WORDS, Answer, Line, Two, Word
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
"""Nodes up to which all pairs are drawn; of up to 24 the figures are written."""

MOST_WRITTEN = 24

COLOURS = {"slow": "slower", "failed": "slower", "undecided": "open", "no sign": "equivalent"}


def page(answer: Answer, *, kubernetes: bool = False) -> str:
    """Return the whole HTML page, with the commands of Slurm or those of Kubernetes."""
    promise = [element("li", escape(one)) for one in words.promise(answer)]
    what = "links" if answer.screen.links else f"{words.noun(answer)}s"
    question = f"Which {what} of {answer.screen.hosts} are slow?"
    body = join(
        element(
            "header",
            element("p", escape(question), kind="question"),
            element("h1", escape(words.headline(answer))),
            element("p", escape(words.measured(answer))),
        ),
        *(_group_section(answer, two) for two in answer.groups),
        _odd(answer),
        _pairs(answer) if answer.screen.links else _fleet(answer),
        element("section", element("h2", "What this means"), element("ul", *promise)),
        _commands(answer, kubernetes),
        _all(answer),
    )
    return document(f"Screen of {answer.screen.hosts}", body, STYLE)


def _group_section(answer: Answer, two: Two) -> Html:
    said = element("p", escape(words.group(answer, two)))
    return element("section", element("h2", "Two groups"), said, _facts(two.facts))


def _odd(answer: Answer) -> Html:
    """Return the nodes, and what lies between them, that an operator must look at, with facts."""
    parts = []
    for way in answer.ways:
        chip = _chip(way.word)
        parts.append(element("h3", escape(f"{words.way(way)} "), chip))
        parts.append(element("p", escape(words.cause(answer.screen, way))))
    for line in answer.lines:
        if line.word in ("no sign", "not screened", "lower group"):
            continue
        said = escape(f" {words.cause(answer.screen, line)}")
        parts += [element("h3", escape(f"{line.node} "), _chip(line.word)), element("p", said)]
        parts.append(_facts(line.facts))
    if not parts:
        return Html("")
    return element("section", element("h2", "What to look at"), *parts)


def _chip(word: Word) -> Html:
    return element("span", escape(words.TITLES[word]), kind=f"chip {COLOURS[word]}")


def _facts(facts: tuple[Difference, ...]) -> Html:
    rows = [
        [
            element("code", escape(one.key)),
            escape(one.arm_value),
            escape(one.reference_value),
            escape(f"{LIKELY[one.rank]}: {one.reason}"),
        ]
        for one in facts
    ]
    if not rows:
        return Html("")
    head = ["Fact", "Here", "Others", "Why it matters"]
    return table(head, rows, "Differs from its peers, the likeliest cause first", range(4))


def _fleet(answer: Answer) -> Html:
    parts, lines = [], sorted(answer.lines, key=lambda one: (len(one.node), one.node))
    for label in answer.screen.margins:
        tiles = [_tile(answer, one, label) for one in lines]
        parts += [element("h3", escape(label)), element("div", *tiles, kind="fleet")]
    note = (
        "Speed against the median of the fleet in the rounds of all nodes. Outlined: proved slow on"
        " fresh rounds."
    )
    return element("section", element("h2", "The fleet"), element("p", note, kind="small"), *parts)


def _tile(answer: Answer, line: Line, label: str) -> Html:
    speed = line.speeds.get(label)
    if speed is None:
        title = f"{line.node}: {line.why or words.TITLES[line.word]}"
        return element("span", escape(line.node), kind="gone", title=title)
    slow = any(one.word == "slow" and one.metric == label for one in line.suspects)
    kind = _grade(speed, answer.screen.margins[label], named=slow)
    title = f"{line.node}: {format_change(speed)}"
    shown = title if len(answer.lines) <= MOST_FIGURES else line.node
    return element("span", escape(shown), kind=kind or None, title=title)


def _grade(speed: float, margin: float, *, named: bool) -> str:
    """Return the classes of a cell: how far below the median it is, and whether it is named."""
    below = 1 - speed
    grades = ((3 * margin, "c"), (margin, "b"), (margin / 2, "a"))
    kind = next((name for bound, name in grades if below > bound), "f" if -below > margin else "")
    return " ".join(filter(None, (kind, "named" if named else "")))


def _pairs(answer: Answer) -> Html:
    """Return a matrix of all pairs for each benchmark: rows send, columns receive."""
    of, number = of_nodes(answer.screen.racks), len(answer.screen.nodes)
    nodes = sorted(answer.screen.nodes, key=lambda node: (of.get(node, ""), len(node), node))
    if number > MOST_IN_A_MATRIX:
        said = f"answer.json has all pairs: a matrix of {number} nodes is too large to read."
        return element("section", element("h2", "All pairs"), element("p", said))
    said = (
        "Speed against the median of its round. Rows send, columns receive. Outlined: slow, an end"
        " at its name. Empty: not measured before the proofs."
    )
    parts = [element("h2", "All pairs"), element("p", said, kind="small")]
    for label in answer.speeds:
        inner = element("table", *_matrix(answer, label, nodes), kind="pairs")
        box = element("div", inner, kind="scroll", tabindex="0", role="region", aria_label=label)
        parts += [element("h3", escape(label)), box]
    return element("section", *parts)


def _matrix(answer: Answer, label: str, nodes: Sequence[str]) -> tuple[Html, Html]:
    """Return head and body of the table of all pairs."""
    own = answer.course.of(label)
    slow = [one.cause for one in own if one.word == "slow"]
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
        title = f"{' to '.join(pair)}: {format_change(speed)}"
        return element("td", shown, kind=kind or None, title=title)

    top = element("tr", element("td"), *(name(node, "col") for node in nodes))
    rows = [
        element("tr", name(one, "row"), *(cell((one, other)) for other in nodes)) for one in nodes
    ]
    return element("thead", top), element("tbody", *rows)


def _commands(answer: Answer, kubernetes: bool) -> Html:
    out, back = operators.told(answer, kubernetes=kubernetes)
    if not out:
        return Html("")
    after = (element("p", "After the repair:"), _pre(back)) if back else ()
    return element("section", element("h2", "For operators"), _pre(out), *after)


def _pre(lines: Sequence[str]) -> Html:
    return element("pre", Html("\n").join(map(escape, lines)))


def _all(answer: Answer) -> Html:
    labels = [*answer.screen.margins]
    rows = [
        [
            escape(line.node),
            escape(words.TITLES[line.word]),
            *(_speed(line.speeds.get(label)) for label in labels),
            escape(words.cause(answer.screen, line)),
        ]
        for word in WORDS
        for line in answer.having(word)
    ]
    head = ["Node", "Answer", *(f"{label}, rounds of all" for label in labels), "Evidence"]
    left = (0, 1, len(head) - 1)
    names = fold(answer.screen.nodes)
    return table(head, rows, f"All nodes: {names}", left, fold=True)


def _speed(speed: float | None) -> Html:
    return escape("-" if speed is None else format_change(speed))
