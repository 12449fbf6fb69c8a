"""The contract suite of recovery policies."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from attrs import evolve
from hypothesis.strategies import SearchStrategy

from torc_framework.api import FailedJob, RecoveryAction, RecoveryDecision
from torc_framework.testing.support.clauses import answer, for_all, require, require_pure
from torc_framework.testing.support.strategies import failed_jobs


class PolicyContract:
    """Tests that every recovery policy passes, run on generated failed jobs.

    Attributes:
        plugin: The module or object with ``torc_decide_recovery``.
        settings: Options as the recover command gives them.
        most_rounds: Recoveries after which it must not answer retry any more.
        is_pure: It answers from its arguments alone; False for one that asks a service.
    """

    plugin: ClassVar[Any]
    settings: ClassVar[Mapping[str, Any]] = {"memory_multiplier": 1.5, "runtime_multiplier": 1.4}
    most_rounds: ClassVar[int] = 100
    is_pure: ClassVar[bool] = True

    @property
    def _decide(self) -> Callable[[FailedJob], RecoveryDecision | None]:
        hook: Callable[[FailedJob], RecoveryDecision | None] = self.plugin.torc_decide_recovery
        return hook

    @property
    def _jobs(self) -> SearchStrategy[FailedJob]:
        return failed_jobs(dict(self.settings))

    def _for_all_decisions(self, check: Callable[[FailedJob, RecoveryDecision], None]) -> None:
        def one(job: FailedJob) -> None:
            decision = self._decide(job)
            if decision is not None:
                check(job, decision)

        for_all(self._jobs, one)

    def test_it_answers_any_failed_job_with_a_decision_or_none(self) -> None:
        """It never raises; a decision has a reason and a confidence from 0 to 1."""

        def one(job: FailedJob) -> None:
            decision = answer(self._decide, "never raise for any failure; pass with None", job)
            if decision is None:
                return
            require(isinstance(decision, RecoveryDecision), "answer with a RecoveryDecision, or None to pass", decision)
            require(decision.reason.strip(), "the reason is one sentence for people, never empty", decision)
            require(0 <= decision.confidence <= 1, "confidence is from 0 to 1; 1 is proof", decision)

        for_all(self._jobs, one)

    def test_requests_never_shrink(self) -> None:
        """A decision never lowers a request."""

        def one(job: FailedJob, decision: RecoveryDecision) -> None:
            for name in ("memory_bytes", "runtime_s", "num_cpus"):
                old, new = getattr(job, name), getattr(decision, name)
                require(new is None or new >= old, f"{name} never becomes smaller than it is", (old, new))

        self._for_all_decisions(one)

    def test_nothing_is_asked_for_beyond_the_ceiling(self) -> None:
        """A decision requests no more than the ceiling: such a job would wait forever."""

        def one(job: FailedJob, decision: RecoveryDecision) -> None:
            for name in ("memory_bytes", "runtime_s"):
                most, new = getattr(job.ceiling, name), getattr(decision, name)
                require(
                    most is None or new is None or new <= most, f"{name} stays within the job's ceiling", (most, new)
                )

        self._for_all_decisions(one)

    def test_only_a_retry_changes_requests(self) -> None:
        """A decision other than retry changes no request."""

        def one(_: FailedJob, decision: RecoveryDecision) -> None:
            changed = (decision.memory_bytes, decision.runtime_s, decision.num_cpus) != (None, None, None)
            require(decision.action is RecoveryAction.RETRY or not changed, "only a retry names new requests", decision)

        self._for_all_decisions(one)

    def test_it_ends(self) -> None:
        """A job that always fails in the same way gets no retry after `most_rounds`."""

        def one(job: FailedJob) -> None:
            for _ in range(self.most_rounds):
                decision = self._decide(job)
                if decision is None or decision.action is not RecoveryAction.RETRY:
                    return
                job = _failed_again(job, decision)
            require(False, f"it does not answer retry for ever: at most {self.most_rounds} times in a row", job)

        for_all(self._jobs, one, most=50)

    def test_it_answers_from_the_job_alone(self) -> None:
        """The decision depends on the job alone, unless `is_pure` is False."""
        if self.is_pure:
            for_all(self._jobs, lambda job: require_pure(self._decide, job), most=50)


def _failed_again(job: FailedJob, decision: RecoveryDecision) -> FailedJob:
    """Return the job after a recovery that did not help: it used more than its new requests."""
    memory, runtime = decision.memory_bytes or job.memory_bytes, decision.runtime_s or job.runtime_s
    seen = job.failure.observation
    grown = evolve(
        seen,
        memory_limit_bytes=memory,
        runtime_limit_s=float(runtime),
        peak_memory_bytes=None if seen.peak_memory_bytes is None else max(seen.peak_memory_bytes, memory + 1),
    )
    return evolve(
        job,
        failure=evolve(job.failure, observation=grown, attempt_id=job.failure.attempt_id + 1),
        memory_bytes=memory,
        runtime_s=runtime,
        num_cpus=decision.num_cpus or job.num_cpus,
        recoveries=job.recoveries + 1,
        history=(*job.history, job.failure.return_code),
    )
