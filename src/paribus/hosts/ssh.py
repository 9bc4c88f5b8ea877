"""Hosts that are reached by OpenSSH, with a configuration of the study's own.

Nothing of the user's ~/.ssh is read unless the study names it. ssh never asks the user: an unknown
host key, or a request for a password, is an error.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.core import Hosts, MachineError, UserError, count
from paribus.hosts.reached import Host
from paribus.launch.local import capture
from paribus.launch.machine import of_each

AT_ONCE = 64
SCAN_S = 30.0
"""Seconds that a host may take to show its key."""

GLOBAL = "/etc/ssh/ssh_known_hosts"
"""The host keys that the administrator of this machine knows."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """The key that the host `name` showed, as a fingerprint, and as a line of known_hosts."""

    name: str
    fingerprint: str
    line: str


Accepts = Callable[[Sequence[HostKey]], bool]
"""A function that returns whether the user accepts these unknown host keys."""


class UnknownKeysError(UserError):
    """Host keys are not known, and the user did not accept them."""


def reach(asked: Hosts, known_hosts: str, directory: Path, accepts: Accepts) -> tuple[Host, ...]:
    """Return the hosts that are asked for; their ssh_config is written into `directory`.

    Keys that are not in the file `known_hosts` are shown to `accepts`, and added to it. Raises
    UserError as `scan` and `check_keys` do.
    """
    config = configure(asked, known_hosts, directory)
    hosts = reached_by(config, asked.names)
    fix = "or name a file that has them, as `known_hosts` in the arm's `ssh`"
    if asked.scheduler:
        fix = "each allocation may have other nodes, so better name the file that has the keys of"
        fix += " all, as `known_hosts` in the arm's `ssh`"
    for one in (*([hop] for hop in hops(asked, config)), hosts):
        check_keys(one, Path(known_hosts), accepts, fix, scan)
    return hosts


def hops(asked: Hosts, config: Path) -> Iterator[Host]:
    """Yield the jump hosts by the names of their keys, each reached by those before it."""
    several = [one for one in asked.ssh.jump.split(",") if one]
    for number, one in enumerate(several):
        before = f"ProxyJump={','.join(several[:number]) or 'none'}"
        ssh = ("ssh", "-F", str(config), "-o", before, f"ssh://{one}")
        said = dict(line.split(" ", 1) for line in capture([*ssh, "-G"]).stdout.splitlines())
        name, port = said.get("hostkeyalias") or said.get("hostname", one), said.get("port", "22")
        known_as = name if port == "22" or "hostkeyalias" in said else f"[{name}]:{port}"
        yield Host(known_as, (*ssh, "exec /bin/sh"))


def check_keys(
    hosts: Sequence[Host],
    file: Path,
    accepts: Accepts,
    fix: str,
    keys_of: Callable[[Sequence[Host]], list[HostKey]],
) -> None:
    """Add the keys of `hosts` that are not in `file` to it, if `accepts` returns True.

    Raises UnknownKeysError, with their fingerprints and `fix`, if not. `keys_of` returns the keys
    that hosts show.
    """
    keys = keys_of([host for host in hosts if not known(host.name, str(file))])
    if not keys:
        return
    if not accepts(keys):
        shown = "".join(f"\n    {key.name} {key.fingerprint}" for key in keys)
        raise UnknownKeysError(
            f"{count(len(keys), 'host key')} not known:{shown}",
            place=str(file),
            fix="compare them with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints"
            f" there, then add --accept-host-keys; {fix}",
        )
    file.parent.mkdir(mode=0o700, exist_ok=True)
    accept(keys, file)


def known(name: str, file: str) -> bool:
    """Return whether a key of the host is in `file` or in GLOBAL."""
    return any(
        capture(["ssh-keygen", "-F", name, "-f", path]).exit_code == 0
        for path in (file, GLOBAL)
        if Path(path).is_file()
    )


def scan(hosts: Sequence[Host]) -> list[HostKey]:
    """Return the keys that `hosts` show, without logging in, through their jump hosts.

    Raises UserError with the fix for one that cannot be reached.
    """
    return of_each(hosts, _scan, AT_ONCE)


def _scan(host: Host) -> HostKey:
    """Return the key that a host shows; raises UserError where it cannot be reached."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "key")
        *argv, name, _ = host.shell
        for option in (
            # Into a file of its own that is thrown away: whether it is right is still open.
            *("StrictHostKeyChecking=accept-new", f"UserKnownHostsFile={file}"),
            *("GlobalKnownHostsFile=/dev/null", "HashKnownHosts=no", "ControlPath=none"),
            # The key is shown before anybody logs in, so nobody tries.
            *("PreferredAuthentications=none", "PubkeyAuthentication=no"),
        ):
            argv += ["-o", option]
        done = capture([*argv, name, "exit"], timeout_s=SCAN_S)
        if not file.is_file() or not (line := file.read_text().strip()):
            raise why_no_connection(host.name, done.stderr, ())
        words = capture(["ssh-keygen", "-lf", str(file)]).stdout.split()
        fingerprint = f"{words[1]} {words[-1]}" if len(words) > 2 else "?"
        return HostKey(host.name, fingerprint, line)


