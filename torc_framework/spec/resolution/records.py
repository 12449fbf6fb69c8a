"""Records of a plan that are copied from the spec, and the checks of their values."""

import json
import re
from typing import Any, Final

from attrs import asdict, fields

from torc_framework.models.records import (
    FailureHandlerRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)
from torc_framework.spec.language.findings import Problems, SpecFinding
from torc_framework.spec.language.model import (
    FailureHandlerSpec,
    ResourceMonitorSpec,
    WorkflowSpec,
)
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.schema import Schema
from torc_framework.supervision.shells import shell_words
from torc_framework.system.user import user_name

_WALLTIME: Final = re.compile(r"\d+(:\d{1,2}){0,2}|\d+-\d{1,2}(:\d{1,2}){0,2}")
_MANAGED_OPTIONS: Final = ("partition", "nodes", "walltime", "time", "mem", "gres", "name", "job-name")
"""sbatch options that have fields of their own in a scheduler (Torc, "SlurmDefaultsSpec")."""
_GRANULARITIES: Final = {"Summary": "summary", "TimeSeries": "time_series"}
_SAME_IN_RECORD: Final = tuple(
    attribute.name
    for attribute in fields(WorkflowRecord)
    if attribute.name in {other.name for other in fields(WorkflowSpec)} - {"user", "metadata", "slurm_defaults"}
)


def workflow_record(spec: WorkflowSpec, options: LoadOptions) -> WorkflowRecord:
    """Return the workflow's record; fields that are absent in the spec have the record's default."""
    given = {name: value for name in _SAME_IN_RECORD if (value := getattr(spec, name)) is not None}
    return WorkflowRecord(
        **given,
        user=options.owner or spec.user or options.user or user_name(),
        metadata=spec.metadata if spec.metadata is None or isinstance(spec.metadata, str) else _json(spec.metadata),
        slurm_defaults=None if spec.slurm_defaults is None else _json(spec.slurm_defaults),
        resource_monitor_config=_monitor(spec.resource_monitor),
    )


def failure_handlers(specs: list[FailureHandlerSpec], schema: Schema) -> list[FailureHandlerRecord]:
    """Return the records of failure handlers; absent keys of rules get the defaults of their schema."""
    defaults = {key: part["default"] for key, part in schema["properties"].items() if "default" in part}
    return [
        FailureHandlerRecord(
            workflow_id=0, name=spec.name, rules=_json([{**defaults, **given} for given in spec.rules])
        )
        for spec in specs
    ]


def slurm_schedulers(workflow: WorkflowSpec, problems: Problems) -> list[SlurmSchedulerRecord]:
    """Return the records of Slurm schedulers; the workflow's default ``qos`` has precedence over the record's."""
    specs = workflow.slurm_schedulers or []
    defaults = {name: str(value) for name, value in (workflow.slurm_defaults or {}).items() if name == "qos"}
    for position, spec in enumerate(specs):
        if not _WALLTIME.fullmatch(spec.walltime):
            path = ("slurm_schedulers", position, "walltime")
            problems.add(SpecFinding(repr(spec.walltime), "a time such as 04:00:00 or 1-12:00:00", path=path))
    return [
        SlurmSchedulerRecord(
            workflow_id=0, **defaults | {name: value for name, value in asdict(spec).items() if value is not None}
        )
        for spec in specs
    ]


def check_slurm_defaults(spec: WorkflowSpec, problems: Problems) -> None:
    """Add findings for defaults of options that have fields of their own in a scheduler."""
    for key in spec.slurm_defaults or {}:
        if key in _MANAGED_OPTIONS:
            hint = "set it on each scheduler"
            finding = SpecFinding(f"{key!r} cannot be a default", hint=hint, path=("slurm_defaults", key), at_key=True)
            problems.add(finding)


def check_shell(shell: str | None, path: tuple[str | int, ...], problems: Problems) -> None:
    """Add a finding for an invalid shell, once for each entry."""
    if shell is not None:
        try:
            shell_words(shell)
        except ValueError as error:
            problems.add(SpecFinding(str(error), path=path), "shell")


def _monitor(spec: ResourceMonitorSpec | None) -> str | None:
    if spec is None:
        return None
    return _json({**asdict(spec), "granularity": _GRANULARITIES.get(spec.granularity, spec.granularity)})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
