"""A whole workflow as one JSON document, to be kept or moved to another server.

The records in it carry the ids that they had; whoever imports them gives new ones and mends every
reference. Commands name user data as specs do, ``${user_data.input.NAME}``, since ids would mean
something else elsewhere.
"""

from typing import Final

from attrs import Factory, define

from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    FailureHandlerRecord,
    FileRecord,
    JobRecord,
    LocalSchedulerRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowActionRecord,
    WorkflowRecord,
)

EXPORT_VERSION: Final = "1.0"
"""Version of the document; another one is refused."""


@define
class WorkflowDocument:
    """One workflow with everything that belongs to it.

    Attributes:
        exported_at: When it was made, UTC, ISO 8601.
        jobs: With all their relations.
        results: Of all runs, if they were asked for.
        compute_nodes: Runners that results and events name.
        events: If they were asked for, oldest first.
    """

    export_version: str
    workflow: WorkflowRecord
    exported_at: str | None = None
    files: list[FileRecord] = Factory(list)
    user_data: list[UserDataRecord] = Factory(list)
    resource_requirements: list[ResourceRequirementsRecord] = Factory(list)
    slurm_schedulers: list[SlurmSchedulerRecord] = Factory(list)
    local_schedulers: list[LocalSchedulerRecord] = Factory(list)
    failure_handlers: list[FailureHandlerRecord] = Factory(list)
    jobs: list[JobRecord] = Factory(list)
    workflow_actions: list[WorkflowActionRecord] = Factory(list)
    results: list[ResultRecord] | None = None
    compute_nodes: list[ComputeNodeRecord] | None = None
    events: list[EventRecord] | None = None
