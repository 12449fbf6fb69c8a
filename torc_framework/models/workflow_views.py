"""The server's responses with which pages and screens draw a workflow: counts, graph, timeline, failures, job table.

Every view is bounded, however many jobs a workflow has: what is left out is counted. Lists of many equal items are sent
as columns, which are lists of the same length, because that takes a seventh of the bytes of records.
"""

from typing import Any

import msgspec

from torc_framework.models.progress import WorkflowOverview

# --- groups of jobs ---------------------------------------------------------------------------------


class JobsOfStage(msgspec.Struct):
    """The jobs of one group in one stage: jobs whose names differ in their digits only.

    Attributes:
        group: Label of the group: the name with ``#`` for each run of digits. The filter ``group:"LABEL"`` finds it.
        stage: Number of the first of its stages, from 1: one more than the jobs of the longest chain before its jobs.
        last_stage: Number of the last of its stages; a group has one entry for all its stages where they are many.
        first_name: First of their names in the order of texts.
        last_name: Last of their names.
        count: Number of jobs.
        counts: The same by status label; statuses without jobs are left out.
    """

    group: str
    stage: int
    last_stage: int
    first_name: str
    last_name: str
    count: int
    counts: dict[str, int]


# --- progress ---------------------------------------------------------------------------------------


class Throughput(msgspec.Struct):
    """How many attempts ended in a recent span of time.

    Attributes:
        window_s: Length of the span in seconds, which ends at present; it does not begin before the run.
        completed: Attempts that completed.
        failed: Attempts that did not.
        per_minute: All of them a minute.
    """

    window_s: float
    completed: int
    failed: int
    per_minute: float


class RunEstimate(msgspec.Struct):
    """When the jobs that are left may be done, as an interval.

    Attributes:
        left_jobs: Jobs that have neither ended nor been disabled.
        seconds: Expected seconds until they are done.
        least_seconds: Lower end of the interval that has the end with a probability of 80 %, if the model holds.
        most_seconds: Upper end.
        ends_at: The expected end, UTC, ISO 8601.
        places: Jobs that run at the same time, on which it rests: now, or on average in the last five minutes.
        samples: Completed attempts on which it rests.
    """

    left_jobs: int
    seconds: float
    least_seconds: float
    most_seconds: float
    ends_at: str
    places: float
    samples: int


class OldestReady(msgspec.Struct):
    """The ready job of the smallest id.

    Attributes:
        since: When the last job that it waits for ended, or its own attempt before, UTC, ISO 8601; None if it was ready
            from the beginning of the run.
    """

    job_id: int
    name: str
    since: str | None = None


class ProgressView(msgspec.Struct):
    """How far a workflow is, and when it may be done.

    Attributes:
        at: Time of this answer, UTC, ISO 8601.
        stage_count: Number of stages of the workflow.
        groups: Jobs by stage and group, in the order of stages; the first of them only.
        group_count: Number of all pairs of stage and group.
        throughput: Over a minute, five minutes, an hour and the whole run; shorter runs have fewer.
        estimate: None if no runner holds a job, or if the end is not known.
        end_unknown: What makes the end unknown, as a clause; None with an estimate, and if no runner holds a job.
        oldest_ready: None without ready jobs.
    """

    overview: WorkflowOverview
    at: str
    stage_count: int
    groups: list[JobsOfStage]
    group_count: int
    throughput: list[Throughput]
    estimate: RunEstimate | None = None
    oldest_ready: OldestReady | None = None
    end_unknown: str | None = None


# --- graph ------------------------------------------------------------------------------------------


class GraphNode(msgspec.Struct, omit_defaults=True):
    """One node of a drawn graph.

    Attributes:
        id: Name of the node, for the parameter ``open``: ``j345`` is the job 345, ``f7`` the file 7, ``u7`` the user
            data 7; any other is a group.
        kind: ``job``, ``jobs``, ``file``, ``files``, ``user_data``, or ``rest``: all other nodes of its layer.
        label: Name of what it stands for; that of a group has ``#`` for each run of digits.
        count: Number of jobs, files or user data that it stands for.
        counts: Jobs by status label.
        stage: Number of the stage of jobs, from 1; that of the first of them.
        last_stage: Number of the stage of the last of them.
        layer: Position of its layer in the drawing, from 0.
        order: Position in its layer, from 0.
        job_id: The job, of a node of one job.
        inner: Dependencies between jobs of this node.
    """

    id: str
    kind: str
    label: str
    count: int
    layer: int
    order: int
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    stage: int = 0
    last_stage: int = 0
    job_id: int | None = None
    inner: int = 0


