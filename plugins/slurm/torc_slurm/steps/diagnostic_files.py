"""Diagnostic files of a runner: Slurm's variables at its start, the kernel's messages at its end."""

import logging
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from torc_framework.api import is_secret_name, redact, secret_values

_LOG: Final = logging.getLogger("torc_framework.slurm")
DMESG_TIMEOUT_S: Final = 10.0


def write_environment(folder: str, label: str, environment: Mapping[str, str] | None = None) -> None:
    """Write Slurm's variables without secrets; errors of the file are only logged."""
    variables = os.environ if environment is None else environment
    lines = [
        f"{name}=<redacted>" if is_secret_name(name) else f"{name}={value}"
        for name, value in sorted(variables.items())
        if name.startswith("SLURM")
    ]
    _write(Path(folder, f"slurm_env_{label}.log"), redact("\n".join(lines) + "\n", secret_values(variables)))


def write_kernel_messages(folder: str, label: str) -> None:
    """Write the kernel's messages if this user may read them; errors of the file are only logged."""
    try:
        done = subprocess.run(["dmesg"], capture_output=True, timeout=DMESG_TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.debug("event=no_dmesg reason=%r", str(error))
        return
    if done.returncode == 0 and done.stdout:
        _write(Path(folder, f"dmesg_slurm_{label}.log"), done.stdout.decode(errors="replace"))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        _LOG.warning("event=not_written path=%r reason=%r", str(path), str(error))
