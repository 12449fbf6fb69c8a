"""The transition table: its sets, its form, and transitions that it must not have."""

import pytest

from torc_framework.models.statuses import (
    DONE,
    END,
    LIVE,
    STATUS_FACTS,
    TRANSITIONS,
    UNBLOCKING,
    UNFINISHED,
    JobStatus,
    is_allowed,
)

CONTRACT = {
    "uninitialized": 0,
    "blocked": 1,
    "ready": 2,
    "pending": 3,
    "running": 4,
    "completed": 5,
    "failed": 6,
    "canceled": 7,
    "terminated": 8,
    "disabled": 9,
    "pending_failed": 10,
}


def test_names_and_numbers_are_those_of_the_http_contract() -> None:
    assert {status.label: status.value for status in JobStatus} == CONTRACT


def test_every_status_has_its_facts() -> None:
    assert set(STATUS_FACTS) == set(JobStatus)
    assert all(facts.description for facts in STATUS_FACTS.values())


def test_sets_follow_from_the_facts() -> None:
    ended = {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.TERMINATED}
    assert ended == UNBLOCKING
    assert ended | {JobStatus.PENDING_FAILED} == END
    assert ended | {JobStatus.DISABLED} == DONE
    assert frozenset(JobStatus) == DONE | UNFINISHED
    assert not DONE & UNFINISHED


def test_a_label_finds_its_status_and_an_unknown_one_says_what_is_known() -> None:
    assert JobStatus.from_label("pending_failed") is JobStatus.PENDING_FAILED
    with pytest.raises(ValueError, match=r"unknown job status 'done'.*completed"):
        JobStatus.from_label("done")


def test_every_status_can_be_reached_and_left() -> None:
    reached = {target for transition in TRANSITIONS.values() for target in transition.targets}
    left = {source for transition in TRANSITIONS.values() for source in transition.sources}
    assert reached == set(JobStatus)
    assert left == set(JobStatus)


def test_only_a_claim_leads_to_pending_and_only_a_start_to_running() -> None:
    for name, transition in TRANSITIONS.items():
        assert (JobStatus.PENDING in transition.targets) == (name == "claimed")
        assert (JobStatus.RUNNING in transition.targets) == (name == "attempt_started")


def test_a_job_that_a_runner_holds_is_never_made_ready_or_blocked_by_initialize() -> None:
    for name in ("found_ready", "found_blocked"):
        assert not TRANSITIONS[name].sources & LIVE


@pytest.mark.parametrize("name", sorted(TRANSITIONS))
def test_no_transition_leads_to_where_the_job_already_is(name: str) -> None:
    """Except initialize, which finds a job as it was, and a result that replaces another."""
    transition = TRANSITIONS[name]
    if name not in {"found_ready", "found_blocked", "recorded"}:
        assert not transition.sources & transition.targets


def test_may_reads_the_table() -> None:
    assert is_allowed("claimed", JobStatus.READY, JobStatus.PENDING)
    assert not is_allowed("claimed", JobStatus.BLOCKED, JobStatus.PENDING)
    assert not is_allowed("attempt_ended", JobStatus.RUNNING, JobStatus.READY)