def accept(keys: Sequence[HostKey], file: Path) -> None:
    """Add `keys` to a file of known hosts, which is made if it is not there.

    Raises UserError where another key of the same kind is known for one of them.
    """
    there = file.read_text().splitlines() if file.is_file() else []
    added = []
    for key in keys:
        name, kind, text = key.line.split()[:3]
        for number, line in enumerate(there, 1):
            words = line.split()
            if words[:2] == [name, kind] and words[2] != text:
                raise UserError(
                    f"another key is known for {key.name}",
                    place=f"{file}:{number}",
                    fix="if you know why it changed, remove that line, then accept the new key",
                )
        if key.line not in there:
            added.append(key.line)
    if added:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a") as out:
            out.write("".join(f"{line}\n" for line in added))


CONNECT_S = 10
"""Seconds that each connection on the way to a host may take."""

MOST_PATH = 86
"""Bytes of a control socket's path: 104 where systems are strict, less what ssh appends."""


_COMMON = f"""
Host *
    BatchMode yes
    StrictHostKeyChecking yes
    UpdateHostKeys no
    CheckHostIP no
    ConnectTimeout {CONNECT_S}
    ServerAliveInterval 5
    ServerAliveCountMax 3
    LogLevel ERROR
    RequestTTY no
    ForwardAgent no
    ForwardX11 no
    ClearAllForwardings yes
    PermitLocalCommand no
    EscapeChar none
"""


def configure(hosts: Hosts, known_hosts: str, directory: Path) -> Path:
    """Write the ssh_config for `hosts` into `directory`, readable by this user alone; return it.

    `known_hosts`: the file of host keys. Raises UserError where the path of the directory is too
    long for sockets, and for a file of `hosts.ssh` that does not exist.
    """
    ssh, longest = hosts.ssh, f"{directory}/m{len(hosts.addresses)}"
    if len(longest.encode()) > MOST_PATH:
        raise UserError(
            f"has a path of more than {MOST_PATH} bytes, which is too long for sockets",
            place=str(directory),
            fix="set TMPDIR to a directory with a shorter path",
        )
    for one in filter(None, (ssh.config, ssh.identity)):
        if not Path(one).is_file():
            raise UserError("is no file", place=one, fix="name the file of a key, or an ssh_config")
    lines = []
    for number, host in enumerate(hosts.addresses):
        port = host.port or ssh.port
        lines += [f"Host {host.name}", f"    HostKeyAlias {host.name}"]
        lines += [f"    HostName {host.address}"] if host.address != host.name else []
        lines += [f"    Port {port}"] if port else []
        lines += [f"    ControlPath {_quoted(f'{directory}/m{number}')}"]
        # A host that is itself on the way is reached by those before it.
        before = _before(host.name, ssh.jump)
        lines += [f"    ProxyJump {before}"] if before else []
    text = "\n".join(lines) + "\n" + _COMMON
    text += f"    UserKnownHostsFile {_quoted(known_hosts)}\n"
    if ssh.user:
        text += f"    User {ssh.user}\n"
    if ssh.identity:
        text += f"    IdentityFile {_quoted(ssh.identity)}\n    IdentitiesOnly yes\n"
    if ssh.config:
        text += f"Include {_quoted(ssh.config)}\n"
    elif not ssh.identity:
        text += "    IdentityFile none\n"
    path = directory / "ssh_config"
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _before(name: str, jump: str) -> str:
    """Return those of the jump hosts that are before the host `name`.

    >>> _before("b", "me@a,b:22,c")
    'me@a'
    """
    hosts = [re.sub(r".*@|:\d+$", "", one) for one in jump.split(",")]
    return ",".join(jump.split(",")[: hosts.index(name)]) if name in hosts else jump


