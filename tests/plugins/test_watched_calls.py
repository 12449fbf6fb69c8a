"""What a plugin changes in the process is restored, and one that does not return is told of and can be left."""

import logging
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin_files import HEAD, SEEN, Write, classifier, errors
from programs import isolated_environment, project_plugin
from waiting import eventually

from torc_framework.errors import ExitStatus
from torc_framework.plugins import watched_calls
from torc_framework.plugins.manager import PluginManager

IMPORTS = "import ctypes, io, os, signal, sys, threading, time\n"
CHANGES = {
    "the handler of SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "the handler of SIGINT": "signal.signal(signal.SIGINT, lambda *_: None)",
    "the handler of SIGCHLD": "ctypes.CDLL(None).signal(int(signal.SIGCHLD), ctypes.c_void_p(1))",  # in C: SIG_IGN
    "the working folder": "os.chdir('/')",
    "the umask": "os.umask(0o757)",
    "the blocked signals": "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})",
    "sys.stdout": "sys.stdout = io.StringIO()",
    "the file descriptor 2": "os.dup2(os.open('/dev/null', os.O_WRONLY), 2)",
    "the file descriptor 0": "os.close(0)",
}


@pytest.fixture(autouse=True)
def _first_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins of this name have not been warned of."""
    monkeypatch.setattr(watched_calls, "_warned_of", set())


def state() -> list[Any]:
    """Return what no plugin may change."""
    status = Path("/proc/thread-self/status").read_text().splitlines()
    masks = [line.split() for line in status if line.startswith(("Umask", "SigBlk", "SigIgn", "SigCgt"))]
    masks = [[name, mask[-8:]] for name, mask in masks]  # without the signals with which the C library ends threads
    opened = [(facts.st_dev, facts.st_ino) for facts in map(os.fstat, range(3))]
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    return [masks, opened, handlers, sys.stdin, sys.stdout, sys.stderr, Path.cwd(), signal.set_wakeup_fd(-1)]


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(("what", "change"), CHANGES.items())
def test_what_a_plugin_changes_is_restored(
    write: Write, caplog: pytest.LogCaptureFixture, what: str, change: str
) -> None:
    """After its import and after each call of a hook, with one warning for each plugin and thing."""
    write("one", f"{IMPORTS}{change}\n")
    write("two", IMPORTS + classifier(f"{change}; return None"))
    before = state()
    manager = PluginManager.load()
    for _ in range(2):
        manager.classify(SEEN)
    assert state() == before
    assert errors(manager) == {}
    assert warnings(caplog) == [
        f"plugin one changed {what} in its import; torc restored it",
        f"plugin two changed {what} in torc_classify_exit; torc restored it",
    ]


class _InThread:
    """A plugin's hook that works in another thread until `end` is called."""

    def __init__(self, write: Write, change: str) -> None:
        self._begun, self._ends = threading.Event(), threading.Event()
        write("busy", f"{IMPORTS}import builtins\n{classifier(f'builtins.meet(); {change}; builtins.meet()')}")
        self.manager = PluginManager.load()
        self._thread = threading.Thread(target=self.manager.classify, args=(SEEN,))

    def begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._barrier = threading.Barrier(2)
        monkeypatch.setattr("builtins.meet", self._barrier.wait, raising=False)
        self._thread.start()
        self._barrier.wait(60)

    def end(self) -> None:
        self._barrier.wait(60)
        self._thread.join(60)


