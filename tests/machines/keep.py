"""Keep the answer of facts.sh on stdin as tests/machines/NAME.tar.gz, scrubbed, with golden facts.

How tcg-guest-numa-* and tcg-guest-moved-* were recorded, from nothing: guest.sh.

python -c 'from paribus.probes import script; print(script())' >facts.sh
sh facts.sh nonce deep | python tests/machines/keep.py NAME
python tests/machines/keep.py            # golden facts of all machines anew, to be reviewed
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from paribus.probes import Archive, facts_of, from_stream
from paribus.probes.files import from_tar, to_tar
from paribus.probes.scrub import scrubbed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def write_golden(name: str, archive: Archive) -> None:
    """Write the facts of `archive` as golden ones."""
    text = json.dumps(dict(facts_of(archive)), indent=1)
    (HERE / f"{name}.json").write_text(text + "\n")


def main() -> None:
    if len(sys.argv) > 1:
        name = sys.argv[1]
        stream = sys.stdin.buffer.read().decode(errors="replace")
        to_tar(scrubbed(from_stream(stream), {socket.gethostname()}), HERE / f"{name}.tar.gz")
        write_golden(name, from_tar(HERE / f"{name}.tar.gz"))
        return
    for path in sorted(HERE.glob("*.tar.gz")):
        write_golden(path.name.removesuffix(".tar.gz"), from_tar(path))
    from handmade import MACHINES

    for name, archive in MACHINES.items():
        write_golden(f"handmade-{name}", archive)


if __name__ == "__main__":
    main()
