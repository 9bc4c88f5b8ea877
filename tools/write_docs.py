"""Writes the parts of the documentation that follow from the code, each between two marks.

They are the options of each verb, our own benchmarks, and a section for each tool and harness whose
outputs Paribus reads.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from paribus.benchmarks import BENCHMARKS, suite_of
from paribus.cli import VERBS, parser_of
from paribus.core import Benchmark, count
from paribus.readers import settings
from paribus.readers.known import harnesses, readers

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FIXTURES = ROOT / "tests" / "fixtures"
MARK = re.compile(
    r"(<!-- (\w+)(?: ([\w-]+))?: written by \./dev docs -->\n).*?(?=<!-- end -->)", re.S
)
"""What is written: its kind, and of what it is."""

MOST_NAMED = 12
"""Programs that are named one by one where a sentence is about them."""

MAIN = "run"
"""The verb of whose options others have all."""

SHARED = 2
"""Verbs from which on an option with the same meaning is described once for all of them."""


def parser_named(verb: str) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    every = (one.choices for one in parser_of([verb])._actions)
    (verbs,) = (choices for choices in every if isinstance(choices, dict))
    found: argparse.ArgumentParser = verbs[verb]
    return found


def described(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the options of a verb as they are written, each with its help."""
    made = parser._get_formatter()
    found = {}
    for action in parser._actions:
        if not action.option_strings or "--help" in action.option_strings:
            continue
        value = "" if action.nargs == 0 else f" {made._format_args(action, _name(action))}"
        found[f"{action.option_strings[-1]}{value}"] = made._expand_help(action)
    return found


def _name(action: argparse.Action) -> str:
    if action.choices is not None and not action.metavar:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def shared_options() -> dict[str, str]:
    """Return the options that several verbs have with the same meaning."""
    every = [one for verb in VERBS for one in described(parser_named(verb)).items()]
    return {option: help_ for option, help_ in every if every.count((option, help_)) >= SHARED}


def options_of(verb: str) -> str:
    """Return the synopsis and the options of a verb; "several" has those of several verbs."""
    shared = shared_options()
    if verb == "several":
        return _listed(shared)
    parser = parser_named(verb)
    options = described(parser)
    own = {one: text for one, text in options.items() if shared.get(one) != text}
    taken = [f"`{one.partition(' ')[0]}`" for one in options if one not in own]
    if verb != MAIN and {*described(parser_named(MAIN))} <= {*options}:
        main = [f"`{one.partition(' ')[0]}`" for one in described(parser_named(MAIN))]
        taken = [f"all of [{MAIN}](#{MAIN})", *(one for one in taken if one not in main)]
    made = parser._get_formatter()
    needed = [one.option_strings[-1:] for one in parser._actions if one.required]
    words = [one for one in options if [one.partition(" ")[0]] in needed]
    places = [one for one in parser._actions if not one.option_strings]
    words += ["[OPTION ...]"] if options else []
    words += [made._format_args(one, _name(one)) for one in places]
    synopsis = " ".join(["paribus", verb, *words])
    text = f"```\n{synopsis}\n```\n\n{_listed(own)}"
    others = _filled(
        f"- and {', '.join(taken)} ([options of several verbs](#options-of-several-verbs))"
    )
    return text + (others if taken else "")


def _listed(options: Mapping[str, str]) -> str:
    return "".join(_filled(f"- `{one}`: {text}") for one, text in options.items())


