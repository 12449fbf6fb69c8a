"""The context of all tools: the client, the plugins, the folder of logs, and the limits of access."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torc_framework.client import TorcClient
from torc_framework.errors import UserError
from torc_framework.models.records import JobRecord, ResultRecord, WorkflowRecord
from torc_framework.text.redaction import MARK, is_secret_name, redact, secret_values

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

MAX_ITEMS: Final = 200
"""Most jobs, results or workflows in one answer, so that it fits an assistant's context."""


class ToolContext:
    """The client, plugins and limits that the tools use.

    Args:
        client: The server.
        plugins: Returns the plugin manager; called at the first use.
        output_dir: Folder of the runners' logs; no file outside it is read.
        user: Owner of workflows that are created.
        workflow_id: The only workflow that the tools may read or change; None for all.
        min_confidence: A verdict with less confidence, or none, leaves its job waiting.
        executor_options: Returns the configured options of executors, by executor.
        policy_options: Returns the configured options of recovery policies.
    """

    def __init__(
        self,
        client: TorcClient,
        plugins: "Callable[[], PluginManager]",
        *,
        output_dir: Path = Path("output"),
        user: str = "",
        workflow_id: int | None = None,
        min_confidence: float = 0.0,
        executor_options: "Callable[[PluginManager], Mapping[str, Mapping[str, Any]]]" = lambda _: {},
        policy_options: "Callable[[PluginManager], Mapping[str, Any]]" = lambda _: {},
    ) -> None:
        self.client, self._load_plugins = client, plugins
        self.output_dir, self.user = output_dir.absolute(), user
        self.only, self.min_confidence = workflow_id, min_confidence
        self._executor_options, self._policy_options = executor_options, policy_options
        self._secrets = secret_values()

    @cached_property
    def plugins(self) -> "PluginManager":
        """The plugins."""
        return self._load_plugins()

    @cached_property
    def executor_options(self) -> Mapping[str, Mapping[str, Any]]:
        """The configured options of executors, by executor."""
        return self._executor_options(self.plugins)

    @cached_property
    def policy_options(self) -> Mapping[str, Any]:
        """The configured options of recovery policies."""
        return self._policy_options(self.plugins)

    def workflow(self, workflow_id: int) -> WorkflowRecord:
        """Return a workflow that the tools may read.

        Raises:
            UserError: this server is for another workflow.
        """
        if self.only not in (None, workflow_id):
            raise UserError(f"this server is for workflow {self.only} only, not for workflow {workflow_id}")
        return self.client.get(WorkflowRecord, workflow_id)

    def job(self, job_id: int) -> JobRecord:
        """Return a job of a workflow that the tools may read."""
        job = self.client.get(JobRecord, job_id)
        self.workflow(job.workflow_id)
        return job

    def last_result(self, job: JobRecord) -> ResultRecord | None:
        """Return the last result of a job; None if it has none."""
        found = self.client.find(ResultRecord, workflow_id=job.workflow_id, job_id=job.id)
        return found[-1] if found else None

    def log(self, path: Path) -> Path:
        """Return the real path of a log.

        Raises:
            UserError: it leads out of the output folder.
        """
        real, home = path.resolve(), self.output_dir.resolve()
        if not real.is_relative_to(home):
            raise UserError(f"{path.name} leads out of the output folder: it is not read")
        return real

    def without_secrets(self, value: Any) -> Any:
        """Return JSON values with secrets replaced."""
        if isinstance(value, str):
            return redact(value, self._secrets)
        if isinstance(value, Mapping):
            return {
                str(key): MARK if isinstance(item, str) and is_secret_name(str(key)) else self.without_secrets(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.without_secrets(item) for item in value]
        return value
