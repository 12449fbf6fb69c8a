"""The program of a pod's container as a plain process, and a stand-in for the cluster that serves its log."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

from attrs import define, field
from k8s_cluster import cache_folder
from torc_k8s.cluster import Cluster, ClusterUnreachable
from torc_k8s.container import LOG, ContainerEnd, ContainerJob, LogEnd, Record, RecordParser, parse_message
from torc_k8s.container.program import ContainerPaths, program_words
from waiting import eventually

POD = "torc-0123456789-j1-a1"


def shells() -> dict[str, list[str]]:
    """Return the shells of this machine that images have as ``/bin/sh``, by name."""
    tools = cache_folder() / "root" / "bin"  # where the cluster of tests/k8s unpacks busybox
    found = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
    where = {name: shutil.which(words[0], path=f"{os.environ['PATH']}:{tools}") for name, words in found.items()}
    return {name: [path, *words[1:]] for name, words in found.items() if (path := where[name]) is not None}


@define
class ProgramEnd:
    """How a program ended.

    Attributes:
        status: Its exit status.
        end: Its termination message.
        stdout: The job's standard output, from the records.
        stderr: The job's standard error.
        log: What it wrote.
    """

    status: int
    end: ContainerEnd
    stdout: bytes
    stderr: bytes
    log: bytes


@define
class ContainerProgram:
    """The program in a folder of its own, which stands for the container.

    Attributes:
        folder: The folder.
        shell: Command line of the shell.
    """

    folder: Path
    shell: list[str]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def log(self) -> Path:
        """The container's log."""
        return self.folder / "log"

    def start(self, job: ContainerJob, environment: dict[str, str] | None = None) -> None:
        """Start the program."""
        pod = self.folder / "pod"
        pod.mkdir(parents=True)
        (pod / "name").write_text(POD)
        for name in ("log", "stop", "go"):
            (pod / name).touch()
        paths = ContainerPaths(str(self.folder), str(self.folder / "message"))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.shell, *program_words(job, paths)[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def annotate(self, name: str, text: str) -> None:
        """Change a file of the pod's fields at once, as the kubelet does."""
        new = self.folder / "pod" / f".{name}"
        new.write_text(text)
        new.replace(self.folder / "pod" / name)

    def message(self) -> ContainerEnd:
        """Return the termination message."""
        text = (self.folder / "message").read_text()
        assert len(text) <= 4096
        end = parse_message(text)
        assert end is not None, text
        return end

    def finish(self) -> ProgramEnd:
        """Wait for the end of the program."""
        status = self.process.wait(60)
        streams = {"o": bytearray(), "e": bytearray()}
        items = RecordParser(POD).feed(self.log.read_bytes())
        for item in items:
            if isinstance(item, Record) and item.offset == len(streams[item.stream]):
                streams[item.stream] += item.data
        assert isinstance(items[-1], LogEnd), self.log.read_bytes()[-500:]
        return ProgramEnd(status, self.message(), bytes(streams["o"]), bytes(streams["e"]), self.log.read_bytes())

    def run(self, job: ContainerJob, environment: dict[str, str] | None = None) -> ProgramEnd:
        """Run a job."""
        self.start(job, environment)
        return self.finish()

    def wait_for(self, text: bytes) -> None:
        """Wait until the log contains a text."""
        eventually(lambda: text in self.log.read_bytes(), lambda: repr(self.log.read_bytes()[-500:]))


@define
class LogServer:
    """Serves the log of a program as a cluster with containerd does, with its faults.

    Attributes:
        program: The program.
        cut_after: A connection is closed after so many bytes, the next after twice as many; None is never.
        rotates_at: A log of so many bytes is replaced by an empty one, and who follows it hears no more.
        is_away: Nothing is answered.
        is_deaf: The pod no longer hears what its reader says.
        requests: How often the log was opened.
        answers: What the reader has told the program.
    """

    program: ContainerProgram
    cut_after: int | None = None
    rotates_at: int | None = None
    is_away: bool = False
    is_deaf: bool = False
    requests: int = 0
    answers: list[str] = field(factory=list)
    _base: int = 0

    @property
    def cluster(self) -> Cluster:
        """This, as the reader takes it."""
        return cast("Cluster", self)

    async def patch(self, _kind: str, _name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Change the annotation."""
        if self.is_away:
            raise ClusterUnreachable("no connection")
        text = body["metadata"]["annotations"][LOG]
        self.answers.append(text)
        if not self.is_deaf:
            self.program.annotate("log", text)
        return {}

    async def log(
        self, _pod: str, _container: str, *, follow: bool, since_s: float | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the present log; a carriage return in front of a line feed is lost."""
        assert since_s is None or since_s > 0
        self.requests += 1
        is_over = self.program.process.poll() is not None
        sent, place, base = 0, self._base, self._base
        while True:
            if self.is_away:
                raise ClusterUnreachable("no connection")
            with self.program.log.open("rb") as file:
                file.seek(place)
                data = file.read(30_000)
            if data.endswith(b"\r"):  # its line feed may follow
                data = data[:-1] or data
            place += len(data)
            if data and base == self._base:
                yield data.replace(b"\r\n", b"\n")
                sent += len(data)
                if self.rotates_at is not None and place - self._base > self.rotates_at:
                    self._base = place + 5_000
                if self.cut_after is not None and sent > self.cut_after and not is_over:
                    self.cut_after *= 2
                    return
            elif not follow or is_over:
                return
            else:
                is_over = self.program.process.poll() is not None
                await asyncio.sleep(0.01)
