"""How endings are called, which status they leave, which rules answer them."""

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.builtin.exits import torc_classify_exit
from torc_framework.executors import AttemptKey, RunnerContext
from torc_framework.exits.failure_rules import rules_in_order
from torc_framework.models.exchange import ClaimedJob, OutputFile
from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict, StopReason
from torc_framework.models.failures import Failure, FailureRule, RuleAction
from torc_framework.models.resources import Resources
from torc_framework.plugins.manager import PluginManager
from torc_framework.runner.attempts.ending_classifier import ClassifiedEnding, EndingClassifier
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob
from torc_framework.runner.attempts.observation_values import without_defaults

CONTEXT = RunnerContext(1, 1, "/tmp/none", "/tmp", "http://127.0.0.1:1/torc-service/v1")


def seen(**fields: Any) -> ExitObservation:
    """Return an observation of the local executor."""
    return ExitObservation("local", **fields)


@pytest.mark.parametrize(
    ("observation", "name"),
    [
        (seen(exit_code=0), "success"),
        (seen(exit_code=64), "user_error"),
        (seen(exit_code=137), "user_error"),
        (seen(exit_code=137, peak_memory_bytes=2, memory_limit_bytes=1), "oom"),
        (seen(exit_code=1, peak_memory_bytes=2, memory_limit_bytes=1), "user_error"),
        (seen(exit_code=143), "user_error"),
        (seen(exit_code=152), "user_error"),
        (seen(exit_code=126), "user_error"),
        (seen(exit_code=127), "user_error"),
        (seen(signal=7), "signaled"),
        (seen(signal=9, peak_memory_bytes=2, memory_limit_bytes=1), "signaled"),
        (seen(signal=24), "signaled"),
        (seen(exit_code=0, missing_outputs=("a",)), "output_missing"),
        (seen(exit_code=2, missing_outputs=("a",)), "user_error"),
        (seen(launch_error="no such shell"), "launch_failure"),
        (seen(lost=True), "orphaned"),
        (seen(), "unknown"),
        (seen(signal=9, stop_reason=StopReason.CANCELED), "canceled"),
        (seen(exit_code=0, stop_reason=StopReason.CANCELED), "canceled"),
        (seen(signal=9, stop_reason=StopReason.RUNTIME_LIMIT), "timeout"),
        (seen(exit_code=0, stop_reason=StopReason.RUNTIME_LIMIT), "timeout"),
        (seen(signal=9, stop_reason=StopReason.MEMORY_LIMIT), "oom"),
        (seen(exit_code=0, stop_reason=StopReason.SHUTDOWN), "interrupted"),
        (seen(exit_code=0, stop_reason=StopReason.SHUTDOWN, outputs_written=True), "success"),
        (seen(exit_code=0, stop_reason=StopReason.SHUTDOWN, clean_exit="completed"), "success"),
        (
            seen(exit_code=0, stop_reason=StopReason.SHUTDOWN, clean_exit="interrupted", outputs_written=True),
            "interrupted",
        ),
        (
            seen(exit_code=0, stop_reason=StopReason.SHUTDOWN, clean_exit="completed", missing_outputs=("a",)),
            "interrupted",
        ),
        (seen(exit_code=1, stop_reason=StopReason.SHUTDOWN), "interrupted"),
        (seen(signal=15, stop_reason=StopReason.SHUTDOWN), "interrupted"),
        (seen(exit_code=0, stop_reason=StopReason.RUNTIME_LIMIT, clean_exit="completed"), "success"),
        (seen(exit_code=0, stop_reason=StopReason.RUNTIME_LIMIT, clean_exit="interrupted"), "interrupted"),
        (seen(exit_code=0, stop_reason=StopReason.RUNTIME_LIMIT, outputs_written=True), "timeout"),
        (seen(exit_code=1, stop_reason=StopReason.RUNTIME_LIMIT, clean_exit="interrupted"), "timeout"),
    ],
)
def test_classes(observation: ExitObservation, name: str) -> None:
    """The strongest evidence decides; a number alone proves neither a signal nor lack of memory."""
    assert torc_classify_exit(observation).exit_class == name


