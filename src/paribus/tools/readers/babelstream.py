"""What BabelStream prints, as text or CSV: settings, and a row for each kernel, such as

Function    MB/s        Min (sec)   Max         Average
Triad       21077.300   0.01910     0.02675     0.02101
"""

from __future__ import annotations

import re
from math import inf

from paribus.core import Reading, Scalar
from paribus.readers.figures import count
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, of_device, single
from paribus.readers.text import line_at, line_of, once, refuse, refuse_said

_TEXT = "BabelStream\nVersion: "
_CSV = "function,num_times,n_elements,sizeof,max_"
_ARRAYS = {"Copy": 2, "Mul": 2, "Add": 3, "Triad": 3, "Dot": 2, "Nstream": 4}
CLASSIC = list(_ARRAYS)[:5]
_SETTING = re.compile(
    r"\n(Version|Implementation|Running|Number of elements|Precision|Array size"
    r"|Using [\w ]+ device):? +(\S[^\n]*)$",
    re.M,
)
_HEADING = re.compile(r"\nFunction +([MGT]i?B)(?:/s|ytes/sec) +Min \(sec\) +Max +Average *$", re.M)
_CSV_UNIT = re.compile(
    r"([MGT]i?B|mi?b)(?:ytes)?_per_sec,min_runtime,max_runtime,avg_runtime[ \t]*"
)
_KERNEL = rf"({'|'.join(_ARRAYS)})"
_ROW = re.compile(rf"\n{_KERNEL}{r' +([0-9]+[.][0-9]+)' * 4}[ \t]*(?=\n)")
_CSV_ROW = re.compile(
    rf"\n{_KERNEL},([0-9]+),([0-9]+),([0-9]+){r',([0-9]+(?:[.][0-9]*)?(?:e[+-]?[0-9]+)?)' * 4}"
    r"[ \t]*(?=\n)"
)
_MORE = re.compile(rf"\n(?:{_KERNEL}(?! *:)|BabelStream)")
_RUNNING = re.compile(
    r"(?:Running +)?(?:(?:Classic +|All +)?kernels|(\w+)) +(\d+) times(?: in +(\w+) order)?"
)
_ARRAY = re.compile(r"(\d+\.\d) ([MGT]i?B)\b")


def read(text: str) -> Reading:
    """Return the reading of BabelStream's output, text or CSV; raises ParseError with the line."""
    refuse_said(
        text,
        ("FAILED validation", "Validation failed on", "Unrecognized argument"),
        "BabelStream says",
    )
    version, parameters, facts, rates, alone = _csv(text) if _CSV in text else _text(text)
    names = list(rates)
    if names != [alone] and (alone or names not in (CLASSIC, list(_ARRAYS))):
        refuse(f"expected rows of {alone or ', '.join(CLASSIC)}, got {', '.join(names)[:60]}")
    names.sort(key=lambda name: name != "Triad")
    samples = single(**{name.lower(): rates[name] for name in names})
    return Reading("babelstream", version, parameters, None, samples, facts)


Found = tuple[str, dict[str, Scalar], dict[str, str], dict[str, float], str]
"""Version, parameters, facts, MB/s by kernel, and the kernel if only one was asked for."""


def _text(text: str) -> Found:
    """Return what is read of the text form."""
    start = once(text, _TEXT, "the title of BabelStream")
    heading = _HEADING.search(text, start)
    if heading is None:
        refuse(
            "the heading of the table is missing: the program ended before", line_of(text, start)
        )
    settings: dict[str, str] = {}
    for match in _SETTING.finditer(text, start, heading.start()):
        if match[1] in settings:
            refuse(f"{match[1]!r} is there twice", line_of(text, match.end()))
        settings[match[1]] = match[2].strip()
    for key in ("Version", "Implementation", "Running", "Precision", "Array size"):
        if key not in settings:
            refuse(f"{key!r} is missing before the table", line_of(text, start))
    running, array = _RUNNING.match(settings["Running"]), _ARRAY.match(settings["Array size"])
    width = {"double": 8, "float": 4}.get(settings["Precision"])
    if running is None or array is None or width is None:
        refuse(
            "Running, Precision or Array size says what no BabelStream says", line_of(text, start)
        )
    unit = _bytes_of(heading[1])
    parameters: dict[str, Scalar] = {
        "implementation": settings["Implementation"],
        "precision": settings["Precision"],
        "times": count(running[2]),
    }
    if (running[3] or "Classic") != "Classic":
        parameters["order"] = running[3].lower()  # each time is then the mean of all repetitions
    size, slack = (float(word) * _bytes_of(array[2]) for word in (array[1], "0.06"))
    if "Number of elements" in settings:
        parameters["elements"] = count(settings["Number of elements"])
        exact = int(parameters["elements"]) * width
        if abs(exact - size) > slack:
            refuse("the array size is not the elements", line_of(text, start))
        size, slack = exact, 0.0
    else:
        parameters["array_mb"] = float(array[1])
    rates = _rates(_rows(text, heading.end(), _ROW), unit, size, slack, 1.1e-5)
    device = [value for key, value in settings.items() if key.startswith("Using")]
    facts = {"babelstream.device": device[0]} if device else {}
    return settings["Version"], parameters, facts, rates, (running[1] or "").capitalize()


