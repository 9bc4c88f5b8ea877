"""Values as a TOML file has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable


def toml_list(words: Iterable[str]) -> str:
    """Return a list of texts as TOML has it."""
    return f"[{', '.join(map(toml_text, words))}]"


def toml_key(name: str) -> str:
    """Return a key as TOML has it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as TOML has it: as JSON does, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
