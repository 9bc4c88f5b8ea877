"""Programs whose stderr belongs to what is read: there some tools say what failed or what they use.

A launch keeps stdout and stderr apart, and only stdout is read.
"""

from __future__ import annotations

_SCRIPT = (
    'command -v "$0" >/dev/null || { echo "$0: not found" >&2; exit 127; }; exec "$0" "$@" 2>&1'
)


def with_stderr(program: str, *arguments: str) -> tuple[str, ...]:
    """Return the argv of `program` with its stderr in its stdout; a missing one says so itself."""
    return ("/bin/sh", "-c", _SCRIPT, program, *arguments)
