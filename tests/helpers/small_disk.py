"""A file system that is soon full, for tests of what happens then."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = "no file system can be mounted here"


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path | None]:
    """Mount a file system of this size, such as ``64k``, in a new folder; None where mounting is not permitted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "torc-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
