"""Unpacks archives that the tests' own programs have made."""

import subprocess
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder, which may not exist yet.

    The program tar does it: since Python 3.12 `tarfile` wants a filter to be named, of which 3.11.2 knows nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
