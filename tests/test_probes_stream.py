"""The answer of a node: what is not ours is skipped, what is lost or mixed up is named."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core import ParseError
from paribus.probes import facts_from_stream, from_stream
from paribus.probes.archive import MOST_BYTES, Unknown

BODY = """
::N begin 1 files

::N environment
PATH
OMPI_MCA_btl=tcp,self

::N asked
/proc/cmdline
/sys/class/net/eth0/mtu
/sys/class/net/eth0/speed
/proc/a:b
/proc/empty
/proc/secret

::N files
/proc/cmdline:quiet ro
/sys/class/net/eth0/mtu:1500
/proc/a:b:c
/proc/a:b:/proc/cmdline:forged

::N errors
grep: /sys/class/net/eth0/speed: Invalid argument
grep: /proc/secret: Permission denied

::N tool ucx_info
# Library version: 1.17.0

::status 0

::N absent fi_info

::N end"""


def answer(host: str = "n1", nonce: str = "4f1c", body: str = BODY) -> str:
    lines = body.replace("::N", f"::{nonce}").split("\n")
    return "".join(f"{nonce} {host} {n} {line}\n" for n, line in enumerate(lines, 1))


def test_a_whole_answer() -> None:
    archive = from_stream(answer())
    assert archive.host == "n1"
    assert archive.read("/proc/cmdline") == "quiet ro"
    assert archive.read("/proc/a:b") == "c\n/proc/cmdline:forged"
    assert archive.read("/proc/empty") == ""
    assert archive.read("/proc/secret") is Unknown.DENIED
    assert archive.read("/sys/class/net/eth0/speed") is Unknown.UNSUPPORTED
    assert archive.read("/never/asked") is Unknown.ABSENT
    assert archive.tool("ucx_info") == "# Library version: 1.17.0"
    assert archive.tool("fi_info") is Unknown.ABSENT
    facts = facts_from_stream(answer())
    assert facts["env.OMPI_MCA_btl"] == "tcp,self"


def test_banners_and_carriage_returns_are_passed_over() -> None:
    banner = "Welcome! 3 updates.\n\n*** maintenance on 4f1d ***\n"
    assert facts_from_stream(banner + answer() + "logout\n") == facts_from_stream(answer())
    assert facts_from_stream(answer().replace("\n", "\r\n")) == facts_from_stream(answer())
    assert facts_from_stream("alice@n1:~$ " + answer()) == facts_from_stream(answer())


def test_the_answers_of_several_nodes_are_no_answer_of_one() -> None:
    one, two = answer("n1").splitlines(), answer("n2").replace("1500", "9000").splitlines()
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    with pytest.raises(ParseError, match="2 nodes where one was asked: n1, n2"):
        facts_from_stream(mixed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no answer"),
        ("\n \n", "no answer"),
        ("ssh: connect to host n1 port 22: No route to host\n", "no facts .* 'ssh: connect"),
        (answer()[:400], "its answer stops after 1[0-9] lines"),
        ("".join(answer().splitlines(keepends=True)[:-1]), "stops after .* in 'absent fi_info'"),
        (answer().replace("4f1c n1 7 \n", ""), "line 7 of its answer is missing"),
        (answer() + answer(), "two answers from hosts of the same name"),
        (answer() + answer(nonce="9999", host="n2"), "2 answers to different questions"),
        (answer().replace("quiet ro", "quiet4f1c n2 8 ro"), "mixed up with others"),
        (answer().replace("quiet ro\n", "quiet ro"), "mixed up with others"),
        (answer().replace("begin 1", "begin 2"), "version '2', not 1"),
        (answer(body="\n::N begin 1 all\n::cut"), "too long and was cut off"),
        ("x" * (MOST_BYTES + 1), "MiB of facts: more than 16 are not read"),
    ],
)
def test_what_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        facts_from_stream(text)


def test_a_cut_line_makes_its_file_unknown_and_no_other() -> None:
    archive = from_stream(answer().replace("quiet ro", "quiet r::cut"))
    assert archive.read("/proc/cmdline") is Unknown.CUT
    assert archive.read("/sys/class/net/eth0/mtu") == "1500"


def test_a_tool_that_was_cut_or_failed_is_no_output() -> None:
    assert from_stream(answer().replace("::status 0", "")).tool("ucx_info") is Unknown.CUT
    for status, why in ((137, Unknown.TIMED_OUT), (1, Unknown.UNSUPPORTED)):
        text = answer().replace("::status 0", f"::status {status}")
        assert from_stream(text).tool("ucx_info") is why


def test_no_loss_of_a_line_goes_unseen() -> None:
    """Every line of a real answer, taken away in turn: an error, never other facts."""
    lines = answer().splitlines(keepends=True)
    for n in range(1, len(lines)):
        with pytest.raises(ParseError):
            facts_from_stream("".join(lines[:n] + lines[n + 1 :]))


def test_no_cut_of_the_end_goes_unseen() -> None:
    text = answer()
    for end in range(len(text) - 1):
        with pytest.raises(ParseError):
            facts_from_stream(text[:end])


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_an_answer_or_an_error(text: str) -> None:
    for whole in (text, answer() + text, answer(body=BODY.replace("quiet ro", text))):
        try:
            facts_from_stream(whole)
        except ParseError:
            continue


def test_damaged_bytes_never_crash() -> None:
    rng = random.Random(4)
    data = answer().encode()
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(len(data))] = rng.randrange(256)
        try:
            facts_from_stream(bytes(damaged).decode(errors="replace"))
        except ParseError:
            continue


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "make",
    [
        lambda: "".join(f"4f1c n{n} 1 ::4f1c begin 1 all\n" for n in range(400_000)),
        lambda: answer() + "4f1c n1 x\n" * 1_000_000,
        lambda: answer(body=BODY.replace("quiet ro", "a:" * 30_000)),
        lambda: answer(body=BODY.replace("/proc/cmdline:quiet ro", "a:b:c\n" * 500_000)),
        lambda: answer(body=BODY + "\n::N tool x" * 300_000),
        lambda: "4f1c " * 3_000_000,
    ],
    ids=["hosts", "lines", "colons", "unasked", "sections", "nonces"],
)
def test_a_long_answer_is_read_or_refused_in_seconds(make: Callable[[], str]) -> None:
    text = make()
    try:
        facts_from_stream(text)
    except ParseError:
        return
