"""Guests of qemu on this machine, emulated, which live exactly as long as this process.

    python tests/guests/controller.py DIRECTORY [OPTIONS]

prints "ready" when all guests answer by ssh; `ssh -F DIRECTORY/ssh_config vm1` enters one, and
`hyper1` is this machine itself. `sh DIRECTORY/power on` and `off` start and end all guests, as
`virsh start` and `destroy` would. KILL of this process ends everything; nothing is on the machine
but files in DIRECTORY: no interface, no mount, no cgroup.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from guests.image import MissingError, image

LACKS = 77
"""Exit code where the machine lacks what guests need: a reason to skip tests, not a failure."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TOOLS = ("qemu-system-x86_64", "setpriv", "ssh", "ssh-keygen", "sshd")

BOOT_S = 240.0
"""Seconds in which guests must answer: an emulated processor beside other work."""

SSHD = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/id.pub
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 64
"""

SSH = """\
Host *
    User root
    HostName 127.0.0.1
    IdentityFile {folder}/id
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking yes
    BatchMode yes
    LogLevel ERROR
"""

POWER = """\
echo "$1" >{folder}/asked
read -r answer <{folder}/answered
echo "$answer"
[ "$answer" = "$1" ]
"""


@dataclass
class Rack:
    """The guests of this machine, on or off; `link` says which networks they have."""

    folder: Path
    count: int = 2
    memory: int = 1024
    cores: int = 1
    modules: str = ""
    link: str = "joined"
    ports: tuple[int, ...] = ()
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def prepare(self) -> None:
        """Write keys, configurations and the program `power` into the folder."""
        self.folder.mkdir(exist_ok=True)
        for name in ("id", "host_key"):
            if not (self.folder / name).exists():
                make = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f")
                subprocess.run([*make, str(self.folder / name)], check=True)
        key = (self.folder / "host_key.pub").read_text()
        known = ",".join(("hyper1", *self.names))
        (self.folder / "known_hosts").write_text(f"{known} {key}")
        for name in ("asked", "answered"):
            (self.folder / name).unlink(missing_ok=True)
            os.mkfifo(self.folder / name, 0o600)
        self.ports = self.ports or _free(self.count + 1)
        hosts = zip(("hyper1", *self.names), self.ports, strict=True)
        own = "Host {0}\n    Port {1}\n    HostKeyAlias {0}\n"
        lines = "".join(own.format(*one) for one in hosts)
        (self.folder / "ssh_config").write_text(lines + SSH.format(folder=self.folder))
        (self.folder / "sshd_config").write_text(SSHD.format(folder=self.folder))
        (self.folder / "power").write_text(POWER.format(folder=self.folder))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"vm{number}" for number in range(1, self.count + 1))

    def start_hypervisor(self) -> subprocess.Popen[bytes]:
        """Return the sshd of the machine itself, as host hyper1."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        program = shutil.which("sshd", path=PATH) or "sshd"
        listens = ("-o", "PidFile=none", "-o", f"ListenAddress=127.0.0.1:{self.ports[0]}")
        with (self.folder / "hyper1.log").open("wb") as log:
            words = _mortal(program, "-D", "-e", "-f", f"{self.folder}/sshd_config", *listens)
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)

    def on(self) -> None:
        """Start all guests that are off; raises MissingError for one that does not start."""
        if self.running:
            return
        kernel, initrd = image()
        # Each further guest has a cable to the first, whose qemu joins them as a hub does.
        cables = [socket.socketpair() for _ in self.names[1:]] if self.link == "joined" else []
        for number in range(1, self.count + 1):
            if number == 1:
                ends = [near for near, _ in cables]
            else:
                ends = [far for _, far in cables[number - 2 : number - 1]]
            self.running.append(self._boot(number, kernel, initrd, ends))
        for pair in cables:
            for end in pair:
                end.close()

    def _boot(
        self, number: int, kernel: Path, initrd: Path, ends: list[socket.socket]
    ) -> subprocess.Popen[bytes]:
        name = f"vm{number}"
        reported = f"NAME={name} NUMBER={number} COUNT={self.count} DIR={self.folder}"
        reported += f" LINK={self.link} MODULES={self.modules}"
        words = ["qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-nodefaults"]
        words += ["-name", name, "-m", str(self.memory), "-smp", str(self.cores), "-no-reboot"]
        words += ["-display", "none", "-serial", f"file:{self.folder}/{name}.log"]
        words += ["-kernel", str(kernel), "-initrd", str(initrd)]
        words += ["-append", f"console=ttyS0 quiet panic=-1 mitigations=off {reported}"]
        shown = "local,path=/,mount_tag=machine,security_model=none,readonly=on,multidevs=remap"
        words += ["-virtfs", shown]
        inner = f"user,id=u,restrict=on,net=10.0.{number}.0/24,host=10.0.{number}.2"
        words += ["-netdev", f"{inner},hostfwd=tcp:127.0.0.1:{self.ports[number]}-:22"]
        words += ["-device", "virtio-net-pci,netdev=u,romfile="]
        if self.link == "joined":
            for at, end in enumerate(ends):
                words += ["-netdev", f"socket,id=s{at},fd={end.fileno()}"]
                words += ["-netdev", f"hubport,id=p{at},hubid=1,netdev=s{at}"]
            words += ["-netdev", "hubport,id=own,hubid=1"]
            mac = f"52:54:00:79:00:{number:02x}"
            words += ["-device", f"virtio-net-pci,netdev=own,mac={mac},romfile="]
        with (self.folder / f"{name}.qemu").open("wb") as log:
            return subprocess.Popen(
                _mortal(*words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[end.fileno() for end in ends],
            )

    def off(self) -> None:
        """End all guests, as a power cut does."""
        for one in self.running:
            one.kill()
        for one in self.running:
            one.wait()
        self.running.clear()

    def wait(self) -> None:
        """Wait until every guest answers; raises MissingError for one that does not."""
        deadline = time.monotonic() + BOOT_S
        for port, name, process in zip(self.ports[1:], self.names, self.running, strict=True):
            ask = ["ssh", "-F", f"{self.folder}/ssh_config", "-o", "ConnectTimeout=10", name, ":"]
            while subprocess.run(ask, capture_output=True, check=False).returncode:
                if process.poll() is not None:
                    said = (self.folder / f"{name}.qemu").read_text().strip().splitlines()[-1:]
                    taken = "host forwarding" in "".join(said)
                    why = f"127.0.0.1:{port} is in use" if taken else "".join(said)
                    raise MissingError(f"{name} does not start: {why}")
                if time.monotonic() > deadline:
                    raise MissingError(f"{name} does not answer: see {self.folder}/{name}.log")
                time.sleep(0.2)

    def obey(self) -> None:
        """Switch on and off as `power` asks, for ever."""
        while True:
            with (self.folder / "asked").open() as asked:
                wanted = asked.read().strip()
            try:
                (self.on if wanted == "on" else self.off)()
            except MissingError as error:
                wanted = str(error)
            with (self.folder / "answered").open("w") as answered:
                answered.write(f"{wanted}\n")


def _mortal(*argv: str) -> list[str]:
    """Return the command that also ends when this process is killed."""
    return ["setpriv", "--pdeathsig", "KILL", *argv]


def _free(count: int) -> tuple[int, ...]:
    """Return `count` ports of 127.0.0.1 that are free now."""
    several = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = tuple(int(one.getsockname()[1]) for one in several)
    for one in several:
        one.close()
    return found


def check() -> None:
    """Raise MissingError, with the reason, where this machine cannot have guests."""
    if os.geteuid():
        raise MissingError("not root: guests read the whole machine, keys included")
    for tool in TOOLS:
        if not shutil.which(tool, path=PATH):
            raise MissingError(f"no {tool}: `./dev test-vm` as root installs it")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--guests", type=int, default=2)
    parser.add_argument("--memory", type=int, default=1024, help="MiB of each guest")
    parser.add_argument("--cores", type=int, default=1, help="processors of each guest")
    parser.add_argument("--ports", help="of hyper1 and the guests, with commas; else free ones")
    parser.add_argument("--modules", default="", help='"all": Soft-RoCE and netem as well')
    parser.add_argument(
        "--link",
        choices=("joined", "apart", "none"),
        default="joined",
        help='"apart": no link between guests; "none": no network at all',
    )
    parser.add_argument("--off", action="store_true", help="begin with all guests off")
    asked = parser.parse_args()
    ports = tuple(int(port) for port in asked.ports.split(",")) if asked.ports else ()
    rack = Rack(
        asked.folder.absolute(), asked.guests, asked.memory, asked.cores, asked.modules,
        asked.link, ports,
    )  # fmt: skip
    try:
        check()
        image()
        rack.prepare()
        rack.start_hypervisor()
    except MissingError as error:
        print(error, file=sys.stderr)
        return LACKS
    try:
        if not asked.off:
            rack.on()
            rack.wait()
    except MissingError as error:
        print(error, file=sys.stderr)
        return 1
    print("ready", flush=True)
    rack.obey()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
