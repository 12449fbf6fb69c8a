"""The guide to HPC profiles: its commands run, and their output contains what the page shows."""

import subprocess
from pathlib import Path

import pytest
from doc_pages import blocks

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_the_guide_to_hpc_profiles_runs(torc_env: dict[str, str], work: Path) -> None:
    """The test writes the settings, runs the commands in order but those that need Slurm, and compares the output."""
    config, said, shown = "", "", 0
    for block in blocks("how-to/use-hpc-profiles.md"):
        if block.language == "toml":
            config += block.text
            (work / "torc.toml").write_text(config)
        elif block.language == "text":
            for line in block.text.splitlines():
                assert line in said
                shown += 1
        elif "generate" not in block.text:
            script = block.text.replace("| jq -r .best_partition.name", "")
            done = subprocess.run(
                ["bash", "-ec", script],
                cwd=work,
                env=torc_env,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, script + done.stdout + done.stderr
            said = done.stdout
    assert shown == 3
