"""Hostile names: control characters do not reach a terminal, and JSON keeps names exactly."""

import io
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import BIN, Torc

from torc_framework.cli.programs.command_tree import root_command
from torc_framework.cli.programs.torc import main
from torc_framework.cli.shared.session import Session
from torc_framework.client import TorcClient
from torc_framework.models.records import (
    EventRecord,
    FileRecord,
    JobRecord,
    ResourceRequirementsRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowRecord,
)
from torc_framework.text.terminal import CleanedStream, cleaned, one_line

HOSTILE = {
    "screen": "\x1b[2J\x1b[1;1H",
    "title": "\x1b]0;title\x07",
    "link": "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "c1": "\x9b31mred\x9dP",
    "override": "exe.\u202etxt",
    "isolate": "\u2066a\u2069\u200f\u061c",
    "invisible": "a\u200bb\ufeff\u00ad",
    "separator": "a\u2028FORGED\u2029",
    "tag": "a\U000e0041",
    "return": "good\rbad",
    "newline": "a\nFORGED line\n  Status: completed",
    "backspace": "a\b\b\x7f",
    "markup": "[red]a[/red][link=http://x]b[/link]",
}
ALL = "".join(HOSTILE.values())
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
ENDLESS = {("watch",), ("events", "monitor"), ("completions",)}
"""Commands that wait, or print nothing of the server's."""
LOGS = ("jobs", "logs")
"""The command that prints what a job wrote, with its lines as they are."""

PLACES = {
    "file": "w.json",
    "spec": "w.json",
    "path": "w.json",
    "workflow": "w.json",
    "place": "output",
    "what": "output",
}
"""Values of arguments that are no ids."""


def harmless(text: str) -> bool:
    return OBEYED.search(text) is None and not any(line.startswith("FORGED") for line in text.splitlines())


# --- the rule -------------------------------------------------------------------------------------


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    """What is harmless stays as it is; a line stays a line; JSON stays the same value."""
    assert OBEYED.search(cleaned(text)) is None
    assert cleaned(cleaned(text)) == cleaned(text)
    assert "\n" not in one_line(text)
    for document in (json.dumps(text), json.dumps({"name": text}, ensure_ascii=False, indent=2)):
        assert json.loads(cleaned(document)) == json.loads(document)


@pytest.mark.parametrize("text", ["plain", "Größe", "名前", "👩\u200d🔬", "a\tb\nc", "می\u200cخواهم", ""])
def test_words_of_all_languages_stay(text: str) -> None:
    """Also those that join letters by characters that cannot be seen."""
    assert cleaned(text) == text


def test_a_stream_cleans_and_tells_how_much_was_written() -> None:
    """Every way to print, also through the stream as a file object."""
    raw = io.StringIO()
    stream: Any = CleanedStream(raw)
    print("a\x1bb", file=stream)
    stream.writelines(["\x9b", "ok"])
    assert raw.getvalue() == "a\\u001bb\n\\u009bok"
    assert stream.write("\x1b") == 1
    assert (stream.isatty(), stream.closed) == (False, False)