def test_what_torc_changes_beside_a_plugin_stays(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A handler that the main thread sets, while a plugin works in another thread."""
    busy = _InThread(write, "None")
    busy.begin(monkeypatch)
    former = signal.signal(signal.SIGUSR1, lambda *_: None)
    mine = signal.getsignal(signal.SIGUSR1)
    busy.end()
    assert signal.signal(signal.SIGUSR1, former) is mine
    assert warnings(caplog) == []


def test_plugins_that_work_at_the_same_time_are_both_suspected(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The process has one working folder."""
    busy, folder = _InThread(write, "None"), Path.cwd()
    busy.begin(monkeypatch)
    watched_calls.watched_call("quick", "its import", os.chdir, "/")
    busy.end()
    assert Path.cwd() == folder
    assert warnings(caplog) == ["plugin busy or quick changed the working folder in its import; torc restored it"]


# --- plugins that do not return -------------------------------------------------------------------

PROGRAM = """
import sys
from torc_framework.plugins import watched_calls
watched_calls.SLOW_S = 0.3
from torc_framework.cli.programs.torc import main
sys.exit(main())
"""
"""The program ``torc``, which tells of a plugin sooner."""
SLOW = "takes longer than 0.3 s in"
STOP = signal.SIGINT
UNINTERRUPTIBLE = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}); time.sleep(600)"
STUBBORN = """while True:
        try: time.sleep(600)
        except BaseException: pass
"""


