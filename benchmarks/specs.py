"""The workflows that are measured, written as JSON specs and as ninja files."""

import json
from pathlib import Path
from typing import Any

LEVELS = 100


def _write(path: Path, name: str, jobs: list[dict[str, Any]], shell: str) -> Path:
    path.write_text(json.dumps({"name": name, "shell": shell, "jobs": jobs}), encoding="utf-8")
    return path


def independent(folder: Path, count: int, shell: str, command: str = "true") -> Path:
    """``count`` jobs that wait for nothing."""
    jobs = [{"name": f"job_{i}", "command": command} for i in range(count)]
    return _write(folder / f"independent_{count}_{shell}.json", "independent", jobs, shell)


def barrier(folder: Path, width: int, shell: str) -> Path:
    """``width`` → 1 → ``width`` → 1."""
    jobs: list[dict[str, Any]] = [{"name": f"first_{i}", "command": "true"} for i in range(width)]
    jobs.append({"name": "middle", "command": "true", "depends_on_regexes": ["^first_[0-9]+$"]})
    jobs += [{"name": f"second_{i}", "command": "true", "depends_on": ["middle"]} for i in range(width)]
    jobs.append({"name": "last", "command": "true", "depends_on_regexes": ["^second_[0-9]+$"]})
    return _write(folder / f"barrier_{width}_{shell}.json", "barrier", jobs, shell)


def chain(folder: Path, length: int, shell: str) -> Path:
    """``length`` jobs, each waiting for the one before."""
    jobs = [
        {"name": f"job_{i}", "command": "true"} | ({"depends_on": [f"job_{i - 1}"]} if i else {}) for i in range(length)
    ]
    return _write(folder / f"chain_{length}_{shell}.json", "chain", jobs, shell)


def levels(folder: Path, count: int) -> tuple[Path, Path]:
    """``count`` jobs in 100 levels, each but the first waiting for one of the level above.

    Returns:
        The JSON spec, and a folder with the same graph as ``build.ninja``.
    """
    width = count // LEVELS
    above = {i: i - width for i in range(width, count)}
    jobs = [
        {"name": f"job_{i}", "command": "true"} | ({"depends_on": [f"job_{above[i]}"]} if i in above else {})
        for i in range(count)
    ]
    ninja = folder / f"ninja_{count}"
    ninja.mkdir()
    lines = ["rule run", "  command = true"]
    lines += [f"build job_{i}: run" + (f" job_{above[i]}" if i in above else "") for i in range(count)]
    (ninja / "build.ninja").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return _write(folder / f"levels_{count}.json", "levels", jobs, "sh"), ninja
