"""XML as elements with their line numbers; no entity is expanded, and no DTD is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from paribus.core import ParseError

_DEEPEST = 64
_MOST = 200_000


@dataclass(slots=True)
class Element:
    """An element: the line in which it begins, its attributes, the elements and the text in it."""

    tag: str
    line: int
    attributes: dict[str, str]
    inner: list[Element] = field(default_factory=list)
    text: str = ""

    def get(self, name: str) -> str:
        """Return an attribute, "" if there is none."""
        return self.attributes.get(name, "")

    def number(self, name: str) -> int:
        """Return an attribute that is a whole number; raises ParseError."""
        text = self.get(name)
        if not text.isdecimal() or len(text) > 9:
            raise ParseError(f"{name} of <{self.tag}> is no number", line=self.line)
        return int(text)

    def all(self, tag: str) -> list[Element]:
        """Return the elements with this tag that are directly in this one."""
        return [element for element in self.inner if element.tag == tag]


def parse(text: str) -> Element:
    """Return the outermost element of `text`.

    Raises ParseError, with the line, for what is no XML, for declared entities (which can expand to
    gigabytes), and for more elements than any server has.
    """
    parser = expat.ParserCreate()
    top = Element("", 0, {})
    open_elements = [top]
    count = 0

    def refuse(cause: str) -> NoReturn:
        raise ParseError(cause, line=parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MOST or len(open_elements) > _DEEPEST:
            refuse("more elements than the tree of a server has")
        element = Element(tag, parser.CurrentLineNumber, attributes)
        open_elements[-1].inner.append(element)
        open_elements.append(element)

    def characters(data: str) -> None:
        open_elements[-1].text += data

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: open_elements.pop()
    parser.CharacterDataHandler = characters
    parser.buffer_text = True
    parser.EntityDeclHandler = lambda *_: refuse("it declares an entity, which no such file does")
    try:
        parser.Parse(text.encode(errors="replace"), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code) or "no XML"
        raise ParseError(f"not XML: {reason}", line=error.lineno) from None
    return top.inner[0]
