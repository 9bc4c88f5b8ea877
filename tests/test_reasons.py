"""Reports are data with codes; words/ makes the sentences, and nothing reads them."""

from __future__ import annotations

import ast
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paribus.core import NoticeName, ParseError, Reason
from paribus.logs.imported import Answers, judge_table
from paribus.logs.tables.files import read_tables
from paribus.readers.known import readers
from paribus.words import notices
from parsed import parsed

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "paribus"

# --- nothing is decided on a sentence ----------------------------------------------------------

ROOMS = ("judge", "logs", "paper", "report", "audit", "stats", "words", "lenses")
OUTPUTS = {"tables", "harnesses", "labels.py", "divide.py", "hints.py"}
OUTPUTS |= {"launches.py", "ranks.py", "verb.py", "changes_verb.py"}
"""What reads texts of other tools: names in `logs`."""

WATCHED = [
    *sorted(
        path
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if not (room == "logs" and OUTPUTS & {*path.relative_to(PACKAGE).parts})
    ),
    *(PACKAGE / name for name in ("studyfile/load.py", "launch/launching.py", "launch/pilot.py")),
]
CUTS = {
    *("startswith", "endswith", "replace", "partition", "rpartition", "removeprefix"),
    *("removesuffix", "split", "rsplit", "find", "rfind", "index", "rindex", "splitlines"),
    *("strip", "lstrip", "rstrip", "translate"),
}
SENTENCES = {"reason", "why", "text", "fix", "cause", "sentence", "design", "flag", "error"}


