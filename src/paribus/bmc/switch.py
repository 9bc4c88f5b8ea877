"""A server switched to another topology and proven by what its operating system finds, or put back.

`switch` reads, plans, has the plan confirmed, makes sure that nobody uses the server, sends each
write and looks for its effect, and at last looks at the tree that the operating system finds: what
the BMC shows is never the proof. What fails is rolled back, once, in the same way. Every line of
the journal is on disk before what it announces; a write with a line `sent` is never sent again. In
goes a `Switching`, out comes a `Result`; `go_on` finishes a switch that was killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from paribus.bmc.client import BmcError, Client, NoAnswer, Refused
from paribus.bmc.journal import Journal
from paribus.bmc.profiles import Access, Profile, ProfileFile
from paribus.bmc.steps import Check, Plan, Write, at_pointer, plan_of, references
from paribus.border import of_json, printable
from paribus.core import ParibusError, UserError, typed
from paribus.launch.local import Captured, capture
from paribus.topology.shape import canonical_hash, shape_of
from paribus.topology.tree import DEVICES, Tree

_COMMAND_S = 600.0
_POLL_S = (0.02, 2.0)
"""Seconds between two looks at an effect: first, and at most."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How writes leave this machine.

    `secret` is the BMC's password, for IPMI. `ask` puts a question to a person, who answers yes or
    no. `settle_s`: how long an effect may take to show.
    """

    client: Client
    secret: str
    ask: Callable[[str], bool]
    settle_s: float


def send(write: Write, ways: Ways) -> tuple[str, bool]:
    """Send a write once; return (how it ended, whether it was refused).

    How it ended is a clause, "" where success was reported. A write that was refused has had no
    effect for certain, so none need be waited for; another failure says nothing about the effect.
    Raises no BmcError.
    """
    try:
        if write.by == "redfish":
            return _redfish(write, ways), False
        if write.by == "person":
            return ("", False) if ways.ask(write.argv[0]) else ("the person said no", True)
        done = _ipmi(write.argv, ways) if write.by == "ipmi" else _execute(write.argv)
        return ("" if done.exit_code == 0 else _failed(done)), False
    except BmcError as error:
        return error.cause, isinstance(error, Refused) and 400 <= error.status < 500


def _redfish(write: Write, ways: Ways) -> str:
    """Send a write by Redfish and follow its task; return how it ended, "" for success."""
    body, match = dict(write.body), ""
    for key, path in write.etags.items():
        tag = ways.client.get(path).etag
        if key == "If-Match":
            match = tag
        elif tag:
            body[key] = tag
    monitor = ways.client.write(write.method, write.path, body, match)
    if not monitor:
        return ""
    state = ways.client.follow(monitor, time.monotonic() + ways.settle_s)
    if state == "Completed":
        return ""
    return f"its task ends in {state}" if state else "its task does not end"


def holds(check: Check, ways: Ways) -> bool | None:
    """Return whether an effect can be seen, None where only the tree shows it; raises BmcError."""
    if not check.how:
        return None
    if check.how == "prints":
        done = _ipmi(check.argv, ways) if check.by == "ipmi" else _execute(check.argv)
        if done.exit_code != 0:
            fix = "check `reads` of this step"
            raise NoAnswer(_failed(done), place=" ".join(check.argv), fix=fix)
        return " ".join(done.stdout.split()) == str(check.value)
    table = ways.client.get(check.path).table
    try:
        if check.how == "is":
            return bool(at_pointer(table, check.pointer) == check.value)
        return (check.value in references(table, check.pointer)) == (check.how == "has")
    except (KeyError, TypeError, ValueError, IndexError):
        raise Refused(
            f"shows nothing at {check.pointer}",
            place=f"{ways.client.access.place} {check.path}",
            fix="check the paths of this step",
        ) from None


def settles(check: Check, ways: Ways) -> bool | None:
    """Return whether an effect shows within the time that it may take; as `holds`."""
    deadline = time.monotonic() + ways.settle_s
    pause = _POLL_S[0]
    while True:
        try:
            seen = holds(check, ways)
        except BmcError:
            if time.monotonic() >= deadline:
                raise
            seen = False
        if seen is not False or time.monotonic() >= deadline:
            return seen
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(2 * pause, _POLL_S[1])


def _ipmi(argv: tuple[str, ...], ways: Ways) -> Captured:
    """Return how an IPMI request ended: bytes of the site's file, over lanplus (RMCP+)."""
    access: Access = ways.client.access
    host = ["-I", "lanplus", "-H", access.host, "-p", str(access.ipmi_port), "-U", access.user]
    # -E takes the password from the environment: other users see an argv.
    words = ["ipmitool", *host, "-E", "-C", access.ipmi_cipher, "-N", "5", "-R", "1", "raw", *argv]
    return capture(words, env={"IPMI_PASSWORD": ways.secret}, timeout_s=access.timeout_s)


