"""`fio --client`: the figures of several machines together, from text and from JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.compare.recognise import readings
from paribus.errors import ParseError
from paribus.model import Case, Reading
from paribus.readers.known import readers
from paribus.readers.text import plain

FIXTURES = Path(__file__).parent / "fixtures" / "fio"
TEXT = (FIXTURES / "other-two_clients-text.out").read_text()
JSON = (FIXTURES / "other-two_clients-json.out").read_text()
GROUPS = (FIXTURES / "other-client_two_groups.out").read_text()
READ = Case.of(op="read")


def read(text: str) -> Reading:
    return readers()["fio"].read(text)


def values(text: str) -> dict[tuple[str, Case], float]:
    return {(s.metric, s.case): s.values[0] for s in read(text).samples}


def test_rates_are_those_of_all_clients_and_the_latency_is_that_of_all_operations() -> None:
    """43.7 and 43.6 MB/s; 21,346 and 21,314 operations in 2.001 and 2.002 s of 92.08 and 92.33."""
    assert values(TEXT) == {
        ("bandwidth", READ): pytest.approx(87.3),
        ("iops", READ): pytest.approx(21346 / 2.001 + 21314 / 2.002),
        ("latency", READ): pytest.approx((21346 * 92.08186 + 21314 * 92.33252) / 42660),
    }
    assert values(JSON)["bandwidth", READ] == pytest.approx((45768347 + 47553311) / 1e6)
    for text in (TEXT, JSON):
        assert (read(text).parameters["clients"], read(text).parameters["jobs"]) == (2, 2)
        assert read(text).parameters["block"] == 4096


def test_jobs_of_several_groups_are_cases_and_one_client_is_as_fio_alone() -> None:
    found = values(GROUPS)
    assert found["bandwidth", Case.of(op="write", job="wr")] == 981.0
    assert found["latency_p99", Case.of(op="read", job="mix")] == 3818.0
    assert "clients" not in read(GROUPS).parameters


@pytest.mark.parametrize(
    ("text", "old", "new", "cause"),
    [
        (TEXT, "total=42660,0", "total=42661,0", "the operations of all clients are not"),
        (TEXT, "(groupid=0, jobs=2): err= 0", "(groupid=0, jobs=3): err= 0", "3 jobs of all"),
        (TEXT, "jobs=1): err= 0", "jobs=1): err= 5", "err=5"),
        (TEXT, "All clients:", "Some clients:", "fio did not end"),
        (JSON, '"total_ios" : 45590', '"total_ios" : 45591', "of all clients are not those"),
        (JSON, '"All clients"', '"randread"', "fio did not end|do not fit"),
        (JSON, '"error" : 0', '"error" : 5', "error 5"),
        (GROUPS, "Run status group 1", "Run status", "run status of group 1"),
    ],
)
def test_what_does_not_add_up_is_refused(text: str, old: str, new: str, cause: str) -> None:
    assert old in text
    with pytest.raises(ParseError, match=cause):
        read(text.replace(old, new, 1))


def test_a_client_whose_figures_are_cut_off_is_refused() -> None:
    lines = TEXT.splitlines(keepends=True)
    for end in range(3, len(lines)):
        with pytest.raises(ParseError):
            read("".join(lines[: end - 1]))


def test_several_outputs_in_one_file_are_divided_at_their_first_host() -> None:
    held = readings(plain(f"{TEXT}{GROUPS}\n{TEXT}"))
    assert (held.outputs, held.read) == (3, 3)
    assert [one.reading.parameters.get("clients", 1) for one in held.found] == [2, 1, 2]
    indented = "".join(f"    {line}\n" for line in TEXT.splitlines())
    assert readings(plain(indented)).found[0].reading.samples == read(TEXT).samples
