"""Whatever an arm is called, a sentence does not take its name for other words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import judgements
from paribus.core import Judgement
from paribus.logs import studies as changes
from paribus.logs import words as logs
from paribus.report import sentences
from paribus.words import lists, notices, study, verdicts
from paribus.words.lists import arm, arms

EVERY = judgements.ALL | judgements.MORE
NAMES = ("qqa", "qqb", "qqc", "qqd", "qqe")
"""Stand in for names that are words as well."""

LABEL = re.compile(r"(?:^|[,;:(] |\()(?:qq[a-e](?:, | and )?)+(?=$|[:,.;)])")
"""Names where they are none of a sentence: in a list, before a colon."""


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "TAKEN", {*lists.TAKEN, *NAMES})


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Return figures in which arms have other names."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        of_arms = set(value) <= set(names)  # "host" is a key of other figures, too
        return {names[k] if of_arms else k: renamed(one, names) for k, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(renamed(one, names) for one in value)
    return value


def said(judgement: Judgement) -> Iterator[str]:
    """Yield the sentences of a judgement whose arms are called so."""
    names = dict(zip((one.name for one in judgement.study.arms), NAMES, strict=False))
    yield from (
        notices.text(one.name, one.benchmarks, renamed(dict(one.figures), names))
        for one in judgement.notices
    )
    own = [replace(one, name=names[one.name]) for one in judgement.study.arms]
    heads = tuple(
        replace(
            one,
            arm=names.get(one.arm, one.arm),
            verdict=replace(one.verdict, figures=renamed(dict(one.verdict.figures), names)),
        )
        for one in judgement.headlines
    )
    yield study.sentence(heads)
    other = replace(judgement, study=replace(judgement.study, arms=tuple(own)), headlines=heads)
    for one in heads:
        yield sentences.headline_sentence(other, one)
        if one.verdict.code is not None:
            yield verdicts.sentence(one.verdict.code, one.verdict.figures)


@pytest.mark.parametrize("name", EVERY)
def test_a_name_in_a_sentence_is_marked_as_that_of_an_arm(name: str) -> None:
    for text in said(EVERY[name]()):
        left = LABEL.sub("", re.sub(r"arm qq[a-e]|qq[a-e] / qq[a-e]", "", text))
        assert "qq" not in left, text


def test_so_it_is_in_sentences_that_no_judgement_here_has() -> None:
    found = [("qqb", "unchanged", "latency", 1.0), ("qqb", "withheld", "x", None)]
    said = changes.sentence(("one", "two"), "qqa", found)
    assert "arm qqb is unchanged against arm qqa" in said
    assert "the change of arm qqb" in said
    assert logs.unmatched("x", {"qqa": 2, "qqb": 0}) == "x: 2 logs of arm qqa, none of arm qqb"


@pytest.mark.parametrize("name", ["a", "the", "in", "all", "slower", "All", "2", "4.5", "none"])
def test_a_name_that_is_a_word_too_is_marked(name: str) -> None:
    assert arm(name) == f"arm {name}"


@pytest.mark.parametrize("name", ["b", "bridged", "openmpi-5.0", "node1", "v2"])
def test_any_other_stands_alone(name: str) -> None:
    assert arm(name) == name


def test_a_name_of_several_words_and_several_names_stay_apart() -> None:
    assert arm("my host") == 'arm "my host"'
    assert arms(["a", "b"]) == "arm a and b"
    assert arms(["x", "the", "y"], 2) == "x, arm the and 1 more"


def test_the_sentence_that_spoke_of_a_drift() -> None:
    several = [one for made in EVERY.values() for one in made().notices if one.name == "drift"]
    drift = several[0]
    text = notices.text(drift.name, drift.benchmarks, {**drift.figures, "reference": "a"})
    assert "launches of arm a drift (rank" in text
