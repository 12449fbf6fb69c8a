"""Virtual environments with the packages of this one: quick to make, and without some distributions if wanted."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path


def make_venv(folder: Path, *, without: Iterable[str] = ()) -> Path:
    """Return the Python of a new environment that has the packages of this one.

    Args:
        folder: Folder of the environment.
        without: Distributions that it has not, such as ``torc-slurm``.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = folder / "packages"
    packages.mkdir()
    hidden = tuple(name.replace("-", "_") for name in without)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        name = entry.name.removeprefix("_editable_impl_").partition("-")[0].removesuffix(".pth")
        if name not in hidden:
            (packages / entry.name).symlink_to(entry)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    link = folder / "lib" / version / "site-packages" / "packages.pth"
    link.write_text(f"import site; site.addsitedir({str(packages)!r})\n")
    return folder / "bin" / "python"
