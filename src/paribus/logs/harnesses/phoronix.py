"""What the Phoronix Test Suite writes of a session: composite.xml, with the figure of every run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from paribus.core import Case, Direction, Metric, Reading, Sample
from paribus.readers.figures import figure
from paribus.readers.harness import NOT_WRITTEN, Failed, Harness, Measured, name_of, when
from paribus.readers.heads import Head
from paribus.readers.text import line_of, once, refuse
from paribus.readers.units import canonical

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MARK = "<PhoronixTestSuite>\n  <Generated>"
END = "</PhoronixTestSuite>"
MOST = 8 << 20
"""Characters of a file, at most: each may become 30 bytes of a tree. Published ones have 80,000."""

INSTALLATION = "Test Install "
"""The beginning of the descriptions of how long an installation took, and how large it is."""

DIRECTIONS: dict[str, Direction] = {"HIB": "higher", "LIB": "lower"}


def read(text: str) -> list[Measured | Failed]:
    """Return every run of every test: the suite starts the program anew for each."""
    root = _tree(text)
    dates = {_text(one, "Identifier"): _text(one, "TimeStamp") for one in root.findall("System")}
    if not dates:
        refuse("no system is named in it")
    found: list[Measured | Failed] = []
    for result in root.findall("Result"):
        if _measures(result):
            for entry in result.findall("Data/Entry"):
                system = _text(entry, "Identifier")
                if system not in dates:
                    refuse(f"{system[:40]!r} is not among its systems")
                date = when(dates[system]) if len(dates) == 1 else None
                found += _launches(result, entry, system, alone=len(dates) == 1, date=date)
    if not found:
        refuse("the suite reports no figure of a test")
    return found


def _measures(result: Element) -> bool:
    """Return whether a result has figures of runs: one of an installation, or a graph, has none."""
    kind = _text(result, "DisplayFormat")
    if _text(result, "Identifier"):
        if not kind.isupper():
            refuse(f"a <Result> has the format {kind[:20]!r}")
        return kind == "BAR_GRAPH"
    if not _text(result, "Description").startswith(INSTALLATION):
        refuse("a <Result> names no test")
    return False


def _tree(text: str) -> Element:
    """Return the document; raises ParseError before it reads one that declares entities."""
    from xml.etree.ElementTree import ParseError as XmlError
    from xml.etree.ElementTree import XMLParser

    at = once(text, MARK, "the beginning, '<PhoronixTestSuite>',")
    end = once(text, END, f"the end, {END!r},") + len(END)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        refuse("declares entities, which the Phoronix Test Suite does not")
    if end - at > MOST:
        refuse(f"has more than {MOST:,} characters: split it, or give fewer systems")
    parser = XMLParser()
    try:
        parser.feed(text[at:end])
        return parser.close()
    except XmlError as error:
        line = text.count("\n", 0, at) + error.position[0]
        refuse(f"is not whole XML: {str(error).partition(':')[0]}", line)
    except ValueError:
        refuse("is not XML: it holds what no text does", line_of(text, at))


def _text(element: Element, name: str) -> str:
    """Return the text of the one child of that name, "" where it is empty."""
    found = element.findall(name)
    if len(found) != 1:
        refuse(f"<{name}> is there {len(found)} times in one <{element.tag}>")
    text = (found[0].text or "").strip()
    if "\n" in text:
        refuse(f"<{name}> is torn: {text[:60]!r}")
    return text


def _launches(
    result: Element,
    entry: Element,
    system: str,
    *,
    alone: bool,
    date: tuple[float, bool] | None,
) -> Iterator[Measured | Failed]:
    """Yield a launch for each run of a test on a system, which may be `alone` in the file."""
    parts = (_text(result, "Title"), _text(result, "Description"))
    factor, unit = canonical(_text(result, "Scale"))
    test = name_of(", ".join(filter(None, (": ".join(filter(None, parts)), unit))))
    arm = name_of(system)
    raw, value = _text(entry, "RawString"), _text(entry, "Value")
    if not raw:
        yield Failed(f"{test!r} has no figure of a run", {"test": test}, arm)
        return
    better = DIRECTIONS.get(_text(result, "Proportion"))
    if better is None:
        refuse(f"{test!r} does not say whether higher or lower is better (HIB, LIB)")
    figures = [figure(word) for word in raw.split(":")]
    step = 10.0 ** -len(value.partition(".")[2])
    if not abs(math.fsum(figures) / len(figures) - figure(value)) <= step:
        refuse(f"the runs of {test!r} have another mean than {value[:20]}")
    parameters = {"test": test, **({} if alone else {"system": arm})}
    version = name_of(f"{parts[0]} {_text(result, 'AppVersion') or NOT_WRITTEN}")
    for one in figures:
        samples = (Sample("value", Case(), (factor * one,)),)
        reading = Reading("phoronix", version, parameters, None, samples)
        yield Measured(reading, date, (Metric("value", unit or "1", better),), arm)


HARNESS = Harness(
    "phoronix",
    read,
    marks=(MARK,),
    heads=(Head("<PhoronixTestSuite>", above=r"<[?!].*"),),
    launches=(
        "every run of a test is a launch, because the suite starts its program anew; installation"
        " times and sizes, and graphs over time, are left out"
    ),
    versions="composite.xml of 10.8.4",
    proof=(
        "whole XML, every system named, the mean of the runs is the value beside them; a test"
        " without a figure of each run is a failed launch"
    ),
    arms="system",
)
