"""The executor ``slurm`` keeps the contract of executors that allocate, on programs named like Slurm's."""

import sys
from pathlib import Path
from typing import Final

import pytest
from torc_slurm.executor import SlurmExecutor

from torc_framework.testing import AllocatorContract, FakeBatchSystem
from torc_framework.testing.support import fake_batch_system as batch_module

_PROGRAM: Final = """#!{python}
import runpy, sys
from pathlib import Path

system = runpy.run_path({system!r})["FakeBatchSystem"]
batch, program, words = system(Path({folder!r})), {program!r}, sys.argv[1:]
try:
    if program == "sbatch":
        script = sys.stdin.read()
        (name,) = (line.partition("=")[2] for line in script.splitlines() if line.startswith("#SBATCH --job-name="))
        print(batch.call("submit", ["--name=" + name, script]))
    elif program == "squeue":
        said = dict(line.split() for line in batch.call("status", [*batch.commands]).splitlines())
        names = batch.names
        states = {{"queued": "PENDING", "running": "RUNNING", "ended": "COMPLETED", "canceled": "CANCELLED"}}
        for id_, state in said.items():
            print(f"{{id_}}|{{id_}}|N/A|{{states[state]}}|None||{{names[id_]}}")
    elif program == "scancel":
        batch.call("cancel", [word for word in words if word.isdecimal()])
except OSError as error:
    sys.exit(f"{{program}}: error: {{error}}")
"""


class TestSlurmAllocator(AllocatorContract):
    """Submitting, looking, giving back."""

    executor = SlurmExecutor
    options = {"patience_s": 0.5}  # noqa: RUF012 - the contract's own

    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the ledger of calls in the test's folder."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def programs(self, batch: FakeBatchSystem, folder: Path) -> Path:
        """Write the programs that the allocator calls."""
        folder.mkdir(parents=True, exist_ok=True)
        for program in ("sbatch", "squeue", "scancel", "sacct"):
            path = folder / program
            facts = {"python": sys.executable, "system": batch_module.__file__, "folder": str(batch.folder)}
            path.write_text(_PROGRAM.format(**facts, program=program))
            path.chmod(0o755)
        return folder
