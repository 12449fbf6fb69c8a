"""`map_function_to_jobs`: adds one job for each input of a Python function, and one job for all their results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from torc_framework.client.calls.torc_client import TorcClient
from torc_framework.client.mapped_functions.functions import importable, load, name_of, require_arguments
from torc_framework.client.mapped_functions.values import annotation_of, from_json_values, to_json_values
from torc_framework.errors import UserError
from torc_framework.models.plan import AddedJob, Addition
from torc_framework.models.records import JobRecord, UserDataRecord
from torc_framework.system.user import expand_home

RUN_FUNCTION: Final = "torc jobs run-function"
RUN_POSTPROCESS: Final = "torc jobs run-postprocess"


def input_name(job_name: str) -> str:
    """Return the name of the user data that describes a job's call."""
    return f"input_{job_name}"


def map_function_to_jobs(
    api: TorcClient,
    workflow_id: int,
    module: str | ModuleType | None,
    func: str | Callable[..., Any],
    params: Iterable[Any],
    *,
    postprocess_func: str | Callable[..., Any] | None = None,
    module_directory: str | Path | None = None,
    resource_requirements_id: int | None = None,
    scheduler_id: int | None = None,
    start_index: int = 1,
    name_prefix: str = "",
    depends_on_job_ids: Sequence[int] | None = None,
) -> list[JobRecord]:
    """Add one job for each of ``params``, which calls ``func(job_name, param)``.

    The function's result is stored as the job's output user data; an exception fails the job. All records are added in
    one transaction. The jobs are named ``1``, ``2``, ..., their user data ``input_1`` and ``output_1``; the job of
    ``postprocess_func`` is named ``postprocess``, its user data ``input_postprocess`` and ``postprocess_result``. In
    all of these names ``name_prefix`` precedes the name of the job.

    Args:
        api: Client of the server that has the workflow.
        workflow_id: Id of the workflow.
        module: The function's module or its name; None if ``func`` is the function itself. Jobs must be able to import
            it: it is installed, or lies in the working folder or in ``module_directory``.
        func: The function or its name.
        params: Inputs: JSON values, dataclasses, attrs classes or pydantic models. A function whose second parameter is
            annotated with such a class gets an instance of it; other functions get plain values.
        postprocess_func: A function, or the name of one in the same module, that is called with the list of all
            results, in the order of ``params``, when all jobs have completed; None is ``{}``. See also `FailedCall`.
        module_directory: Folder of the module if it is neither installed nor in the working folder.
        resource_requirements_id: Resource requirements of each job.
        scheduler_id: Scheduler that each job is bound to.
        start_index: Number of the first job.
        name_prefix: Text before the numbers in the jobs' names.
        depends_on_job_ids: Jobs that all of these jobs wait for.

    Returns:
        The new jobs, the job of ``postprocess_func`` last.

    Raises:
        UserError: a function cannot be imported or called with its arguments, or a value cannot be stored as JSON;
            nothing was added.
        ApiError: the server refused; nothing was added.
    """
    directory = None if module_directory is None else str(expand_home(module_directory).resolve())
    with importable(directory):
        mapped = _checked_names(module, func, "job_name", "params")
        inputs = _plain_inputs(params, annotation_of(load(*mapped), 1))
        if postprocess_func is not None:
            module = mapped[0] if module is None and isinstance(postprocess_func, str) else module
            postprocess = _checked_names(module, postprocess_func, "results")
    shared = {"resource_requirements_id": resource_requirements_id, "scheduler_id": scheduler_id}
    builder = _MappedJobsBuilder(directory, name_prefix, shared)
    builder.add_mapped(mapped, inputs, start_index)
    if postprocess_func is not None:
        builder.add_postprocess(postprocess)
    return builder.store(api, workflow_id, list(depends_on_job_ids or ()))


def _checked_names(module: str | ModuleType | None, func: str | Callable[..., Any], *arguments: str) -> tuple[str, str]:
    """Return the names of a function's module and of the function, which exists and takes these arguments."""
    names = name_of(module, func)
    require_arguments(load(*names), *arguments)
    return names


class _MappedJobsBuilder:
    """Builds jobs that call functions, with the user data of their calls and of their results."""

    def __init__(self, directory: str | None, name_prefix: str, shared: dict[str, Any]) -> None:
        self._jobs: list[AddedJob] = []
        self._user_data: list[UserDataRecord] = []
        self._directory = {} if directory is None else {"module_directory": directory}
        self._name_prefix = name_prefix
        self._shared = shared

    def add_mapped(self, names: tuple[str, str], inputs: Iterable[Any], start_index: int) -> None:
        """Add a job for each input."""
        for number, plain in enumerate(inputs, start_index):
            name = f"{self._name_prefix}{number}"
            self._add(name, RUN_FUNCTION, names, f"output_{name}", params=plain)

    def add_postprocess(self, names: tuple[str, str]) -> None:
        """Add a job that reads the results of all jobs so far."""
        name = f"{self._name_prefix}postprocess"
        results = [job.output_user_data[0] for job in self._jobs]
        self._add(name, RUN_POSTPROCESS, names, f"{name}_result", results)

    def _add(
        self, job: str, command: str, names: tuple[str, str], output: str, results: Iterable[int] = (), **more: Any
    ) -> None:
        """Add a job; ``results`` are the positions of the user data that it reads besides its call."""
        module, func = names
        call = {"module": module, **self._directory, "func": func, "job_name": job, **more}
        first = len(self._user_data)
        self._user_data += [
            UserDataRecord(workflow_id=0, name=input_name(job), data=call),
            UserDataRecord(workflow_id=0, name=output),
        ]
        self._jobs.append(
            AddedJob(job, command, input_user_data=[first, *results], output_user_data=[first + 1], **self._shared)
        )

    def store(self, api: TorcClient, workflow_id: int, depends_on_job_ids: list[int]) -> list[JobRecord]:
        """Store the jobs in one transaction; return their records."""
        added = api.add(workflow_id, Addition(self._jobs, self._user_data, depends_on_job_ids))
        return [
            JobRecord(
                id=job_id,
                workflow_id=workflow_id,
                name=job.name,
                command=job.command,
                status="uninitialized",
                depends_on_job_ids=depends_on_job_ids or None,
                input_user_data_ids=sorted(added.user_data_ids[position] for position in job.input_user_data),
                output_user_data_ids=[added.user_data_ids[position] for position in job.output_user_data],
                **self._shared,
            )
            for job_id, job in zip(added.job_ids, self._jobs, strict=True)
        ]


def _plain_inputs(params: Iterable[Any], annotation: Any) -> list[Any]:
    """Return the inputs as JSON values, each of which converts back to what the function takes."""
    if isinstance(params, str | bytes | Mapping):
        raise UserError(f"params is one {type(params).__name__}; give a list of inputs, one for each job")
    inputs = []
    for position, value in enumerate(params):
        what = f"params[{position}]"
        plain = to_json_values(value, what)
        from_json_values(plain, annotation, what)
        inputs.append(plain)
    if not inputs:
        raise UserError("params holds no inputs, so there is nothing to do")
    return inputs
