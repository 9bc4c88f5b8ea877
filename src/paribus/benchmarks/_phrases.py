"""Which of many phrases are in a text: found by the words in them, not one search for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

PART = 1 << 16
"""Characters that are split into words at a time: of a long text not all are held at once."""

FEW = 40
"""Phrases that are searched for in a long text before it could be split into words."""

_INSIDE = re.compile(r"(?<=\s)\S+(?=\s)")
_FROM_ITS_BEGIN = re.compile(r"(?:^|(?<=\s))\S+(?=\s)")
_END = 6

_WORDS: set[str] = set()
"""All words that are in any phrase: a text is searched for them once, whatever is asked of it."""


class Phrases:
    """Phrases that texts are searched for.

    A phrase can be in a text only where the words between its spaces are. One that has no such word
    is searched for by its last letters, which others may share. `whole`: a phrase counts only where
    it begins with a word, so that its first word is one of those that must be there.
    """

    def __init__(self, phrases: Iterable[str], *, whole: bool = False) -> None:
        self._words: dict[str, frozenset[str]] = {}
        self._by_word: dict[str, list[str]] = {}
        ends: dict[str, list[str]] = {}
        for phrase in phrases:
            words = (_FROM_ITS_BEGIN if whole else _INSIDE).findall(phrase)
            self._words[phrase] = frozenset(words)
            if words:
                self._by_word.setdefault(max(words, key=len), []).append(phrase)
            else:
                ends.setdefault(phrase[-_END:], []).append(phrase)
        # The longer what is searched for, the faster.
        self._by_end = {end if len(some) > 1 else some[0]: some for end, some in ends.items()}
        _WORDS.update(*self._words.values())
        _present.cache_clear()

    def within(self, text: str) -> list[str]:
        """Return those of the phrases that are in `text`, in no particular order."""
        if len(text) > PART and len(self._words) <= FEW:
            return [phrase for phrase in self._words if phrase in text]
        present = _present(text)
        near = [
            phrase
            for word in self._by_word.keys() & present
            for phrase in self._by_word[word]
            if self._words[phrase] <= present
        ]
        near += [phrase for end, some in self._by_end.items() if end in text for phrase in some]
        return [phrase for phrase in near if phrase in text]


# The same text is searched for what it may be, and for what launchers say of failed launches.
@lru_cache(maxsize=1)
def _present(text: str) -> set[str]:
    """Return which of the words are in a text."""
    if len(text) <= PART:
        return _WORDS.intersection(text.split())
    return set().union(*(_WORDS.intersection(part.split()) for part in _parts(text)))


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that end where lines do."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + PART)
        end = end if end >= 0 else len(text)
        yield text[at:end]
        at = end
