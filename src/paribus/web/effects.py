"""Effects as the list and the page of a running study show them."""

from __future__ import annotations

import math

from paribus.core import Comparison, Word
from paribus.report import wording
from paribus.report.markup import Html, element, escape, join
from paribus.report.tables import chip
from paribus.store import Effect

WORDS = {word.value: word for word in Word}


def kind_of(one: Effect) -> str:
    """Return the class of the colour of a verdict that claims something, "" of another."""
    word = WORDS.get(one.word)
    return word.name.lower() if word in wording.DECIDED else ""


def times(one: Effect) -> Comparison | None:
    """Return how many times as slow an arm is, with the interval; None without a ratio."""
    if one.ratio is None or not 0 < one.ratio < math.inf:
        return None
    low, high = one.low or 0.0, math.inf if one.high is None else one.high
    if one.better == "higher":
        low, high = 1 / high, 1 / low if low > 0 else math.inf
        return Comparison(1, 1 / one.ratio, low, high, 0.0)
    return Comparison(1, one.ratio, low, high, 0.0)


def text_of(one: Effect) -> str:
    """Return how many times as slow an arm is, with the interval; "" without a ratio."""
    known = times(one)
    if known is None:
        return ""
    interval = f" {wording.interval_text(known)}" if wording.has_interval(known) else ""
    return f"{wording.ratio_text(known.ratio)}{interval}"


def effect(one: Effect, *, named: bool) -> Html:
    """Return an effect as chip and times as slow, where `named` with its arm."""
    sign = chip(WORDS[one.word], one.reason) if one.word in WORDS else escape(one.word)
    arm = [element("small", escape(one.arm))] if named else []
    return element("span", join(sign, escape(f" {text_of(one)}")), *arm)
