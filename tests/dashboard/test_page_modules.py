"""The page's modules as files: types, vendored libraries, and what no module may contain.

The types and the vendored files are checked where Node's npm is; the tools are those of web/package-lock.json.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "torc_framework" / "dashboard" / "static"
MODULES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
MOST_LINES = 400


@pytest.fixture(scope="module")
def npm() -> str:
    """The program npm with the project's tools, which CI installs; skipped without."""
    program = shutil.which("npm")
    if program is None:
        pytest.skip("no npm: the types of the page's modules are not checked")
    if not (WEB / "node_modules" / "typescript").exists():
        if os.environ.get("CI") != "true":
            pytest.skip("run 'npm ci' in web/ to check the types of the page's modules")
        subprocess.run([program, "ci", "--silent"], cwd=WEB, check=True, timeout=300)
    return program


def test_types(npm: str) -> None:
    """The JSDoc types of all modules hold."""
    done = subprocess.run(
        [npm, "run", "--silent", "types"], cwd=WEB, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_vendored_libraries_are_those_of_the_lock(npm: str, tmp_path: Path) -> None:
    """The committed files are what the build makes of the locked versions."""
    done = subprocess.run(
        [npm, "run", "--silent", "vendor", "--", str(tmp_path)],
        cwd=WEB,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in (STATIC / "vendor").iterdir()}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_modules_are_small_and_write_text_only(path: Path) -> None:
    """Modules have at most 400 lines, make no HTML from text, ask no other host, and import by relative addresses."""
    source = path.read_text()
    assert len(source.splitlines()) <= MOST_LINES
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function", source
    )
    assert not re.search(r"https?://|[\"'`]//", source)
    assert all(
        name.startswith(".")
        for name in re.findall(r"^(?:import|export|\}) .*\bfrom \"([^\"]+)\"", source, re.MULTILINE)
    )


def test_everything_ships() -> None:
    """Licences and versions stand beside the vendored libraries."""
    notices = (STATIC / "vendor" / "LICENCES.txt").read_text()
    assert all(
        re.search(rf"^{name} \d", notices, re.MULTILINE)
        for name in ("preact", "htm", "@preact/signals", "uplot", "anser")
    )
