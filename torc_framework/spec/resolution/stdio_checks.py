"""Checks of where the output of jobs goes."""

import json

from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.stdio import stdio_of
from torc_framework.spec.language.findings import Problems
from torc_framework.spec.resolution.job_kinds import JobKinds

_KEY = "stderr_regex"
"""Key of failure rules that search standard error."""


def warn_about_unkept_output(plan: Plan, kinds: JobKinds, problems: Problems) -> None:
    """Warn of jobs with rules that search their standard error, which goes to no file."""
    searching = {
        position
        for position, handler in enumerate(plan.failure_handlers)
        if any(rule.get(_KEY) for rule in json.loads(handler.rules))
    }

    def is_unkept(job: PlannedJob) -> bool:
        return job.failure_handler in searching and not stdio_of(plan.workflow, job).keeps_stderr

    if count := kinds.count(is_unkept):
        example, others = next(filter(is_unkept, kinds.examples())), count - 1
        more = f" and {others} more" if others else ""
        problems.warn(
            f"{_KEY} fits nothing in job {example.name!r}{more}: {stdio_of(plan.workflow, example).not_kept('stderr')}"
        )