def _csv(text: str) -> Found:
    """Return what is read of the CSV form."""
    at = once(text, _CSV, "the heading of the table")
    unit = _CSV_UNIT.fullmatch(line_at(text, at)[len(_CSV) :])
    if unit is None or not line_at(text, at).startswith(_CSV):
        refuse("the heading of the table is damaged", line_of(text, at))
    first = line_of(text, at) + 1
    rows = _rows(text, at + len(line_at(text, at)), _CSV_ROW)
    same = {row.group(2, 3, 4) for row in rows.values()}
    if len(same) != 1:
        refuse("no rows, or of several array sizes", first)
    times, elements, width = map(int, same.pop())
    if width not in (4, 8):
        refuse(f"elements of {width} bytes", first)
    parameters: dict[str, Scalar] = {
        "precision": "double" if width == 8 else "float",
        "times": times,
        "elements": elements,
    }
    rates = _rates(rows, _bytes_of(unit[1]), elements * width, 0.0, 0.0)
    # CSV does not say what was asked for; a lone Copy is what a cut table looks like.
    alone = next(iter(rates)) if len(rates) == 1 and "Copy" not in rates else ""
    return "1 to 4" if unit[1].islower() else "5", parameters, {}, rates, alone


def _bytes_of(unit: str) -> float:
    """Return how many bytes a unit such as "MB", "mib" or "GiB" has."""
    power = "kmgt".index(unit[0].lower()) + 1
    return float(1024**power if "i" in unit else 1000**power)


def _rows(text: str, at: int, form: re.Pattern[str]) -> dict[str, re.Match[str]]:
    """Return the rows that follow each other after `at`; refuses any after something else."""
    rows: dict[str, re.Match[str]] = {}
    while (row := form.match(text, at)) and row[1] not in rows:
        rows[row[1]] = row
        at = row.end()
    if more := _MORE.search(text, at):
        row_after = line_at(text, more.end())[:60]
        cause = f"a row that is damaged or after the table: {row_after!r}"
        refuse(cause, line_of(text, more.end()))
    return rows


def _rates(
    rows: dict[str, re.Match[str]], unit: float, size: float, slack: float, tick: float
) -> dict[str, float]:
    """Return the MB/s of each row, if they are the bytes of its kernel in the shortest time.

    `slack` is how well the array's bytes are known, `tick` how well the times are.
    """
    rates: dict[str, float] = {}
    for name, row in rows.items():
        printed, least, most, mean = map(float, row.groups()[-4:])
        rate = printed * unit / 1e6
        seconds = _ARRAYS[name] * size * 1e-6 / (rate or inf)
        digits = 5.1e-4 / printed if tick and printed else 0.0
        allowed = tick + seconds * (2e-5 + digits + slack / size if size else 1.0)
        sound = 0 < rate < inf and (tick or least > 0) and least <= mean <= most < inf
        if not sound or abs(seconds - least) > allowed:
            rate_said, least_said = row.groups()[-4:-2]
            refuse(
                f"{rate_said} are not {_ARRAYS[name]} arrays of {size:.0f} B in {least_said} s",
                line_of(row.string, row.end()),
            )
        rates[name] = rate
    return rates


READER = Reader(
    "babelstream",
    read,
    marks=(_TEXT, _CSV),
    heads=(Head("BabelStream", r"BabelStream[ \t]*\n+[ \t]*Version: "), Head(_CSV)),
    complaints=("Unrecognized argument",),
    versions="2.0 to 6.0-rc",
    proof=(
        "title or CSV heading once, the kernels it ran in order and complete, the rate equal to"
        " the bytes divided by the minimum time, min <= avg <= max, elements, times and precision"
        " as asked, no validation failed"
    ),
    means=(
        "MB = 10^6, from the fastest repetition but the first, so a peak and not a mean; arrays"
        " must be far larger than the caches; the number of OpenMP threads is not printed; not"
        " comparable with STREAM, which counts other loops"
    ),
    facts=(of_device("babelstream.device"),),
)
