"""Options on hosts that verbs share, and the connections to the hosts of a study.

Unknown host keys are accepted only here, by --accept-host-keys or by a user at a terminal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import is_file, printable
from paribus.core import Study, UserError

if TYPE_CHECKING:
    from paribus.hosts.ssh import Accepts, HostKey
    from paribus.launch.station import Station


def add_host_keys(parser: argparse.ArgumentParser) -> None:
    """Declare --accept-host-keys, which several verbs share."""
    parser.add_argument(
        "--accept-host-keys",
        action="store_true",
        help="accept the keys that hosts show which are not known yet, and print them",
    )


def add_ssh(parser: argparse.ArgumentParser) -> None:
    """Declare the options on ssh for hosts that a command line names: --user, --jump, ..."""
    for name, value, text in (
        ("user", "USER", "login on the hosts"),
        ("jump", "JUMP", "jump host, [USER@]HOST[:PORT]"),
        ("identity", "FILE", "private key"),
        ("known-hosts", "FILE", "accepted host keys"),
        ("ssh-config", "FILE", "ssh_config to use"),
    ):
        parser.add_argument(f"--{name}", metavar=value, default="", help=text)
    parser.add_argument("--port", type=int, default=0, help="port of sshd")


def seconds(text: str) -> float:
    """Return an option's duration; raises ArgumentTypeError for what is none."""
    from paribus.core import parse_seconds

    try:
        return parse_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def ssh_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the options of `add_ssh` as the table `ssh` of an arm in a study file."""
    keys = ("user", "port", "jump", "identity", "known_hosts")
    return {**{key: getattr(arguments, key) for key in keys}, "config": arguments.ssh_config}


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Declare --hosts, which names the hosts of arms."""
    parser.add_argument(
        "--hosts",
        metavar="ARM=HOSTS",
        action="append",
        default=[],
        help="hosts of an arm: node[1-4], a hostfile, pocket:N (repeatable)",
    )


def hosts_by_arm(texts: Sequence[str]) -> dict[str, str]:
    """Return the hosts by arm, from texts such as "a=node[1-4]"; a hostfile as an absolute path.

    Raises UserError for a text without an arm, and for an arm that is named twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        arm, given, hosts = text.partition("=")
        if not given or not arm or not hosts or arm in found:
            cause = "names an arm twice" if arm in found else "names no arm and hosts"
            raise UserError(cause, place=f"--hosts {text}", fix="write --hosts ARM='node[1-4]'")
        found[arm] = str(Path(hosts).absolute()) if "/" in hosts or is_file(hosts) else hosts
    return found


def accepts_keys(always: bool) -> Accepts:
    """Return the function that decides on unknown host keys: by `always`, or by asking the user.

    Without `always` a user at a terminal is asked; elsewhere keys are refused.
    """

    def accepts(keys: Sequence[HostKey]) -> bool:
        asks = not always and sys.stdin.isatty() and sys.stderr.isatty()
        if always or asks:
            for key in keys:
                print(f"paribus: {key.name} shows the host key {key.fingerprint}", file=sys.stderr)
        if not asks:
            return always
        question = "Are these the keys of your hosts? Type yes to accept them: "
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip() == "yes"

    return accepts


def warn_unshared(paths: Iterable[Path], who: str = "each node") -> None:
    """Warn on stderr of those of `paths` that are not on a network file system."""
    from paribus.launch.sharing import unshared

    if places := unshared(paths):
        named = ", ".join(f"{printable(str(path))} ({kind})" for path, kind in places.items())
        print(
            f"paribus: not on a network file system: {named}\n  {who} must see this at the same"
            " path; if it does not, put it on a file system that both share",
            file=sys.stderr,
        )


@contextmanager
def reached(
    study: Study,
    *,
    accept_keys: bool,
    directory: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Mapping[str, Station]]:
    """Yield the stations of `study` by arm, open as long as the context lasts.

    `accept_keys`: accept unknown host keys; else a user at a terminal is asked. `directory`: the
    study's, by which its jobs are known to schedulers. `say` is given each line on what is waited
    for, which stderr shows. Raises UnknownKeysError, with the fingerprints, for keys not accepted.
    """
    from paribus.launch.stations import stations

    def notify(text: str) -> None:
        print(f"paribus: {text}", file=sys.stderr, flush=True)
        say(text)

    with stations(study, directory, notify, accepts_keys(accept_keys)) as opened:
        yield opened
