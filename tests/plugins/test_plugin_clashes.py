"""Plugins that offer the same thing twice, and offers that cannot be used: which command says so, and what goes on."""

import textwrap
import warnings
from pathlib import Path

import pytest
from plugin_files import HEAD, SEEN, Write, classifier, verdict
from programs import project_plugin

from torc_framework import hookspecs
from torc_framework.api import (
    ExitClass,
    ExitVerdict,
    Failure,
    RuleAction,
)
from torc_framework.errors import PluginError, UnknownNameError
from torc_framework.plugin_options import options_of, scalar_type
from torc_framework.plugins.discovery import PluginKind
from torc_framework.plugins.manager import PluginManager


def test_a_retired_argument_is_still_passed_and_warned_of_once(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning names plugin, hook, argument and replacement, and points to the plugin's function."""
    monkeypatch.setattr(hookspecs, "RETIRED_ARGUMENTS", {"torc_match_failure": {"failure": "rule['failure']"}})
    write(
        "old",
        """
        @hookimpl
        def torc_match_failure(rule, failure):
            return failure.verdict.reason == "expected"
        """,
    )
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        manager = PluginManager.load(project)
    (warning,) = [each for each in issued if "plugin old:" in str(each.message)]
    assert warning.category is DeprecationWarning
    assert str(warning.message) == (
        "plugin old: the argument 'failure' of torc_match_failure is retired and goes with the next major version; "
        "use rule['failure']"
    )
    assert warning.filename == str(project / "torc_plugins" / "old.py")
    verdict_ = ExitVerdict(ExitClass.UNKNOWN, "expected")
    assert manager.match_failure({}, Failure(1, 1, "j", 1, 3, SEEN, verdict_)) is RuleAction.RETRY


def test_two_plugins_of_one_name_are_both_set_aside(project: Path, write: Write) -> None:
    """Neither can be chosen over the other; the error names both."""
    write("local", classifier(verdict("OOM")))
    manager = PluginManager.load()
    same = [info for info in manager.infos() if info.name == "local"]
    assert {info.kind for info in same} == {PluginKind.PROJECT, PluginKind.ENTRY_POINT}
    for info in same:
        assert info.error is not None
        assert "torc-local" in info.error
        assert "torc_plugins" in info.error


EXECUTOR = """
class {cls}(Launcher):
    name = "{name}"
    capabilities = Capabilities(can_launch=True)
    def start(self, attempts): ...
    def poll(self): return []
    def stop(self, keys, *, force): ...

@hookimpl
def torc_executors():
    return [{cls}]
"""


def test_two_executors_of_one_name_are_an_error_that_names_both(write: Write) -> None:
    """Others stay usable."""
    write("one", EXECUTOR.format(cls="One", name="twin"))
    write("two", EXECUTOR.format(cls="Two", name="twin"))
    write("three", EXECUTOR.format(cls="Three", name="single"))
    manager = PluginManager.load()
    with pytest.raises(PluginError, match=r"'twin' comes from one and from two"):
        manager.executor("twin")
    assert {"single", "local"} <= set(manager.executors())
    assert "twin" not in manager.executors()


def test_an_unknown_executor_names_the_nearest(project: Path) -> None:
    """A slip of the finger is answered with the name that was meant."""
    with pytest.raises(UnknownNameError, match=r"unknown executor 'locl'; did you mean 'local'\?"):
        PluginManager.load().executor("locl")


def test_an_executor_missing_beside_a_broken_plugin_raises_that_plugins_error(write: Write) -> None:
    """The error that matters is shown when it is asked for, chained, and only then."""
    write("slurmish", "import no_such_module_anywhere\n")
    manager = PluginManager.load()
    assert manager.executor("local").name == "local"
    with pytest.raises(PluginError, match="plugin slurmish: ModuleNotFoundError") as caught:
        manager.executor("slurmish")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_an_executor_must_be_one(write: Write) -> None:
    """A class that is no launcher or allocator is refused by name."""
    write("bad", "@hookimpl\ndef torc_executors():\n    return [int]\n")
    with pytest.raises(PluginError, match="expected subclasses of Launcher or Allocator"):
        PluginManager.load().executor("int")


KEYS = "@hookimpl\ndef torc_failure_rule_keys():\n    {}\n"


BAD_OPTION = """
    from pathlib import Path
    from attrs import frozen

    class Queue(Launcher):
        name = "toyq"

        @frozen
        class Options:
            queue_dir: Path | None = option(None, "Folder of the queue.")

    @hookimpl
    def torc_executors():
        return [Queue]
"""


def test_an_option_of_a_type_without_flag_stops_only_its_own_executor(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    """The message names plugin, executor, option, type and the permitted types; other executors are usable."""
    write("toyq", BAD_OPTION)
    manager = PluginManager.load()
    assert {"local"} <= set(manager.executors()) - {"toyq"}
    message = (
        "executor toyq: option queue_dir has type pathlib.Path | None; expected bool, int, float or str, or one of "
        "these with None"
    )
    with pytest.raises(PluginError, match="not every plugin could be asked") as caught:
        manager.executor("toyq")
    assert f"plugin toyq: {message}" in str(caught.value)
    assert manager.executor("local").name == "local"
    assert f"plugin toyq raised in torc_executors: {message}" in caplog.text


def test_an_option_of_a_recovery_policy_has_a_permitted_type(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """A class that is no attrs class, or has another type of option, is left out with a message."""
    head = "from attrs import frozen\n@frozen\nclass Options:\n    sizes: {} = option(None, 'Sizes.')\n"
    hook = "@hookimpl\ndef torc_recovery_options():\n    return {}\n"
    write("lists", head.format("list[int]") + hook.format("Options"))
    write("plain", hook.format("dict"))
    assert not {"lists", "plain"} & set(PluginManager.load().recovery_options())
    assert "plugin lists raised in torc_recovery_options: option sizes has type list[int]" in caplog.text
    assert "the class of options is <class 'dict'>; expected a class with attrs" in caplog.text


def test_options_may_have_postponed_annotations(project: Path) -> None:
    """Types are the same in a module with ``from __future__ import annotations``."""
    source = "from __future__ import annotations\n" + HEAD + textwrap.dedent(BAD_OPTION).replace("Path |", "int |")
    project_plugin(project, "toyq", source)
    (found,) = options_of(PluginManager.load().executor("toyq").Options)
    assert scalar_type(found) is int


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        ("return {'text': {}}", "return {'text': {}}", "'text' comes from one and from two"),
        ("return {'max_retries': {}}", "return {}", "one claims the failure rule key 'max_retries'"),
        ("raise OSError('gone')", "return {}", "plugin one could not name its failure rule keys"),
        ("return ['text']", "return {}", "plugin one could not name"),
    ],
)
def test_rule_keys_stop_the_command_when_they_are_in_doubt(write: Write, one: str, two: str, message: str) -> None:
    """Without all keys a valid spec would be refused, or read in two ways."""
    write("one", KEYS.format(one))
    write("two", KEYS.format(two))
    with pytest.raises(PluginError, match=message):
        PluginManager.load().rule_keys()


def test_rule_keys_of_all_plugins_are_united(write: Write) -> None:
    """The built-in keys are there like any other."""
    write("one", KEYS.format("return {'text': {'type': 'string'}}"))
    assert PluginManager.load().rule_keys().keys() >= {"text", "exit_codes", "match_all_exit_codes", "exit_classes"}


def test_two_action_types_of_one_name_are_an_error_that_names_both(write: Write) -> None:
    """Which of them would be carried out?"""
    source = "@hookimpl\ndef torc_action_types():\n    return [ActionType('beep', {}, print)]\n"
    write("one", source)
    write("two", source)
    with pytest.raises(PluginError, match="action type 'beep' comes from one and from two"):
        PluginManager.load().action_types()