class GraphView(msgspec.Struct):
    """A graph of jobs, or of jobs with files or user data, small enough to be drawn.

    Attributes:
        kind: What is drawn: ``jobs``, ``files`` or ``user_data``.
        structure: Changes when jobs, names or dependencies of the workflow change; positions stay as long as it does.
        nodes: The nodes, layer by layer in their order.
        edges: Triples of positions in ``nodes`` and a number: source, target, how many dependencies the edge stands
            for. A source comes before its targets: they wait for it, read it, or are written by it.
        layer_count: Number of layers.
        job_count: Jobs of the whole workflow.
        edge_count: Dependencies of the whole workflow, each pair of jobs counted once for each way in which one waits
            for the other.
        omitted: Nodes that ``rest`` nodes stand for.
        omitted_edges: Edges that were left out; they stand for fewer dependencies than those that are shown.
        total: Members of the opened group; the jobs of the workflow without ``open``.
        offset: Number of members before the first that is shown.
    """

    kind: str
    structure: str
    nodes: list[GraphNode]
    edges: list[tuple[int, int, int]]
    layer_count: int
    job_count: int
    edge_count: int
    omitted: int = 0
    omitted_edges: int = 0
    total: int = 0
    offset: int = 0


# --- timeline ---------------------------------------------------------------------------------------


class TimelineLane(msgspec.Struct):
    """One lane of a timeline: the attempts of one runner, or of all runners of one host.

    Attributes:
        id: The runner's compute node, or the position of the host among the lanes.
        label: Host name.
        rows: Number of rows of bars: attempts of one row do not overlap.
        attempts: Attempts that touch the window.
        busy_s: Sum of their seconds in the window.
        started_s: Start of the runner, seconds since the epoch; None if unknown.
        ended_s: Its end; None if it has not ended, or if unknown.
    """

    id: int
    label: str
    rows: int
    attempts: int
    busy_s: float
    started_s: float | None = None
    ended_s: float | None = None


class TimelineBars(msgspec.Struct):
    """The bars of a timeline as columns of equal length, lane by lane, row by row, by start.

    Attributes:
        lane: Position of the lane in ``lanes``.
        row: Row in the lane, from 0.
        start: Seconds since ``from_s``; negative if it began before.
        end: Likewise; that of a running attempt is the time of the answer.
        status: Status label's position in ``statuses``.
        count: Attempts that the bar stands for.
        job_id: The first job of them.
    """

    lane: list[int]
    row: list[int]
    start: list[float]
    end: list[float]
    status: list[int]
    count: list[int]
    job_id: list[int]


class TimelineView(msgspec.Struct):
    """The attempts of a workflow over time, by runner or host.

    Attributes:
        from_s: Begin of the window, seconds since the epoch.
        to_s: Its end.
        first_s: Start of the first attempt of the workflow; None if nothing has run.
        last_s: End of the last one; the present time while attempts run.
        resolution_s: Neighbouring attempts of one row and status that are shorter than this are one bar.
        statuses: Status labels that bars refer to.
        lanes: The lanes of this page.
        lane_count: Number of lanes with attempts in the window.
        attempt_count: Attempts that touch the window.
        unplaced: Running attempts whose start is not known; they have no bar.
    """

    from_s: float
    to_s: float
    first_s: float | None
    last_s: float | None
    resolution_s: float
    statuses: list[str]
    lanes: list[TimelineLane]
    lane_count: int
    attempt_count: int
    bars: TimelineBars
    unplaced: int = 0


# --- failures ---------------------------------------------------------------------------------------


class LikeFailures(msgspec.Struct):
    """Failed jobs whose attempts ended in the same way.

    Attributes:
        count: Number of jobs.
        statuses: The same by status label: ``failed``, ``terminated`` or ``pending_failed``.
        exit_class: Class of the ending; ``unknown`` without one.
        exit: Exit code, or the return code if no exit code was seen; None without a result.
        signal: Number of the signal.
        signature: Reason of the ending, with ``*`` for each run of digits; None without one.
        groups: Jobs by label of their group, those with most first.
        group_count: Number of these groups.
        hosts: Jobs by host name, those with most first.
        host_count: Number of these hosts.
        first_ended_at: Earliest end of their attempts, as reported.
        last_ended_at: Latest end.
        job_ids: The first of these jobs, by id.
        job_names: Their names.
        filter: The filter that finds all of them, for ``jobs`` and for ``torc jobs list --filter``.
    """

    count: int
    statuses: dict[str, int]
    exit_class: str
    exit: int | None
    signal: int | None
    signature: str | None
    groups: dict[str, int]
    group_count: int
    hosts: dict[str, int]
    host_count: int
    first_ended_at: str | None
    last_ended_at: str | None
    job_ids: list[int]
    job_names: list[str]
    filter: str


