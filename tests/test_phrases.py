"""Phrases are found wherever a search for each would find them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.errors import ParseError
from paribus.readers.launches import FAILED, check_launch
from paribus.readers.phrases import Phrases

FEW = st.text(alphabet="ab é\ud800\n", min_size=1, max_size=4)


@given(st.lists(FEW, min_size=1, max_size=5), st.text(alphabet="ab é\ud800\n", max_size=40))
def test_the_same_as_a_search_for_each(phrases: list[str], text: str) -> None:
    known = [p for p in dict.fromkeys(phrases) if "\ud800" not in p]
    assert Phrases(known).within(text) == [p for p in known if p in text]
    assert Phrases(known).any_in(text) == any(p in text for p in known)


@pytest.mark.parametrize("said", FAILED)
def test_words_of_launchers_are_found_in_the_middle_of_a_line(said: str) -> None:
    with pytest.raises(ParseError, match="the launch failed: ") as refusal:
        check_launch(f"one line\n 4 1.2{said}3 0.1\nanother")
    assert refusal.value.line == 2
