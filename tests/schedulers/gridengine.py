"""A real Grid Engine on a pocket cluster: a qmaster in the fabric's network, an execd on each host.

Its packages are unpacked, not installed: installed ones bring a mail server. What is compiled into
them, /usr/lib/gridengine, is laid over /usr/lib where only its own processes see it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from containers.gates import Gate, gated
from processes import ran
from schedulers.slurm import Daemon, until

UNPACKED = Path(os.environ.get("PARIBUS_TEST_GRIDENGINE", "/opt/paribus-tests/gridengine"))
"""Where gridengine-{common,client,exec,master}, libjemalloc2 and libmunge2 are unpacked."""

BIN = "/usr/lib/gridengine"

_BOOTSTRAP = {
    "admin_user": "none",
    "spooling_params": "{root}/spooldb",
    "binary_path": BIN,
    "qmaster_spool_dir": "{root}/default/spool/qmaster",
}
_CONFIGURATION = {
    "execd_spool_dir": "{root}/default/spool",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:02",
}
_SCHEDULING = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "job_load_adjustments": "NONE",
    "queue_sort_method": "seqno",
}
_ENVIRONMENT = """\
pe_name whole
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule 2
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""
_QUEUE = {
    **dict.fromkeys(("load_thresholds", "suspend_thresholds", "ckpt_list", "prolog"), "NONE"),
    **dict.fromkeys(("epilog", "starter_method", "suspend_method", "resume_method"), "NONE"),
    **dict.fromkeys(("terminate_method", "owner_list", "user_lists", "xuser_lists"), "NONE"),
    **dict.fromkeys(("subordinate_list", "complex_values", "projects", "xprojects"), "NONE"),
    "calendar": "NONE",
    **{f"{kind}_rt": "INFINITY" for kind in "sh"},
    **{
        f"{kind}_{what}": "INFINITY"
        for what in ("cpu", "fsize", "data", "stack", "core", "rss", "vmem")
        for kind in "sh"
    },
    "h_rt": "01:00:00",
    "seq_no": "0",
    "nsuspend": "1",
    "suspend_interval": "00:05:00",
    "priority": "0",
    "min_cpu_interval": "00:05:00",
    "processors": "UNDEFINED",
    "qtype": "BATCH",
    "pe_list": "whole",
    "rerun": "FALSE",
    "slots": "2",
    "tmpdir": "/tmp",
    "shell": "/bin/sh",
    "shell_start_mode": "unix_behavior",
    "notify": "00:00:60",
    "initial_state": "default",
}


class Killed(Daemon):
    """A daemon that ends by KILL: nothing of what it keeps is needed, and by TERM it takes 10 s."""

    def end(self) -> None:
        """End it at once; what it started ends with its host."""
        self.process.kill()
        self.process.wait()


_JOB = r"<JB_name>([^<]*)</JB_name>.*?<state>([^<]*)</state>"


