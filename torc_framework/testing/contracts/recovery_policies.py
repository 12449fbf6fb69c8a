"""The contract suite of recovery policies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve, has

from torc_framework.api import FailedJob, RecoveryAction, RecoveryDecision
from torc_framework.testing.support.clauses import answer, require, require_types
from torc_framework.testing.support.constants import Constants, constants_of_plugin
from torc_framework.testing.support.generated_values import drawn_once, for_all, mixed
from torc_framework.testing.support.purity import require_pure, require_soon
from torc_framework.testing.support.strategies import failed_jobs
from torc_framework.testing.support.suites import ContractSuite
from torc_framework.testing.support.typical_values import typical_failed_jobs

AMOUNTS: Final = ("memory_bytes", "runtime_s", "num_cpus")
NEVER_RAISE: Final = "never raise for any failure; pass with None"
_ANY_JOB: Final = failed_jobs()
_PURE_VALUES: Final = 100
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "action": RecoveryAction,
    "reason": str,
    "memory_bytes": (int, type(None)),
    "runtime_s": (int, type(None)),
    "num_cpus": (int, type(None)),
    "causes": (tuple, list),
    "confidence": (float, int),
    "evidence": (tuple, list),
}


class PolicyContract(ContractSuite):
    """Tests that every recovery policy passes, run on typical and on generated failed jobs.

    The numbers and words with which the policy compares are looked up in its code and tables, so that it is asked about
    them too.

    Attributes:
        plugin: The module or object with ``torc_decide_recovery``.
        settings: Options as the recover command gives them.
        examples: Failed jobs that it decides on; needed only if the suite finds none.
        most_rounds: Recoveries after which it must not answer retry any more.
        is_pure: It answers from its arguments alone; False for one that asks a service.
    """

    plugin: ClassVar[Any]
    settings: ClassVar[Mapping[str, Any]] = {"memory_multiplier": 1.5, "runtime_multiplier": 1.4}
    examples: ClassVar[Sequence[FailedJob]] = ()
    most_rounds: ClassVar[int] = 100
    is_pure: ClassVar[bool] = True

    @property
    def _decide(self) -> Callable[[FailedJob], RecoveryDecision | None]:
        hook: Callable[[FailedJob], RecoveryDecision | None] = self.plugin.torc_decide_recovery
        return hook

    def _answer(self, job: FailedJob) -> RecoveryDecision | None:
        decision = answer(self._decide, NEVER_RAISE, evolve(job, settings=dict(job.settings)))
        if decision is not None:
            is_decision = isinstance(decision, RecoveryDecision)
            require(is_decision, "answer with a RecoveryDecision, or None to pass", decision)
            require_types(decision, _TYPES, "RecoveryDecision")
        return decision

    @property
    def _constants(self) -> Constants:
        found: Constants = self._once("_found", lambda: constants_of_plugin(self.plugin, "torc_decide_recovery"))
        return found

    @property
    def _jobs(self) -> list[FailedJob]:
        """All failed jobs that the policy is asked about."""

        def made() -> list[FailedJob]:
            settings = dict(self.settings)
            typical = list(typical_failed_jobs(settings, self._constants))
            usual = [evolve(job, settings=settings) for job in drawn_once(_ANY_JOB, 60)]
            return [*self.examples, *typical, *mixed(typical, 500), *usual]

        found: list[FailedJob] = self._once("_made", made)
        return found

    @property
    def _decided(self) -> list[FailedJob]:
        """The failed jobs on which the policy decides."""

        def found() -> list[FailedJob]:
            chosen: list[FailedJob] = []

            def one(job: FailedJob) -> None:
                if self._answer(job) is not None:
                    chosen.append(job)

            for_all(self._jobs, one)
            return chosen

        jobs: list[FailedJob] = self._once("_answered", found)
        return jobs

    def _for_all_decisions(self, check: Callable[[FailedJob, RecoveryDecision], None]) -> None:
        def one(job: FailedJob) -> None:
            decision = self._answer(job)
            if decision is not None:
                check(job, decision)

        for_all(self._jobs, one)

    def test_it_answers_soon(self) -> None:
        """It answers at once, unless `is_pure` is False."""
        if self.is_pure:
            for_all(self._jobs[:: len(self._jobs) // 5], lambda job: require_soon(self._answer, job))

    def test_it_answers_any_failed_job_with_a_decision_or_none(self) -> None:
        """It never raises; a decision has a reason and a confidence from 0 to 1."""

        def one(job: FailedJob) -> None:
            decision = self._answer(job)
            if decision is None:
                return
            require(decision.reason.strip(), "the reason is one sentence for people, never empty", decision)
            require(0 <= decision.confidence <= 1, "confidence is from 0 to 1; 1 is proof", decision)
            words = [*decision.causes, *decision.evidence]
            require(all(isinstance(word, str) for word in words), "causes and evidence are texts", words)

        for_all(self._jobs, one)

    def test_it_decides_on_some_job(self) -> None:
        """It decides on each of the suite's examples, and on at least one failed job."""
        for job in self.examples:
            require(self._answer(job) is not None, "the policy decides on the suite's examples", job)
        clause = (
            "the policy decides on some failed job; if only on rare ones, name them in the suite: "
            "examples = (FailedJob(...),)"
        )
        require(self._decided, clause, f"None for each of {len(self._jobs)} jobs")

    def test_requests_never_shrink(self) -> None:
        """A decision never lowers a request."""

        def one(job: FailedJob, decision: RecoveryDecision) -> None:
            for name in AMOUNTS:
                old, new = getattr(job, name), getattr(decision, name)
                require(new is None or new >= old, f"{name} never becomes smaller than it is", (old, new))

        self._for_all_decisions(one)

    def test_nothing_is_asked_for_beyond_the_ceiling(self) -> None:
        """A decision requests no more than the ceiling: such a job would wait forever."""

        def one(job: FailedJob, decision: RecoveryDecision) -> None:
            for name in AMOUNTS:
                most, old, new = getattr(job.ceiling, name), getattr(job, name), getattr(decision, name)
                is_within = most is None or new is None or new <= max(most, old)
                require(is_within, f"{name} stays within the job's ceiling", (most, new))

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
                decision = self._answer(job)
                if decision is None or decision.action is not RecoveryAction.RETRY:
                    return
                job = _failed_again(job, decision)
            require(False, f"it does not answer retry for ever: at most {self.most_rounds} times in a row", job)

        for_all(self._decided, one)

    def test_it_answers_from_the_job_alone(self) -> None:
        """The decision depends on the job alone, unless `is_pure` is False; it comes at once."""
        step = max(1, len(self._decided) // _PURE_VALUES)
        some = [*self._decided[::step], *self._jobs[:: max(1, len(self._jobs) // _PURE_VALUES)]]
        if self.is_pure:
            for_all(some, lambda job: require_pure(self._decide, job))

    def test_its_options_are_declared(self) -> None:
        """`torc_recovery_options`, if there is one, returns an attrs class with a default for each field."""
        hook = getattr(self.plugin, "torc_recovery_options", None)
        if hook is None:
            return
        options: Any = answer(hook, "torc_recovery_options never raises")
        clause = "torc_recovery_options returns an attrs class whose fields are declared with option()"
        require(isinstance(options, type) and has(options), clause, options)
        fields: Any = getattr(options, "__attrs_attrs__", ())
        bare = [attribute.name for attribute in fields if not attribute.metadata.get("torc_option")]
        require(not bare, clause, bare)
        answer(options, "the options have usable default values")


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