def _execute(argv: tuple[str, ...]) -> Captured:
    """Return how a command of the site's file ended on this machine."""
    return capture(argv, timeout_s=_COMMAND_S)


def _failed(done: Captured) -> str:
    """Return the exit code of a command and the last line of its output, as a clause."""
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    return f"exit code {done.exit_code}{': ' + printable(last[0][:200]) if last else ''}"


def plan_lines(plan: Plan, shape: str, wanted: str, *, whole: bool) -> Iterator[str]:
    """Yield the lines that show a plan from a shape to the one `wanted`.

    They name its writes; with `whole` as complete requests, and those that undo it as well.
    """
    yield f"{shape} is to become {wanted}. In this order, each sent once:"
    for number, write in enumerate(plan.writes, 1):
        yield f"{number:3}  {write if whole else brief(write)}"
    if not whole:
        return
    yield "If this fails, what took effect is undone:"
    for number, write in enumerate(plan.backs, 1):
        yield f"{number:3}  {write}"


def brief(write: Write) -> str:
    """Return a write in one short line: its step, and what shows its effect."""
    check = write.check
    end = PurePosixPath(str(check.value)).name
    what = {"has": f"add {end}", "lacks": f"remove {end}", "is": f"{check.pointer[1:]} = {end}"}
    return f"{write.step}: {what.get(check.how) or write}"


def ended(how: str, host: str, shape: str, cause: str, command: str) -> str:
    """Return how a switch ended, as the last sentence about it; `command` would continue it."""
    if how == "already":
        return f"{host} is {shape} already: nothing was sent."
    if how == "switched":
        return f"{host} is {shape}: its operating system finds it, with all of its devices."
    if how == "rolled back":
        return (
            f"Rolled back: {host} is {shape} as before; its operating system finds it.\n  {cause}"
        )
    return (
        f"Stopped: {host} may be neither as before nor as wanted. Leave it drained.\n  {cause}\n"
        f"  Look at the server, then go on with: {command}"
    )


How = Literal["switched", "already", "rolled back", "stopped"]
"""How a switch ends."""

Way = Literal["forth", "back"]
"""To the profile, or back to what was there."""

_IDLE_S = 120.0
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Switching:
    """One server, what reaches it, and who is asked.

    `look` returns the tree that its operating system finds now, and raises ParibusError while none
    answers. `confirm` gets the plan and the tree, and returns whether to go on; `say` gets a line
    for each step. `held`: whoever started this has made sure that nobody else uses the server.
    """

    host: str
    file: ProfileFile
    profile: Profile
    journal: Journal
    ways: Ways
    look: Callable[[], Tree]
    confirm: Callable[[Plan, Tree], bool]
    say: Callable[[str], None]
    held: bool = False

    @property
    def client(self) -> Client:
        """The client of the server's BMC."""
        return self.ways.client


@dataclass(frozen=True, slots=True)
class Result:
    """How a switch ended: with `cause` where it did not succeed, and the last tree that was seen.

    "switched" and "rolled back" are proven by the tree. "stopped": what is known is in `cause`.
    """

    how: How
    cause: str = ""
    tree: Tree | None = None


@dataclass(frozen=True, slots=True)
class Before:
    """What the operating system found before a switch.

    `digest` is the hash of the tree, `devices` are the keys of its GPUs, NICs and so on, sorted.
    """

    digest: str
    shape: str
    devices: tuple[str, ...]


def before_of(tree: Tree) -> Before:
    """Return what must be found again after a roll back of a switch from this tree."""
    devices = (node.key or node.model for node in tree.walk() if node.kind in DEVICES)
    return Before(canonical_hash(tree), shape_of(tree).name, tuple(sorted(devices)))