class Site:
    """A running Grid Engine: how a program is started where its users log in."""

    def __init__(
        self, prefix: Sequence[str], env: Mapping[str, str], place: Path, gate: Gate
    ) -> None:
        self.prefix, self.env, self.place, self.gate = tuple(prefix), dict(env), place, gate

    def ask(self, *argv: str) -> str:
        """Return what a command printed; raises CalledProcessError."""
        done = ran([*self.prefix, *argv], env=self.env, code=0)
        return done.stdout

    def jobs(self) -> list[str]:
        """Return the names of the jobs that have not ended, and that nobody deletes."""
        listed = re.findall(_JOB, self.ask("qstat", "-xml", "-u", "*"), re.DOTALL)
        return [name for name, state in listed if "d" not in state]

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for `done`."""
        until(done, self.place, "Grid Engine")

    def configure(self, option: str, text: str) -> None:
        """Give `qconf` an option with a file of this text."""
        path = self.place / "given"
        path.write_text(text)
        self.ask("qconf", option, str(path))


def missing() -> str:
    """Return what this machine lacks for a Grid Engine, "" for nothing."""
    if os.geteuid() != 0:
        return "not root"
    if not (UNPACKED / "usr/lib/gridengine/sge_qmaster").is_file():
        return f"no Grid Engine in {UNPACKED}: .ci/run says how it is unpacked"
    laid = ["unshare", "-m", "mount", *_laid()]
    done = ran(laid)
    return "" if done.returncode == 0 else f"no overlay can be mounted: {done.stderr.strip()}"


def _laid() -> list[str]:
    """Return the words of `mount` that lay the unpacked libraries over those of this machine."""
    return ["-t", "overlay", "-o", f"lowerdir={UNPACKED}/usr/lib:/usr/lib", "overlay", "/usr/lib"]


@contextmanager
def gridengine(hosts: int, queues: Mapping[str, Sequence[str]]) -> Iterator[Site]:
    """Start a Grid Engine of `hosts` hosts h1, h2, ... of 2 slots in `queues`; end all of it."""
    with ExitStack() as stack:
        # Hosts have a /tmp of their own, so what they share is elsewhere.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        place.chmod(0o755)
        gate = stack.enter_context(gated(hosts, str(place / "pocket")))
        own = {"SGE_ROOT": f"{place}/root", "SGE_CELL": "default", "SGE_ND": "1"}
        own |= {"SGE_QMASTER_PORT": "16444", "SGE_EXECD_PORT": "16445"}
        kept = {key: value for key, value in os.environ.items() if key not in ("JOB_ID",)}
        env = {**kept, **own, "PATH": f"{BIN}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        mounts = f"mount {' '.join(_laid())} && mount --bind {place}/pocket/hosts /etc/hosts"
        enter = [*gate.prefix[:-1], "-u", "--", "unshare", "-m"]
        site = Site([*enter, "/bin/sh", "-c", f'{mounts} && exec "$@"', "sh"], env, place, gate)
        _write(site, place / "root")
        qmaster = [*site.prefix, f"{BIN}/sge_qmaster"]
        stack.enter_context(Killed(qmaster, env, place / "qmaster.out"))
        site.until(lambda: "fabric" in site.ask("qconf", "-sh"))
        site.ask("qconf", "-as", "fabric")
        settings = " ".join(f"{key}={value}" for key, value in own.items())
        for host in gate.pocket.hosts:
            site.ask("qconf", "-ah", host.name)
            start = f"mount {' '.join(_laid())} && exec env {settings} {BIN}/sge_execd"
            stack.enter_context(Killed([*host.shell, "-c", start], env, place / f"{host.name}.out"))
        site.until(lambda: site.ask("qhost").count("lx-amd64") == hosts)
        site.configure("-Ap", _ENVIRONMENT)
        for name, its in queues.items():
            lines = {"qname": name, "hostlist": " ".join(its), **_QUEUE}
            site.configure("-Aq", "".join(f"{key} {value}\n" for key, value in lines.items()))
        site.configure("-Msconf", _edited(site.ask("qconf", "-ssconf"), _SCHEDULING))
        yield site
        if site.jobs():
            site.ask("qdel", "-u", "*")


def _write(site: Site, root: Path) -> None:
    """Write the root directory of a new Grid Engine."""
    there = UNPACKED / "usr/share/gridengine"
    for name in ("spooldb", "default/common", "default/spool/qmaster/job_scripts"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "utilbin"):
        (root / name).mkdir()
        (root / name / "lx-amd64").symlink_to(BIN)
    shutil.copytree(there / "util", root / "util", symlinks=True)
    common = root / "default/common"
    bootstrap = {key: value.format(root=root) for key, value in _BOOTSTRAP.items()}
    given = {key: value.format(root=root) for key, value in _CONFIGURATION.items()}
    text = _edited((there / "default-bootstrap").read_text(), bootstrap)
    (common / "bootstrap").write_text(text)
    (common / "act_qmaster").write_text("fabric\n")
    (common / "host_aliases").write_text("fabric localhost\n")
    (root / "given").write_text(_edited((there / "default-configuration").read_text(), given))
    site.ask(f"{BIN}/spoolinit", "berkeleydb", "libspoolb", f"{root}/spooldb", "init")
    for what, source in (
        ("configuration", f"{root}/given"),
        ("complexes", f"{root}/util/resources/centry"),
        ("usersets", f"{root}/util/resources/usersets"),
        ("managers", "root"),
    ):
        site.ask(f"{BIN}/spooldefaults", what, source)


def _edited(text: str, given: Mapping[str, str]) -> str:
    """Return lines of `key value`, with those of `given` for theirs."""
    for key, value in given.items():
        text, found = re.subn(rf"(?m)^{key}\s.*$", f"{key} {value}", text)
        assert found == 1, key
    return text
