"""The viewers of logs and files in a real terminal: a growing log, search in both directions, bytes, Slurm's logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import Terminal

from torc_framework.client import TorcClient
from torc_framework.models.records import ScheduledComputeNodeRecord

Create = Callable[[dict[str, Any]], int]


@pytest.fixture
def environment(torc_env: dict[str, str], own_server: str) -> dict[str, str]:
    """The variables of a person at a terminal; the server is that of the test."""
    return {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def test_a_log_that_grows(create: Create, environment: dict[str, str], terminal: Terminal, work: Path) -> None:
    """What is written is shown by itself, until the reader goes up or turns it off; g and G are the ends."""
    wait = "while [ ! -e {0} ]; do sleep 0.05; done"
    command = f"seq -f 'line %g' 100; {wait.format('one')}; echo later; {wait.format('two')}; echo last"
    create({"name": "grows", "jobs": [{"name": "grow", "command": command}]})
    terminal.start((80, 24), environment, work)
    terminal.until("not started")
    terminal.keys("x")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("It has written nothing yet")
    terminal.keys("q", "2")
    terminal.until("1 of 1")
    terminal.keys("Right", "l")
    terminal.until("line 100")
    terminal.until(", following")
    (work / "one").touch()
    terminal.until("later")
    terminal.keys("g")
    terminal.until("line 1\n")
    terminal.until("bytes 0 to ")
    (work / "two").touch()
    terminal.keys("G")
    terminal.until("last")
    terminal.keys("F")
    terminal.until("bytes ")


def test_search_goes_round(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """n and N find the only match again and again; a text that is not there is named."""
    jobs = [{"name": "a", "command": "seq -f 'line %g' 50000; echo a NEEDLE here; seq -f 'tail %g' 50000"}]
    torc("run", create({"name": "long", "jobs": jobs}))
    terminal.start((80, 24), environment, work)
    terminal.until("completed: 1 job")
    terminal.keys("2")
    terminal.until("1 of 1")
    terminal.keys("Right", "l")
    terminal.until("tail 50000")
    for keys in (("/", "needle", "Enter"), ("G", "n"), ("g", "N"), ("N",)):
        if keys[0] == "/":
            terminal.keys("/")
            terminal.until("In any letter case")
            terminal.keys(*keys[1:])
        else:
            terminal.keys(*keys)
        terminal.until("a NEEDLE here")
        assert "no match" not in terminal.screen()
    terminal.keys("/")
    terminal.until("In any letter case")
    terminal.keys("s", "Enter")
    terminal.until("no match for 'needles'")


def test_files(create: Create, environment: dict[str, str], terminal: Terminal, work: Path) -> None:
    """A text is shown from its beginning, bytes as numbers; of a file that is not here the path is named."""
    (work / "text.txt").write_text("".join(f"row {number}\n" for number in range(1, 1001)))
    (work / "data.bin").write_bytes(bytes(range(256)) * 40)
    names = ("text.txt", "data.bin", "none.csv")
    files = [{"name": f"f{place}", "path": name} for place, name in enumerate(names)]
    job = {"name": "a", "command": "true", "input_files": ["f0", "f1"], "output_files": ["f2"]}
    create({"name": "files", "files": files, "jobs": [job]})
    terminal.start((200, 50), environment, work)
    terminal.until("not started")
    terminal.keys("3")
    terminal.until("none.csv")
    terminal.keys("Right", "Enter")
    terminal.until("row 1\n")
    terminal.keys("G")
    terminal.until("row 1000")
    terminal.keys("q", "Down", "Enter")
    terminal.until("00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................")
    terminal.until("00000040  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO")
    terminal.keys("q", "Down", "Enter")
    terminal.until("No log content available.")
    terminal.until("none.csv does not exist on ")


def test_logs_of_a_scheduled_node(
    create: Create, own_server: str, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """l shows the standard output of the Slurm job, Tab its standard error."""
    workflow = create({"name": "batch", "jobs": [{"name": "a", "command": "true"}]})
    record = ScheduledComputeNodeRecord(
        workflow_id=workflow, scheduler_id=4711, scheduler_config_id=1, scheduler_type="slurm", status="complete"
    )
    with TorcClient(own_server) as client:
        client.create(record)
    (work / "output").mkdir()
    for suffix, text in ((".o", "the node began"), (".e", "slurmstepd: error: Detected 1 oom_kill event")):
        (work / "output" / f"slurm_output_wf{workflow}_sl4711{suffix}").write_text(f"{text}\n")
    terminal.start((80, 24), environment, work)
    terminal.until("not started")
    terminal.keys("6")
    terminal.until("4711")
    terminal.keys("Right", "l")
    terminal.until("Slurm job 4711  [stdout]  stderr")
    terminal.until("the node began")
    terminal.keys("Tab")
    terminal.until("Detected 1 oom_kill event")
