"""The contract suite of exit classifiers."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from attrs import fields
from hypothesis.strategies import SearchStrategy

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict
from torc_framework.testing.support.clauses import answer, for_all, require, require_pure
from torc_framework.testing.support.strategies import observations

_FIELDS: Final = frozenset(attribute.name for attribute in fields(ExitObservation))


class ClassifierContract:
    """Tests that every exit classifier passes, run on generated observations.

    Attributes:
        plugin: The module or object with ``torc_classify_exit``.
        always_answers: It never passes, as the built-in classifier.
        observations: The observations that are generated; a second suite may narrow them to those of one executor.
    """

    plugin: ClassVar[Any]
    always_answers: ClassVar[bool] = False
    observations: ClassVar[SearchStrategy[ExitObservation]] = observations()

    @property
    def _classify(self) -> Callable[[ExitObservation], ExitVerdict | None]:
        hook: Callable[[ExitObservation], ExitVerdict | None] = self.plugin.torc_classify_exit
        return hook

    def _for_all_verdicts(self, check: Callable[[ExitObservation, ExitVerdict], None]) -> None:
        def one(seen: ExitObservation) -> None:
            verdict = self._classify(seen)
            if verdict is not None:
                check(seen, verdict)

        for_all(self.observations, one)

    def test_it_answers_any_observation_with_a_verdict_or_none(self) -> None:
        """It never raises, for any combination of observed values."""

        def one(seen: ExitObservation) -> None:
            verdict = answer(self._classify, "never raise for any observation; pass with None", seen)
            require(
                verdict is None or isinstance(verdict, ExitVerdict),
                "answer with an ExitVerdict, or None to pass",
                verdict,
            )
            if self.always_answers:
                require(verdict is not None, "a classifier that always answers has an opinion on everything", seen)

        for_all(self.observations, one)

    def test_it_answers_from_the_observation_alone(self) -> None:
        """The verdict depends on the observation alone, so that a stored one can be classified again."""
        for_all(self.observations, lambda seen: require_pure(self._classify, seen), most=50)

    def test_confidence_is_between_nothing_and_proof(self) -> None:
        """The confidence is a number from 0 to 1."""
        self._for_all_verdicts(
            lambda _, verdict: require(0 <= verdict.confidence <= 1, "confidence is from 0 to 1; 1 is proof", verdict)
        )

    def test_the_reason_is_a_sentence(self) -> None:
        """The class is an `ExitClass`, and the reason is not empty: tables show it."""

        def one(_: ExitObservation, verdict: ExitVerdict) -> None:
            require(isinstance(verdict.exit_class, ExitClass), "exit_class is one of ExitClass", verdict)
            require(verdict.reason.strip(), "the reason is one sentence for people, never empty", verdict)

        self._for_all_verdicts(one)

    def test_evidence_is_cited_and_was_seen(self) -> None:
        """Evidence names fields of the observation that are set."""

        def one(seen: ExitObservation, verdict: ExitVerdict) -> None:
            require(
                verdict.evidence or verdict.confidence < 1,
                "cite what a certain verdict rests on: evidence holds names of the observation's fields",
                verdict,
            )
            require(
                _FIELDS.issuperset(verdict.evidence),
                "evidence holds names of fields of ExitObservation, nothing else",
                sorted(set(verdict.evidence) - _FIELDS),
            )
            unseen = [name for name in verdict.evidence if getattr(seen, name) is None]
            require(not unseen, "cite only what was seen: a cited field is not None", (unseen, seen))

        self._for_all_verdicts(one)

    def test_what_never_ran_did_not_succeed(self) -> None:
        """An attempt that was not started, or whose end was not observed, is no success."""

        def one(seen: ExitObservation, verdict: ExitVerdict) -> None:
            if seen.launch_error is not None or seen.lost:
                require(
                    verdict.exit_class is not ExitClass.SUCCESS,
                    "an attempt that was not started, or whose end was not observed, is no success",
                    seen,
                )

        self._for_all_verdicts(one)
