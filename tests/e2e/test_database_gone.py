"""The database's file is moved away during ``torc run``: the run reports it and fails; no result is lost."""

import json
import subprocess
from pathlib import Path

from programs import BIN, isolated_environment
from waiting import eventually

SPEC = """
name: w
jobs:
  - name: ends
    command: echo x >> ends; while [ ! -e away.db ]; do sleep 0.1; done
  - name: goes_on
    command: echo x >> goes_on; while [ ! -e enough ]; do sleep 0.1; done
  - name: last
    command: "true"
    depends_on: [ends]
"""


def test_nothing_is_lost_when_the_file_is_put_back(tmp_path: Path) -> None:
    """The run ends within a minute with the reason; another one takes over what ended meanwhile and what still runs."""
    (tmp_path / "w.yaml").write_text(SPEC)
    path, away = tmp_path / "torc.db", tmp_path / "away.db"
    torc, env = [str(BIN / "torc"), "--database", str(path)], isolated_environment(tmp_path / "home")
    first = subprocess.Popen(
        [*torc, "run", "w.yaml"], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: all((tmp_path / name).exists() for name in ("ends", "goes_on")), "both jobs begin")
    path.rename(away)
    _, told = first.communicate(timeout=60)
    assert first.returncode == 3
    last = told.strip().splitlines()[-1]
    assert "torc.db is gone: No such file or directory" in last
    assert "put the file back, and 'torc run 1' goes on" in last
    assert not path.exists()
    away.rename(path)
    (tmp_path / "enough").touch()
    again = subprocess.run(  # noqa: PLW1510 - the code is asserted below
        [*torc, "run", "1"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert again.returncode == 0, again.stderr
    listed = subprocess.run(
        [*torc, "-f", "json", "jobs", "list", "1"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert {job["status"] for job in json.loads(listed.stdout)["jobs"]} == {"completed"}
    assert [(tmp_path / name).read_text() for name in ("ends", "goes_on")] == ["x\n", "x\n"]
