"""Machines that hwloc's tests recorded: what the probes read of each, and hwloc's own answer.

Source: https://github.com/open-mpi/hwloc, tests/hwloc/linux, commit
3b37b024aa3fe368dd82008eea7e1ad9dca97d2c, BSD-3-Clause (hwloc/README.md).

python tests/machines/from_hwloc.py FOLDER      # of NAME.tar.bz2 with NAME.console or NAME.xml

writes hwloc/NAME.tar.xz (the files that `from_root` reads, links of PCI devices kept) and
hwloc/expected.json. There, cores and sockets are lists of the hardware threads of each.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.probes.files import from_root

HERE = Path(__file__).parent / "hwloc"
_LINE = re.compile(r"( *)([A-Z][A-Za-z0-9]*)(?:\([^)]*\))? L#\d+(?: \(P#(\d+))?")
_CLASS = re.compile(r"class=([0-9a-f]{4})")


@dataclass
class Thing:
    """An object of hwloc's tree: its kind, its number in the system (or PCI class), its parts."""

    kind: str
    number: str
    parts: list[Thing] = field(default_factory=list)

    def all(self, kind: str) -> Iterator[Thing]:
        """Yield the things of one kind in this one, itself included."""
        if self.kind == kind:
            yield self
        for part in self.parts:
            yield from part.all(kind)

    def threads(self) -> list[int]:
        """Return the hardware threads in it, sorted."""
        return sorted(int(thread.number) for thread in self.all("PU"))


def main() -> None:
    source = Path(sys.argv[1])
    HERE.mkdir(exist_ok=True)
    expected = {}
    for path in sorted(source.glob("*.tar.bz2")):
        name = path.name.removesuffix(".tar.bz2")
        expected[name] = answer(source, name)
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
            (HERE / f"{name}.tar.xz").write_bytes(packed(next(Path(folder).iterdir())))
    lines = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in expected.items())
    (HERE / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def packed(root: Path) -> bytes:
    """Return a tar.xz of the files under `root` that the probes read, the same bytes each time."""
    links = sorted(path for path in root.glob("sys/bus/pci/devices/*") if path.is_symlink())
    texts = from_root(root).files.items()
    found = {(root / name[1:]).resolve() for name, text in texts if isinstance(text, str)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(found):
            member, data = tarfile.TarInfo(str(path.relative_to(root.resolve()))), path.read_bytes()
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for path in links:
            member = tarfile.TarInfo(str(path.relative_to(root)))
            member.type, member.linkname = tarfile.SYMTYPE, str(path.readlink())
            tar.addfile(member)
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def answer(source: Path, name: str) -> dict[str, Any]:
    """Return what hwloc says. `limited`: of a part of the machine only, to which a group is bound;
    `cores` is null where hwloc was asked to leave out what does not add to the structure."""
    console = source / f"{name}.console"
    if console.exists():
        text = console.read_text()
        machine, limited = _of_console(text), "not represented in topology" in text
    else:
        top = ET.parse(source / f"{name}.xml").getroot().find("object")
        machine, limited = _of_xml(top), top.get("cpuset") != top.get("complete_cpuset")
    cores = [core.threads() for core in machine.all("Core")]
    return {
        "threads": machine.threads(),
        "cores": cores or None,
        "sockets": [found for one in machine.all("Package") if (found := one.threads())],
        "numa": sum(1 for _ in machine.all("NUMANode")),
        "pci": dict(sorted(Counter(one.number for one in machine.all("PCIDev")).items())),
        "limited": limited,
    }


def _of_console(text: str) -> Thing:
    above: list[tuple[int, Thing]] = []
    for line in text.split("\n"):
        match = _LINE.match(line)
        if not match:
            if above and line.startswith("depth 0"):
                break
            if not line.startswith("Machine"):
                continue
            above = [(-1, Thing("Machine", "0"))]
            continue
        kind, number = match[2], match[3] or ""
        if kind == "PCI":
            kind, number = "PCIDev", _CLASS.search(line)[1]
        thing, depth = Thing(kind, number), len(match[1])
        while above[-1][0] >= depth:
            above.pop()
        above[-1][1].parts.append(thing)
        above.append((depth, thing))
    return above[0][1]


def _of_xml(element: ET.Element) -> Thing:
    kind, number = element.get("type", ""), element.get("os_index", "")
    if kind == "PCIDev":
        number = element.get("pci_type", "")[:4]
    return Thing(kind, number, [_of_xml(part) for part in element.findall("object")])


if __name__ == "__main__":
    main()
