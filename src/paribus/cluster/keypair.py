"""A key pair of a cluster's own."""

from __future__ import annotations

from pathlib import Path

from paribus.core import MachineError
from paribus.launch.local import capture


def key_pair(path: Path, comment: str) -> str:
    """Return the public key of the pair at `path`, which is made if it is not there.

    Raises MachineError where it cannot be made.
    """
    if not path.exists():
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
        done = capture(words)
        if done.exit_code:
            raise MachineError(
                f"no key can be made: {done.stderr.strip()}",
                place=str(path),
                fix="install openssh-client, and check that the directory can be written to",
            )
    return Path(f"{path}.pub").read_text().strip()