def switch(job: Switching) -> Result:
    """Return how the switch to the profile of `job` ended.

    Raises UserError, with nothing changed, where it cannot begin, and BmcError where the BMC cannot
    be read.
    """
    if left := job.journal.unfinished:
        words = ("paribus", "topology", "switch", job.host, left["profile"])
        again = typed((*words, "--through", job.file.path, "--continue"))
        raise UserError(
            f"a switch to {left['profile']} was not finished",
            place=str(job.journal.path),
            fix=f"finish it or roll it back: {again}",
        )
    _identify(job)
    tree = job.look()
    before = before_of(tree)
    if before.shape == job.profile.shape:
        return Result("already", tree=tree)
    plan = plan_of(job.profile, job.client, lambda check: holds(check, job.ways))
    if not plan.writes:
        raise UserError(
            f"the BMC shows {job.profile.name} already, the operating system finds {before.shape}",
            place=job.host,
            fix="power-cycle the server; if that does not help, check the profile",
        )
    if not job.confirm(plan, tree):
        fix = "answer yes at a terminal, or add --yes"
        raise UserError("not confirmed: nothing was changed", place=job.host, fix=fix)
    _guard(job)
    job.journal.begin(
        host=job.host,
        profile=job.profile.name,
        shape=job.profile.shape,
        before=astuple(before),
        writes=[asdict(write) for write in plan.writes],
        backs=[asdict(write) for write in plan.backs],
        session=job.client.session,
    )
    job.journal.note("way", way="forth")
    return _forth(job, plan, before)


def go_on(job: Switching) -> Result:
    """Return how a switch that was killed, or had stopped, ended in the end; raises as `switch`.

    A switch that was killed on its way to the profile is finished, one that failed is rolled back.
    """
    begun = job.journal.unfinished
    if begun is None:
        raise UserError("no switch is unfinished", place=str(job.journal.path), fix="nothing to do")
    if begun["session"]:
        job.client.end_session(begun["session"])
    _identify(job)
    _guard(job)
    before: Before = of_json(Before, begun["before"])
    plan: Plan = of_json(Plan, {key: begun[key] for key in ("writes", "backs")})
    ways = [line for line in job.journal.lines if line["what"] == "way"]
    if not ways:
        job.journal.note("way", way="forth")
    if ways and ways[-1]["way"] == "back":
        stopped = job.journal.lines[-1]["what"] == "end"
        return _back(job, plan, before, ways[-1]["cause"], stopped=stopped)
    return _forth(job, plan, before)


def _forth(job: Switching, plan: Plan, before: Before) -> Result:
    """Run what is left of a plan; where this fails, roll it back."""
    cause = _write_all(job, "forth", plan.writes, range(len(plan.writes)))
    if not cause:
        wanted = job.profile.shape
        tree, cause = _verify(job, lambda seen: _is(seen, wanted, before))
        if tree and not cause:
            job.journal.note("end", how="switched")
            return Result("switched", tree=tree)
    job.say(f"rolling back: {cause}")
    return _back(job, plan, before, cause)


def _back(
    job: Switching, plan: Plan, before: Before, cause: str, *, stopped: bool = True
) -> Result:
    """Undo what took effect, after the failure `cause`.

    With `stopped` the way back begins anew; else a write that was sent on it is only looked at.
    """
    if stopped:
        job.journal.note("way", way="back", cause=cause)
    failed = _write_all(job, "back", plan.backs, _undone(job, plan))
    tree = None
    if not failed:
        tree, failed = _verify(job, lambda seen: canonical_hash(seen) == before.digest)
    if not failed:
        job.journal.note("end", how="rolled back", cause=cause)
        return Result("rolled back", cause, tree)
    both = f"{cause}; rolling back failed too: {failed}"
    job.journal.note("end", how="stopped", cause=both)
    return Result("stopped", both, tree)


def _undone(job: Switching, plan: Plan) -> list[int]:
    """Return the numbers of those writes of the way back that are needed.

    One without a check is needed if what it undoes was sent. Power is switched off only for what
    is to be undone, and on in any case.
    """
    sent, last = job.journal.sent("forth"), len(plan.backs) - 1
    powered = [n for n, write in enumerate(plan.backs) if write.step == "power"]
    needed = [
        number
        for number, write in enumerate(plan.backs)
        if number not in powered and (write.check.how or last - number in sent)
    ]
    try:
        pending = any(holds(plan.backs[n].check, job.ways) is not True for n in needed)
    except BmcError:
        pending = True
    began = bool(job.journal.sent("back"))
    return sorted([*needed, *(powered if pending or began else powered[1:])])


