"""Setting a cluster up on its nodes, and taking it down: keys, ssh configuration, hostfiles."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from paribus.border import decoded, exists, of_json, read_bounded
from paribus.cluster.answers import Answer, script_of
from paribus.cluster.checks import Finding
from paribus.cluster.links import Asked, Links, link, ssh_port
from paribus.cluster.preflight import Preflight, cores
from paribus.core import Hosts, MachineError, StoreError, UserError, fold, typed
from paribus.hosts.reached import Host
from paribus.hosts.session import Session, SessionError, nonce, with_each
from paribus.launch.local import capture


def hostfiles(slots: Mapping[str, int]) -> dict[str, str]:
    """Return the hostfiles of each dialect by name; `slots`: how many ranks each node takes.

    Open MPI: mpirun(1), "Host file"; MPICH: hydra's `HOST:N`; Intel MPI takes the same with
    -machinefile; plain: a line with the name for each slot, for older launchers and other tools.
    """
    return {
        "hostfile.openmpi": "".join(f"{name} slots={n}\n" for name, n in slots.items()),
        "hostfile.mpich": "".join(f"{name}:{n}\n" for name, n in slots.items()),
        "hostfile.intel": "".join(f"{name}:{n}\n" for name, n in slots.items()),
        "hostfile.plain": "".join(f"{name}\n" * n for name, n in slots.items()),
    }


def ssh_config(nodes: Sequence[tuple[str, str, int, str]], folder: str) -> str:
    """Return the ssh_config(5) of the nodes among themselves, with the keys in `folder`.

    `nodes` holds name, address, port of sshd and user of each.
    """
    lines = []
    for name, address, port, user in nodes:
        lines += [f"Host {name}", f"    HostName {address}", f"    HostKeyAlias {name}"]
        lines += [f"    Port {port}", f"    User {user}"]
    lines += [
        "Host *",
        f"    IdentityFile {folder}/id_ed25519",
        "    IdentitiesOnly yes",
        f"    UserKnownHostsFile {folder}/known_hosts",
        "    StrictHostKeyChecking yes",
        "    BatchMode yes",
        "    ConnectTimeout 10",
        "    LogLevel ERROR",
    ]
    return "".join(f"{line}\n" for line in lines)


AGENT = """\
#!/bin/sh
# ssh between the nodes of this cluster. Open MPI 4: mpirun --mca plm_rsh_agent THIS; Open MPI 5:
# prterun --prtemca plm_ssh_agent THIS; MPICH, Intel MPI: mpiexec -launcher ssh -launcher-exec THIS
exec ssh -F "${0%/*}/ssh_config" "$@"
"""


def key_pair(path: Path, comment: str) -> str:
    """Return the public key of the pair at `path`, made if it does not exist.

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


NODE_S = 20.0
"""Seconds that a node may take to be set up or taken down."""

