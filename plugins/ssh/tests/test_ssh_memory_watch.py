"""Memory limits of attempts that no control group holds to them."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from torc_ssh.executor.endings import over_memory_limit
from torc_ssh.helper.memory_watch import MemoryWatch, memory_of_trees

from torc_framework.api import ExitClass, ExitObservation, StopReason, classify_exit, exit_return_code

MIB = 1 << 20
HOLD = "import sys; block = bytearray({size} << 20); print(1, flush=True); sys.stdin.read()"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], start_new_session={apart})"


@pytest.fixture(params=[False, True])
def tree(request: pytest.FixtureRequest) -> Iterator[int]:
    """The pid of a small process whose child, in its session or in another one, holds 64 MiB."""
    words = [sys.executable, "-c", PARENT.format(apart=request.param), HOLD.format(size=64)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


class SomeAttempts:
    """Attempts of which one has a control group of its own."""

    def __init__(self, pids: dict[tuple[int, int], int], held: Iterable[tuple[int, int]] = ()) -> None:
        self._pids, self._held = pids, set(held)

    def pids(self, keys: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
        return {key: self._pids[key] for key in keys if key in self._pids}

    def memory_limited(self, keys: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        return [key for key in keys if key in self._held]


def test_the_memory_of_all_descendants_counts(tree: int) -> None:
    assert 64 * MIB < memory_of_trees({(1, 1): tree})[1, 1] < 160 * MIB


def test_each_excess_is_told_once(tree: int) -> None:
    watch = MemoryWatch()
    watch.watch([((1, 1), 32 * MIB), ((2, 1), None)])
    attempts: Any = SomeAttempts({(1, 1): tree})
    ((key, size),) = watch.exceeded(attempts)
    assert key == (1, 1)
    assert size > 64 * MIB
    assert watch.exceeded(attempts) == []


def test_attempts_within_limits_or_held_by_the_kernel_are_left_alone(tree: int) -> None:
    watch = MemoryWatch()
    watch.watch([((1, 1), 1024 * MIB)])
    assert watch.exceeded(cast(Any, SomeAttempts({(1, 1): tree}))) == []
    watch.watch([((1, 1), 32 * MIB)])
    assert watch.exceeded(cast(Any, SomeAttempts({(1, 1): tree}, held=[(1, 1)]))) == []


def test_a_process_that_is_gone_has_no_memory() -> None:
    assert memory_of_trees({(1, 1): 1 << 22}) == {(1, 1): 0}


def test_the_ending_is_that_of_the_local_executor() -> None:
    seen = over_memory_limit(ExitObservation("ssh", signal=9, peak_memory_bytes=5), 7)
    verdict = classify_exit(seen)
    assert (seen.stop_reason, seen.peak_memory_bytes) == (StopReason.MEMORY_LIMIT, 7)
    assert (verdict.exit_class, exit_return_code(seen, verdict)) == (ExitClass.OOM, 137)
