"""The contract suite of exit classifiers."""

import copy
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from attrs import asdict, evolve, fields
from hypothesis.strategies import SearchStrategy

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict
from torc_framework.testing.support.clauses import answer, field_defaults, require, require_types
from torc_framework.testing.support.constants import Constants, constants_of_plugin
from torc_framework.testing.support.generated_values import BUDGET_S, drawn_once, for_all, mixed
from torc_framework.testing.support.purity import SAME, require_pure, require_soon
from torc_framework.testing.support.strategies import observations
from torc_framework.testing.support.suites import ContractSuite
from torc_framework.testing.support.typical_values import long_observations, typical_observations

_FIELDS: Final = frozenset(attribute.name for attribute in fields(ExitObservation))
_UNOBSERVED: Final = {name: value for name, value in field_defaults(ExitObservation).items() if name != "executor"}
"""The values of fields of which nothing was observed."""
NEVER_RAISE: Final = "never raise for any observation; pass with None"
_RENDERINGS: Final = frozenset({137, 143, 152})
"""Return codes that render an ending as a number; as exit codes they are the program's own."""
_PROVEN_BY_CODE: Final = frozenset({ExitClass.SUCCESS, ExitClass.USER_ERROR, ExitClass.UNKNOWN})
_CITED_NUMBER: Final = re.compile(r"(?:exit code|return code|exit status|signal|SIG) ?(\d+)", re.IGNORECASE)
_PURE_VALUES: Final = 120


