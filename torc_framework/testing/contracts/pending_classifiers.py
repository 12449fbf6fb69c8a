"""The contract suite of plugins that give verdicts on jobs in ``pending_failed``."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import evolve
from hypothesis import strategies as st

from torc_framework.api import Failure, PendingContext, PendingVerdict, RecoveryAction
from torc_framework.testing.support.clauses import answer, broken, for_all, require
from torc_framework.testing.support.strategies import failures


def _waiting(most: int = 4) -> st.SearchStrategy[list[Failure]]:
    """Generate waiting jobs with different ids."""

    def numbered(found: Sequence[Failure]) -> list[Failure]:
        return [evolve(failure, job_id=number) for number, failure in enumerate(found, 1)]

    return st.lists(failures(), max_size=most).map(numbered)


class PendingContract:
    """Tests that every plugin that gives verdicts on waiting jobs passes.

    Attributes:
        plugin: The module or object with ``torc_classify_pending``.
        settings: Options as the command gives them, without those that would ask a service outside.
        most_attempts: Attempts after which it must not answer retry any more.
    """

    plugin: ClassVar[Any]
    settings: ClassVar[Mapping[str, Any]] = {}
    most_attempts: ClassVar[int] = 100

    def _judge(self, waiting: Sequence[Failure]) -> Mapping[int, PendingVerdict]:
        context = PendingContext(1, settings=self.settings)
        clause = "never raise for any failure; leave out jobs without a verdict"
        verdicts: Mapping[int, PendingVerdict] = answer(self.plugin.torc_classify_pending, clause, waiting, context)
        require(isinstance(verdicts, Mapping), "answer with verdicts by job id", verdicts)
        return verdicts

    def test_it_judges_the_jobs_that_it_is_asked_about(self) -> None:
        """Verdicts are on the given jobs alone, with a reason and a confidence from 0 to 1."""

        def one(waiting: list[Failure]) -> None:
            verdicts = self._judge(waiting)
            asked = {failure.job_id for failure in waiting}
            require(asked.issuperset(verdicts), "judge only the jobs that you are asked about", sorted(verdicts))
            for verdict in verdicts.values():
                require(isinstance(verdict, PendingVerdict), "a verdict is a PendingVerdict", verdict)
                require(verdict.reason.strip(), "the reason is one sentence for people, never empty", verdict)
                require(0 <= verdict.confidence <= 1, "confidence is from 0 to 1; 1 is proof", verdict)

        for_all(_waiting(), one)

    def test_it_ends(self) -> None:
        """A job that always fails in the same way gets no retry after `most_attempts`."""

        def one(waiting: list[Failure]) -> None:
            for failure in waiting:
                last = evolve(failure, attempt_id=self.most_attempts)
                verdict = self._judge([last]).get(failure.job_id)
                if verdict is not None and verdict.action is RecoveryAction.RETRY:
                    broken(f"no job is retried after {self.most_attempts} attempts", verdict)

        for_all(_waiting(1), one)
