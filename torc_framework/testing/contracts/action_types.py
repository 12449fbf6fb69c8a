"""The contract suite of action types."""

import contextlib
import copy
import os
import re
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from torc_framework.api import ActionContext, ActionType
from torc_framework.testing.support.clauses import answer, broken, require
from torc_framework.testing.support.purity import recorded_effects
from torc_framework.testing.support.suites import ContractSuite
from torc_framework.testing.support.time_limits import time_limit

Config = Mapping[str, Any]
PATIENCE_S: Final = 8.0
"""How long `ActionType.why_not` may take."""


class ActionTypeContract(ContractSuite):
    """Tests that every action type passes.

    Attributes:
        action_type: The type.
        configs: Valid configurations.
        wrong_configs: Configurations that its schema is to refuse.
        harmless_configs: Configurations that succeed in an empty folder without a server.
        failing_configs: Configurations whose execution fails in an empty folder without a server.
        endless_configs: Configurations that would run for minutes; they end when the runner does.
        patience_s: How long an execution may take, and the end of an endless one once the runner is ending.
    """

    action_type: ClassVar[ActionType]
    configs: ClassVar[Sequence[Config]]
    wrong_configs: ClassVar[Sequence[Config]] = ()
    harmless_configs: ClassVar[Sequence[Config]] = ()
    failing_configs: ClassVar[Sequence[Config]] = ()
    endless_configs: ClassVar[Sequence[Config]] = ()
    patience_s: ClassVar[float] = 20.0

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

    def test_it_introduces_itself(self) -> None:
        """Its name is one word, as specs have it, and its schema is a mapping."""
        found = self.action_type
        is_word = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", found.name)
        require(is_word, "an action type has a name of one word, for specs", found.name)
        require(
            isinstance(found.schema, Mapping), "schema is a mapping, the JSON schema of action_config", found.schema
        )

    def test_it_says_why_it_cannot(self, action_context: ActionContext) -> None:
        """`why_not` returns a sentence or None, changes nothing, comes soon and never raises."""
        for config in self.configs:
            given = copy.deepcopy(dict(config))
            clause = "why_not never raises: what it cannot do it says"
            soon = "why_not answers soon: the runner waits"
            said: Any = answer(self.action_type.why_not, clause, given, action_context, limit_s=PATIENCE_S, slow=soon)
            is_sentence = said is None or (isinstance(said, str) and said.strip())
            require(is_sentence, "why_not answers with a sentence, or None", said)
            require(given == dict(config), "why_not leaves the configuration as it is", given)
        left = sorted(path.name for path in Path(action_context.output_dir).iterdir())
        require(not left, "why_not changes nothing", left)

    def test_it_is_carried_out(self, action_context: ActionContext) -> None:
        """`execute` carries the action out once, as configured, and returns None."""
        for config in self.harmless_configs:
            clause = f"execute returns when the action was carried out: {config}"
            given = copy.deepcopy(dict(config))
            with recorded_effects() as effects:
                said = answer(
                    self.action_type.execute, clause, given, action_context, limit_s=self.patience_s, slow=clause
                )
            require(said is None, "execute answers nothing: it raises to report failure", said)
            require(given == dict(config), "execute leaves the configuration as it is", given)
            half = len(effects) // 2
            is_twice = effects and effects[:half] == effects[half:] and not _repeats(config)
            require(not is_twice, "execute carries the action out once", effects)

    def test_failures_are_raised(self, action_context: ActionContext) -> None:
        """`execute` raises an error with a message when the action failed; the runner records it."""
        for config in self.failing_configs:
            clause = f"execute raises when the action could not be carried out: {config}"
            try:
                with time_limit(self.patience_s, lambda clause=clause: broken(clause, "it did not return")):  # type: ignore[misc]  # mypy infers no lambda with a default
                    self.action_type.execute(copy.deepcopy(dict(config)), action_context)
            except Exception as error:
                require(str(error).strip(), "the error that reports a failure says what went wrong", error)
            else:
                broken(clause, "it returned")

    def test_it_ends_with_its_runner(self, tmp_path: Path) -> None:
        """An action that runs long ends soon after `is_stopping` has become true, with its processes."""
        for config in self.endless_configs:
            stopping, before = threading.Event(), _children()
            context = ActionContext(1, "http://127.0.0.1:1/torc-service/v1", str(tmp_path), is_stopping=stopping.is_set)
            worker = threading.Thread(target=self._execute, args=(config, context), daemon=True)
            worker.start()
            worker.join(0.5)
            require(worker.is_alive(), "an endless configuration of the suite runs on by itself", config)
            stopping.set()
            worker.join(self.patience_s)
            require(not worker.is_alive(), "what runs long ends when is_stopping says so", config)
            left = _children() - before
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            require(not left, "an action that ends leaves no process behind", sorted(left))

    def _execute(self, config: Config, context: ActionContext) -> None:
        with contextlib.suppress(Exception):
            self.action_type.execute(config, context)


def _repeats(config: Config) -> bool:
    """Return whether a list of the configuration has an item twice, so that it may be done twice."""
    lists = [value for value in config.values() if isinstance(value, (list, tuple))]
    return any(len({str(item) for item in items}) < len(items) for items in lists)


def _children() -> set[int]:
    """Return the pids of the children of this process that run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid() and state not in "ZX":
                found.add(int(path.parent.name))
    return found