class _ReadRecorder(ExitObservation):
    """An observation that records which of its fields are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in _FIELDS:
            _READ.add(name)
        return super().__getattribute__(name)


_READ: Final[set[str]] = set()


class ClassifierContract(ContractSuite):
    """Tests that every exit classifier passes, run on typical and on generated observations.

    The numbers and words with which the classifier compares are looked up in its code and tables, so that it is asked
    about them too.

    Attributes:
        plugin: The module or object with ``torc_classify_exit``.
        always_answers: It never passes, as the built-in classifier.
        examples: Observations that it classifies; needed only if the suite finds none.
        observations: The observations that are generated; a second suite may narrow them to those of one executor.
    """

    plugin: ClassVar[Any]
    always_answers: ClassVar[bool] = False
    examples: ClassVar[Sequence[ExitObservation]] = ()
    observations: ClassVar[SearchStrategy[ExitObservation]] = observations()

    @property
    def _classify(self) -> Callable[[ExitObservation], ExitVerdict | None]:
        hook: Callable[[ExitObservation], ExitVerdict | None] = self.plugin.torc_classify_exit
        return hook

    @property
    def _constants(self) -> Constants:
        found: Constants = self._once("_found", lambda: constants_of_plugin(self.plugin, "torc_classify_exit"))
        return found

    @property
    def _seen(self) -> list[ExitObservation]:
        """All observations that the classifier is asked about."""

        def made() -> list[ExitObservation]:
            typical = list(typical_observations(self._constants))
            usual = drawn_once(self.observations, 80)
            return [*self.examples, *typical, *mixed(typical, 1000), *usual]

        found: list[ExitObservation] = self._once("_made", made)
        return found

    @property
    def _first_answers(self) -> list[tuple[ExitObservation, object]]:
        """The answers, or errors, when the classifier was asked about each observation for the first time."""

        def asked() -> list[tuple[ExitObservation, object]]:
            ends_at = time.monotonic() + BUDGET_S
            found: list[tuple[ExitObservation, object]] = []
            for seen in self._seen[:: max(1, len(self._seen) // 1000)]:
                try:
                    found.append((seen, self._answer(seen)))
                except AssertionError as error:
                    found.append((seen, error))
                if time.monotonic() > ends_at:
                    break
            return found

        answers: list[tuple[ExitObservation, object]] = self._once("_asked", asked)
        return answers

    def _answer(self, seen: ExitObservation) -> ExitVerdict | None:
        # a copy, so that a change of the values is noticed where that is checked
        copied = evolve(seen, raw=copy.deepcopy(seen.raw)) if type(seen) is ExitObservation else seen
        verdict = answer(self._classify, NEVER_RAISE, copied)
        is_verdict = verdict is None or isinstance(verdict, ExitVerdict)
        require(is_verdict, "answer with an ExitVerdict, or None to pass", verdict)
        return verdict

    def _for_all_verdicts(self, check: Callable[[ExitObservation, ExitVerdict], None]) -> None:
        def one(seen: ExitObservation) -> None:
            verdict = self._answer(seen)
            if verdict is not None:
                check(seen, verdict)

        for_all(self._seen, one)

    def test_it_answers_soon(self) -> None:
        """It answers at once, also for an observation with long texts."""
        _ = self._first_answers
        for_all(long_observations(self._constants), lambda seen: require_soon(self._answer, seen))
        for_all(self._some(), lambda seen: require_soon(self._answer, seen))

    def test_it_answers_from_the_observation_alone(self) -> None:
        """The verdict depends on the observation alone, so that a stored one can be classified again."""
        for seen, first in self._first_answers:
            if isinstance(first, (ExitVerdict, type(None))):
                again = self._answer(seen)
                require(first == again, SAME, (first, again))
        for_all(self._some(), lambda seen: require_pure(self._classify, seen))

    def test_it_answers_any_observation_with_a_verdict_or_none(self) -> None:
        """It never raises, for any combination of observed values."""

        def one(seen: ExitObservation) -> None:
            verdict = self._answer(seen)
            if self.always_answers:
                require(verdict is not None, "a classifier that always answers has an opinion on everything", seen)

        for_all(self._seen, one)

    def test_it_classifies_some_ending(self) -> None:
        """It answers each of the suite's examples, and at least one observation."""
        for seen in self.examples:
            require(self._answer(seen) is not None, "the classifier answers the suite's examples", seen)
        clause = (
            "the classifier answers some ending; if it answers only rare ones, name them in the suite: "
            "examples = (ExitObservation(...),)"
        )
        is_answered = any(self._answer(seen) is not None for seen in self._seen)
        require(is_answered, clause, f"None for each of {len(self._seen)} observations")

    def _some(self) -> list[ExitObservation]:
        """Return observations that it answers, and some that it passes on."""
        answered: list[ExitObservation] = []
        passed: list[ExitObservation] = []
        for seen in self._seen:
            (passed if self._answer(seen) is None else answered).append(seen)
        chosen = []
        for group in (answered, passed):
            step = max(1, len(group) // _PURE_VALUES)
            chosen += group[: _PURE_VALUES // 4] + group[_PURE_VALUES // 4 :: step]
        return chosen

    def test_confidence_is_between_nothing_and_proof(self) -> None:
        """The confidence is a number from 0 to 1, and below 1 where the cited evidence is no proof."""

        def one(seen: ExitObservation, verdict: ExitVerdict) -> None:
            require_types(verdict, {"confidence": (float, int)}, "ExitVerdict")
            require(0 <= verdict.confidence <= 1, "confidence is from 0 to 1; 1 is proof", verdict)
            is_guess = (
                verdict.confidence == 1
                and seen.exit_code in _RENDERINGS
                and verdict.exit_class not in _PROVEN_BY_CODE
                and {"executor", "exit_code"}.issuperset(verdict.evidence)
            )
            clause = "exit code 137, 143 or 152 alone proves no signal, lack of memory or time-out: confidence below 1"
            require(not is_guess, clause, verdict)

        self._for_all_verdicts(one)

    def test_the_reason_is_a_sentence(self) -> None:
        """The class is an `ExitClass`, and the reason is not empty, and true: tables show it."""

        def one(seen: ExitObservation, verdict: ExitVerdict) -> None:
            require(isinstance(verdict.exit_class, ExitClass), "exit_class is one of ExitClass", verdict)
            require_types(verdict, {"reason": str}, "ExitVerdict")
            require(verdict.reason.strip(), "the reason is one sentence for people, never empty", verdict)
            observed = re.findall(r"\d+", repr([value for name, value in asdict(seen).items() if value is not None]))
            told = [number for number in _CITED_NUMBER.findall(verdict.reason) if number not in observed]
            require(not told, "a code or signal that the reason names was observed", (told, verdict.reason))

        self._for_all_verdicts(one)

    def test_evidence_is_cited_and_was_seen(self) -> None:
        """Evidence names fields of the observation that are set, and that the classifier has read."""

        def one(seen: ExitObservation, verdict: ExitVerdict) -> None:
            cited = verdict.evidence
            require(isinstance(cited, (tuple, list)), "evidence is a tuple of names, such as ('exit_code',)", cited)
            require(
                cited or verdict.confidence < 1,
                "cite what a certain verdict rests on: evidence holds names of the observation's fields",
                verdict,
            )
            strange = [name for name in cited if name not in _FIELDS]
            require(not strange, "evidence holds names of fields of ExitObservation, nothing else", strange)
            unseen = [name for name in cited if name in _UNOBSERVED and getattr(seen, name) == _UNOBSERVED[name]]
            require(not unseen, "cite only what was seen: a cited field is not None, False or empty", (unseen, seen))
            unread = self._unread(seen, verdict)
            require(not unread, "cite only what the verdict rests on: the classifier reads each cited field", unread)

        self._for_all_verdicts(one)

    def _unread(self, seen: ExitObservation, verdict: ExitVerdict) -> list[str]:
        """Return the cited fields that the classifier does not read."""
        recorder = _ReadRecorder(**{name: getattr(seen, name) for name in _FIELDS})
        _READ.clear()
        again = self._answer(recorder)
        read = set(_READ)
        return sorted(set(verdict.evidence) - read) if again == verdict else []

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
