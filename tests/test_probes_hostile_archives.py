"""`paribus record --from` of files made to do harm: refused, in bounds, and nothing is written."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.core import UserError
from paribus.probes import Archive, facts_of
from paribus.probes.files import from_root, from_tar, to_tar
from processes import ran

MIB = 1 << 20
SECONDS, MEMORY = 20, 400 * MIB
Members = Callable[[tarfile.TarFile], None]


def add(tar: tarfile.TarFile, name: str, data: bytes = b"", **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for key, value in fields.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(data))


def good(tar: tarfile.TarFile) -> None:
    add(tar, "unknown.json", b"{}")
    add(tar, "links.json", b"{}")
    add(tar, "proc/sys/kernel/osrelease", b"6.1.0\n")


def of_type(kind: bytes, name: str = "proc/cmdline", target: str = "") -> Members:
    return lambda tar: add(tar, name, type=kind, linkname=target)


def many(tar: tarfile.TarFile) -> None:
    for number in range(30_000):
        add(tar, f"f{number % 7}", type=tarfile.DIRTYPE if number % 2 else tarfile.REGTYPE)


def long_pax(tar: tarfile.TarFile) -> None:
    add(tar, "proc/cmdline", b"x", pax_headers={"comment": "a" * (100 * MIB)})


def blocks(*parts: bytes) -> bytes:
    return b"".join(part.ljust(-(-len(part) // 512) * 512, b"\0") for part in parts)


def header(name: str, size: int, kind: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1)


def tar_of(*some: Members) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for one in some:
            one(tar)
    return buffer.getvalue()


def endless_headers() -> bytes:
    """Return long names that each name the next: tarfile takes them one inside the other."""
    return b"".join(blocks(header("x", 2, b"L"), b"n\0") for _ in range(5000))


def negative_size() -> bytes:
    """Return a member that ends before it begins (base-256, as GNU tar writes large numbers)."""
    raw = bytearray(header("back", 0, tarfile.REGTYPE))
    raw[124:136] = b"\xff" * 10 + b"\xfc\x00"
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def sparse(real: int, count: int = 1) -> bytes:
    headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole"}
    headers["GNU.sparse.realsize"] = str(real)

    def hole(tar: tarfile.TarFile) -> None:
        add(tar, "s", b"0\n".ljust(512, b"\0"), pax_headers=headers)

    return tar_of(good, *[hole] * count)


def whole(*some: Members) -> Callable[[], bytes]:
    """Return what makes a recording that has these members too."""
    return lambda: packed(tar_of(good, *some))


def of(name: str, size: int) -> Members:
    return lambda tar: add(tar, name, bytes(size))


def claims(kind: bytes, data: bytes) -> Callable[[], bytes]:
    """Return what makes a header of this kind that claims 8 GiB."""
    return lambda: packed(header("x", 0o77777777777, kind) + data)


def table(text: bytes) -> Callable[[], bytes]:
    return lambda: packed(tar_of(lambda tar: add(tar, "unknown.json", text)))


LARGE, NONE = "larger than facts are", "not an archive of facts"
PLAIN = "'proc/cmdline' is no plain file"
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a link out": (
        whole(of_type(tarfile.SYMTYPE, target="/etc/shadow")),
        PLAIN,
    ),
    "a hard link": (whole(of_type(tarfile.LNKTYPE, target="unknown.json")), PLAIN),
    "a device": (whole(of_type(tarfile.CHRTYPE)), PLAIN),
    "a disk": (whole(of_type(tarfile.BLKTYPE)), PLAIN),
    "a fifo": (whole(of_type(tarfile.FIFOTYPE)), PLAIN),
    "an absolute name": (whole(of("/tmp/x", 1)), "'/tmp/x' is no name below it"),
    "a name above": (whole(of("a/../../x", 1)), "is no name below it"),
    "many members": (whole(many), LARGE),
    "a huge member": (whole(of("x", 20 * MIB)), LARGE),
    "a ratio of 1000": (lambda: gzip.compress(tar_of(good, of("x", 400 * MIB))), LARGE),
    "zeros after the end": (lambda: gzip.compress(tar_of(good) + bytes(400 * MIB)), LARGE),
    "a pax header of 100 MiB": (whole(long_pax), LARGE),
    "a pax header that claims 8 GiB": (claims(b"x", b"12 path=abc\n"), NONE),
    "a long name that claims 8 GiB": (claims(b"L", b"abc"), NONE),
    "long names in each other": (lambda: packed(endless_headers()), "headers without end"),
    "a size below zero": (lambda: packed(negative_size() * 9), NONE),
    "a hole of 1 TiB": (lambda: packed(sparse(1 << 40)), LARGE),
    "a hole of 15 MiB in many": (lambda: packed(sparse(15 * MIB, 9)), LARGE),
    "many empty parts": (lambda: gzip.compress(b"") * 400_000, "several files in one"),
    "a gzip file in parts": (lambda: packed(tar_of(good)) * 2, "several files in one"),
    "half of it": (lambda: packed(tar_of(good))[:-20], "cut off"),
    "no gzip": (lambda: tar_of(good), "not gzip"),
    "nothing": (lambda: b"", "cut off"),
    "no tar": (lambda: packed(b"hello" * 999), NONE),
    "a table without end": (table(b"[" * MIB), NONE),
    "a table of tables": (table(b'{"a": {}}'), NONE),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_made_to_do_harm_is_refused_within_bounds(kind: str, tmp_path: Path) -> None:
    made, cause = HOSTILE[kind]
    path = tmp_path / "hostile.tar.gz"
    path.write_bytes(made())
    folder = tmp_path / "empty"
    folder.mkdir()
    before = sorted(tmp_path.rglob("*"))

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = ran(
        [sys.executable, "-m", "paribus", "record", "--from", str(path)],
        cwd=folder,
        timeout=120,
        preexec_fn=bounded,
        code=2,
    )
    assert cause in done.stderr
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 1000
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero")):
        begin = time.monotonic()
        with pytest.raises(UserError, match="not a file"):
            from_tar(path)
        assert time.monotonic() - begin < 5


def test_a_recording_that_was_packed_again_is_read(tmp_path: Path) -> None:
    """By tar(1), with names below "./" and directories; long names have headers of their own."""
    long = "/sys/" + "/".join(["a" * 60] * 4)
    archive = Archive({"/proc/sys/kernel/osrelease": "6.1.0", long: "1"})
    to_tar(archive, tmp_path / "made.tar.gz")
    (tmp_path / "folder").mkdir()
    for command in (["tar", "xzf", "../made.tar.gz"], ["tar", "czf", "../again.tar.gz", "."]):
        subprocess.run(command, cwd=tmp_path / "folder", check=True)
    whole = from_tar(tmp_path / "made.tar.gz")
    assert whole.read(long) == "1"
    assert from_tar(tmp_path / "again.tar.gz") == whole == from_root(tmp_path / "folder")
    assert facts_of(whole)["os.release"] == "6.1.0"


@pytest.mark.slow
def test_a_recording_of_the_most_that_facts_are_is_read_in_seconds(tmp_path: Path) -> None:
    files = {f"/sys/{number:05}/" + "n" * 150: "x" * 800 for number in range(19_990)}
    to_tar(Archive(files), tmp_path / "full.tar.gz")
    begin = time.monotonic()
    facts_of(from_tar(tmp_path / "full.tar.gz"))
    assert time.monotonic() - begin < SECONDS


def test_links_in_an_unpacked_recording_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("hunter2")
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    for name in ("unknown.json", "links.json"):
        (root / name).write_text("{}")
    (root / "proc" / "cmdline").symlink_to("../../private")
    (root / "proc" / "zero").symlink_to("/dev/zero")
    assert "hunter2" not in json.dumps(facts_of(from_root(root)))
    with (root / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="larger than"):
        from_root(root)
