"""Interpreters of other versions of Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def interpreter(version: str) -> str:
    """Return an interpreter of a version, of this test, PATH or pyenv; skip the test if there is none."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    places = [*map(str, pyenv.glob(f"versions/{version}.*/bin/python")), shutil.which(f"python{version}")]
    for place in filter(None, places):
        asked = [place, "-c", "import sys; print(sys.version)"]
        if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.startswith(f"{version}."):
            return place
    pytest.skip(f"no Python {version} in PATH or of pyenv")
