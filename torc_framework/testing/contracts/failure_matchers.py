"""The contract suite of failure matchers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from attrs import evolve

from torc_framework.api import Failure, FailureRule, RuleAction, RuleSchema
from torc_framework.testing.support.clauses import answer, for_all, require, require_pure
from torc_framework.testing.support.strategies import failures

_CORE_KEYS: Final = frozenset({"recovery_script", "max_retries"})


class MatcherContract:
    """Tests that every failure matcher passes.

    Attributes:
        plugin: The module or object with ``torc_failure_rule_keys`` and ``torc_match_failure``.
        rules: Valid rules; together they use every key that the plugin owns.
        wrong_rules: Rules that the plugin's schema is to refuse.
    """

    plugin: ClassVar[Any]
    rules: ClassVar[Sequence[FailureRule]]
    wrong_rules: ClassVar[Sequence[FailureRule]] = ()

    @property
    def _match(self) -> Callable[[FailureRule, Failure], RuleAction | bool | None]:
        hook: Callable[[FailureRule, Failure], RuleAction | bool | None] = self.plugin.torc_match_failure
        return hook

    @property
    def _keys(self) -> RuleSchema:
        keys: RuleSchema = self.plugin.torc_failure_rule_keys()
        return keys

    def test_it_owns_keys_with_schemas(self) -> None:
        """Each key has a valid schema fragment: specs are checked with it."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        keys = self._keys
        require(keys, "name the keys that you own, each with a JSON-schema fragment", keys)
        require(not _CORE_KEYS.intersection(keys), "recovery_script and max_retries belong to the core", sorted(keys))
        for key, fragment in keys.items():
            try:
                Draft202012Validator.check_schema(dict(fragment))
            except SchemaError as error:
                require(False, f"the fragment of key {key!r} is valid JSON schema", error.message)

    def test_valid_rules_pass_and_wrong_ones_do_not(self) -> None:
        """The schema fragments accept valid rules and refuse wrong ones."""
        from jsonschema import Draft202012Validator

        keys = {key: dict(fragment) for key, fragment in self._keys.items()}
        core = {"recovery_script": {"type": "string"}, "max_retries": {"type": "integer"}}
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

    def test_it_has_an_opinion_on_its_own_rules(self) -> None:
        """It answers a rule with one of its keys with True, False or a `RuleAction`, and never raises."""

        def one(failure: Failure) -> None:
            for rule in self.rules:
                said = answer(self._match, f"never raise on a rule that passes your schema: {rule}", rule, failure)
                require(
                    isinstance(said, (bool, RuleAction)),
                    f"answer True, False or a RuleAction for a rule with a key of yours: {rule}",
                    said,
                )

        for_all(failures(), one)

    def test_it_passes_on_rules_of_others(self) -> None:
        """It answers None for a rule without its keys."""
        others: list[FailureRule] = [{}, {"max_retries": 2}, {"recovery_script": "x"}, {"an_unknown_key": [1]}]

        def one(failure: Failure) -> None:
            for rule in others:
                said = answer(self._match, "never raise on a rule without your keys", rule, failure)
                require(said is None, f"answer None for a rule without a key of yours: {rule}", said)

        for_all(failures(), one, most=50)

    def test_it_answers_from_rule_and_failure_alone(self) -> None:
        """The answer depends on rule, failure and the attempt's logs alone."""
        without_logs = failures().map(lambda failure: evolve(failure, stdout_path=None, stderr_path=None))
        for rule in self.rules:
            for_all(without_logs, partial(require_pure, self._match, rule), most=25)