observations = st.builds(
    ExitObservation,
    executor=st.sampled_from(["local", "other"]),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    stop_reason=st.none() | st.sampled_from(StopReason),
    launch_error=st.none() | st.text(max_size=5),
    lost=st.booleans(),
    missing_outputs=st.lists(st.text(max_size=5), max_size=7).map(tuple),
    peak_memory_bytes=st.none() | st.integers(0, 2**40),
    memory_limit_bytes=st.none() | st.integers(0, 2**40),
    scheduler_state=st.none() | st.text(max_size=5),
)


@given(observations)
def test_every_ending_has_a_name(observation: ExitObservation) -> None:
    """With a reason, and evidence that was really seen."""
    verdict = torc_classify_exit(observation)
    assert verdict.reason
    for name in verdict.evidence:
        assert getattr(observation, name) != getattr(ExitObservation(""), name) or name == "exit_code"


@given(observations)
def test_stored_observations_are_complete(observation: ExitObservation) -> None:
    """What is stored gives the observation back."""
    stored = json.loads(json.dumps(without_defaults(observation)))
    if "missing_outputs" in stored:
        stored["missing_outputs"] = tuple(stored["missing_outputs"])
    assert ExitObservation(**stored) == observation


def item(rules: list[dict[str, Any]] | None = None, attempt: int = 1, **fields: Any) -> HeldJob:
    """Return a held job."""
    job = ClaimedJob(1, "a", "true", attempt, Resources(), failure_rules=None if rules is None else json.dumps(rules))
    held = HeldJob(job, "local", AttemptKey(1, attempt))
    for name, value in fields.items():
        setattr(held, name, value)
    return held


def classify_ending(
    held: HeldJob, observation: ExitObservation, plugins: PluginManager, pend: bool = False
) -> ClassifiedEnding:
    """Examine an ending."""
    return EndingClassifier(plugins, AttemptFactory(CONTEXT), 1, use_pending_failed=pend).classify(held, observation)


@pytest.mark.parametrize(
    ("observation", "reason", "status", "code"),
    [
        (seen(exit_code=0), None, "completed", 0),
        (seen(exit_code=64), None, "failed", 64),
        (seen(signal=7), None, "failed", 135),
        (seen(signal=9), StopReason.RUNTIME_LIMIT, "terminated", 152),
        (seen(exit_code=0), StopReason.RUNTIME_LIMIT, "terminated", 152),
        (seen(signal=9), StopReason.MEMORY_LIMIT, "failed", 137),
        (seen(exit_code=0), StopReason.SHUTDOWN, "completed", 0),
        (seen(exit_code=3), StopReason.SHUTDOWN, "terminated", 3),
        (seen(signal=9), StopReason.SHUTDOWN, "terminated", 152),
        (seen(signal=9), StopReason.CANCELED, "canceled", 143),
        (seen(exit_code=0), StopReason.CANCELED, "canceled", 0),
        (seen(launch_error="x"), None, "failed", 1),
        (seen(lost=True), None, "failed", -128),
    ],
)
def test_statuses(
    observation: ExitObservation, reason: StopReason | None, status: str, code: int, all_plugins: PluginManager
) -> None:
    """The class and the reason of a stop give the status, the observation the number."""
    report = classify_ending(item(stop_reason=reason), observation, all_plugins).report
    assert (report.status, report.return_code) == (status, code)


TEN, ALL = {"exit_codes": [10, 11], "max_retries": 3}, {"match_all_exit_codes": True, "max_retries": 2}