STATE = "cluster.json"
FILES = (
    *("hostfile.openmpi", "hostfile.mpich", "hostfile.intel", "hostfile.plain"),
    *("ssh_config", "known_hosts", "id_ed25519", "id_ed25519.pub", "nodes_known_hosts"),
    *("environment.txt", "environment.json", STATE),
)
"""Names that Paribus writes into the directory of a cluster; nothing else there is removed."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that was set up, as cluster.json has it.

    `tag`: its name on the nodes, "paribus-cluster-...". `network`: the CIDR for MPI. `leaders`: the
    hosts that were given its files, one for each home directory.
    """

    tag: str
    hosts: Hosts
    network: str
    leaders: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Its directory on each node, below the home directory."""
        return f".{self.tag}"


@dataclass(frozen=True, slots=True)
class Changed:
    """The names of the files that were changed, by node, and findings on what failed."""

    files: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...] = ()


def read_cluster(directory: Path) -> Cluster | None:
    """Return the cluster of a directory, None if it has none; raises StoreError if damaged."""
    path = directory / STATE
    if not exists(path):
        return None
    try:
        data = json.loads(decoded(read_bounded(path, 16 << 20, "a cluster")))
        found: Cluster = of_json(Cluster, {k: v for k, v in data.items() if k != "schema"})
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"is damaged: {error}",
            place=str(path),
            fix="on each node remove the line that ends in paribus-cluster-... from"
            " ~/.ssh/authorized_keys, and ~/.paribus-cluster-*; then this directory",
        ) from None


def begin(directory: Path, hosts: Hosts, found: Preflight) -> Cluster:
    """Return the cluster of `directory`, which is made, with its cluster.json, if it has none.

    Raises UserError where it has one of other hosts or another network, and for a pocket cluster,
    which ends with the command that makes it.
    """
    if hosts.pocket:
        raise UserError(
            "a pocket cluster ends with this command, so nothing is to be set up on it",
            place=f"pocket:{hosts.pocket}",
            fix='write hosts = "pocket:N" into an arm; `paribus cluster check pocket:4` checks one',
        )
    there, network = read_cluster(directory), found.network
    if there is None:
        names = leaders(hosts.names, found.links)
        there = Cluster(f"paribus-cluster-{secrets.token_hex(6)}", hosts, network, names)
        directory.mkdir(mode=0o700, exist_ok=True)
        text = {"schema": "paribus.cluster-state/1", **asdict(there)}
        (directory / STATE).write_text(json.dumps(text, indent=2) + "\n")
    elif (there.hosts.names, there.network) != (hosts.names, network):
        raise UserError(
            f"is the cluster of {fold(there.hosts.names)} in {there.network or 'no network'}",
            place=str(directory),
            fix="take that one down first (`paribus cluster down HOSTS`), or choose another"
            " directory with --out",
        )
    return there


def up(
    cluster: Cluster, directory: Path, hosts: Sequence[Host], found: Preflight
) -> tuple[Changed, Links]:
    """Set the cluster up on all nodes; return what was changed, and which node reaches which.

    Files for this machine go into `directory`. Once it is set up, nothing is changed again.
    """
    public = key_pair(directory / "id_ed25519", cluster.tag)
    # The key is valid only from the nodes themselves, and without a terminal.
    key = f'restrict,from="{cluster.network}" {public}'
    slots = _slots(cluster.hosts, found.answers)
    nodes = [
        (one.name, str(found.chosen[one.name].address.ip), ssh_port(one), one.one("user"))
        for one in found.answers
    ]
    scanned, failed = _host_keys(hosts, found)
    folder = f"~/{cluster.folder}"
    files = {
        "id_ed25519": (0o600, (directory / "id_ed25519").read_text()),
        "known_hosts": (0o600, scanned),
        "ssh_config": (0o600, ssh_config(nodes, folder)),
        "ssh": (0o700, AGENT),
        **{name: (0o600, text) for name, text in hostfiles(slots).items()},
    }
    for name, text in hostfiles(slots).items():
        _write(directory / name, text)
    _write(directory / "nodes_known_hosts", scanned)
    changed = _each(hosts, cluster, lambda mark: _up_script(mark, key, files))
    options = f"-F {cluster.folder}/ssh_config -o ConnectTimeout=5"
    asked = Asked(ssh_s=30, ssh_options=options, ports=False, by_name=True)
    links = link(hosts, found.answers, found.chosen, asked)
    findings = [*failed, *changed.findings]
    if broken := [pair for pair, works in links.ssh.items() if not works]:
        sources = tuple(dict.fromkeys(source for source, _ in broken))
        first = f"{broken[0][0]} does not reach {broken[0][1]}"
        cause = f"{first} by ssh with the cluster's key ({len(broken)} of {len(links.ssh)} pairs)"
        tried = typed(("ssh", "-v", "-F", f"{folder}/ssh_config", broken[0][1], "true"))
        fix = (
            f"on {broken[0][0]}: {tried}; does sshd there"
            " read ~/.ssh/authorized_keys, and is ~ writable only by its owner?"
        )
        findings.append(Finding("ssh", "broken", cause, sources, fix))
    return Changed(changed.files, tuple(findings)), links


def down(cluster: Cluster, directory: Path, hosts: Sequence[Host]) -> Changed:
    """Undo on the nodes what `up` did; return what was changed, and findings on what is left.

    The files in `directory` are removed if nothing is left on any node.
    """
    script = script_of("down.sh")
    changed = _each(hosts, cluster, lambda _: script)
    if not changed.findings:
        for name in FILES:
            (directory / name).unlink(missing_ok=True)
        if not any(directory.iterdir()):
            directory.rmdir()
    return changed


def leaders(names: Sequence[str], links: Links) -> tuple[str, ...]:
    """Return one host for each home directory, the first of those that share it."""
    found: list[str] = []
    for name in names:
        if not set(found) & set(links.homes.get(name, ())):
            found.append(name)
    return tuple(found)


def _slots(hosts: Hosts, answers: Sequence[Answer]) -> dict[str, int]:
    given = {one.name: one.slots for one in hosts.addresses}
    return {one.name: given.get(one.name, 0) or max(1, cores(one)) for one in answers}


def _write(path: Path, text: str) -> None:
    if not exists(path) or path.read_text() != text:
        path.write_text(text)


def _host_keys(hosts: Sequence[Host], found: Preflight) -> tuple[str, list[Finding]]:
    """Return the known_hosts of all nodes, and findings for those whose sshd shows no key.

    Each node asks its own sshd, at its address in the cluster's network.
    """
    places = {one.name: (found.chosen[one.name], ssh_port(one)) for one in found.answers}

    def talk(session: Session) -> list[str]:
        interface, port = places[session.host.name]
        ask = f"ssh-keyscan -T 5 -p {port} {interface.address.ip} 2>/dev/null </dev/null | sort"
        return session.answer(ask)

    lines, bare = [], []
    for host, printed in zip(hosts, with_each(hosts, NODE_S, talk), strict=True):
        keys = [] if isinstance(printed, SessionError) else [one.split() for one in printed]
        keys = [words for words in keys if len(words) == 3 and not words[0].startswith("#")]
        lines += [f"{host.name} {kind} {key}\n" for _, kind, key in keys]
        if not keys:
            bare.append(host.name)
    if not bare:
        return "".join(lines), []
    cause = "no sshd shows a key on the node's own address"
    fix = "start sshd on it, on the network of the cluster; install openssh-client (ssh-keyscan)"
    return "".join(lines), [Finding("ssh", "broken", cause, tuple(bare), fix)]


def _up_script(mark: str, key: str, files: Mapping[str, tuple[int, str]]) -> str:
    puts = "".join(
        f"put {name} {mode:o} <<'{mark}'\n{text}{mark}\n" for name, (mode, text) in files.items()
    )
    return f"key={shlex.quote(key)}\n{script_of('up.sh')}{puts}add_key\n"


def _each(hosts: Sequence[Host], cluster: Cluster, script: Callable[[str], str]) -> Changed:
    """Run a script on each leader; return what it changed, by its lines "changed FILE", and what
    failed, by "! CAUSE".

    `script` returns it for a random word that ends its texts.
    """
    hosts = [host for host in hosts if host.name in cluster.leaders]

    def talk(session: Session) -> list[str]:
        mark = nonce()
        given = f'tag={cluster.tag} folder="$HOME/{cluster.folder}"'
        return session.answer(f"( {given}\n{script(mark)}) </dev/null", mark)

    files: dict[str, tuple[str, ...]] = {}
    findings = []
    for host, printed in zip(hosts, with_each(hosts, NODE_S, talk), strict=True):
        lines = [f"! {printed}"] if isinstance(printed, SessionError) else printed
        wrong = [line.removeprefix("! ") for line in lines if line.startswith("! ")]
        fix = "fix this, then try the same again"
        findings += [Finding("setup", "broken", one, (host.name,), fix) for one in wrong]
        done = [line.removeprefix("changed ") for line in lines if line.startswith("changed ")]
        if done:
            files[host.name] = tuple(done)
    return Changed(files, tuple(findings))