class FailuresView(msgspec.Struct):
    """The failed jobs of a workflow by the way in which they ended.

    Attributes:
        groups: Those with most jobs first; the first of them only.
        group_count: Number of all groups.
        job_count: Number of all failed jobs.
        retried: Jobs that have failed attempts and are not failed now.
        canceled: Jobs that were canceled, because of a failure or by a person.
    """

    groups: list[LikeFailures]
    group_count: int
    job_count: int
    retried: int = 0
    canceled: int = 0


# --- waiting ----------------------------------------------------------------------------------------


class LikeWaits(msgspec.Struct):
    """Jobs that do not run, and for the same reason as far as the server knows it.

    Attributes:
        reason: ``waits_for_jobs``, ``delayed`` (its next attempt), ``ready`` (a runner may claim it), ``launching`` (a
            runner has claimed it and its attempt has not begun), ``interrupted`` (its runner ended; the next one runs
            it again), ``verdict`` (a failure waits for a verdict) or ``uninitialized``. ``torc explain`` says more.
        count: Number of jobs.
        groups: Jobs by label of their group, those with most first.
        group_count: Number of these groups.
        waits_for: Labels of the groups with unfinished jobs that they depend on, each with its unfinished jobs.
        detail: What the executor waits for, of ``launching``.
        resource_requirements_id: Their requirements, of ``ready``.
        executor: Their executor, of ``ready``; None is that of the runner.
        earliest: When the first of the next attempts may begin, of ``delayed``, UTC, ISO 8601.
        job_ids: The first of these jobs, by id.
        job_names: Their names.
        filter: A filter that finds them, for ``jobs``; it may find more.
    """

    reason: str
    count: int
    groups: dict[str, int]
    group_count: int
    waits_for: dict[str, int]
    detail: str | None
    resource_requirements_id: int | None
    executor: str | None
    earliest: str | None
    job_ids: list[int]
    job_names: list[str]
    filter: str


class WaitingView(msgspec.Struct):
    """The jobs of a workflow that do not run yet, by reason.

    Attributes:
        groups: Those with most jobs first; the first of them only.
        group_count: Number of all groups.
        job_count: Number of all jobs that wait.
    """

    groups: list[LikeWaits]
    group_count: int
    job_count: int


# --- sweep ------------------------------------------------------------------------------------------


class SweepParameter(msgspec.Struct):
    """One parameter of the jobs of a workflow.

    Attributes:
        name: Its name.
        value_count: Number of its values.
        job_count: Jobs that have it.
    """

    name: str
    value_count: int
    job_count: int


class SweepCells(msgspec.Struct):
    """The cells of a grid as columns of equal length; cells without jobs are left out.

    Attributes:
        x: Position of the value in ``x_values``.
        y: Position of the value in ``y_values``.
        counts: Jobs by status label.
        seconds: Mean run time of the present results; None without any.
        most_seconds: Longest run time.
        peak_memory_bytes: Largest peak memory; None if it was not measured.
        job_id: The first of their jobs.
    """

    x: list[int]
    y: list[int]
    counts: list[dict[str, int]]
    seconds: list[float | None]
    most_seconds: list[float | None]
    peak_memory_bytes: list[int | None]
    job_id: list[int]


class SweepView(msgspec.Struct):
    """Jobs by the values of two parameters, which are read from the names of the jobs.

    Attributes:
        parameters: All parameters of the family; the names for ``x`` and ``y``.
        families: Labels of the families, such as ``train_lr{lr}_bs{bs}``, those with most jobs first; the first of them
            only. A family is the jobs whose names have the same form and begin.
        family: The family that is shown; None without parameters.
        x: Parameter across; None without parameters.
        y: Parameter down; None if there is only one.
        x_values: Values of ``x``, numbers in their order before texts; the first of them only.
        y_values: Likewise.
        job_count: Jobs in the cells.
        omitted: Jobs in cells that were left out.
    """

    parameters: list[SweepParameter]
    families: list[str]
    family: str | None
    x: str | None
    y: str | None
    x_values: list[str]
    y_values: list[str]
    cells: SweepCells
    job_count: int = 0
    omitted: int = 0


# --- jobs -------------------------------------------------------------------------------------------


class JobDependencies(msgspec.Struct):
    """What a job waits for: the value of the field ``dependencies`` in a `JobTable`.

    Attributes:
        count: Jobs that it waits for.
        job_ids: Ids of the first of them, three at most.
        job_names: Their names.
    """

    count: int
    job_ids: list[int]
    job_names: list[str]


class JobTable(msgspec.Struct):
    """A part of the jobs that satisfy a filter, as one list of values for each field.

    Attributes:
        columns: The values of each field, by its name, in the order of the request.
        total: Jobs that satisfy the filter.
        offset: Number of them before the first of this part.
        counts: Those that satisfy the filter, by status label; empty unless asked for.
    """

    columns: dict[str, list[Any]]
    total: int
    offset: int
    counts: dict[str, int] = msgspec.field(default_factory=dict)
