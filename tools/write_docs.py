"""Writes the parts of the documentation that follow from the code, each between two marks.

They are the options and exit codes of each verb, our own benchmarks, a section for each tool and
harness whose outputs Paribus reads, the facts of probes/keys.toml, the notices and reason codes of
docs/verdict-schema.json, and what readers are made of.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paribus.audit.classes import factors
from paribus.benchmarks import BENCHMARKS, suite_of
from paribus.cli import VERBS, exits, parser_of
from paribus.core import Benchmark
from paribus.readers.known import harnesses

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FIXTURES = ROOT / "tests" / "fixtures"
MARK = re.compile(r"(<!-- (?!end)(\w+)(?: ([\w-]+))? -->\n).*?(?=<!-- end -->)", re.S)
"""What is written: its kind, and of what it is."""

MOST_NAMED = 12
"""Programs that are named one by one where a sentence is about them."""

MOST_DESCRIBED = 7
"""Programs of a suite that are described one by one; of more `paribus list` does."""

SOME = 6
"""Programs that are named of more than these."""

TIMES = ("ns", "us", "ms", "s")
"""Units of which less is better; of all others more is."""

SHARED = 2
"""Verbs from which on an option with the same meaning is described once for all of them."""


def parser_named(verb: str) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    every = (one.choices for one in parser_of([verb])._actions)
    (verbs,) = (choices for choices in every if isinstance(choices, dict))
    found: argparse.ArgumentParser = verbs[verb]
    return found


def actions_of(verb: str) -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each action of a verb; of a verb without actions its own, as ""."""
    parser = parser_named(verb)
    actions = (one.choices for one in parser._actions if isinstance(one.choices, dict))
    return next(actions, {"": parser})


