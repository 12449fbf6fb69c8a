"""The program's behaviour that needs no server: misuse, help, errors, exit codes."""

import json
from pathlib import Path

import pytest
from programs import project_plugin

from torc_framework import __version__
from torc_framework.cli.programs.torc import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    for name in ("TORC_API_URL", "TORC_CLIENT__API_URL", "TORC_DISABLE_PLUGINS", "TORC_TRACE_PLUGINS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("flags", [["--version"], ["-V"], ["--debug", "--version"]])
def test_version(flags: list[str], capsys: Captured) -> None:
    assert main(flags) == 0
    assert capsys.readouterr().out == f"torc {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wokflows"], "no command 'wokflows'; did you mean 'workflows'?; see 'torc --help'"),
        (["jobs", "lst"], "no command 'lst'; did you mean 'list'?; see 'torc jobs --help'"),
        (["jobs", "list", "--sttus", "x", "1"], "No such option: --sttus"),
        (["jobs", "get"], "Missing argument 'ID'"),
        (["jobs", "get", "seven"], "Invalid value for 'ID': 'seven' is not a whole number; see 'torc jobs get --help'"),
        (["run", "x.yaml", "--num-cpus", "0"], "Invalid value for '--num-cpus': 0 is too small; expected at least 1"),
        (["run", "x.yaml", "--memory-gb", "nan"], "Invalid value for '--memory-gb': nan is too small"),
        (["jobs", "list", "1", "-f", "xml"], "--format is 'xml'; expected one of table, json"),
        (["--log-level", "loud", "ping"], "--log-level is 'loud'; expected one of error"),
        (["jobs", "list", "1", "--status", "xyzzy"], "unknown job status 'xyzzy'; known: uninitialized, blocked"),
        (["workflows", "get"], "which workflow? give its id as WORKFLOW_ID; 'torc workflows list' shows them"),
        (["ping", "--url", "localhost:8080"], "'localhost:8080' is not the URL of a Torc server"),
        (["ping", "--url", "http://127.0.0.1:9", "--database", "x.db"], "--database is for the embedded server"),
        (["plugins", "show", "locl"], "unknown plugin 'locl'; did you mean 'local'?"),
        (["run", "x.yaml", "--executor", "locl", "--shell", "x"], "unknown executor 'locl'; did you mean 'local'?"),
        (["run", "x.yaml", "--time-limit", "2h"], "--time-limit: '2h' is not an ISO 8601 duration"),
        (["user-data", "update", "1"], "nothing to change; give one of --name, --data, --ephemeral"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(arguments: list[str], message: str, capsys: Captured) -> None:
    """It names what was given, what was expected and where to read on; nothing goes to standard output."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"Error: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no server is named: --url, TORC_API_URL and client.api_url of the configuration are not set; "),
        (["--url", "http://127.0.0.1:9"], "no Torc server answers at http://127.0.0.1:9/torc-service/v1: "),
    ],
)
def test_ping_without_a_server(
    arguments: list[str], message: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts none of its own; the message names what starts a server, and the exit code is 3."""
    monkeypatch.delenv("TORC_API_URL", raising=False)
    assert main(["ping", *arguments]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: {message}")
    assert "'torc-server run' starts" in captured.err


@pytest.mark.parametrize("arguments", [["-f", "json", "ping"], ["ping", "-f", "json"], ["ping", "--format=json"]])
def test_errors_are_json_where_json_is_wanted(arguments: list[str], capsys: Captured) -> None:
    """The format may be chosen before or after the command; a server that is away is exit code 3."""
    assert main([*arguments, "--url", "http://127.0.0.1:1"]) == 3
    captured = capsys.readouterr()
    error = json.loads(captured.err)["error"]
    assert captured.out == ""
    assert (error["kind"], error["exit_status"]) == ("ServerUnreachableError", 3)
    assert "http://127.0.0.1:1/torc-service/v1" in error["message"]


def test_a_program_without_arguments_shows_its_help(capsys: Captured) -> None:
    assert main([]) == 2
    assert "Run workflows:" in capsys.readouterr().err


def test_an_executors_options_are_flags_of_run(capsys: Captured) -> None:
    """They are made from the executor's own declaration, with default and help."""
    assert main(["run", "--executor", "local", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "--shell SHELL Shell of jobs and workflows that name none, such as sh or 'bash -e'; bash unless given." in out
    )


def test_a_plugin_file_of_the_project_is_listed_with_its_error(tmp_path: Path, capsys: Captured) -> None:
    """The list is complete and the exit code is 0 also with a plugin that raises."""
    project_plugin(tmp_path, "mine", "import no_such_module\n")
    assert main(["plugins", "list", "-f", "json"]) == 0
    plugins = {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)["plugins"]}
    assert plugins["mine"]["kind"] == "project"
    assert "no_such_module" in plugins["mine"]["error"]
    assert plugins["local"]["error"] is None
    assert main(["plugins", "list", "--disable-plugin", "mine", "-f", "json"]) == 0
    plugins = {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)["plugins"]}
    assert (plugins["mine"]["enabled"], plugins["mine"]["error"]) == (False, None)


def test_a_bug_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """An unexpected error is one message; --debug adds the traceback."""
    from torc_framework.plugins.manager import PluginManager

    def broken(self: PluginManager) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(PluginManager, "infos", broken)
    assert main(["plugins", "list"]) == 1
    assert capsys.readouterr().err == (
        "Error: ZeroDivisionError: division by zero (an internal error of torc; --debug shows where)\n"
    )
    assert main(["plugins", "list", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
