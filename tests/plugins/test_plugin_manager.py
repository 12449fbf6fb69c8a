"""Tests of the plugin manager: which plugins are called, in which order, and that a bad one does not affect others."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_files import HEAD, SEEN, Write, classifier, errors, verdict
from programs import project_plugin

from torc_framework import hookspecs
from torc_framework.api import (
    ExitClass,
    ExitVerdict,
    Failure,
    FailureRule,
    PendingContext,
    hookimpl,
)
from torc_framework.cli.programs.torc import main
from torc_framework.plugins.discovery import PluginCandidate, PluginInfo, PluginKind
from torc_framework.plugins.manager import PluginManager

# --- order ----------------------------------------------------------------------------------------


def test_plugins_are_asked_by_name_and_the_first_answer_wins(write: Write) -> None:
    """The file names decide, not the order in which they were found or registered."""
    write("b", classifier(verdict("OOM")))
    write("a", classifier("return None"))
    write("c", classifier(verdict("TIMEOUT")))
    assert PluginManager.load().classify(SEEN).exit_class is ExitClass.OOM


def test_built_ins_are_asked_last(write: Write) -> None:
    """A plugin of any name replaces built-in behaviour."""
    write("zzz", classifier(verdict("PREEMPTED")))
    assert PluginManager.load().classify(SEEN).exit_class is ExitClass.PREEMPTED


def test_the_built_in_classifier_always_answers(project: Path) -> None:
    """Without plugins, an exit code of the program is a failure of the user's."""
    assert PluginManager.load().classify(SEEN).exit_class is ExitClass.USER_ERROR


@given(st.dictionaries(st.text("abcz_", min_size=1, max_size=4), st.booleans(), min_size=1, max_size=6))
def test_the_first_name_with_an_opinion_wins(opinions: dict[str, bool]) -> None:
    """In any set of plugins the alphabetically first one that does not pass decides."""

    class Plugin:
        def __init__(self, name: str, speaks: bool) -> None:
            self.name, self.speaks = name, speaks

        @hookimpl
        def torc_classify_exit(self) -> ExitVerdict | None:
            return ExitVerdict(ExitClass.UNKNOWN, self.name) if self.speaks else None

    def candidate(name: str, speaks: bool) -> PluginCandidate:
        plugin = Plugin(name, speaks)
        return PluginCandidate(PluginInfo(name, PluginKind.PROJECT, name), lambda: plugin)

    manager = PluginManager([candidate(name, speaks) for name, speaks in opinions.items()])
    speakers = sorted(name for name, speaks in opinions.items() if speaks)
    assert manager.classify(SEEN).reason == (speakers[0] if speakers else "no classifier had an opinion")


def test_one_classifier_without_the_declaration_may_judge_clean_exits(write: Write) -> None:
    """Without any such plugin, an executor may continue a chain of jobs by itself."""
    assert not PluginManager.load().judges_clean_exits()
    write("a", "@accepts_clean_exits\n" + classifier("return None"))
    assert not PluginManager.load().judges_clean_exits()
    write("b", classifier("return None"))
    assert PluginManager.load().judges_clean_exits()


# --- bad plugins ----------------------------------------------------------------------------------


