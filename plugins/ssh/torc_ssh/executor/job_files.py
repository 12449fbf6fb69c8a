"""The input and output files of jobs, as the server has them. They are read once for all hosts of a run."""

import asyncio
import threading
from typing import TYPE_CHECKING, Final

from attrs import Factory, define, frozen

from torc_framework.api import RunnerContext

if TYPE_CHECKING:
    from torc_framework.api import TorcClient

PATIENCE_S: Final = 60.0
"""For so long a question is repeated while the server does not answer."""


@frozen
class JobFiles:
    """The files of one job.

    Attributes:
        inputs: Paths of the files that it reads, as the spec has them.
        outputs: Paths of the files that it writes.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


NO_FILES: Final = JobFiles()


@define
class _Known:
    """What is known of one workflow."""

    highest_job_id: int = 0
    by_job: dict[int, JobFiles] = Factory(dict)


class WorkflowFiles:
    """The files of a workflow's jobs, for the event loop of the connections.

    Args:
        context: The runner; names the server and the workflow.
    """

    def __init__(self, context: RunnerContext) -> None:
        self._context, self._known = context, _Known()
        self._question: asyncio.Task[_Known] | None = None

    def known(self, job_id: int) -> JobFiles | None:
        """Return the files of a job; None if the server has to be asked."""
        known = self._known
        return known.by_job.get(job_id, NO_FILES) if job_id <= known.highest_job_id else None

    async def read(self, job_id: int) -> JobFiles:
        """Return the files of a job; ask the server if the job is new.

        All who ask at the same time wait for the same answer, so that a server that is away is waited for once.

        Raises:
            ServerUnreachableError: the server does not answer.
            ApiError: the server refuses.
        """
        while (files := self.known(job_id)) is None:
            if self._question is None or self._question.done():
                self._question = asyncio.ensure_future(asyncio.to_thread(self._load, job_id))
            self._known = await asyncio.shield(self._question)
        return files

    def _load(self, job_id: int) -> _Known:
        with client_of(self._context) as client:
            workflow_id, ids = self._context.workflow_id, [job_id]
            ids += client.job_ids(workflow_id)
            inputs: dict[int, list[str]] = {}
            outputs: dict[int, list[str]] = {}
            for each in client.job_file_relationships(workflow_id):
                if each.consumer_job_id is not None:
                    inputs.setdefault(each.consumer_job_id, []).append(each.file_path)
                if each.producer_job_id is not None:
                    outputs.setdefault(each.producer_job_id, []).append(each.file_path)
        return _Known(
            max(ids),
            {
                job: JobFiles(_unique(inputs.get(job, ())), _unique(outputs.get(job, ())))
                for job in inputs.keys() | outputs.keys()
            },
        )


def _unique(paths: "list[str] | tuple[str, ...]") -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def client_of(context: RunnerContext, patience_s: float = PATIENCE_S) -> "TorcClient":
    """Return a client of the server that a runner uses, as the same user."""
    from torc_framework.api import TorcClient

    given = context.server_environment
    return TorcClient(
        given.get("TORC_API_URL", context.api_url),
        username=given.get("TORC_USERNAME"),
        password=given.get("TORC_PASSWORD"),
        password_file=given.get("TORC_PASSWORD_FILE"),
        patience=patience_s,
        tls_ca=given.get("TORC_TLS_CA"),
    )


_shared: Final[dict[tuple[str, int, int], WorkflowFiles]] = {}
_shared_lock: Final = threading.Lock()


def workflow_files(context: RunnerContext) -> WorkflowFiles:
    """Return the files of a runner's workflow, the same object for all runners of this process."""
    with _shared_lock:
        place = context.api_url, context.workflow_id, context.run_id
        return _shared.setdefault(place, WorkflowFiles(context))
