"""Who else could change what Paribus executes: every way in is found, and nothing else refused."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.border import find_program, make_directory, search_path, trust, why_not
from paribus.core import Command
from paribus.launch.local import LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi
from processes import executable, ran
from stations import launched

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root can give a file away")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a directory in /tmp, as a user has it: sticky above, ours below."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield Path(made)


def test_what_is_ours_alone_is_trusted_below_a_sticky_directory(folder: Path) -> None:
    assert os.lstat("/tmp").st_mode & stat.S_ISVTX
    (folder / "file").write_text("")
    for path in (folder, folder / "file", folder / "not" / "there", Path("/"), Path("/usr/bin")):
        assert why_not(path) == ""


def test_a_directory_that_all_may_write_to_is_not_itself_trusted() -> None:
    assert why_not(Path("/tmp")) == "everyone may write to /tmp"


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_one_that_is_open_above_is_named(folder: Path, mode: int) -> None:
    inner = folder / "open" / "mine"
    inner.mkdir(parents=True, mode=0o700)
    (inner / "file").write_text("")
    (folder / "open").chmod(mode)
    said = f"everyone may write to {folder}/open"
    assert why_not(inner / "file") == why_not(inner) == why_not(folder / "open" / "none") == said
    (folder / "open").chmod(mode | stat.S_ISVTX)
    assert why_not(inner / "file") == ""
    (inner / "file").chmod(0o666)
    assert why_not(inner / "file") == f"everyone may write to {inner}/file"


@needs_root
def test_what_belongs_to_another_is_not_trusted(folder: Path) -> None:
    (folder / "theirs").mkdir()
    (folder / "theirs" / "file").write_text("")
    os.chown(folder / "theirs", 65534, 65534)
    assert why_not(folder / "theirs" / "file") == f"{folder}/theirs belongs to nobody"
    assert why_not(folder / "theirs" / "none") == f"{folder}/theirs belongs to nobody"
    os.chown(folder / "theirs", 0, 0)
    os.chown(folder / "theirs" / "file", 4_000_000, 0)
    assert why_not(folder / "theirs" / "file") == f"{folder}/theirs/file belongs to user 4000000"


@needs_root
def test_a_link_counts_by_its_owner_and_by_all_above_its_target(folder: Path) -> None:
    (folder / "shared").mkdir()
    (folder / "shared" / "file").write_text("")
    (folder / "here").symlink_to("shared/../shared/file")
    assert why_not(folder / "here") == ""
    (folder / "shared").chmod(0o777)
    assert why_not(folder / "here") == f"everyone may write to {folder}/shared"
    (folder / "shared").chmod(0o755)
    os.chown(folder / "here", 65534, 65534, follow_symlinks=False)
    assert why_not(folder / "here") == f"{folder}/here belongs to nobody"
    assert why_not(folder / "here" / "below") == f"{folder}/here belongs to nobody"


def test_links_before_dots_are_followed_as_the_kernel_does(folder: Path) -> None:
    (folder / "open" / "inner").mkdir(parents=True)
    (folder / "open" / "file").write_text("")
    (folder / "file").write_text("")
    (folder / "link").symlink_to("open/inner")
    (folder / "open").chmod(0o777)
    assert why_not(folder / "link" / ".." / "file") == f"everyone may write to {folder}/open"
    (folder / "round").symlink_to("round")
    assert "too many links" in why_not(folder / "round")


def test_a_relative_path_counts_from_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert why_not(Path("x")) == ""
    folder.chmod(0o777)
    assert why_not(Path("x")) == f"everyone may write to {folder}"


def test_a_group_may_write_only_if_nobody_else_is_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(folder.stat().st_gid)
    folder.chmod(0o775)
    private = pwd.struct_passwd((*me[:3], group.gr_gid, *me[4:]))
    cases = [
        ((me.pw_name, "x", group.gr_gid, []), [private], True),
        ((me.pw_name, "x", group.gr_gid, [me.pw_name]), [private], True),
        ((me.pw_name, "x", group.gr_gid, ["eve"]), [private], False),
        (("staff", "x", group.gr_gid, []), [private], False),
        (
            (me.pw_name, "x", group.gr_gid, []),
            [private, pwd.struct_passwd(("eve", "x", 4_000_000, *private[3:]))],
            False,
        ),
    ]
    for entry, users, trusted in cases:
        trust._own_group.cache_clear()
        monkeypatch.setattr(grp, "getgrgid", lambda _, e=entry: grp.struct_group(e))
        monkeypatch.setattr(pwd, "getpwuid", lambda _: private)
        monkeypatch.setattr(pwd, "getpwall", lambda u=users: u)
        said = "" if trusted else f"the group {entry[0]} may write to {folder}"
        assert why_not(folder) == said, entry
    trust._own_group.cache_clear()


@needs_root
def test_another_group_may_not_write(folder: Path) -> None:
    os.chown(folder, 0, 4_000_000)
    folder.chmod(0o770)
    assert why_not(folder / "x") == f"the group 4000000 may write to {folder}"
    folder.chmod(0o750)
    assert why_not(folder / "x") == ""


def test_an_access_control_list_makes_the_groups_bits_anybodys(folder: Path) -> None:
    if shutil.which("setfacl") is None:
        pytest.skip("no setfacl")
    done = subprocess.run(["setfacl", "-m", "u:65534:rwx", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("this file system has no access control lists")
    assert "may write to" in why_not(folder)


def test_directories_are_made_with_the_same_rights_whatever_the_umask_is(folder: Path) -> None:
    for umask in (0o000, 0o077, 0o277):
        made = folder / f"{umask:o}" / "a" / "b"
        before = os.umask(umask)
        try:
            make_directory(made)
            make_directory(made)
        finally:
            os.umask(before)
        for path in (made, made.parent, made.parent.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o755
        assert why_not(made) == ""
    (folder / "file").write_text("")
    with pytest.raises(FileExistsError):
        make_directory(folder / "file")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin::.:bin:./x:~/bin:/bin:", "/usr/bin:/bin"),
        (".", os.defpath),
        ("", os.defpath),
        (None, os.defpath),
    ],
)
def test_a_search_path_keeps_absolute_entries_only(text: str | None, kept: str) -> None:
    assert search_path(text) == kept
    assert all(Path(entry).is_absolute() for entry in search_path(text).split(":"))


def strange(folder: Path, name: str) -> None:
    """Put a program into `folder` that leaves a mark there when it is executed."""
    executable(folder / name, f"touch {folder}/executed")


@pytest.mark.parametrize("entry", [".", "", "sub/.."])
def test_no_program_is_taken_from_the_directory_one_is_in(
    folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mpicxx", "podman", "ldd", "sh", "strange"):
        strange(folder, name)
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{entry}:{os.environ['PATH']}")
    assert shutil.which("strange") is not None
    assert find_program("strange") is None
    assert find_program("strange", f"{entry}:/usr/bin") is None
    assert find_program("strange", str(folder)) == f"{folder}/strange"
    assert folder not in [place.resolve() for place in HERE.places()]
    assert find_mpi(None, HERE).mpicxx.startswith("/")
    assert capture(["strange"]).exit_code == 127
    assert capture(["strange"], env={"PATH": f"{entry}:/nowhere"}).exit_code == 127
    assert capture(["sh", "-c", "strange"]).exit_code == 127
    with LocalStation() as host:
        done = launched(host, Command(("/bin/sh", "-c", f"cd {folder}; strange")), folder, 20.0)
    assert done.exit_code == 127
    assert not (folder / "executed").exists()


@needs_root
def test_where_root_is_nobody_the_way_may_be_nobodys_and_the_end_may_not(folder: Path) -> None:
    """As in a container without the machine's root: "/" and "/tmp" belong to nobody there."""
    unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces")
    os.chown(folder, 4_000_000, 4_000_000)
    folder.chmod(0o755)
    (folder / "file").write_text("")
    code = (
        "import sys; from pathlib import Path; from paribus.border.trust import why_not;"
        "print([why_not(Path(a)) for a in sys.argv[1:]])"
    )
    # Root itself is user 1000 there, and all other users are nobody.
    argv = [*unshare, sys.executable, "-c", code, str(folder / "file"), str(folder)]
    done = ran(argv, code=0)
    assert done.stdout.strip() == str(["", f"{folder} belongs to nobody"])
