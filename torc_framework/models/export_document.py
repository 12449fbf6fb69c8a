"""The export document: a whole workflow as one JSON document, for an archive or for another server.

The records keep the ids that they had on the exporting server. The importing server gives them new ids and changes
every reference accordingly. Commands refer to user data by name, as specs do (``${user_data.input.NAME}``), because
an id belongs to one server.
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
"""Version of the document; the server refuses documents of any other version."""


@define
class WorkflowDocument:
    """One workflow with all its records.

    Attributes:
        exported_at: Time of the export, UTC, ISO 8601.
        jobs: The jobs with all their relations.
        results: Results of all runs, if requested.
        compute_nodes: Runners to which results and events refer.
        events: Events, oldest first, if requested.
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