def _quoted(path: str) -> str:
    if '"' in path or "\n" in path:
        raise UserError("ssh takes no path with a quote in it", place=path, fix="rename it")
    return '"' + path.replace("%", "%%") + '"'


def reached_by(config: Path, names: Sequence[str]) -> tuple[Host, ...]:
    """Return the hosts of these names, which are reached by the configuration `config`."""
    found = []
    for name in names:
        to = (name, "exec /bin/sh")
        ssh = ("ssh", "-F", str(config), "-o")
        found.append(Host(name, (*ssh, "ControlMaster=no", *to), (*ssh, "ControlMaster=auto", *to)))
    return tuple(found)


# Of the standard error of ssh: a pattern, the cause (its groups filled in), and the fix.
_REASONS = (
    (
        r"Permission denied \((.*)\)|Permission denied, please try again",
        "the login was refused ({0}); Paribus answers no password prompt",
        "check `user`, authorized_keys there, and the key (if it has a passphrase: `ssh-add` it)",
    ),
    (
        r"Too many authentication failures",
        "the login was refused: the agent offered too many keys",
        "name the right one as `identity`",
    ),
    (
        r"(?:Load key|Permissions .* for) \"?'?([^'\"]+)'?\"?.*",
        "the key {0} cannot be used",
        "check that it is a private key without a passphrase, or in the agent, and has mode 0600",
    ),
    (r"Could not resolve hostname (\S+):", "no address is known for {0}", "check its spelling"),
    (
        r"(Connection refused|Connection timed out|No route to host|Network is unreachable)",
        "no ssh server answers: {0}",
        "check that it is up, and the address, `port` and the firewall",
    ),
    (
        r"(kex_exchange_identification: .*|Connection (?:closed|reset) by .*)",
        "the ssh server closed the connection: {0}",
        "see its log: MaxStartups, or a list of who may log in",
    ),
    (
        r"/bin/sh: .*not found|/bin/sh: No such file|exec: /bin/sh|/bin/sh: Command not found",
        "there is no /bin/sh",
        "install a POSIX shell there",
    ),
    (
        r"(This account is currently not available.*)",
        "the account may not log in: {0}",
        "give it a login shell, or set `user`",
    ),
    (
        r"(administratively prohibited.*|stdio forwarding failed.*|open failed: .*)",
        "the jump host leads no further: {0}",
        "check that the host is up, `jump`, and AllowTcpForwarding there",
    ),
)


def why_no_connection(
    name: str, printed: str, stdout: Sequence[str], shell: Sequence[str] = ("ssh",)
) -> UserError:
    """Return the error for a host that could not be reached.

    `printed`: the standard error of the client; `stdout`: the lines of its output; `shell`: its
    argv, of ssh or of a scheduler's command such as srun.
    """
    if changed := re.search(r"Offending (\S+) key in (.+):([0-9]+)", printed):
        return UserError(
            f"the host key of {name} is not the one that is known: the host was installed anew, or"
            " it is another one",
            place=f"{changed[2]}:{changed[3]}",
            fix="if you know why it changed, remove that line, then accept the new key",
        )
    if "Host key verification failed" in printed or "host key is known" in printed:
        return UserError(
            "its host key is not known", place=name, fix="compare its fingerprint, and accept it"
        )
    lines = [line.strip() for line in (*stdout, *printed.splitlines()) if line.strip()]
    # That a connection was closed may follow from what happened at a jump host.
    closed = [line for line in lines if line.startswith("kex_exchange_")]
    for line in (*reversed([one for one in lines if one not in closed]), *closed):
        for pattern, cause, fix in _REASONS if "ssh" in shell else ():
            if found := re.search(pattern, line):
                parts = [part or "password" for part in found.groups()]
                return MachineError(cause.format(*parts), place=name, fix=fix)
    last = lines[-1] if lines else "the connection ended without an answer"
    command = f"ssh {name} true" if "ssh" in shell else f"echo id | {shlex.join(shell)}"
    return MachineError(
        f"no shell could be had there: {last[:200]}", place=name, fix=f"try it: {command}"
    )
