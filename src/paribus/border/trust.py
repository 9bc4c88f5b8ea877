"""Whether other users could change a file, a directory, or the program that a name leads to.

Paribus executes what lies in its cache and in benchmark files. Whoever may write there may execute
code as the user who measures, so both are refused unless only that user and root may.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import stat
from functools import cache
from pathlib import Path

from paribus.core import UserError

MOST_STEPS = 1000
"""The most names looked at on one path, those in links included: beyond, links form a circle."""


def why_not(path: Path) -> str:
    """Return why `path` cannot be trusted, as a clause: "" if nobody else can change it.

    The entry, every directory above it, and the links on the way with all above their targets
    must belong to root or to the effective user, and nobody else may write to them. Above, a
    directory with the sticky bit may be open to all (/tmp): there, an entry is its owner's. Where
    nothing is at `path` yet, what is above it counts: ask again when it has been made. Never
    raises.
    """
    at = Path("/")
    try:
        todo = _parts(path if path.is_absolute() else Path.cwd() / path)
        for _ in range(MOST_STEPS):
            if reason := _why_not(at, os.lstat(at), above=bool(todo)):
                return reason
            if not todo:
                return ""
            name = todo.pop()
            entry = at.parent if name == ".." else at / name
            found = os.lstat(entry)
            if not stat.S_ISLNK(found.st_mode):
                at = entry
                continue
            if reason := _owner(entry, found):
                return reason
            target = entry.readlink()
            at = Path("/") if target.is_absolute() else at
            todo += _parts(target)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{error.filename or path} cannot be looked at: {error.strerror}"
    return f"{path} leads through too many links"


def make_directory(path: Path) -> None:
    """Make `path` and what is missing above it, 0755 whatever the umask is; raises OSError."""
    if path.is_dir():
        return
    make_directory(path.parent)
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        if path.is_dir():  # another process was quicker
            return
        raise
    path.chmod(0o755)


def home() -> Path:
    """Return the user's home directory; raises UserError where none is known."""
    try:
        return Path.home()
    except RuntimeError:
        raise UserError(
            f"no home directory is known: HOME is not set, and {user_name()} is unknown",
            fix="set HOME to a directory of your own, or PARIBUS_CACHE to one for the cache",
        ) from None


def user_name() -> str:
    """Return what the user is called; a uid without a name, as containers have, is "user N"."""
    return _name_of_user(os.geteuid())


def search_path(text: str | None) -> str:
    """Return `text`, a PATH, without entries that depend on the working directory.

    An empty entry means that directory too. If nothing is left, or `text` is None, the result is
    the system's default: an empty PATH would again mean the working directory.

    >>> search_path("/usr/bin::.:bin:/bin")
    '/usr/bin:/bin'
    """
    kept = [one for one in (text or "").split(os.pathsep) if one.startswith(os.sep)]
    return os.pathsep.join(kept) or os.defpath


def find_program(name: str, path: str | None = None) -> str | None:
    """Return where `name` is in `path` (default: $PATH), as `search_path` has it, or None."""
    return shutil.which(name, path=search_path(os.environ.get("PATH") if path is None else path))


def _parts(path: Path) -> list[str]:
    """Return the names in `path`, last first, to be popped one by one."""
    return [part for part in reversed(path.parts) if part != path.anchor]


def _why_not(path: Path, found: os.stat_result, *, above: bool) -> str:
    """Return why an entry that is no link cannot be trusted; `above`: more of the path follows."""
    if reason := _owner(path, found, above=above):
        return reason
    if above and found.st_mode & stat.S_ISVTX:
        return ""
    if found.st_mode & stat.S_IWOTH:
        return f"everyone may write to {path}"
    if found.st_mode & stat.S_IWGRP and not _private(found.st_gid, _has_access_list(path)):
        return f"the group {_name_of_group(found.st_gid)} may write to {path}"
    return ""


def _owner(path: Path, found: os.stat_result, *, above: bool = False) -> str:
    """Return a clause on the owner of `path`, "" if that is root or the effective user.

    In a user namespace that does not know the machine's root, what belongs to root is shown as
    nobody's, "/" first: there, directories on the way may be nobody's, the end may not.
    """
    if found.st_uid in (0, os.geteuid()) or (above and found.st_uid == _nobody()):
        return ""
    return f"{path} belongs to {_name_of_user(found.st_uid)}"


def _private(group: int, access_list: bool) -> bool:
    """Return whether only root, or only the effective user, can be in `group`.

    It must be the user's primary group, have the user's name and no other member, as in Debian's
    OpenSSH (secure_permissions in misc.c). With an access control list the group's bits stand for
    others as well.
    """
    return not access_list and any(_own_group(uid, group) for uid in {0, os.geteuid()})


@cache
def _own_group(uid: int, group: int) -> bool:
    try:
        user, entry = pwd.getpwuid(uid), grp.getgrgid(group)
    except KeyError:
        return False
    return (
        user.pw_gid == group
        and entry.gr_name == user.pw_name
        and set(entry.gr_mem) <= {user.pw_name}
        and all(other.pw_uid == uid for other in pwd.getpwall() if other.pw_gid == group)
    )


def _has_access_list(path: Path) -> bool:
    """Return whether `path` has an access control list (acl(5))."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:  # it has none, or the file system knows none
        return False


@cache
def _nobody() -> int | None:
    """Return the uid that stands for the machine's root, if this user namespace has no name for it.

    None outside such namespaces, where that uid is a user like any other.
    """
    try:
        rows = [row.split() for row in Path("/proc/self/uid_map").read_text().splitlines()]
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return None
    spans = [(int(inside), int(count)) for inside, _, count in rows]
    if any(inside <= overflow < inside + count for inside, count in spans):
        return None
    return overflow


def _name_of_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _name_of_group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
