"""``torc tui`` inside a test, on a real server, and in a real terminal: tmux."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from programs import BIN, isolated_environment
from textual.app import App
from waiting import eventually

from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer
from torc_framework.monitoring.standalone import ServerOptions, StandaloneServer
from torc_framework.plugins.manager import PluginManager
from torc_framework.tui.app import TuiApp
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.work.setup import TuiSetup

PROGRAM = (sys.executable, "-P", "-m", "torc_framework.cli.programs.torc")
DEADLINE_S = 60.0


def tui_on(url: str, folder: Path, user: str | None = None) -> TuiApp:
    """Return the app on a server; its commands run in a folder."""
    upstream = UpstreamServer(url)
    context = WorkContext(PluginManager.load, lambda _: {}, PROGRAM, folder, folder / "output")

    def no_server(_options: ServerOptions) -> Any:
        raise AssertionError("this test starts no server")

    setup = TuiSetup(
        context,
        upstream,
        Identity(PROCESS, upstream, None),
        StandaloneServer(no_server, upstream, ServerOptions(folder / "none.db")),
        starts_server=False,
        own_user="ana",
        user=user,
    )
    setup.begin()
    return TuiApp(setup)


def screen_text(app: TuiApp) -> str:
    """Return what the screen shows, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips(app.size)
    return "\n".join(strip.text[:width].rstrip() for strip in lines[:height])


def footer_of(app: "App[Any]") -> str:
    """Return the last line."""
    return app.screen.query_one("#footer", TextLines).render_line(0).text.rstrip()


async def until(pilot: Any, text: str) -> str:
    """Wait until the screen shows a text; return the screen."""
    end = time.monotonic() + DEADLINE_S
    while text not in (shown := screen_text(pilot.app)):
        assert time.monotonic() < end, f"{text!r} is not in:\n{shown}"
        await pilot.pause(0.05)
    return shown


class OwnServer:
    """A real server that is killed, stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self._port}/torc-service/v1"

    def start(self) -> None:
        """Start it, on the port that it had before if there was one; it prints one that it chose."""
        command = [str(BIN / "torc-server"), "run", "--host", "127.0.0.1", "--port", str(self._port)]
        self._process = subprocess.Popen(
            [*command, "--log-level", "warning", "--database", str(self.folder / "torc.db")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=isolated_environment(self.folder / "home"),
        )
        assert self._process.stdout is not None
        if not self._port:
            self._port = int(self._process.stdout.readline().decode().partition("=")[2])

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self.close()

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@define
class Terminal:
    """A terminal of tmux."""

    socket: Path
    home: Path

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", str(self.socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def shell(self, size: tuple[int, int], environment: Mapping[str, str], folder: Path) -> None:
        """Run a shell with job control in a terminal."""
        words = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), "PS1=$ ", "bash", "--norc"]
        size_words = ["-x", str(size[0]), "-y", str(size[1])]
        self._tmux("new-session", "-d", *size_words, "-c", str(folder), shlex.join(words))

    def start(self, size: tuple[int, int], environment: Mapping[str, str], folder: Path, *arguments: str) -> None:
        """Run ``torc tui`` in a terminal of columns and lines."""
        words = [f"{name}={value}" for name, value in environment.items()]
        words = ["env", "-i", *words, str(BIN / "torc"), "tui", *arguments]
        command = f"{shlex.join(words)}; echo ended with $?; exec sleep 600"
        self._tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-c", str(folder), command)

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._tmux("send-keys", *keys)

    def ask(self, format_: str) -> str:
        """Return a value of tmux about the terminal."""
        return self._tmux("display-message", "-p", format_).strip()

    def close(self) -> None:
        """Close the terminal, as when a connection is lost."""
        subprocess.run(["tmux", "-S", str(self.socket), "kill-server"], capture_output=True, check=False)

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self, *, colours: bool = False) -> str:
        """Return what the terminal shows."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, text: str) -> str:
        """Wait until the terminal shows a text; return the screen."""
        eventually(
            lambda: text in self.screen(), lambda: f"{text!r} is not in:\n{self.screen()}", pause_s=0.1, patience_s=60
        )
        return self.screen()


@contextmanager
def tmux(folder: Path) -> Iterator[Terminal]:
    """Start a tmux server of our own; end it."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    terminal = Terminal(folder / "s", folder)
    os.environ.pop("TMUX", None)
    try:
        yield terminal
    finally:
        terminal.close()
