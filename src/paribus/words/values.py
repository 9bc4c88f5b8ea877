"""The sentences for values of a judgement. They are for people: no code may decide by them."""

from __future__ import annotations

from paribus.core import Carrier, Judgement, Notice, Point, Verdict
from paribus.words import notices, transport, verdicts
from paribus.words.lists import listed


def reason_of(verdict: Verdict) -> str:
    """Return the sentence on why the verdict is what it is."""
    return verdicts.sentence(verdict.code, verdict.figures, size_known=verdict.size_known)


def way_out(verdict: Verdict) -> str:
    """Return in a few words what to do about a verdict that is withheld."""
    return verdicts.way_out(verdict.code, verdict.figures)


def notice_text(notice: Notice) -> str:
    """Return the sentences of a notice."""
    return notices.text(notice.name, notice.benchmarks, notice.figures)


def notice_fix(notice: Notice) -> str:
    """Return the sentence on what can be done about a notice, "" for nothing."""
    return notices.fix(notice.name, notice.figures)


def notice_said(notice: Notice) -> str:
    """Return the sentences of a notice, and what can be done about it."""
    return f"{notice_text(notice)} {notice_fix(notice)}".strip()


def way_of(carrier: Carrier) -> str:
    """Return the transport of a carrier in words, such as "between 2 hosts, network"."""
    return transport.way(carrier.ways, carrier.source, carrier.hosts)


def flag_of(point: Point) -> str:
    """Return what is unusual about the launch, "" if nothing is."""
    return notices.flag(point.outlying, point.disturbed)


def consequences(*several: Notice) -> str:
    """Return in a few words what warnings mean for verdicts, "" for notes."""
    said = dict.fromkeys(notices.consequence(one.name, one.figures) for one in several)
    return listed([*filter(None, said)])


def warnings(judgement: Judgement) -> list[Notice]:
    """Return the warnings of a judgement, the gravest first."""
    found = [one for one in judgement.notices if one.level == "warning"]
    return sorted(found, key=lambda one: notices.gravity(one.name, one.figures))
