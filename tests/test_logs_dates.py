"""Dates without a zone: believed where they order the logs, and said by name where they do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from log_folders import FIXTURES, read, why_paired
from paribus.logs.logs import find_logs
from paribus.logs.pairing import Logs, pair_logs
from paribus.readers.known import readers

TEXT = (FIXTURES / "imb_pingpong" / "good-msglen.out").read_text()
LINE = next(one for one in TEXT.splitlines() if one.startswith("# Date "))
BEGIN = datetime(2026, 10, 25, 0, 40, tzinfo=UTC).timestamp()
STEP_S = 300.0


def imb(folder: Path, begun: Callable[[float, str], float], *, written: bool = True) -> Logs:
    """Write ten logs of each arm in turns, dated as `begun` says of the truth; return them read."""
    for i in range(10):
        for place, arm in enumerate("ab" if i % 2 else "ba"):
            true = BEGIN + STEP_S * i + 60 * place
            said = datetime.fromtimestamp(begun(true, arm), UTC)
            path = folder / arm / f"x{i * 7 % 10}-{arm}{i}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TEXT.replace(LINE, f"# Date : {said:%a %b %d %H:%M:%S %Y}"))
            if written:
                os.utime(path, (true + 20, true + 20))
    return read(folder / "a", folder / "b")


def order(logs: Logs) -> str:
    (kind,) = logs.kinds
    return "".join(log.arm[-1] for log in sorted(kind.logs, key=lambda log: log.at))


TRUE = "baab" * 5


def test_dates_of_one_zone_are_right_whatever_the_zone(tmp_path: Path) -> None:
    logs = imb(tmp_path, lambda true, _: true - 5.5 * 3600)
    assert why_paired(logs.kinds[0]) == "neighbours in time, by the dates in the logs"
    assert order(logs) == TRUE


def test_the_night_in_which_the_clock_is_set_back(tmp_path: Path) -> None:
    """Central Europe left summer time on 2026-10-25 at 01:00 UTC: 2 to 3 was there twice."""
    change = datetime(2026, 10, 25, 1, 0, tzinfo=UTC).timestamp()
    logs = imb(tmp_path, lambda true, _: true + (7200 if true < change else 3600))
    assert why_paired(logs.kinds[0]) == (
        "neighbours in time, by the times of their files: their dates jump by 1 h against those"
        " times (another time zone, or a changed clock)"
    )
    assert order(logs) == TRUE


def test_arms_in_two_time_zones(tmp_path: Path) -> None:
    logs = imb(tmp_path, lambda true, arm: true + (9 * 3600 if arm == "b" else 0))
    assert "their dates jump by 9 h against those times" in why_paired(logs.kinds[0])
    assert order(logs) == TRUE


def test_files_that_were_copied_do_not_speak_against_the_dates(tmp_path: Path) -> None:
    logs = imb(tmp_path, lambda true, _: true, written=False)
    assert why_paired(logs.kinds[0]) == "neighbours in time, by the dates in the logs"
    later = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    for n, path in enumerate(sorted(tmp_path.rglob("*.log"))):
        os.utime(path, (later + 7 * n, later + 7 * n))
    logs = read(tmp_path / "a", tmp_path / "b")
    assert why_paired(logs.kinds[0]) == "neighbours in time, by the dates in the logs"
    assert order(logs) == TRUE


def test_utc_and_a_local_time_are_not_mixed(tmp_path: Path) -> None:
    """As fio's JSON, in seconds since the epoch, beside its text, in local time."""
    imb(tmp_path, lambda true, _: true)
    arms, logs, unread = find_logs([tmp_path / "a", tmp_path / "b"])
    mixed = [replace(log, date=(log.at, i % 2 == 0)) for i, log in enumerate(logs)]
    found = pair_logs(arms, mixed, unread)
    assert "some of their dates are in UTC, some in a local time" in why_paired(found.kinds[0])
    assert order(found) == TRUE
    every = pair_logs(arms, [replace(log, date=(log.at, True)) for log in logs], unread)
    assert why_paired(every.kinds[0]) == "neighbours in time, by the dates in the logs"


def test_which_dates_name_their_zone() -> None:
    zones = {
        path.stem: said[1]
        for path in (FIXTURES / "fio").glob("good-*.out")
        if (said := readers()["fio"].started(path.read_text()))
    }
    assert set(zones.values()) == {True, False}
    assert all(zoned == ("json" in stem) for stem, zoned in zones.items()), zones
    assert readers()["iperf3"].started("Time: Sat, 21 Nov 2026 05:00:00 GMT") == (
        1795237200.0,
        True,
    )


def test_logs_of_which_some_have_no_date_are_ordered_by_one_clock(tmp_path: Path) -> None:
    logs = imb(tmp_path, lambda true, _: true + 7200)
    undated = next((tmp_path / "a").glob("*.log"))
    status = undated.stat()
    undated.write_text("\n".join(x for x in TEXT.splitlines() if x != LINE) + "\n")
    os.utime(undated, (status.st_mtime, status.st_mtime))
    logs = read(tmp_path / "a", tmp_path / "b")
    assert why_paired(logs.kinds[0]) == (
        "neighbours in time, by the times of their files: not all of them have a date"
    )
    assert order(logs) == TRUE
