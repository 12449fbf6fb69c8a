"""The server's responses about jobs that wait: classes of jobs, and dependencies, in few numbers for each job.

They are made for workflows of a million jobs: a client keeps what it needs of them in arrays.
"""

import msgspec


class JobClass(msgspec.Struct, frozen=True):
    """What decides whether a job that waits for no other job runs; jobs that agree in it are a class.

    Attributes:
        has_container: Its command runs in a container.
        is_delayed: The time of its next attempt has not come.
    """

    status: str
    is_interrupted: bool = False
    resource_requirements_id: int | None = None
    scheduler_id: int | None = None
    executor: str | None = None
    has_container: bool = False
    is_delayed: bool = False
    waiting_reason: str | None = None
    attempt_id: int = 1
    active_compute_node_id: int | None = None


class CountedJobs(msgspec.Struct):
    """The jobs of one class, with the ids and names of the first of them."""

    job_class: JobClass
    count: int
    first_ids: list[int]
    first_names: list[str]


class WaitingJobs(msgspec.Struct):
    """A page of the jobs that are blocked or canceled, in the order of their ids, and what they depend on.

    Attributes:
        jobs: Their ids.
        canceled: Ids of those that are canceled.
        counts: How many ids of ``upstream`` each job has.
        upstream: Ids of the jobs that they depend on, job after job; a negative number is that of a dependency group.
            Jobs that have completed may be missing.
        classes: Classes of jobs in ``awaited``.
        awaited: The jobs of ``upstream`` that are neither blocked nor canceled nor completed: the id of a job, the
            position of its class, the id of the next.
        has_more: Others follow the last of these jobs.
    """

    jobs: list[int]
    canceled: list[int]
    counts: list[int]
    upstream: list[int]
    classes: list[JobClass]
    awaited: list[int]
    has_more: bool


class GroupMembers(msgspec.Struct):
    """A page of the members of a workflow's dependency groups, in the order of the groups and jobs.

    Attributes:
        members: The id of a group, the id of a member, the id of the next group. Members that have completed are left
            out.
        classes: As in `WaitingJobs`, and so are the others.
    """

    members: list[int]
    classes: list[JobClass]
    awaited: list[int]
    has_more: bool
