"""Which of many phrases are in a text: all of them looked for in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick


class Phrases:
    """Phrases that texts are searched for."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._place = {phrase: at for at, phrase in enumerate(dict.fromkeys(phrases))}

    @cached_property
    def _automaton(self) -> AhoCorasick:
        from ahocorasick_rs import AhoCorasick, Implementation

        # Of a few hundred phrases it takes 6 ms to build, and is twice as fast as the default.
        return AhoCorasick(self._place, implementation=Implementation.DFA)

    def within(self, text: str) -> list[str]:
        """Return those of the phrases that are in `text`, in their own order."""
        try:
            # Not where they are: of text that is not ASCII that needs ten times its memory.
            found = self._automaton.find_matches_as_strings(text, overlapping=True)
        except UnicodeEncodeError:  # half of a surrogate pair
            return self.within(text.encode(errors="replace").decode())
        return sorted(set(found), key=self._place.__getitem__)