@pytest.mark.parametrize(
    ("rules", "code", "limit"),
    [
        ([TEN, ALL], 10, 3),
        ([TEN, ALL], 5, 2),
        ([ALL, TEN], 10, 3),
        ([TEN], 5, None),
        ([{"exit_codes": [5]}], 5, 3),
        ([{"exit_codes": [137]}], -9, 3),
        ([], 5, None),
        ([{"recovery_script": "x"}], 5, None),
        ([{"exit_codes": [0], "match_all_exit_codes": True, "max_retries": 9}, TEN], 10, 3),
    ],
)
def test_rules(rules: list[dict[str, Any]], code: int, limit: int | None, all_plugins: PluginManager) -> None:
    """A rule that names the code goes before one that covers all; signals count as 128+n."""
    observation = seen(exit_code=code) if code >= 0 else seen(signal=-code)
    retry = classify_ending(item(rules), observation, all_plugins).report.retry
    assert (retry.max_attempts if retry else None) == limit


def test_order_of_rules_is_otherwise_kept() -> None:
    """Rules of other plugins are asked as written."""
    mine, yours = {"mine": 1}, {"yours": 2}
    assert rules_in_order([ALL, mine, TEN, yours], 10) == [mine, TEN, yours, ALL]


@pytest.mark.parametrize("reason", [StopReason.CANCELED, StopReason.SHUTDOWN])
def test_no_rule_answers_a_runner_that_ends(reason: StopReason, all_plugins: PluginManager) -> None:
    """The job did not fail: neither retry nor verdict is asked for."""
    report = classify_ending(item([ALL], stop_reason=reason), seen(signal=9), all_plugins, pend=True).report
    assert report.retry is None
    assert report.status in ("canceled", "terminated")


def test_timeouts_may_be_retried(all_plugins: PluginManager) -> None:
    """Terminated by their own limit, jobs ask their rules."""
    report = classify_ending(item([ALL], stop_reason=StopReason.RUNTIME_LIMIT), seen(signal=9), all_plugins).report
    assert report.retry is not None
    assert report.status == "terminated"


def test_unmatched_failures_wait_where_wanted(all_plugins: PluginManager) -> None:
    """Also those without any rules."""
    assert classify_ending(item(), seen(exit_code=1), all_plugins, pend=True).report.status == "pending_failed"
    assert classify_ending(item([TEN]), seen(exit_code=1), all_plugins, pend=True).report.status == "pending_failed"
    assert classify_ending(item([ALL]), seen(exit_code=1), all_plugins, pend=True).report.status == "failed"
    assert classify_ending(item(), seen(exit_code=0), all_plugins, pend=True).report.status == "completed"


def test_lost_attempts_run_again(all_plugins: PluginManager) -> None:
    """Three attempts at most, independent of the rules."""
    report = classify_ending(item([TEN]), seen(lost=True), all_plugins, pend=True).report
    assert report.lost
    assert report.retry is not None
    assert report.retry.max_attempts == 3
    assert report.exit_class == ExitClass.ORPHANED


@pytest.mark.parametrize(("rules", "limit"), [([], 3), ([TEN], 3), ([ALL], 2)])
def test_interruptions_run_again(rules: list[dict[str, Any]], limit: int, all_plugins: PluginManager) -> None:
    """A loss that the job did not cause needs no verdict; it is retried as a matching rule says, else three times."""
    lost_node = evolve(seen(), scheduler_state="NODE_FAIL")
    report = classify_ending(item(rules), lost_node, all_plugins, pend=True).report
    assert (report.exit_class, report.status) == (ExitClass.NODE_FAILURE, "failed")
    assert report.retry is not None
    assert report.retry.max_attempts == limit


def test_limits_are_observed_where_asked_for(all_plugins: PluginManager) -> None:
    """Default requirements are no limits."""
    held = item()
    assert "memory_limit_bytes" not in (classify_ending(held, seen(exit_code=0), all_plugins).report.observation or {})
    held.job.resources = evolve(held.job.resources, memory_bytes=5, runtime_s=7.0)
    observation = classify_ending(held, seen(exit_code=0), all_plugins).report.observation or {}
    assert (observation["memory_limit_bytes"], observation["runtime_limit_s"]) == (5, 7.0)


