"""Nodes lent one by one, for screens: each has a job of its own, which starts when it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace

from paribus.core import Scheduler, count, fold
from paribus.hosts.reached import Host
from paribus.schedulers.allocations import Allocations
from paribus.schedulers.dialect import Job, Phase
from paribus.schedulers.known import dialect_of


class Singly(Allocations):
    """Jobs on single `nodes`, each with the request `each`. A context manager, which ends them all.

    Nothing is submitted before `ask`. `nodes` must be the same in each sitting: by them the jobs
    are found that a killed sitting has left in the queue.
    """

    def __init__(
        self,
        each: Scheduler,
        nodes: Sequence[str],
        key: str,
        place: str,
        notify: Callable[[str], None],
    ) -> None:
        named = dialect_of(each).named
        asked = {one: replace(each, options=(*each.options, named([one]))) for one in nodes}
        super().__init__(asked, key, place, notify)

    def _obtain(self) -> None:
        """Submit nothing yet."""

    def ask(self, nodes: Iterable[str]) -> None:
        """Submit a job for each of `nodes`; raises UserError as Allocations does."""
        wanted = [*nodes]
        for node in wanted:
            self._submit(node, self.asked[node])
        if wanted:
            self.notify(f"submitted {count(len(wanted), 'job')}: {fold(wanted)}")

    def give_back(self, nodes: Iterable[str]) -> None:
        """End the jobs of `nodes`, running or waiting."""
        for node in {*nodes}.intersection(self._begun):
            self._cancel(self._name(node))
            self._begun.remove(node)
        self._jobs = {ident: node for ident, node in self._jobs.items() if node in self._begun}

    def queued(self) -> dict[str, Job]:
        """Return the jobs that run or wait, by node; those that have ended are dropped.

        Raises UserError for one that Slurm will never start as it was asked for.
        """
        known = self._look()
        found = {node: known[ident] for ident, node in self._jobs.items() if ident in known}
        found = {node: job for node, job in found.items() if job.phase is not Phase.ENDED}
        for node, job in found.items():
            self._check(node, job.ident, job)
        self.give_back({*self._jobs.values()} - found.keys())
        return found

    def host(self, node: str, job: Job) -> Host:
        """Return the host of a node whose `job` runs."""
        return Host(node, self.dialect.shell(job, node))

    def alone(self, node: str, job: Job) -> Allocations:
        """Return the allocation of one node whose `job` runs, which ends with that job alone.

        It counts no energy: Slurm would be asked twice for each launch on each node.
        """
        one = copy(self)
        one._jobs, one._ends, one.ends_at = {job.ident: node}, {job.ident: job.ends_at}, job.ends_at
        one._counts = False
        return one
