"""The pages about the Python client: their scripts and commands run, and the output contains what they show."""

import subprocess
from pathlib import Path

import pytest
from doc_pages import blocks
from programs import running_server

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowRecord

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_the_tutorial_of_mapped_functions_runs(server: str, torc_env: dict[str, str], work: Path) -> None:
    """The test saves the files, runs the commands, and compares their output with the page."""
    environment = {**torc_env, "TORC_API_URL": server}
    shown = 0
    said = ""
    for block in blocks("tutorials/map-a-python-function.md"):
        if block.file:
            (work / block.file).write_text(block.text)
        elif block.language == "console" and not block.text.startswith(("torc-server", "export")):
            done = subprocess.run(
                ["bash", "-ec", block.text],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, block.text + done.stdout + done.stderr
            said = done.stdout
        elif block.language == "text":
            for line in block.text.splitlines():
                assert line in said
                shown += 1
    assert shown >= 5
    printed = sorted(path.read_text() for path in (work / "output" / "job_stdio").glob("*.o"))
    assert printed[1:] == [f"{n}: {50 * length**3 / stiff:.2f}\n" for n, (stiff, length) in enumerate(CASES, 1)]


CASES = [(200, 1), (200, 2), (200, 4), (11, 1), (11, 2), (11, 4)]


def test_the_guide_to_the_client_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pieces of the page run in order, as one script."""
    with running_server(tmp_path) as url, TorcClient(url) as api:
        api.create(WorkflowRecord(name="there", user="u"))
        names: dict[str, object] = {"api": api}
        for block in blocks("how-to/use-the-python-client.md"):
            if block.language == "python" and "make_api(" not in block.text:
                exec(block.text, names)
    assert capsys.readouterr().out == "out.txt\n0\n404 Workflow not found with ID: 999\n"
