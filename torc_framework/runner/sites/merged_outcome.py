"""One outcome from those of several runners of a run."""

from collections.abc import Sequence

from torc_framework.runner.process.settings import RunOutcome


def merge_outcomes(outcomes: Sequence[RunOutcome]) -> RunOutcome:
    """Return the outcome of all runners together, without its ``duration_s`` and ``sites``.

    Args:
        outcomes: At least one, in the order in which the runners ended. One that has no counts ended by an error.
    """
    newest = [each for each in outcomes if each.counts][-1]
    unfit = [each.unfit for each in outcomes]
    return RunOutcome(
        workflow_name=newest.workflow_name,
        counts=newest.counts,
        is_complete=any(each.is_complete for each in outcomes),
        is_canceled=any(each.is_canceled for each in outcomes),
        is_drained=any(each.is_drained for each in outcomes),
        interrupted=any(each.interrupted for each in outcomes),
        interrupted_jobs=newest.interrupted_jobs,
        resumed_jobs=sum(each.resumed_jobs for each in outcomes),
        left_jobs=sum(each.left_jobs for each in outcomes),
        out_of_time=any(each.out_of_time for each in outcomes),
        unfit=_joined_unfit(outcomes) if all(unfit) else None,
        troubles=list(dict.fromkeys(text for each in outcomes for text in each.troubles)),
        cut_logs=sum(each.cut_logs for each in outcomes),
        attempts=sum(each.attempts for each in outcomes),
        failed_attempts=sum(each.failed_attempts for each in outcomes),
    )


def _joined_unfit(outcomes: Sequence[RunOutcome]) -> str:
    """Return per site why what is left does not fit it."""
    return "; ".join(f"{site.hostname}: {each.unfit}" for each in outcomes for site in each.sites)
