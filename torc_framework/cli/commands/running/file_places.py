"""Of which jobs this machine sees the files: those of executors that check output files themselves may be elsewhere."""

from collections.abc import Mapping, Set
from typing import Any, Final, Self

from attrs import field, frozen

from torc_framework.cli.shared.session import Session
from torc_framework.client import TorcClient
from torc_framework.models.lazy_mapping import LazyMapping
from torc_framework.models.records import JobRecord


@frozen
class FilePlaces:
    """The executors whose files this machine may not see.

    Attributes:
        elsewhere: Of each executor, whether it checks output files itself, where its attempts run.
        run_executor: Executor of jobs that name none.
    """

    elsewhere: Mapping[str, bool] = field(factory=dict)
    run_executor: str = ""

    @classmethod
    def of(cls, session: Session, run_executor: str | None = None, *, workflow_id: int | None = None) -> Self:
        """Return the places of files as the installed executors have them.

        Args:
            session: The session of the command.
            run_executor: Executor of the run that begins; None if the command does not know it. It is then that of the
                workflow's last runner, or the configured one.
            workflow_id: A stored workflow.
        """
        from torc_framework.next_step import last_executor

        names, executors = session.plugins(skip_untrusted=True).executor_names(), session.executors()
        elsewhere = LazyMapping(names, lambda name: _checks_outputs(executors.get(name)))
        if run_executor is None and workflow_id is not None and any(elsewhere.values()):
            run_executor = last_executor(session.client, workflow_id)
        return cls(elsewhere, run_executor or session.config.client.run.executor)

    def are_here(self, executor: str | None) -> bool:
        """Return whether this machine sees the files of a job with this executor, or with none."""
        return not self.elsewhere.get(executor or self.run_executor, False)

    def read_here(self, client: TorcClient, workflow_id: int, file_ids: Set[int]) -> Set[int]:
        """Return those of these files of a stored workflow that jobs read whose files this machine sees."""
        if not file_ids or not any(self.elsewhere.values()):
            return file_ids
        here = {job.id for job in client.iterate(JobRecord, workflow_id=workflow_id) if self.are_here(job.executor)}
        relations = client.job_file_relationships(workflow_id)
        return {each.file_id for each in relations if each.consumer_job_id in here} & file_ids


EVERYWHERE_HERE: Final = FilePlaces()
"""This machine sees the files of all jobs."""


def _checks_outputs(executor: Any) -> bool:
    """Return whether an executor checks output files; one that only allocates may have no capabilities here."""
    return bool(getattr(getattr(executor, "capabilities", None), "checks_outputs", False))
