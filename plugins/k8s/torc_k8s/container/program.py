"""The command of a job's container: a program for POSIX sh that runs the job and reports on it."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from torc_framework.api import LaunchError, shell_words, size_text

FOLDER: Final = "/.torc"
"""Folder of the program's files in the container."""
LOG: Final = "torc-framework/log"
"""Annotation of a pod by which the reader of its log answers the program (see `torc_k8s.container.log_reader`)."""
STOP: Final = "torc-framework/stop"
"""Annotation of a pod by which the runner asks the program to send SIGTERM to the job; any text but an empty one."""
GO: Final = "torc-framework/go"
"""Annotation of a pod with the addresses of its group's members, separated by commas; the command then begins."""
MAX_COMMAND_BYTES: Final = 1024 * 1024
"""Longest command; Kubernetes stores at most 1.5 MiB for a pod."""

VOLUMES: Final[tuple[dict[str, Any], ...]] = (
    {"name": "torc-work", "emptyDir": {}},
    {
        "name": "torc-pod",
        "downwardAPI": {
            "items": [
                {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
                {"path": "log", "fieldRef": {"fieldPath": f"metadata.annotations['{LOG}']"}},
                {"path": "stop", "fieldRef": {"fieldPath": f"metadata.annotations['{STOP}']"}},
                {"path": "go", "fieldRef": {"fieldPath": f"metadata.annotations['{GO}']"}},
            ]
        },
    },
)
"""Volumes that the program needs."""
MOUNTS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "torc-work", "mountPath": FOLDER},
    {"name": "torc-pod", "mountPath": f"{FOLDER}/pod", "readOnly": True},
)
"""Where the container has them."""

_PIECE_BYTES: Final = 100_000
"""Longest argument; Linux passes at most 128 KiB (MAX_ARG_STRLEN)."""


@frozen
class ContainerJob:
    """What the program in the container runs.

    Attributes:
        command: Text for the shell.
        shell: Program and options of the shell; empty is ``bash`` where the image has it, else ``sh``.
        working_dir: Folder to run in, which has to exist; empty is that of the image.
        outputs: Paths of declared output files.
        limit_s: Run time after which the job gets SIGTERM; None is no limit.
        headroom_s: Seconds from there to SIGKILL.
        log_wait_s: Longest time without progress that the program waits at its end until its output has been read.
        waits_for_go: The command begins when the annotation `GO` has the addresses of all members.
        rank: Rank within the members, from 0.
        keeps_stdout: Standard output is copied to the log of the container.
        keeps_stderr: Standard error is copied to the log of the container.
        joins_streams: Standard error goes where standard output goes, in the order of writing.
    """

    command: str
    shell: str = ""
    working_dir: str = ""
    outputs: tuple[str, ...] = ()
    limit_s: float | None = None
    headroom_s: float = 30.0
    log_wait_s: float = 60.0
    waits_for_go: bool = False
    rank: int = 0
    keeps_stdout: bool = True
    keeps_stderr: bool = True
    joins_streams: bool = False

    @property
    def stream_files(self) -> tuple[str, str]:
        """Names of the files for both streams in the program's folder; empty for a stream that is not kept."""
        out = "o" if self.keeps_stdout else ""
        return out, out if self.joins_streams else "e" if self.keeps_stderr else ""


@frozen
class ContainerPaths:
    """Where the program finds what it needs; the values of a container are the defaults.

    Attributes:
        folder: Its own files, with the folder ``pod`` of the pod's fields.
        message: File of the termination message.
        groups: Control groups.
    """

    folder: str = FOLDER
    message: str = "/dev/termination-log"
    groups: str = "/sys/fs/cgroup"


def escape(text: str) -> str:
    """Return a text that Kubernetes leaves as it is: it replaces ``$$`` and ``$(NAME)`` in arguments and variables."""
    return text.replace("$", "$$")


def program_arguments(job: ContainerJob) -> list[str]:
    """Return the command of the container, escaped for Kubernetes.

    Raises:
        LaunchError: the command or the shell cannot be passed to a container.
    """
    return [escape(word) for word in program_words(job, ContainerPaths())]


def program_words(job: ContainerJob, paths: ContainerPaths) -> list[str]:
    """Return the command line of the program for any machine with a POSIX shell.

    Raises:
        LaunchError: as `program_arguments`.
    """
    pieces = _pieces(job.command)
    return [
        "/bin/sh",
        "-c",
        _program(),
        "torc",
        paths.folder,
        paths.message,
        paths.groups,
        _centiseconds(job.limit_s or 0.0),
        _centiseconds(job.headroom_s),
        _centiseconds(job.log_wait_s),
        str(int(job.waits_for_go)),
        str(job.rank),
        job.working_dir,
        *job.stream_files,
        str(len(job.outputs)),
        *(word for path in job.outputs for word in (path, json.dumps(path))),
        str(len(pieces)),
        *pieces,
        *(shell_words(job.shell) if job.shell else ()),
    ]


@cache
def _program() -> str:
    """Return the program without its comments."""
    lines = Path(__file__).with_name("program.sh").read_text().splitlines()
    return "\n".join(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _pieces(command: str) -> list[str]:
    """Return the pieces of a command; each is short enough for an argument."""
    if "\0" in command:
        raise LaunchError("the command has a NUL character, which no program can be given")
    text = command.encode(errors="surrogateescape")
    if len(text) > MAX_COMMAND_BYTES:
        raise LaunchError(
            f"the command has {size_text(len(text))}, and a pod takes at most {size_text(MAX_COMMAND_BYTES)}: put it "
            "into a script on a volume or in the image"
        )
    if len(text) <= _PIECE_BYTES:
        return [command]
    step = _PIECE_BYTES // 4  # of characters, which have at most 4 bytes
    return [command[start : start + step] for start in range(0, len(command), step)]


def _centiseconds(seconds: float) -> str:
    return str(math.ceil(seconds * 100)) if math.isfinite(seconds) else "0"
