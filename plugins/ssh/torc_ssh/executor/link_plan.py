"""What the link to a host is made for."""

from collections.abc import Callable

from attrs import frozen

from torc_framework.api import LauncherEvent, RunnerContext
from torc_ssh.addresses import HostAddress
from torc_ssh.connection import SshSettings
from torc_ssh.executor.attempt_records import AttemptRecords
from torc_ssh.executor.job_files import WorkflowFiles
from torc_ssh.executor.options import SshOptions


@frozen
class LinkPlan:
    """What a link is made for.

    Attributes:
        address: The host.
        name: Name of the launcher, which no other launcher on this or another machine has.
        options: Options of the executor.
        context: The runner.
        files: The files of the workflow's jobs.
        report: Takes events, and is called without any when a hindrance has changed.
    """

    address: HostAddress
    name: str
    options: SshOptions
    context: RunnerContext
    files: WorkflowFiles
    records: AttemptRecords
    report: Callable[[list[LauncherEvent]], None]

    def settings(self) -> SshSettings:
        """Return how the host is connected to."""
        return SshSettings(
            connect_timeout_s=self.options.connect_timeout_s,
            keepalive_interval_s=self.options.keepalive_s,
            ssh_command=self.options.ssh_command,
        )
