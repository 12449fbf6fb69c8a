"""The contract suite of action types."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from torc_framework.api import ActionContext, ActionType
from torc_framework.testing.support.clauses import broken, require

Config = Mapping[str, Any]


class ActionTypeContract:
    """Tests that every action type passes.

    Attributes:
        action_type: The type.
        configs: Valid configurations.
        wrong_configs: Configurations that its schema is to refuse.
        harmless_configs: Configurations that succeed in an empty folder without a server.
        failing_configs: Configurations whose execution fails in an empty folder without a server.
        endless_configs: Configurations that would run for minutes; they end when the runner does.
        patience_s: How long the end of one of these may take once the runner is ending.
    """

    action_type: ClassVar[ActionType]
    configs: ClassVar[Sequence[Config]]
    wrong_configs: ClassVar[Sequence[Config]] = ()
    harmless_configs: ClassVar[Sequence[Config]] = ()
    failing_configs: ClassVar[Sequence[Config]] = ()
    endless_configs: ClassVar[Sequence[Config]] = ()
    patience_s: ClassVar[float] = 60.0

    @pytest.fixture
    def action_context(self, tmp_path: Path) -> ActionContext:
        """The context of its actions: an empty folder, no server, no allocator."""
        return ActionContext(1, "http://127.0.0.1:1/torc-service/v1", str(tmp_path), log_path=str(tmp_path / "log"))

    def test_its_schema_tells_right_from_wrong(self) -> None:
        """The schema accepts valid configurations and refuses wrong ones: specs are checked with it."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        schema = dict(self.action_type.schema)
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            broken("the schema of an action type is valid JSON schema", error.message)
        validator = Draft202012Validator(schema)
        for config in self.configs:
            problems = [error.message for error in validator.iter_errors(dict(config))]
            require(not problems, f"a valid configuration passes the schema: {config}", problems)
        for config in (*self.wrong_configs, {"an_unknown_key": 1}):
            require(not validator.is_valid(dict(config)), "the schema refuses wrong and unknown keys", config)

    def test_it_says_why_it_cannot(self, action_context: ActionContext) -> None:
        """`why_not` returns a sentence or None, changes nothing and never raises."""
        for config in self.configs:
            before = dict(config)
            try:
                said = self.action_type.why_not(config, action_context)
            except Exception as error:
                broken("why_not never raises: what it cannot do it says", error)
            require(said is None or said.strip(), "why_not answers with a sentence, or None", said)
            require(dict(config) == before, "why_not leaves the configuration as it is", config)
        left = sorted(path.name for path in Path(action_context.output_dir).iterdir())
        require(not left, "why_not changes nothing", left)

    def test_it_is_carried_out(self, action_context: ActionContext) -> None:
        """`execute` returns None when the action was carried out."""
        for config in self.harmless_configs:
            try:
                said: object = self.action_type.execute(config, action_context)  # type: ignore[func-returns-value]  # that it returns nothing is what is checked
            except Exception as error:
                broken(f"execute returns when the action was carried out: {config}", error)
            require(said is None, "execute answers nothing: it raises to report failure", said)

    def test_failures_are_raised(self, action_context: ActionContext) -> None:
        """`execute` raises an error with a message when the action failed; the runner records it."""
        for config in self.failing_configs:
            try:
                self.action_type.execute(config, action_context)
            except Exception as error:
                require(str(error), "the error that reports a failure says what went wrong", error)
            else:
                broken(f"execute raises when the action could not be carried out: {config}", "it returned")

    def test_it_ends_with_its_runner(self, tmp_path: Path) -> None:
        """An action that runs long ends soon after `is_stopping` has become true."""
        for config in self.endless_configs:
            stopping = threading.Event()
            context = ActionContext(1, "http://127.0.0.1:1/torc-service/v1", str(tmp_path), is_stopping=stopping.is_set)
            worker = threading.Thread(target=self._execute, args=(config, context), daemon=True)
            worker.start()
            worker.join(0.5)
            require(worker.is_alive(), "an endless configuration of the suite runs on by itself", config)
            stopping.set()
            worker.join(self.patience_s)
            require(not worker.is_alive(), "what runs long ends when is_stopping says so", config)

    def _execute(self, config: Config, context: ActionContext) -> None:
        try:
            self.action_type.execute(config, context)
        except Exception:
            return