clean_exits = st.builds(
    ExitObservation,
    executor=st.just("local"),
    exit_code=st.just(0),
    started_at=st.none() | st.floats(0, 2e9),
    ended_at=st.floats(1, 2e9),
    duration_s=st.none() | st.floats(0, 1e6),
    stop_reason=st.none() | st.sampled_from(StopReason),
    missing_outputs=st.sampled_from([(), ("a",)]),
    scheduler_state=st.none() | st.sampled_from(["COMPLETED", "OUT_OF_MEMORY", "x"]),
    lost=st.booleans(),
    peak_memory_bytes=st.none() | st.integers(0, 2**40),
    cpu_time_s=st.none() | st.floats(0, 1e6),
    oom_kills=st.none() | st.integers(0, 3),
    raw=st.dictionaries(st.sampled_from(["peak_memory_below_bytes", "shared_oom_kills"]), st.integers(0, 9)),
)


jobs = st.builds(
    ClaimedJob,
    id=st.just(1),
    name=st.just("a"),
    command=st.just("true"),
    attempt_id=st.just(1),
    resources=st.builds(Resources, runtime_s=st.none() | st.floats(1, 1e6)),
    failure_rules=st.just(json.dumps([ALL])),
    clean_exit_after_stop=st.sampled_from(["auto", "completed", "interrupted"]),
    stdio=st.none() | st.sampled_from(["separate", "combined", "none"]),
    output_files=st.none() | st.just([OutputFile(1, "missing")]),
)


@given(clean_exits, jobs, st.none() | st.sampled_from(StopReason))
def test_a_clean_exit_is_reported_the_same_without_classifiers(
    all_plugins: PluginManager, observation: ExitObservation, job: ClaimedJob, reason: StopReason | None
) -> None:
    """The short way and the classifiers agree on every value of the report, and on their order."""
    held = HeldJob(job, "local", AttemptKey(1, 1), stop_reason=reason)
    reports = []
    for accepts in (True, False):
        classifier = EndingClassifier(
            all_plugins, AttemptFactory(CONTEXT), 1, use_pending_failed=True, accepts_clean_exits=accepts
        )
        report = classifier.classify(held, observation).report
        if report.retry is not None:
            report.retry.delay_s = 0.0
        reports.append((report, list(report.observation or {})))
    assert reports[0] == reports[1]


def test_classifiers_are_not_asked_about_clean_exits_that_they_accept() -> None:
    """About all other endings they are."""

    class Asked(Exception):  # noqa: N818 - no error, but the sign that it was asked
        pass

    class Classifiers:
        def classify(self, observation: ExitObservation) -> ExitVerdict:
            raise Asked

        def match_failure(self, rule: FailureRule, failure: Failure) -> RuleAction | None:
            raise Asked

    def classifier(*, accepts: bool) -> EndingClassifier:
        return EndingClassifier(
            Classifiers(), AttemptFactory(CONTEXT), 1, use_pending_failed=False, accepts_clean_exits=accepts
        )

    report = classifier(accepts=True).classify(item(), seen(exit_code=0)).report
    assert (report.status, report.return_code, report.exit_class) == ("completed", 0, "success")
    for accepts, observation in ((False, seen(exit_code=0)), (True, seen(exit_code=1)), (True, seen(signal=9))):
        with pytest.raises(Asked):
            classifier(accepts=accepts).classify(item(), observation)


@pytest.mark.parametrize(
    "text", ["", "{", "5", "null", '[5, "x"]', '[{"exit_codes": 1, "match_all_exit_codes": 0}]', '{"exit_codes": [1]}']
)
def test_rules_that_are_none_match_nothing(text: str, all_plugins: PluginManager) -> None:
    """A handler stored by others may hold anything; the runner goes on."""
    held = item()
    held.job.failure_rules = text
    assert classify_ending(held, seen(exit_code=1), all_plugins).report.retry is None


def test_an_odd_number_of_retries_is_the_default(all_plugins: PluginManager) -> None:
    """As if none was named."""
    report = classify_ending(item([{"exit_codes": [1], "max_retries": "many"}]), seen(exit_code=1), all_plugins).report
    assert report.retry is not None
    assert report.retry.max_attempts == 3