def described(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the options of a parser as they are written, each with its help."""
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


def shared_options() -> dict[tuple[str, str], list[str]]:
    """Return the options, each with its help, that several verbs have, with these verbs."""
    have: dict[tuple[str, str], list[str]] = {}
    for verb in VERBS:
        parsers = actions_of(verb).values()
        for one in dict.fromkeys(item for each in parsers for item in described(each).items()):
            have.setdefault(one, []).append(verb)
    return {one: verbs for one, verbs in have.items() if len(verbs) >= SHARED}


def options_of(verb: str) -> str:
    """Return the synopsis and the options of a verb; "several" has those of several verbs."""
    shared = shared_options()
    if verb == "several":
        groups: dict[tuple[str, ...], dict[str, str]] = {}
        for (option, help_), verbs in shared.items():
            groups.setdefault(tuple(verbs), {})[option] = help_
        parts = (f"Of `{'`, `'.join(of)}`:\n\n{_listed(those)}" for of, those in groups.items())
        return "\n".join(parts)
    alike: dict[tuple[str, str], list[str]] = {}
    for action, parser in actions_of(verb).items():
        own = {one: text for one, text in described(parser).items() if (one, text) not in shared}
        alike.setdefault((_synopsis(parser), _listed(own)), []).append(action)
    calls = []
    for (words, listed), actions in alike.items():
        called = " ".join(filter(None, ["paribus", verb, "|".join(actions), words]))
        calls.append(f"`{called}`\n" + (f"\n{listed}" if listed else ""))
    return "\n".join(calls)


def _synopsis(parser: argparse.ArgumentParser) -> str:
    """Return what follows the verb, or its action, where it is called."""
    options = described(parser)
    made = parser._get_formatter()
    needed = [one.option_strings[-1:] for one in parser._actions if one.required]
    words = [one for one in options if [one.partition(" ")[0]] in needed]
    words += ["[OPTION ...]"] if options else []
    places = [one for one in parser._actions if not one.option_strings]
    return " ".join([*words, *(made._format_args(one, _name(one)) for one in places)])


def _listed(options: Mapping[str, str]) -> str:
    return "".join(_filled(f"- `{one}`: {text}") for one, text in options.items())


def _filled(text: str) -> str:
    """Return a paragraph, or an item of a list, in lines."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 150, subsequent_indent=indent, break_on_hyphens=False) + "\n"


def kernels(_: str) -> str:
    """Return the list of our own benchmarks, those of a layer with the same metrics together."""
    groups: dict[tuple[str, str], list[Benchmark]] = {}
    for one in BENCHMARKS.values():
        if one.read is None:
            groups.setdefault((one.layer, _metrics(one)), []).append(one)
    parts = []
    for (layer, metrics), alike in groups.items():
        each = "".join(f"  - `{one.name}`: {one.summary}\n" for one in alike)
        parts.append(f"- {_title(layer)}, {metrics}\n{each}")
    return "".join(parts)


def _table(rows: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def tools(_: str) -> str:
    """Return the sections on tools of docs/tools.md."""
    suites: dict[str, list[Benchmark]] = {}
    for name, one in BENCHMARKS.items():
        if one.read is not None:
            suites.setdefault(suite_of(name), []).append(one)
    parts = []
    for suite, several in suites.items():
        parts += [f"### {suite}\n", _suite(several)]
    return "\n".join(parts)


def harness_files(_: str) -> str:
    """Return the sections on harnesses of docs/tools.md."""
    parts = []
    for name, harness in harnesses().items():
        origin = "public text; no run was seen" if harness.from_text else "real runs"
        said = {"Versions": f"{harness.versions}; {origin}", "Launches": harness.launches}
        parts += [f"### {name}\n", _items({**said, "Proof": harness.proof})]
    return "\n".join(parts)


def _suite(several: list[Benchmark]) -> str:
    """Return the section of the programs of one suite."""
    said: dict[tuple[str, str], list[Benchmark]] = {}
    for one in several:
        said.setdefault((one.proof, one.means), []).append(one)
    parts = []
    most = max(said.values(), key=len)
    for (proof, means), alike in said.items():
        names = "the others" if alike is most and len(alike) > MOST_NAMED else _names(alike)
        texts = {"Of": names if len(said) > 1 else "", "Versions": _versions(alike)}
        parts.append(_items({**texts, "Proof": proof, "Figures": means}))
    return "\n".join([*parts, _programs(several)])


def _versions(several: Iterable[Benchmark]) -> str:
    """Return which versions were seen of programs, and on which outputs their reader rests."""
    seen: dict[str, list[Benchmark]] = {}
    for one in several:
        seen.setdefault(one.versions, []).append(one)
    return "; ".join(
        f"{versions}; {_origin(alike)}" + (f" ({_few(alike)})" if len(seen) > 1 else "")
        for versions, alike in seen.items()
    )


def _few(several: list[Benchmark]) -> str:
    """Return the names of programs, of many their number."""
    return _names(several) if len(several) <= MOST_NAMED else f"{len(several)} programs"


def _programs(several: list[Benchmark]) -> str:
    """Return what each program measures, those of a layer with the same metrics together.

    Of a suite of many the names alone.
    """
    groups: dict[tuple[str, str], list[Benchmark]] = {}
    for one in several:
        groups.setdefault((one.layer, _metrics(one)), []).append(one)
    texts = {}
    for (layer, metrics), alike in groups.items():
        summaries = (re.sub(r"^[\w-]+: ", "", one.summary) for one in alike)
        each = (f"`{one.name}`, {text}" for one, text in zip(alike, summaries, strict=True))
        suite = suite_of(alike[0].name)
        more = f" and {len(alike) - SOME} more (`paribus list {suite}`)"
        named = _names(alike) if len(alike) <= MOST_NAMED else _names(alike[:SOME]) + more
        listed = named if len(several) > MOST_DESCRIBED else "; ".join(each)
        texts[f"{_title(layer)}, {metrics}"] = listed
    return _items(texts)


def _metrics(one: Benchmark) -> str:
    """Return the metrics of a benchmark, with the direction where its unit does not say it."""
    usual = {m.name: (m.unit in TIMES) == (m.better == "lower") for m in one.metrics}
    return ", ".join(
        f"`{m.name}` ({m.unit}{'' if usual[m.name] else f', {m.better}'})" for m in one.metrics
    )


def _title(layer: str) -> str:
    return layer.upper() if layer == "gpu" else layer.capitalize()


def _names(several: Iterable[Benchmark]) -> str:
    return ", ".join(f"`{one.name}`" for one in several)


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
    said = ["our runs"] * bool(found["ours"]) + ["public outputs"] * bool(found["real"])
    by_hand = f"by hand: {', '.join(forms)}" if said and forms else "by hand"
    return ", ".join([*said, *([by_hand] if found["hand"] else [])])


def _items(texts: Mapping[str, str]) -> str:
    return "".join(_filled(f"- {name}: {text}") for name, text in texts.items() if text)


def audit_factors(_: str) -> str:
    """Return what each factor explains: whole groups of facts, and parts of others."""
    rows = [("factor", "explains"), ("---",) * 2]
    for name, factor in factors().items():
        every = [one for one in factor.explains if one.endswith(".") and "*" not in one]
        words = [one.strip("*.").partition(".")[0] for one in factor.explains]
        parts = dict.fromkeys(one for one in words if f"{one}." not in every)
        listed = [", ".join(f"`{one}`" for one in every)] if every else []
        listed += [f"some of {', '.join(f'`{one}.`' for one in parts)}"] if parts else []
        rows.append(
            (f"`{name}`", "; ".join(listed) or "nothing: both arms are meant to be identical")
        )
    return _table(rows)


def exit_codes(_: str) -> str:
    """Return what the exit codes mean: those of every verb, and a row for verbs with the same."""
    verbs: dict[tuple[str, ...], list[str]] = {}
    own = (0, 1, 3, 4)
    for verb in VERBS:
        meanings = exits.of(verb)
        verbs.setdefault(tuple(meanings.get(code, "") for code in own), []).append(verb)
    rows = [("verb", *map(str, own)), ("---",) * 5]
    most = max(verbs.values(), key=len)
    for cells, several in verbs.items():
        names = ", ".join(f"`{one}`" for one in several)
        rows.append(("the others" if several is most else names, *cells))
    return f"{_items({str(code): text for code, text in exits.EVERY.items()})}\n{_table(rows)}"


API = {
    "core": ("Metric", "Case", "Sample", "Reading"),
    "readers.reader": ("Reader", "point", "single", "of_device", "of_nodes"),
    "readers.harness": ("Harness", "Measured", "Failed", "name_of", "when"),
    "readers.heads": ("Head",),
    "readers.text": (
        *("once", "found", "first", "columns", "line_of", "line_at"),
        *("refuse", "refuse_said"),
    ),
    "readers.figures": ("figure", "count", "near", "Fields"),
    "readers.units": ("canonical", "better_of", "seconds_of", "size_of", "rate_of"),
    "readers.dates": ("date",),
    "readers.json": ("document", "inner", "amount"),
}
"""What readers are made of, by file."""


def api(_: str) -> str:
    """Return what readers use: how it is called, and the first sentence of its docstring."""
    parts = []
    for file, names in API.items():
        module = importlib.import_module(f"paribus.{file}")
        parts.append(
            f"`paribus.{file}`:\n\n{''.join(map(_called, map(module.__dict__.get, names)))}"
        )
    return "\n".join(parts)


def _called(one: Any) -> str:
    """Return an item on a function or a class."""
    signature = inspect.signature(one)
    words = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    called = str(signature.replace(parameters=words, return_annotation=signature.empty))
    called = re.sub(r"<function (\w+) at \w+>", r"\1", called)
    sentence = re.split(r"(?<=\.)\s", " ".join(str(inspect.getdoc(one)).split()), maxsplit=1)[0]
    return _filled(f"- `{one.__name__}{called}`: {sentence.removeprefix('Return ')}")


VERDICT = json.loads((DOCS / "verdict-schema.json").read_text())
SCHEMA = VERDICT["$defs"]


def keys_of_the_verdict(_: str) -> str:
    """Return the keys of verdict.json that its schema describes."""
    every = VERDICT["properties"].items()
    return _items({f"`{key}`": one["description"] for key, one in every if "description" in one})


def notices(_: str) -> str:
    """Return every notice with its level, what it is about, and what follows."""
    every = SCHEMA["notice"]["properties"]["name"]["oneOf"]
    return _items({f"**{one['const']}** ({one['title']})": one["description"] for one in every})


def reasons(_: str) -> str:
    """Return every reason code, why the verdict is what it is, and its figures."""
    figures = SCHEMA["figures_of_reasons"]["properties"]
    rows = [("code", "why the verdict is what it is", "figures"), ("---",) * 3]
    for one in SCHEMA["finding"]["properties"]["verdict"]["properties"]["code"]["oneOf"]:
        code = one["const"]
        rows.append((f"`{code}`", one["description"], figures[code]["description"]))
    return _table(rows)


HEADS = {"keys": "key", "source": "source", "meaning": "unit, meaning"}


def facts(part: str) -> str:
    """Return the table of a part of probes/keys.toml."""
    every = tomllib.loads((ROOT / "src" / "paribus" / "probes" / "keys.toml").read_text())[part]
    have = [name for name in ("keys", "source", "meaning") if any(name in one for one in every)]
    rows: list[Iterable[str]] = [[HEADS[name] for name in have], ["---"] * len(have)]
    for one in every:
        keys = ", ".join(f"`{key}`" for key in one["keys"])
        rows.append([keys, *(one.get(name, "") for name in have[1:])])
    return _table(rows)


WRITTEN = {
    "facts": facts,
    "api": api,
    "exits": exit_codes,
    "notices": notices,
    "reasons": reasons,
    "schema": keys_of_the_verdict,
    "factors": audit_factors,
    "options": options_of,
    "kernels": kernels,
    "tools": tools,
    "harnesses": harness_files,
}


def page(text: str) -> str:
    """Return a page with what stands between its marks as it must be."""
    return MARK.sub(lambda mark: mark[1] + "\n" + WRITTEN[mark[2]](mark[3] or "") + "\n", text)


def pages() -> dict[Path, str]:
    """Return the pages with written parts, as they must be."""
    names = (
        "commands.md",
        "benchmarks.md",
        "tools.md",
        "audit.md",
        "notices.md",
        "facts.md",
        "report.md",
    )
    paths = [*(DOCS / name for name in names), ROOT / "CONTRIBUTING.md"]
    return {path: page(path.read_text()) for path in paths}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