def cuts(source: str) -> set[str]:
    """Return the expressions that look into a text or cut it, as they are written.

    Those are methods of texts, regular expressions, a literal looked for in something, and slices
    of what is called as sentences are. To strip white space decides nothing.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, ast.unparse(node.func.value)
            if of == "re" or (name in CUTS and (node.args or node.keywords or "strip" not in name)):
                found.add(ast.unparse(node))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            if _last(node.value) in SENTENCES:
                found.add(ast.unparse(node))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
                if isinstance(op, ast.In | ast.NotIn) and (
                    _last(right) in SENTENCES
                    or (
                        isinstance(left, ast.Constant | ast.JoinedStr)
                        and not isinstance(right, ast.Tuple | ast.List | ast.Set)
                    )
                ):
                    found.add(ast.unparse(node))
    return found


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


ALLOWED = {
    # What the user wrote after --fail-on.
    ("report/gate.py", "text.partition('@')"),
    ("report/gate.py", "rest.partition(':')"),
    ("report/gate.py", "sizes.partition('-')"),
    ("report/gate.py", "format_bytes(int(one)).split()"),
    # A variable that a command sets.
    ("launch/launching.py", "'NCCL_DEBUG' in word"),
    # Keys of the settings of an arm.
    ("logs/pooled.py", "key.startswith(LOCAL)"),
    # Names of files and folders, and what a file holds before a tool is recognised in it.
    # Reasons that quote other numbers stand together; none is kept from the reader.
    (
        "logs/logged.py",
        """re.sub("'.*'", lambda quoted: re.sub('\\\\d+', '', quoted[0]), detail)""",
    ),
    ("logs/logged.py", "re.sub('\\\\d+', '', quoted[0])"),
    ("logs/logs.py", "f'{folder}/{name}' not in others"),
    ("logs/logs.py", "f'{folder}/{n}' not in others"),
    ("logs/logs.py", "name.endswith('.out')"),
    ("logs/logs.py", "logs.get(n, '').startswith(arm)"),
    ("logs/logs.py", "re.match('([0-9]+)(?:-[0-9]+)?-?(.*)', one.name)"),
    ("logs/recordings.py", "one.partition('=')"),
    ("logs/pairing.py", "log.arm.rpartition('/')"),
    ("logs/pairing.py", "log.name.rpartition('#')"),
    ("logs/pairing.py", "name.endswith(Path(log.path).name)"),
    ("logs/pairing.py", "re.escape(word)"),
    ("logs/pairing.py", "re.sub(re.escape(word), '', name, flags=re.I)"),
    ("report/advice.py", "directory.rstrip('/')"),
    ("report/bundle.py", "partial.replace(path)"),
    ("audit/accepted.py", "draft.replace(directory / NAME)"),
    ("logs/pairing.py", "log.name.removeprefix(_file_name(log))"),
    # The name of a lens.
    ("report/short.py", "'ranges' not in judgement.lenses"),
    # Escapes of Markdown and LaTeX, and the size of a picture.
    ("report/figures.py", 're.compile(\'width="([0-9.]+)" height="([0-9.]+)"\')'),
    ("paper/latex.py", "re.compile(\"(?<=-)(?=-)|(?<=,)(?=,)|(?<=')(?=')\")"),
    ("paper/latex.py", "_LIGATURE.split(clean(text))"),
    ("paper/markdown.py", "re.compile('[\\\\\\\\`*_\\\\[~$#]')"),
    ("paper/markdown.py", "re.compile(':(?=//)|(?<=www)\\\\.', re.IGNORECASE)"),
    # Outputs of tools.
    (
        "logs/log.py",
        "re.compile('\\\\d++\\\\.\\\\d++|(?<![:\\\\d])(?!00:)\\\\d\\\\d:\\\\d\\\\d:\\\\d\\\\d(?![:\\\\d])')",
    ),
    ("logs/copies.py", "text.split()"),
    ("logs/copies.py", "':' not in word"),
    ("logs/copies.py", "number.replace('.', '')"),
    ("logs/recognise.py", "one.text[one.at:one.at + MOST_RARE]"),
    ("logs/recognise.py", "one.text[:one.at]"),
    ("logs/recognise.py", "one.text.split('\\n')"),
    ("logs/reading.py", "re.findall(b'\\\\0+', raw)"),
    ("logs/reading.py", "text[:HEAD]"),
    ("logs/reading.py", "text[:1]"),
    ("logs/recognise.py", "'\"' in mark"),
    ("logs/reading.py", "text.find(phrase)"),
    ("logs/reading.py", "text.endswith('}')"),
    ("logs/reading.py", "re.search('\\\\{.*', text, re.S)"),
    ("logs/reading.py", "packed.startswith(GZIP)"),
    ("logs/reading.py", "raw.startswith(GZIP)"),
    ("logs/repeats.py", "before.startswith('-')"),
    ("logs/repeats.py", "log.labels.get(form, '').split()"),
    ("logs/recognise.py", "text[:HEAD]"),
    # Keys of facts and parameters, names of tools, cases and factors.
    ("studyfile/load.py", "'name' in place.table"),
    ("lenses/published/beside.py", "one.casefold().replace('_', ' ')"),
    ("audit/audit.py", "key.startswith(OF_RANKS)"),
    ("audit/classes.py", "key.startswith(BELOW)"),
    ("audit/classes.py", "key.removeprefix(BELOW)"),
    ("audit/gate.py", "name.rpartition('_')"),
    ("audit/gate.py", "name.rpartition('_')[2].replace('ghz', 'GHz')"),
    ("logs/comparable.py", "key.rpartition('.')"),
    ("logs/comparable.py", "key.rpartition('.')[2].removesuffix('s')"),
    ("logs/comparable.py", "key.startswith(WORK)"),
    ("logs/comparable.py", "name.removesuffix('s')"),
    ("logs/comparable.py", "name.replace('_', ' ')"),
    ("logs/comparable.py", "telling.rpartition('.')"),
    ("logs/settings.py", "key.startswith(SCRIPT)"),
    ("logs/settings.py", "key.endswith('s')"),
    ("logs/settings.py", "(name + text).replace('\"', '')"),
    ("logs/settings.py", "key.partition('.')"),
    ("logs/settings.py", "key.split('.', 2)"),
    ("logs/settings.py", "key.startswith(PRINTED)"),
    ("logs/settings.py", "key.startswith(WORK)"),
    ("logs/settings.py", "name.replace('_', ' ')"),
    ("logs/settings.py", "name.replace('_', ' ').replace('-', ' ')"),
    ("logs/settings.py", "name.replace('_', ' ').replace('-', ' ').lower().split()"),
    ("logs/words.py", "name.replace(' ', '_')"),
    ("logs/logged.py", "kind.tool.partition('_')"),
    ("logs/logged.py", "key.rpartition('.')"),
    ("lenses/profiles/prediction.py", "profile.command.split()"),
    ("judge/evidence.py", "key.removeprefix(PROBE)"),
    ("judge/evidence.py", "one.rpartition(' ')"),
    ("judge/evidence.py", "key.startswith(PROBE)"),
    ("report/html.py", "s.decides.rstrip('s')"),
    ("report/export.py", "key.removesuffix('s')"),
    ("report/markup.py", "k.replace('_', '-')"),
    ("report/figures.py", "re.sub('[^A-Za-z0-9]+', '-', label)"),
    ("report/figures.py", "re.sub('[^A-Za-z0-9]+', '-', label).strip('-')"),
    ("stats/probes.py", "key.rpartition('.')"),
    ("logs/notices.py", "', ' in one"),
    # Values: of facts, of options, and the digits of printed figures.
    ("audit/accepted.py", "key.endswith('.')"),
    ("audit/accepted.py", "option.partition('=')"),
    ("audit/values.py", "text.startswith('{\"unknown\"')"),
    ("audit/audit.py", "text[:MOST_SHOWN - 4]"),
    ("audit/audit.py", "value.split(':')"),
    ("logs/copies.py", "f'{abs(value):.12f}'.rstrip('0')"),
    ("logs/copies.py", "word.partition('.')"),
    ("logs/copies.py", "word.replace('.', '')"),
    ("logs/copies.py", "word.replace('.', '').lstrip('0')"),
    ("studyfile/load.py", "re.compile('[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}')"),
    (
        "studyfile/load.py",
        (
            "re.compile('passw|passphrase|secret|credential|api_?key|(^|_)(pass|pwd|auth|jwt|token"
            "|key|cred|cookie)s?(_|$)', re.IGNORECASE)"
        ),
    ),
    # What a medium asks of any text: escapes, line feeds, spaces that do not break, length.
    ("report/html.py", "text.split('\\n\\n')"),
    ("report/bundle.py", "kept.endswith(END)"),
    (
        "report/bundle.py",
        "vl_convert.javascript_bundle(SNIPPET).replace('</script', '<\\\\/script')",
    ),
    ("report/figures.py", "re.compile('<svg[^>]*>')"),
    ("report/html.py", "specs.replace(sign, f'\\\\u{ord(sign):04x}')"),
    ("report/markup.py", "re.sub('`([^`]+)`', '<code>\\\\1</code>', escape(text))"),
    ("report/markup.py", "re.sub('(?<=\\\\d) (?=%)', '\\xa0', shown)"),
    ("report/printing.py", "'\\n'.join(lines).replace('\\xa0', ' ')"),
    ("report/printing.py", "re.sub('(?<=\\\\d) (?=[A-Za-z%])', '\\xa0', first + clean(text))"),
    ("lenses/profiles/study.py", "json.dumps(value).replace('\\x7f', '\\\\u007f')"),
    ("lenses/energy.py", "key.startswith(ENERGY)"),
    ("lenses/scaling/study.py", "'ranks' in place.table"),
    ("report/printing.py", "console.encoding.startswith('utf')"),
    ("report/unequal.py", "re.sub('\\\\b([0-9a-f]{12})[0-9a-f]{20,}\\\\b', '\\\\1', text)"),
    ("report/wording.py", "shown.replace('\\r\\n', ' ')"),
    ("report/wording.py", "shown.replace('\\r\\n', ' ').replace('\\n', ' ')"),
    (
        "report/wording.py",
        "shown.replace('\\r\\n', ' ').replace('\\n', ' ').replace('\\t', ' ')",
    ),
    ("report/wording.py", "text[:LONGEST]"),
    # Places in sequences and keys of mappings, which are written as those of texts are.
    ("audit/audit.py", "KINDS.index(one.kind)"),
    ("audit/gate.py", "'rank.cpu_s' not in launch"),
    ("lenses/published/reading.py", "'benchmarks' in found"),
    ("lenses/published/reading.py", "'question' in found"),
    ("judge/headlines.py", "ranked.index(pair)"),
    ("report/axes.py", "'bytes' in everywhere"),
    ("report/ranking.py", "'low' not in figures"),
    ("report/tables.py", "lookup.benchmarks(judgement).index(benchmark)"),
    ("report/terminal.py", "'reference' in names"),
    ("report/unequal.py", "kinds.index(d.kind)"),
    (
        "stats/estimate.py",
        "sums.partition(sorted({*middle, max(k, 0), m - 1 - max(k, 0)}), axis=-1)",
    ),
    ("stats/family.py", "np.partition(smallest, place)"),
    ("stats/order.py", "differences.partition(sorted({k, last // 2, last - last // 2, last - k}))"),
    # The name of an arm, and words that it may be.
    ("words/lists.py", "' ' in name"),
    ("words/lists.py", "_ENGLISH.split()"),
    ("words/lists.py", "_VERDICTS.split()"),
    ("words/units.py", "'launches' not in figures"),
    ("words/verdicts.py", "'needed' in figures"),
    ("studyfile/load.py", "'file' in place.table"),
    ("studyfile/load.py", "'ranks_per_host' in place.table"),
    # Keys and values of a study file.
    ("studyfile/load.py", "'/' in image"),
    ("studyfile/load.py", "'/' in wrap[0]"),
    ("studyfile/load.py", "'://' in image"),
    ("studyfile/load.py", "'argv' in one.parameters"),
    ("studyfile/load.py", "'OMP_NUM_THREADS' in arm.env"),
    ("studyfile/load.py", "'bind_mpi' in place.table"),
    ("studyfile/load.py", "'threads' in one.parameters"),
    ("studyfile/load.py", "'container' not in arm.table"),
    ("studyfile/load.py", "'blocks' in top.table.get('plan', {})"),
    ("studyfile/load.py", "'launches' in top.table.get('plan', {})"),
    ("studyfile/load.py", "'wrap_around' in place.table"),
    ("studyfile/load.py", "'{' in directory"),
    ("studyfile/load.py", "image.partition('://')"),
    ("studyfile/load.py", "wrap[0].startswith(BUILD)"),
    # Names of figures and kinds, marks of pictures, lines of a document.
    ("lenses/profiles/lens.py", "kinds.NAMES[Kind(one.benchmark)].partition(' (')"),
    ("lenses/profiles/study.py", "re.sub('[^A-Za-z0-9._-]+', '-', profile.name)"),
    ("paper/article.py", "MAIN.replace('TITLE', escape(title or judgement.study.question))"),
    ("paper/article.py", "text.replace(name, f'{name}~\\\\cite{{{key}}}', 1)"),
    ("paper/latex.py", "HEADER.replace(' and', ', \\\\usepackage{graphicx} and')"),
    ("report/figures.py", "'subtitle' not in title"),
    ("report/figures.py", "_vega(_sized(part, '', each)).replace('clip', f'part{number}-clip')"),
    ("report/figures.py", "name.startswith(f'{start}-')"),
    ("report/unequal.py", "key.partition('.')"),
    ("report/unequal.py", "order.index(d.kind)"),
}
"""Where a text is looked into that is no sentence of ours, by what it is."""


@pytest.mark.parametrize(
    "line",
    [
        "part.headlines[0].verdict.reason.endswith(IN_TURNS)",
        "'outlying:' in point.flag",
        "'time zone' in says",
        "any(b in notice.text for b in labels)",
        "why.startswith('is ')",
        "why[5:]",
        "reason.partition(': ')",
        "text.replace(table, logs)",
        "re.search('two outputs', str(problem))",
        "label.split(maxsplit=1)[0].rstrip(':,')",
    ],
)
def test_a_decision_on_a_sentence_is_seen(line: str) -> None:
    assert cuts(line)


def test_nothing_is_decided_on_a_sentence() -> None:
    """Change a comma in a message, and nothing else changes."""
    found = {
        (str(path.relative_to(PACKAGE)), one) for path in WATCHED for one in cuts(path.read_text())
    }
    assert found == ALLOWED


# --- codes --------------------------------------------------------------------------------------


def consts(of: dict[str, Any]) -> list[str]:
    return [one["const"] for one in of["oneOf"] if len(one["description"]) > 20]


def test_every_code_and_notice_is_described_in_the_schema() -> None:
    """And docs/notices.md is written from it (tools/write_docs.py)."""
    schema = json.loads((ROOT / "docs" / "verdict-schema.json").read_text())["$defs"]
    verdict = schema["finding"]["properties"]["verdict"]
    assert consts(verdict["properties"]["code"]) == [code.value for code in Reason]
    assert {"code", "reason", "figures"} <= {*verdict["required"]}
    notice = schema["notice"]["properties"]["name"]
    assert consts(notice) == [name.value for name in NoticeName]
    assert {one["title"] for one in notice["oneOf"]} == {"warning", "note", "note, warning"}
    for kind, of in (("reasons", verdict["properties"]["code"]), ("notices", notice)):
        figures = schema[f"figures_of_{kind}"]["properties"]
        assert sorted(figures) == sorted(consts(of))
        assert all(len(one["description"]) > 2 for one in figures.values())


def test_every_notice_has_sentences_in_one_file() -> None:
    for one in notices.ELSEWHERE:
        assert {*notices.TEXTS}.isdisjoint(import_module(one).TEXTS)
    assert all(notices.held_by(name).TEXTS[name] for name in NoticeName)


MAKERS = [p for p in WATCHED if "Notice(" in p.read_text() and p.parent.name != "words"]


def sentences(source: str) -> list[str]:
    """Return the texts of more than three words, docstrings and errors aside."""
    tree = ast.parse(source)
    aside = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for inner in ast.walk(node)
    }
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in aside and len(node.value.split()) > 3
    ]


def test_a_sentence_in_code_is_seen() -> None:
    assert sentences('"""A docstring of some words."""\nf(f"{n} of the launches failed here")')
    assert not sentences('"""A docstring of some words."""\nf("one arm only")')


def test_a_notice_is_made_of_a_name_and_figures() -> None:
    """What it says is made in words/."""
    assert len(MAKERS) >= 6
    for path in MAKERS:
        for node in parsed(path)[1]:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Notice":
                name = ast.unparse(node.args[0])
                assert name == "name" or name in {f"NoticeName.{n.name}" for n in NoticeName}
                assert {k.arg for k in node.keywords} <= {"figures"}
        if path.name != "beside.py":  # it says what published figures alone are
            assert sentences(path.read_text()) == []


@pytest.mark.parametrize("tool", ["osu_latency", "imb_pingpong", "lammps"])
def test_an_output_of_ranks_that_each_started_alone_is_known_as_one(tool: str) -> None:
    text = next((ROOT / "tests" / "fixtures" / tool).glob("good-*.out")).read_text()
    with pytest.raises(ParseError) as refused:
        readers()[tool].read(text + text)
    assert refused.value.alone
    with pytest.raises(ParseError) as refused:
        readers()[tool].read(text[: len(text) // 2])
    assert not refused.value.alone


def test_what_a_table_cannot_show_is_said(tmp_path: Path) -> None:
    rows = [f"{arm},latency,latency,{block},{1 + block % 3}" for block in range(9) for arm in "ab"]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["arm,benchmark,metric,block,value", *rows]) + "\n")
    answers = Answers(unit="us", better="lower")
    found = judge_table(read_tables([path]), answers)
    (notice,) = (n for n in found.notices if n.name == "not checked")
    assert notice.figures == {"unknown": ["launches that failed", "the state probe"]}