class Torc:
    """A project with a plugin ``bad``, and a command of ``torc`` that works there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.environment = isolated_environment(folder / "home")
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "home" / ".local" / "state"))  # where the command finds it
        long = "echo begun >> long.txt; until [ -e go ]; do sleep 0.1; done"
        (folder / "w.yaml").write_text(
            f"name: w\njobs:\n  - {{name: bad, command: exit 3}}\n  - {{name: long, command: '{long}'}}\n"
        )

    def start(self, source: str, *arguments: str) -> None:
        """Write the plugin and start a command."""
        project_plugin(self.folder, "bad", HEAD + IMPORTS + textwrap.dedent(source))
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.limit = threading.Timer(120, self.process.kill)  # a line that never comes fails the test
        self.limit.start()

    def wait_for(self, text: str) -> None:
        """Read lines until one contains a text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"{text!r} is not in {self.lines}")

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and all that was printed."""
        rest, _ = self.process.communicate()
        self.limit.cancel()
        return self.process.returncode, "".join([*self.lines, rest])

    def catches(self, number: signal.Signals) -> bool:
        """Return whether the command handles a signal now."""
        (line,) = [
            line
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            if line.startswith("SigCgt:")
        ]
        return bool(int(line.split()[1], 16) >> number - 1 & 1)

    def interrupt_when(self, text: str) -> None:
        """Send Ctrl-C after a line with this text."""
        self.wait_for(text)
        self.process.send_signal(STOP)


@pytest.fixture
def torc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Torc]:
    made = Torc(tmp_path, monkeypatch)
    yield made
    made.limit.cancel()
    if made.process.returncode is None:
        made.process.kill()
        made.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_ends_by_a_signal_that_a_plugin_ignores(torc: Torc, number: signal.Signals) -> None:
    torc.start(f"signal.signal({int(number)}, signal.SIG_IGN)\n", "run", "w.yaml")
    eventually((torc.folder / "long.txt").exists)
    torc.process.send_signal(number)
    code, printed = torc.end()
    assert code == ExitStatus.INTERRUPTED
    assert f"plugin bad changed the handler of {number.name} in its import; torc restored it" in printed


@pytest.mark.parametrize("command", ["list", "show bad", "show builtin_exits"])
def test_commands_about_plugins_go_on_without_one_that_hangs(torc: Torc, command: str) -> None:
    """At its import; the plugin is marked."""
    torc.start("time.sleep(600)\n", "-f", "json", "plugins", *shlex.split(command))
    torc.interrupt_when(f"plugin bad {SLOW} its import; Ctrl-C ends the wait for it")
    code, printed = torc.end()
    assert code == ExitStatus.OK
    assert ("it did not answer within" in printed.partition("{")[2]) == (command != "show builtin_exits")
    assert "builtin_exits" in printed or command == "show bad"


def test_a_list_goes_on_without_a_plugin_that_hangs_in_a_hook(torc: Torc) -> None:
    torc.start("@hookimpl\ndef torc_log_patterns():\n    time.sleep(600)\n", "plugins", "list")
    torc.interrupt_when(f"plugin bad {SLOW} torc_log_patterns; Ctrl-C")
    code, printed = torc.end()
    assert code == ExitStatus.OK
    assert "bad: raised in torc_log_patterns: it did not answer within" in printed


@pytest.mark.parametrize("wait", [UNINTERRUPTIBLE, STUBBORN], ids=["blocked", "stubborn"])
def test_the_second_interrupt_ends_a_command_that_no_exception_reaches(torc: Torc, wait: str) -> None:
    torc.start(f"@hookimpl\ndef torc_log_patterns():\n    {wait}\n", "plugins", "list")
    torc.interrupt_when(f"plugin bad {SLOW} torc_log_patterns")
    torc.interrupt_when("plugin bad cannot be interrupted in torc_log_patterns; Ctrl-C ends torc")
    code, printed = torc.end()
    assert code == ExitStatus.INTERRUPTED
    assert printed.endswith("Error: plugin bad cannot be interrupted in torc_log_patterns; torc ends\n")


def test_the_second_interrupt_ends_the_command_as_ever(torc: Torc) -> None:
    """The first one ended the wait for another plugin."""
    project_plugin(torc.folder, "a", HEAD + "import time\ntime.sleep(600)\n")
    torc.start("time.sleep(600)\n", "plugins", "list")
    torc.interrupt_when(f"{SLOW} its import")
    torc.interrupt_when(f"{SLOW} its import")
    assert torc.end()[0] == ExitStatus.INTERRUPTED


def test_an_interrupt_ends_the_wait_for_a_classifier_and_stops_the_run(torc: Torc) -> None:
    """In the ordinary way; the classifier is not asked about the job that is stopped."""
    torc.start(classifier("time.sleep(600)"), "run", "w.yaml")
    torc.interrupt_when(f"plugin bad {SLOW} torc_classify_exit")
    code, printed = torc.end()
    assert code == ExitStatus.INTERRUPTED
    assert "plugin bad was interrupted in torc_classify_exit: it did not answer within" in printed
    assert "1 failed, 1 interrupted" in printed


def test_two_interrupts_at_once_need_no_patience(torc: Torc) -> None:
    """Both come before the plugin is told of."""
    torc.start(classifier("print('asked', flush=True); time.sleep(600)"), "run", "w.yaml")
    torc.wait_for("asked")
    torc.process.send_signal(signal.SIGINT)
    torc.process.send_signal(signal.SIGTERM)
    assert torc.end()[0] == ExitStatus.INTERRUPTED


def test_the_next_run_takes_over_from_a_classifier_that_no_exception_reaches(torc: Torc) -> None:
    """No job runs twice, and no end is lost."""
    torc.start(classifier(UNINTERRUPTIBLE), "run", "w.yaml")
    eventually((torc.folder / "long.txt").exists)
    torc.interrupt_when(f"plugin bad {SLOW} torc_classify_exit")
    torc.interrupt_when("Ctrl-C ends torc")
    assert torc.end()[0] == ExitStatus.INTERRUPTED
    (torc.folder / "go").touch()
    torc.start("", "run", "1")
    code, printed = torc.end()
    assert code == ExitStatus.FAILED
    assert "1 of 2 jobs done, 1 failed" in printed
    assert (torc.folder / "long.txt").read_text() == "begun\n"


def test_an_interrupt_ends_the_wait_for_a_listener_at_the_end_of_a_run(torc: Torc) -> None:
    """It hangs in a thread; the report is printed all the same."""
    (torc.folder / "go").touch()
    torc.start("@hookimpl\ndef torc_on_event(event):\n    time.sleep(600)\n", "run", "w.yaml")
    torc.wait_for(f"plugin bad {SLOW} torc_on_event\n")
    eventually(lambda: any("runner_ended" in log.read_text() for log in torc.folder.glob("output/*.log")))
    eventually(lambda: not torc.catches(signal.SIGTERM))
    torc.process.send_signal(STOP)
    code, printed = torc.end()
    assert code == ExitStatus.FAILED
    assert "1 of 2 jobs done, 1 failed" in printed