def test_a_raising_plugin_passes_and_is_logged_by_name(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    """The error of one plugin is logged once, and the other plugins are called."""
    write("a", classifier("raise ValueError('boom')"))
    write("b", classifier(verdict("OOM")))
    manager = PluginManager.load()
    with caplog.at_level(logging.WARNING):
        assert [manager.classify(SEEN).exit_class for _ in range(3)] == [ExitClass.OOM] * 3
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == ["plugin a raised in torc_classify_exit: ValueError: boom"]


def test_a_plugin_that_exits_does_not_end_the_program(write: Write) -> None:
    """sys.exit() in a hook or at import is one plugin's error like any other."""
    write("a", classifier("raise SystemExit(3)"))
    write("b", "raise SystemExit('no license')\n")
    manager = PluginManager.load()
    assert manager.classify(SEEN).exit_class is ExitClass.USER_ERROR
    assert errors(manager) == {"b": "SystemExit: no license"}


def test_a_wrong_answer_counts_as_an_error(write: Write) -> None:
    """An answer of another type than the hook promises is never handed on."""
    write("a", classifier("return 'oom'"))
    assert PluginManager.load().classify(SEEN).exit_class is ExitClass.USER_ERROR


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module_anywhere\n", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("def broken(:\n", "SyntaxError"),
        (
            "@hookimpl\ndef torc_clasify_exit(observation): ...\n",
            "unknown hook 'torc_clasify_exit'; did you mean 'torc_classify_exit'?",
        ),
        (
            "@hookimpl\ndef torc_classify_exit(job): ...\n",
            "torc_classify_exit has no argument 'job'; its arguments: observation",
        ),
        ("def torc_classify_exit(observation): ...\n", "torc_classify_exit lacks the decorator @hookimpl"),
        ("@hookimpl(wrapper=True)\ndef torc_classify_exit():\n    yield\n", "hooks of torc have no wrappers"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_listed_with_its_error(write: Write, source: str, message: str) -> None:
    """The list shows its error, and the others work."""
    write("bad", source)
    write("good", classifier(verdict("OOM")))
    manager = PluginManager.load()
    assert message in errors(manager)["bad"]
    assert manager.classify(SEEN).exit_class is ExitClass.OOM


def test_an_implementation_may_take_fewer_arguments(write: Write) -> None:
    """So that a specification can grow without breaking anyone."""
    write("a", f"@hookimpl\ndef torc_classify_exit():\n    {verdict('EVICTED')}\n")
    write("b", "@hookimpl\ndef torc_match_failure(failure):\n    return failure.return_code == 3\n")
    manager = PluginManager.load()
    verdict_ = manager.classify(SEEN)
    assert verdict_.exit_class is ExitClass.EVICTED
    assert manager.match_failure({}, Failure(1, 1, "j", 1, 3, SEEN, verdict_))


# --- the other hooks ------------------------------------------------------------------------------


def test_an_unanswered_rule_does_not_match(project: Path) -> None:
    """A rule with a key that no plugin owns covers nothing."""
    manager = PluginManager.load()
    failure = Failure(1, 1, "j", 1, 3, SEEN, ExitVerdict(ExitClass.USER_ERROR, ""))
    rule: FailureRule = {"nobody": 1}
    assert manager.match_failure(rule, failure) is None


def test_the_first_pending_verdict_of_each_job_counts(write: Write) -> None:
    """All plugins are asked, and complete each other."""
    source = """
    @hookimpl
    def torc_classify_pending(failures):
        return {{job: PendingVerdict(RecoveryAction.RETRY, "{name}", 1.0) for job in {jobs}}}
    """
    write("a", source.format(name="a", jobs=[1]))
    write("b", source.format(name="b", jobs=[1, 2]))
    found = PluginManager.load().classify_pending([], PendingContext(1))
    assert {job: verdict.reason for job, verdict in found.items()} == {1: "a", 2: "b"}


def test_every_listener_hears_an_event(write: Write, project: Path) -> None:
    """Also those after one that raises."""
    write("a", "@hookimpl\ndef torc_on_event(event):\n    raise RuntimeError\n")
    write(
        "b",
        """
        from pathlib import Path
        @hookimpl
        def torc_on_event(event):
            Path("heard").write_text(event["data"]["event_type"])
        """,
    )
    PluginManager.load().emit({"workflow_id": 1, "timestamp": 0, "data": {"event_type": "job_started"}})
    assert (project / "heard").read_text() == "job_started"


def test_a_site_can_replace_a_profile(write: Write) -> None:
    """The first profile of a name wins."""
    source = "@hookimpl\ndef torc_hpc_profiles():\n    return [HpcProfile('here', '{}')]\n"
    write("a", source.format("ours"))
    write("b", source.format("theirs"))
    assert PluginManager.load().hpc_profiles()["here"].display_name == "ours"


def test_recovery_and_patterns_are_asked(write: Write) -> None:
    """The hooks that only later plugins implement have their callers already."""
    write(
        "a",
        """
        import re
        @hookimpl
        def torc_decide_recovery(job):
            return RecoveryDecision(RecoveryAction.FAIL, job.failure.job_name)
        @hookimpl
        def torc_log_patterns():
            return [LogPattern("oops", re.compile("oops"))]
        """,
    )
    manager = PluginManager.load()
    from torc_framework.api import FailedJob

    failure = Failure(1, 1, "j", 1, 3, SEEN, ExitVerdict(ExitClass.USER_ERROR, ""))
    decision = manager.decide_recovery(FailedJob(failure, 1, 1, 1))
    assert decision is not None
    assert (decision.reason, decision.decided_by) == ("j", "a")
    assert manager.log_patterns()[0].name == "oops"  # before the built-in ones


# --- finding, leaving out, tracing ----------------------------------------------------------------


def test_installed_plugins_are_found_with_their_distribution(project: Path) -> None:
    """The executor that comes with the framework is a distribution like any other."""
    info = PluginManager.load().info("local")
    assert (info.kind, info.distribution, info.hooks) == (PluginKind.ENTRY_POINT, "torc-local", ["torc_executors"])
    assert info.version


def test_plugins_beside_the_spec_and_here_are_found_once(project: Path, write: Write) -> None:
    """The same folder seen twice is one folder; files that begin with an underscore are not plugins."""
    write("here", classifier(verdict("OOM")))
    write("_helper", "raise RuntimeError\n")
    (project / "other").mkdir()
    project_plugin(project / "other", "there", HEAD + classifier("return None"))
    names = [info.name for info in PluginManager.load(project / "other").infos() if info.kind is PluginKind.PROJECT]
    assert names == ["here", "there"]
    assert [i.name for i in PluginManager.load(project).infos() if i.kind is PluginKind.PROJECT] == ["here"]


@pytest.mark.parametrize("by_environment", [True, False])
def test_a_plugin_that_is_switched_off_is_not_imported(
    write: Write, monkeypatch: pytest.MonkeyPatch, by_environment: bool
) -> None:
    """It is listed as off; built-ins can be switched off too."""
    write("a", "raise RuntimeError('imported')\n")
    names = ["a", "builtin_exits"]
    if by_environment:
        monkeypatch.setenv("TORC_DISABLE_PLUGINS", ", ".join(names))
    manager = PluginManager.load(disabled=[] if by_environment else names)
    info = manager.info("a")
    assert (info.enabled, info.error, info.hooks) == (False, None, [])
    assert manager.classify(SEEN).exit_class is ExitClass.UNKNOWN


def test_switching_off_what_is_not_there_is_said(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A slip in the name would otherwise leave the plugin on, unnoticed."""
    PluginManager.load(disabled=["locla"])
    assert "there is no plugin 'locla' to switch off; did you mean 'local'?" in caplog.text


def test_a_trace_shows_each_call_and_answer(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trace shows which plugins were called for the class of a job."""
    monkeypatch.setattr(logging.getLogger("torc_framework"), "handlers", [])  # another test's, on a closed stream
    monkeypatch.setenv("TORC_TRACE_PLUGINS", "1")
    write("a", classifier("raise ValueError('boom')"))
    write("b", classifier("return None"))
    write("c", classifier(verdict("OOM")))
    PluginManager.load().classify(SEEN)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1:3] for line in lines] == [["torc_classify_exit", name] for name in "abc"]
    assert "raised ValueError: boom" in lines[0]
    assert lines[1].endswith(": None")
    assert "ExitClass.OOM" in lines[2]


def test_every_hook_has_a_caller() -> None:
    """Every hook has a caller."""
    source = (Path(hookspecs.__file__).parent / "plugins" / "manager.py").read_text()
    hooks = [name for name in vars(hookspecs) if name.startswith("torc_")]
    assert len(hooks) == 11
    assert [name for name in hooks if f'"{name}"' not in source] == []


@pytest.mark.parametrize(
    "hook",
    [
        "torc_executors",
        "torc_hpc_profiles",
        "torc_failure_rule_keys",
        "torc_action_types",
        "torc_recovery_options",
        "torc_log_patterns",
    ],
)
def test_a_list_of_plugins_shows_what_offers_raise(write: Write, hook: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``torc plugins list`` and ``show`` call the hooks that offer something, and show the error as the state."""
    write("mine", f"@hookimpl\ndef {hook}():\n    raise OSError('no such file: site.json')\n")
    error = f"raised in {hook}: OSError: no such file: site.json"
    assert main(["plugins", "list", "-f", "json"]) == 0
    plugins = {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)["plugins"]}
    assert (plugins["mine"]["error"], plugins["local"]["error"]) == (error, None)
    assert main(["plugins", "show", "mine", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] == error


def test_an_entry_point_without_a_hook_is_no_working_plugin(project: Path) -> None:
    """An entry point that names something else than a module of hooks is listed with that as its error."""
    found = PluginCandidate(PluginInfo("aurora", PluginKind.ENTRY_POINT, "torc_aurora:AURORA"), object)
    manager = PluginManager([found])
    manager.check_offers()
    message = "it offers no hook: torc_aurora:AURORA has no function of a hook's name with @hookimpl"
    assert errors(manager) == {"aurora": message}
