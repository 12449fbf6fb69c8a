"""The server's records of the runners on hosts: which job attempts they hold."""

import posixpath
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import define, field

from torc_framework.api import ComputeNodeRecord, JobRecord, TorcClient
from torc_ssh.addresses import HostAddress
from torc_ssh.remote_runners.runner_process import RunnerState


@define
class RunnerRecords:
    """Finds the record that the server has of a runner on a host.

    Args:
        client: The client of the server.
        workflow_id: The workflow.
    """

    _client: TorcClient
    _workflow_id: int
    _nodes: list[ComputeNodeRecord] = field(factory=list, init=False)

    def refresh(self) -> None:
        """Ask the server for the records, newest first."""
        found = self._client.find(ComputeNodeRecord, workflow_id=self._workflow_id)
        self._nodes = sorted(found, key=lambda node: -(node.id or 0))

    @property
    def newest_id(self) -> int:
        """Id of the newest record; 0 if there is none."""
        return max((node.id or 0 for node in self._nodes), default=0)

    def of_runner(self, runner: RunnerState, hostname: str, output_dir: str) -> list[ComputeNodeRecord]:
        """Return the records of a runner: its own, and active ones of earlier runners whose attempts it has taken over.

        Args:
            runner: The process. Where ``torc`` is a script that starts another process, that one has the record; it is
                found by host and output directory, as those of earlier runners are.
            hostname: The host's name.
            output_dir: Absolute path of the output directory.
        """
        return [
            node
            for node in self._nodes
            if _is_of_process(node, runner)
            or (node.is_active and (node.hostname, _output_dir(_facts(node))) == (hostname, output_dir))
        ]

    def active_on(self, hostname: str) -> list[str]:
        """Return the output directories of the runners that the server takes for active on a host."""
        folders = [_output_dir(_facts(node)) for node in self._nodes if node.is_active and node.hostname == hostname]
        return [folder for folder in dict.fromkeys(folders) if folder]

    def of_address(self, address: HostAddress) -> list[ComputeNodeRecord]:
        """Return the active records of a host that does not answer, by its name, newest first."""
        names = {address.host, address.host.partition(".")[0]}
        return [node for node in self._nodes if node.is_active and node.hostname in names]

    def age_s(self, node: ComputeNodeRecord) -> float:
        """Return the seconds since a runner registered, by its host's clock and this one's."""
        return max(0.0, time.time() - datetime.fromisoformat(node.start_time).timestamp())

    def jobs_of(self, nodes: Sequence[ComputeNodeRecord]) -> list[str]:
        """Return the names of the jobs that runners hold."""
        held = (
            self._client.iterate(JobRecord, workflow_id=self._workflow_id, active_compute_node_id=node.id)
            for node in nodes
            if node.is_active
        )
        return [job.name for jobs in held for job in jobs]


def _is_of_process(node: ComputeNodeRecord, runner: RunnerState) -> bool:
    facts = _facts(node)
    return runner.identity == (facts.get("pid"), facts.get("pid_start"), facts.get("boot_id"))


def _facts(node: ComputeNodeRecord) -> Mapping[str, Any]:
    return node.scheduler if isinstance(node.scheduler, dict) else {}


def _output_dir(facts: Mapping[str, Any]) -> str:
    """Return the output directory of a runner: its spool is two levels below."""
    spool = facts.get("spool")
    return posixpath.dirname(posixpath.dirname(spool)) if isinstance(spool, str) else ""
