"""The Python files of the project, parsed once for all tests that look into them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> tuple[list[ast.stmt], list[ast.AST]]:
    """Return the statements of a file, and all its nodes."""
    tree = ast.parse(path.read_text())
    return tree.body, list(ast.walk(tree))