def _write_all(job: Switching, way: Way, writes: Sequence[Write], numbers: Sequence[int]) -> str:
    """Send those of `writes` that have the `numbers`, and look for the effect of each.

    Return why this ended before the last of them, "" if it did not. A write whose effect is there
    already is left out, one that the journal has as sent is only looked at.
    """
    sent = job.journal.sent(way)
    ended = {
        line["number"]: line["how"]
        for line in job.journal.lines
        if line["what"] == "ended" and line["way"] == way
    }
    for number in numbers:
        write = writes[number]
        try:
            if number in sent:
                how = ended.get(number, "killed while it was sent")
                seen = settles(write.check, job.ways)
            elif holds(write.check, job.ways):
                continue
            else:
                job.say(f"{number + 1} of {len(writes)}: {brief(write)}")
                job.journal.note("sent", way=way, number=number)
                how, refused = send(write, job.ways)
                job.journal.note("ended", way=way, number=number, how=how)
                look = holds if refused else settles
                seen = look(write.check, job.ways)
        except BmcError as error:
            return f"{write.step}: {error.place}: {error.cause}"
        if not (how == "" if seen is None else seen):
            return f"{write.step}: {how or 'the BMC shows no effect'}"
    return ""


def _verify(job: Switching, right: Callable[[Tree], bool]) -> tuple[Tree | None, str]:
    """Wait until the operating system finds a tree that is `right`, as long as a boot may take.

    Return the last tree that was found, and why it is not right, "" if it is.
    """
    job.say("waiting for the operating system, whose tree is the proof")
    begun = time.monotonic()
    until = begun + job.file.boot_s
    tree: Tree | None = None
    while True:
        try:
            seen = job.look()
        except ParibusError as error:
            cause = f"no tree from the operating system: {error.cause}"
        else:
            if right(seen):
                return seen, ""
            if tree is None:
                until = min(until, time.monotonic() + job.file.settle_s)
            tree = seen
            cause = f"the operating system finds {_seen(seen)}"
        if time.monotonic() >= until:
            return tree, cause
        time.sleep(min(_LOOK_S, max(0.0, until - time.monotonic())))


def _seen(tree: Tree) -> str:
    """Return a tree in a few words: its shape, and how many of what it has."""
    shape = shape_of(tree)
    return f"{shape.name}: {shape.gpus} GPUs, {shape.sockets} sockets, {shape.trees} trees"


def _is(tree: Tree, shape: str, before: Before) -> bool:
    """Return whether a tree has a shape, and all the devices that were there before."""
    seen = before_of(tree)
    return (seen.shape, seen.devices) == (shape, before.devices)


def _identify(job: Switching) -> None:
    """Raise UserError where the system behind the BMC is another than the file says."""
    access = job.file.access
    table: Mapping[str, Any] = job.client.get(access.system).table
    serial = table.get("SerialNumber")
    if access.serial and serial != access.serial:
        raise UserError(
            f"the system has the serial number {str(serial)[:60]!r}, not {access.serial!r}",
            place=f"{access.place} {access.system}",
            fix="check `address` and `serial` of [bmc]: this is another server",
        )


def _guard(job: Switching) -> None:
    """Raise UserError unless nobody uses the server: it is off, idle, or a person confirms it."""
    power = job.client.get(job.file.access.system).table.get("PowerState")
    if power == "Off":
        return
    if job.file.idle:
        done = capture(job.file.idle, timeout_s=_IDLE_S)
        idle = done.exit_code == 0
        cause = f"it is not idle: {' '.join(job.file.idle)} gives exit code {done.exit_code}"
    else:
        idle = job.held or job.ways.ask(f"Is {job.host} drained, so that nobody uses it")
        cause = "nobody says that it is idle"
    if not idle:
        raise UserError(
            f"{cause}; nothing was changed",
            place=job.host,
            fix="drain it, then try again (docs/topology.md)",
        )
