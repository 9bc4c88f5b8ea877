"""What guests boot: kernel and first file system, of packages that are unpacked, not installed.

Their root is this machine's, read-only below a file system in memory, so that they have its MPI and
its compilers without an image.
"""

from __future__ import annotations

import hashlib
import lzma
import shutil
import subprocess
from pathlib import Path

from paribus.border import cache_directory, draft_of

FOLDER = Path(__file__).parent

ROOT_MODULES = ("virtio_pci", "virtio_net", "9pnet_virtio", "9p", "overlay")
"""Modules without which a guest has no root and no network."""

MODULES = ("rdma_rxe", "ib_uverbs", "rdma_ucm", "crc32_generic", "sch_netem", "sch_tbf")
"""Modules for tests: Soft-RoCE (which needs the checksum, but does not say so), and slow links."""

KERNEL, BUSYBOX = "linux-image-amd64", "busybox-static"
"""Packages of Debian. The kernel of clouds has neither 9p nor Soft-RoCE."""

_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
"""Where the header of a bzImage says how long it is itself, and where the kernel is: Documentation/
arch/x86/boot.rst of Linux."""


class MissingError(Exception):
    """What guests need and this machine lacks: the reason of a skipped test."""


def image() -> tuple[Path, Path]:
    """Return kernel and initial file system, made now if the cache has none.

    Raises MissingError for a program or a package that is not there.
    """
    target = cache_directory() / "guests" / _version()
    if not target.is_dir():
        for tool in ("apt-get", "dpkg-deb", "modprobe", "depmod"):
            if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin"):
                raise MissingError(f"no {tool}: guests boot a kernel of Debian's packages")
        with draft_of(target) as (made, work):
            _make(made, work)
    (kernel,) = target.glob("vmlinux-*")
    return kernel, target / "initrd"


def _version() -> str:
    """Return the name of the image: it changes with what is in it."""
    parts = (Path(__file__).read_bytes(), (FOLDER / "init.sh").read_bytes())
    return "image-" + hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _make(made: Path, work: Path) -> None:
    """Make the image in the directory `made`."""
    depends = _output("apt-cache", "depends", KERNEL, "--important", cwd=work).split()
    names = [word for word in depends if word.startswith("linux-image-")]
    if len(names) < 2:
        raise MissingError(f"no package {KERNEL}: guests boot a kernel of Debian")
    for package in (names[1], BUSYBOX):
        _output("apt-get", "download", "-qq", package, cwd=work)
    for archive in work.glob("*.deb"):
        _output("dpkg-deb", "-x", str(archive), "unpacked", cwd=work)
    (vmlinuz,) = (work / "unpacked/boot").glob("vmlinuz-*")
    version = vmlinuz.name.removeprefix("vmlinuz-")
    made.mkdir()
    (made / f"vmlinux-{version}").write_bytes(_uncompressed(vmlinuz.read_bytes()))
    tree = work / "tree"
    for folder in ("bin", "modules", "proc", "sys", "dev", "root"):
        (tree / folder).mkdir(parents=True)
    shutil.copy2(work / "unpacked/bin/busybox", tree / "bin")
    shutil.copy2(FOLDER / "init.sh", tree / "init")
    (tree / "init").chmod(0o755)
    _output("depmod", "-b", "unpacked", version, cwd=work)
    ordered: dict[str, None] = {}
    for name in (*ROOT_MODULES, *MODULES):
        asked = ("modprobe", "-d", "unpacked", "-S", version, "--show-depends", name)
        lines = _output(*asked, cwd=work).splitlines()
        ordered.update(dict.fromkeys(line.split()[1] for line in lines if "insmod" in line))
        if name == ROOT_MODULES[-1]:
            (tree / "modules/first").write_text("".join(f"{Path(one).name}\n" for one in ordered))
    (tree / "modules/all").write_text("".join(f"{Path(one).name}\n" for one in ordered))
    for path in ordered:
        shutil.copy2(work / path, tree / "modules")
    pack = "find . | ../unpacked/bin/busybox cpio -o -H newc >../made/initrd 2>/dev/null"
    _output("sh", "-c", pack, cwd=tree)


def _uncompressed(image: bytes) -> bytes:
    """Return the kernel that a bzImage holds: to unpack it takes an emulated processor seconds."""
    begin = (image[_SETUP_SECTORS] + 1) * 512
    begin += int.from_bytes(image[_PAYLOAD : _PAYLOAD + 4], "little")
    return lzma.LZMADecompressor().decompress(image[begin:])


def _output(*argv: str, cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise MissingError(f"`{' '.join(argv)}` failed: {said[0] if said else done.returncode}")
    return done.stdout
