"""The file with the environment variables of a batch script's runner; it may contain a password.

Other users may be able to read batch scripts: in Slurm's spool folders, with ``scontrol write batch_script``, and in
accounting where the site stores scripts (``AccountingStoreFlags=job_script``). So a script only names this file, which
only its owner can read.
"""

import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torc_framework.api import AllocationError

FOLDER: Final = ".torc_runner"
"""Folder of the file, within the output directory, which all nodes share."""


def write_variables(output_dir: str, workflow_id: int, variables: Mapping[str, str]) -> str:
    """Write the file and return its path. Each user has one file per workflow, which the last call replaces.

    Raises:
        AllocationError: it cannot be written.
    """
    path = Path(output_dir, FOLDER, f"slurm_variables_wf{workflow_id}_u{os.getuid()}.sh")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(variables.items()))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(os.fsencode(text))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise AllocationError(
            f"cannot write {path}, from which the nodes learn how to reach the server: {error.strerror}; choose a "
            "folder that you may write to and that all nodes share with --output-dir"
        ) from error
    return str(path)


def source_lines(path: str) -> Iterator[str]:
    """Yield the script lines that source the file, and end the script unless the file belongs to its user."""
    file, problem = shlex.quote(path), f"torc: {path} is not here, or belongs to another user; do all nodes share it?"
    yield f"[ -O {file} ] || {{ echo {shlex.quote(problem)} >&2; exit 1; }}"
    yield f". {file}"