# --- every command --------------------------------------------------------------------------------


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the commands below a command, with their words."""
    context = command.make_context("torc", ["--help"], resilient_parsing=True, obj=Session())
    for name in command.list_commands(context):
        _, found, _ = command.resolve_command(context, [name])
        if hasattr(found, "list_commands"):
            yield from leaves(found, (*path, name))
        else:
            yield (*path, name), found


@pytest.fixture(scope="module")
def hostile(server: str) -> Iterator[dict[str, int]]:
    """A workflow in which everything that has a name has a hostile one; the ids of its records."""
    with TorcClient(server) as client:
        workflow = client.create(WorkflowRecord(name=ALL, user="tester", description=ALL))
        id_ = workflow.id or 0
        jobs = [
            client.create(JobRecord(workflow_id=id_, name=f"{kind}{text}", command=f"echo '{ALL}' >&2; exit 3"))
            for kind, text in HOSTILE.items()
        ]
        ids = {"workflow": id_, "job": jobs[0].id or 0}
        for record in (
            FileRecord(workflow_id=id_, name=ALL, path=f"/nosuch/{ALL}"),
            UserDataRecord(workflow_id=id_, name=ALL, data={ALL: ALL}),
            ResourceRequirementsRecord(workflow_id=id_, name=ALL),
            SlurmSchedulerRecord(workflow_id=id_, name=ALL, account=ALL, walltime="01:00:00", nodes=1, partition=ALL),
            EventRecord(workflow_id=id_, data={"event_type": ALL, "message": ALL}),
        ):
            ids[type(record).__name__] = client.create(record).id or 0
        client.initialize_jobs(id_)
        yield ids


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> Path:
    """A folder to call commands in, as the owner of the workflow."""
    for name in [name for name in os.environ if name.startswith("TORC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "tester")
    monkeypatch.setenv("TORC_API_URL", server)
    monkeypatch.chdir(tmp_path)
    spec = {
        "name": ALL,
        "description": ALL,
        "jobs": [{"name": name, "command": ALL.replace("\0", "")} for name in HOSTILE.values()],
    }
    (tmp_path / "w.json").write_text(json.dumps(spec))
    return tmp_path


@pytest.mark.e2e
@pytest.mark.usefixtures("place")
def test_json_keeps_names_exactly(hostile: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts get what is stored."""
    assert main(["workflows", "get", str(hostile["workflow"]), "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == ALL
    assert main(["jobs", "list", str(hostile["workflow"]), "-f", "json"]) == 0
    names = {job["name"] for job in json.loads(capsys.readouterr().out)["jobs"]}
    assert names >= {f"{kind}{text}" for kind, text in HOSTILE.items()}
    assert main(["workflows", "export", str(hostile["workflow"])]) == 0
    assert json.loads(capsys.readouterr().out)["workflow"]["name"] == ALL


@pytest.mark.e2e
@pytest.mark.usefixtures("place")
def test_no_command_lets_a_name_through(hostile: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    """Each command of the program, with ids of a workflow whose names are hostile; those that change come last."""
    main(["run", str(hostile["workflow"]), "--num-cpus", "4"])
    printed = capsys.readouterr()
    assert harmless(printed.out + printed.err), "run"
    shown, told, wrong = 0, [], {}
    later = (
        "cancel",
        "delete",
        "remove",
        "reset",
        "archive",
        "delete-all",
        "retry",
        "fail",
        "reinitialize",
        "initialize",
    )
    ordered = sorted(leaves(root_command()), key=lambda each: any(word.startswith(later) for word in each[0]))
    for words, command in ordered:
        if words in {*ENDLESS, LOGS} or words[:1] == ("completions",) or words[-1] in ("run", "trust", "init"):
            continue
        arguments = []
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                name = (parameter.name or "").lower()
                arguments.append(PLACES.get(name, str(hostile["workflow"])))
        for form in ([], ["-f", "json"]):
            main([*words, *arguments, *form])
            printed = capsys.readouterr()
            if not harmless(printed.err) or OBEYED.search(printed.out) or not (form or harmless(printed.out)):
                wrong[" ".join(words)] = printed
            if not form:
                shown += "\\u001b" in printed.out
                told.append(words)
    assert not wrong
    main([*LOGS, str(hostile["job"])])
    printed = capsys.readouterr()
    assert OBEYED.search(printed.out + printed.err) is None
    assert len(told) > 80
    assert shown > 12, "names were shown, or this proves nothing"


@pytest.mark.e2e
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_errors_and_tracebacks(place: Path, encoding: str) -> None:
    """Also a file's name in an error, the traceback of ``--debug``, and under any encoding."""
    name = "x\x1b]0;y\x07\u009b\u202e.yaml"
    (place / name).write_text("name: 'a\n\x1b[2J'\njobs: 5\n")
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PATH": f"{BIN}:{os.environ['PATH']}"}
    for arguments in (["workflows", "create", name], ["--debug", "run", name], [name], ["run", f"--{name}"]):
        done = subprocess.run([BIN / "torc", *arguments], env=env, capture_output=True, check=False)
        text = (done.stdout + done.stderr).decode(encoding)
        assert done.returncode == 2
        assert harmless(text), text


@pytest.mark.e2e
def test_logs_of_server_and_runner(torc: Torc, own_server: str, work: Path, tmp_path: Path) -> None:
    """They are shown in terminals, and programs read them line by line."""
    spec = {"name": ALL, "jobs": [{"name": f"{kind}{text}", "command": "true"} for kind, text in HOSTILE.items()]}
    (work / "w.json").write_text(json.dumps(spec))
    done = torc("--log-level", "debug", "run", "w.json")
    assert harmless(done.stdout + done.stderr)
    for log in (*work.glob("output/*.log"), *(tmp_path / "own_server").glob("*.log")):
        assert harmless(log.read_text()), log