def _filled(text: str) -> str:
    """Return a paragraph, or an item of a list, in lines."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 110, subsequent_indent=indent, break_on_hyphens=False) + "\n"


def kernels(_: str) -> str:
    """Return the table of our own benchmarks."""
    ours = [one for one in BENCHMARKS.values() if one.read is None]
    rows = [(f"`{one.name}`", one.layer, one.summary, _metrics(one)) for one in ours]
    head = ("benchmark", "layer", "what it measures", "metrics (unit, better)")
    every = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in every)


def tools(_: str) -> str:
    """Return the sections of docs/tools.md."""
    suites: dict[str, list[Benchmark]] = {}
    for name, one in BENCHMARKS.items():
        if one.read is not None:
            suites.setdefault(suite_of(name), []).append(one)
    parts = []
    for suite, several in suites.items():
        parts += [f"## {suite}\n", _suite(suite, several)]
    parts.append("## Files of harnesses\n")
    parts.append(
        _filled(
            "`paribus compare` also reads what these harnesses wrote"
            " ([compare.md](compare.md#results-of-other-harnesses)). Their files in"
            " `tests/fixtures` have their sources in `tests/fixtures/harnesses.txt`."
        )
    )
    for name, harness in harnesses().items():
        origin = "public text; no run was seen" if harness.from_text else "files of real runs"
        said = {"Versions": f"{harness.versions}; {origin}", "Launches": harness.launches}
        said |= {"What a file must show": harness.proof, **_settings(name)}
        parts += [f"### {name}\n", _items(said)]
    return "\n".join(parts)


def _suite(suite: str, several: list[Benchmark]) -> str:
    """Return the section of the programs of one suite."""
    said: dict[tuple[str, ...], list[Benchmark]] = {}
    for one in several:
        get = re.sub(rf"\b{one.name.rpartition('_')[2]}\b", "NAME", one.get)
        said.setdefault((one.proof, one.means, get), []).append(one)
    parts = []
    most = max(said.values(), key=len)
    for (proof, means, get), alike in said.items():
        names = "the others" if alike is most and len(alike) > MOST_NAMED else _names(alike)
        texts = {
            "Of": names if len(said) > 1 else "",
            "Versions": _versions(alike),
            "What an output must show": proof,
            "What its figures mean": means,
            "Where to get it": alike[0].get if len(alike) == 1 else get,
        }
        parts.append(_items(texts))
    reader = readers()[several[0].name].name
    parts.append(
        _items(_settings(next((n for n in (suite, reader) if n in settings.tables()), "")))
    )
    return "\n".join(one for one in [*parts, _programs(several)] if one)


def _versions(several: Iterable[Benchmark]) -> str:
    """Return which versions were seen of programs, and on which outputs their reader rests."""
    seen: dict[str, list[Benchmark]] = {}
    for one in several:
        seen.setdefault(one.versions, []).append(one)
    most = max(seen.values(), key=len)
    return "; ".join(
        f"{versions}; {_origin(alike)}"
        + (f" ({'the others' if alike is most else _names(alike)})" if len(seen) > 1 else "")
        for versions, alike in seen.items()
    )


def _programs(several: Iterable[Benchmark]) -> str:
    """Return what each program measures, those of a layer with the same metrics together."""
    groups: dict[tuple[str, str, str], list[Benchmark]] = {}
    for one in several:
        parameters = ", ".join(f"`{name}`" for name in one.parameters)
        groups.setdefault((one.layer, _metrics(one), parameters), []).append(one)
    parts = []
    for (layer, metrics, parameters), alike in groups.items():
        parts.append(_filled(f"{layer.capitalize()}: {metrics}. Parameters: {parameters}."))
        names = {_names(alike): "`paribus list NAME` says what each measures"}
        parts.append(_items(names if len(alike) > MOST_NAMED else _summaries(alike)))
    return "\n".join(parts)


def _summaries(alike: Iterable[Benchmark]) -> dict[str, str]:
    """Return what programs measure; those whose texts differ in the operation alone share one."""
    texts: dict[str, list[Benchmark]] = {}
    for one in alike:
        text = re.sub(r"^[\w-]+: ", "", one.summary)
        operation = "|".join(part for part in re.split(r"_(?=persistent)", one.name[4:]))
        named = re.sub(rf"(?i)\b(MPI_|{one.name[:4]})({operation})\b", r"\1NAME", text)
        texts.setdefault(named, []).append(one)
    found = {}
    for text, several in texts.items():
        if len(several) > SHARED:
            found[_names(several)] = text
        else:
            found |= {f"`{one.name}`": re.sub(r"^[\w-]+: ", "", one.summary) for one in several}
    return found


def _metrics(one: Benchmark) -> str:
    return ", ".join(f"`{m.name}` ({m.unit}, {m.better})" for m in one.metrics)


def _names(several: Iterable[Benchmark]) -> str:
    return ", ".join(f"`{one.name}`" for one in several)


def _settings(name: str) -> dict[str, str]:
    """Return how many settings are keys, and how many kinds of lines do not matter, of a reader."""
    every = settings.tables()
    if name not in every:
        return {}
    table = every[name]
    patterns = (table.keys.pattern, table.options.pattern)
    keys = sum(_alternatives(one) for one in patterns if one != settings.NONE)
    silent = sum(_kinds(one) for one in table.nothing)
    lines = f"{count(silent, 'kind')} of lines without effect"
    return {"Settings": f"{count(keys, 'further key')}; {lines}" if keys else lines}


def _kinds(row: settings.Silent) -> int:
    return _alternatives(row.lines)


def _alternatives(pattern: str) -> int:
    """Return how many alternatives a regular expression has, not counting those in groups."""
    plain = re.sub(r"\\.|\[[^\]]*\]", "", pattern)
    while "(" in plain:
        plain = re.sub(r"\([^()]*\)", "", plain)
    return plain.count("|") + 1


def _origin(several: Iterable[Benchmark]) -> str:
    """Return on which outputs the reader of these programs rests.

    A fixture whose name says neither "real" nor "handmade" was captured by us.
    """
    found: dict[str, list[str]] = {"ours": [], "real": [], "hand": []}
    for one in several:
        for path in sorted((FIXTURES / one.name).glob("*.out")):
            if path.stem.startswith(("good-", "other-")):
                kinds = [kind for kind in ("hand", "real") if kind in path.stem]
                found[kinds[0] if kinds else "ours"].append(path.stem)
    forms = sorted({re.sub(r"^good-handmade[-_]?", "", stem) for stem in found["hand"]} - {""})
    said = ["runs of our own"] * bool(found["ours"]) + ["outputs that others published"] * bool(
        found["real"]
    )
    by_hand = f"by hand: {', '.join(forms)}" if said and forms else "by hand"
    return ", ".join([*said, *([by_hand] if found["hand"] else [])])


def _items(texts: Mapping[str, str]) -> str:
    return "".join(_filled(f"- {name}: {text}") for name, text in texts.items() if text)


WRITTEN = {"options": options_of, "kernels": kernels, "tools": tools}


def page(text: str) -> str:
    """Return a page with what stands between its marks as it must be."""
    return MARK.sub(lambda mark: mark[1] + "\n" + WRITTEN[mark[2]](mark[3] or "") + "\n", text)


def pages() -> dict[Path, str]:
    """Return the pages with written parts, as they must be."""
    names = ("commands.md", "benchmarks.md", "tools.md")
    return {DOCS / name: page((DOCS / name).read_text()) for name in names}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
