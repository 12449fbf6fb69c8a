"""The contract suite of failure matchers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from attrs import evolve

from torc_framework.api import CORE_RULE_KEYS, MATCHER_RULE_KEYS, Failure, FailureRule, RuleAction, RuleSchema
from torc_framework.testing.support.clauses import answer, broken, require
from torc_framework.testing.support.constants import Constants, constants_of, constants_of_plugin
from torc_framework.testing.support.generated_values import drawn_once, for_all, mixed
from torc_framework.testing.support.purity import SAME, require_pure, require_same, require_soon
from torc_framework.testing.support.strategies import failures
from torc_framework.testing.support.suites import ContractSuite
from torc_framework.testing.support.typical_values import failure_of, ran, typical_failures

_OTHERS: Final[tuple[FailureRule, ...]] = (
    {},
    {"max_retries": 2},
    {"recovery_script": "x", "delay_seconds": 1},
    {"an_unknown_key": [1]},
)
_ANY_FAILURE: Final = failures()
_MOST_FAILURES: Final = 1500
_PURE_FAILURES: Final = 40
_LOG_LINES: Final = 400


class MatcherContract(ContractSuite):
    """Tests that every failure matcher passes, run on typical and on generated failures.

    The numbers and words of the rules, and those with which the matcher compares, are looked up and made into failures.

    Attributes:
        plugin: The module or object with ``torc_failure_rule_keys`` and ``torc_match_failure``.
        rules: Valid rules; together they use every key that the plugin owns.
        wrong_rules: Rules that the plugin's schema is to refuse.
        covered: Failures that at least one of the rules covers; needed only if the suite finds none.
    """

    plugin: ClassVar[Any]
    rules: ClassVar[Sequence[FailureRule]]
    wrong_rules: ClassVar[Sequence[FailureRule]] = ()
    covered: ClassVar[Sequence[Failure]] = ()

    @property
    def _match(self) -> Callable[[FailureRule, Failure], RuleAction | bool | None]:
        hook: Callable[[FailureRule, Failure], RuleAction | bool | None] = self.plugin.torc_match_failure
        return hook

    @property
    def _keys(self) -> RuleSchema:
        clause = "torc_failure_rule_keys never raises: without its keys valid specs are refused"
        keys: RuleSchema = answer(self.plugin.torc_failure_rule_keys, clause)
        require(isinstance(keys, Mapping), "torc_failure_rule_keys answers with a mapping of keys to schemas", keys)
        return keys

    @property
    def _constants(self) -> Constants:
        def found() -> Constants:
            own, code = constants_of(*self.rules), constants_of_plugin(self.plugin, "torc_match_failure")
            return Constants((*own.numbers, *code.numbers), (*own.texts, *code.texts))

        constants: Constants = self._once("_found", found)
        return constants

    @property
    def _failures(self) -> list[Failure]:
        """All failures that the matcher is asked about."""

        def made() -> list[Failure]:
            codes = [failure_of(ran(exit_code=1), return_code=code) for code in (*range(256), -128)]
            own = [
                failure_of(ran(exit_code=code, raw={"message": text}), return_code=code, job_name=text)
                for code, text in zip(self._constants.integers, self._constants.texts, strict=False)
            ]
            typical = list(typical_failures(self._constants))
            step = max(1, len(typical) // _MOST_FAILURES)
            usual = drawn_once(_ANY_FAILURE, 40)
            return [*self.covered, *codes, *own, *typical[::step], *mixed(typical, 200), *usual]

        found: list[Failure] = self._once("_made", made)
        return found

    @pytest.fixture
    def logs(self, tmp_path: Path) -> tuple[str, str]:
        """Paths of logs with the words of the rules and of the plugin, a line for each."""
        out, err = tmp_path / "job.o", tmp_path / "job.e"
        text = "".join(f"{word}\n" for word in self._constants.texts[:_LOG_LINES])
        for path in (out, err):
            path.write_text(text, encoding="utf-8", errors="replace")
        return str(out), str(err)

    def _answer(self, rule: FailureRule, failure: Failure) -> RuleAction | bool | None:
        given = deepcopy(rule)  # so that a change does not reach the next test
        said = answer(self._match, f"never raise on a rule that passes your schema: {rule}", given, failure)
        require(given == rule, "leave the arguments as they are", given)
        return said

    def test_it_owns_keys_with_schemas(self) -> None:
        """Each key is its own and has a valid schema fragment: specs are checked with it."""
        keys = self._keys
        require(keys, "name the keys that you own, each with a JSON-schema fragment", keys)
        core = sorted(set(keys).intersection(CORE_RULE_KEYS))
        require(not core, "recovery_script, max_retries and the delays belong to the core", core)
        builtin = [] if keys is MATCHER_RULE_KEYS else sorted(set(keys).intersection(MATCHER_RULE_KEYS))
        require(not builtin, "own keys of other names than those of the built-in matcher", builtin)
        self._require_schemas(keys)
        require(self._keys == keys, f"torc_failure_rule_keys: {SAME}", keys)

    def _require_schemas(self, keys: RuleSchema) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        for key, fragment in keys.items():
            require(isinstance(fragment, Mapping), f"key {key!r} has a JSON-schema fragment", fragment)
            try:
                Draft202012Validator.check_schema(dict(fragment))
            except SchemaError as error:
                broken(f"the fragment of key {key!r} is valid JSON schema", error.message)

    def test_valid_rules_pass_and_wrong_ones_do_not(self) -> None:
        """The schema fragments accept valid rules and refuse wrong ones."""
        from jsonschema import Draft202012Validator

        self._require_schemas(self._keys)
        keys = {key: dict(fragment) for key, fragment in self._keys.items()}
        core = {key: dict(fragment) for key, fragment in CORE_RULE_KEYS.items()}
        validator = Draft202012Validator(
            {"type": "object", "properties": {**keys, **core}, "additionalProperties": False}
        )
        unused = set(keys).difference(*self.rules)
        require(not unused, "the suite's rules use every key that the plugin owns", sorted(unused))
        for rule in self.rules:
            problems = [error.message for error in validator.iter_errors(dict(rule))]
            require(not problems, f"a valid rule passes its schema: {rule}", problems)
        for rule in self.wrong_rules:
            require(not validator.is_valid(dict(rule)), "a wrong rule is refused by its schema", rule)

    def test_it_has_an_opinion_on_its_own_rules(self, logs: tuple[str, str]) -> None:
        """It answers a rule with one of its keys with True, False or a `RuleAction`, and never raises."""

        def one(failure: Failure) -> None:
            for rule in self.rules:
                said = self._answer(rule, failure)
                require(
                    isinstance(said, (bool, RuleAction)),
                    f"answer True, False or a RuleAction for a rule with a key of yours: {rule}",
                    said,
                )

        for_all([*self._some_with_logs(logs), *self._failures], one)

    def test_it_tells_failures_apart(self, logs: tuple[str, str]) -> None:
        """Of its rules and the failures tried, some are covered and some are not."""
        answers = []
        for failure in [*self.covered, *self._some_with_logs(logs), *self._failures]:
            for rule in self.rules:
                answers.append(self._answer(rule, failure))
                if {False}.union(answers) != {False} and False in answers:
                    return
        never = "the rules cover some failure; if only rare ones, name them in the suite: covered = (Failure(...),)"
        always = "the rules leave out some failure: a rule that covers everything tells nothing apart"
        broken(always if answers and False not in answers else never, sorted({str(each) for each in answers}))

    def _some_with_logs(self, logs: tuple[str, str]) -> Iterator[Failure]:
        """Yield failures whose logs contain every word of the rules."""
        out, err = logs
        for failure in self._failures[::7]:
            yield evolve(failure, stdout_path=out, stderr_path=err)

    def test_it_passes_on_rules_of_others(self) -> None:
        """It answers None for a rule without its keys."""
        builtin: list[FailureRule] = [{"exit_codes": [1]}, {"match_all_exit_codes": True}, {"exit_classes": ["oom"]}]
        keys = self._keys
        others = [rule for rule in (*_OTHERS, *builtin) if not set(rule).intersection(keys)]

        def one(failure: Failure) -> None:
            for rule in others:
                said = answer(self._match, "never raise on a rule without your keys", rule, failure)
                require(said is None, f"answer None for a rule without a key of yours: {rule}", said)

        for_all(self._failures, one)

    def test_the_order_of_keys_does_not_matter(self) -> None:
        """It answers the same for a rule whose keys stand in another order, or together with keys of the core."""

        def one(failure: Failure) -> None:
            for rule in self.rules:
                turned = {"max_retries": 2, **dict(reversed(list(rule.items())))}
                said = self._answer(rule, failure), self._answer(turned, failure)
                require(said[0] == said[1], f"the order of a rule's keys, and keys of the core, change nothing: {rule}")

        for_all(self._failures[::5], one)

    def test_it_answers_from_rule_and_failure_alone(self, logs: tuple[str, str]) -> None:
        """The answer depends on rule, failure and the attempt's logs alone, and comes at once."""
        step = max(1, len(self._failures) // _PURE_FAILURES)
        with_logs = list(self._some_with_logs(logs))[::step]
        without_logs = [evolve(failure, stdout_path=None, stderr_path=None) for failure in self._failures[::step]]
        for rule in deepcopy(self.rules):
            for_all(with_logs, partial(require_same, self._match, dict(rule)))
            for_all(without_logs, partial(require_pure, self._match, dict(rule)))
            for_all(with_logs[:5], partial(require_soon, self._answer, rule))
