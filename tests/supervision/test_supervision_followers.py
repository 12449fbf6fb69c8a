"""Followers: attempts that the supervisor starts itself when the one before them has ended with exit code 0."""

import os
import select
import signal
from pathlib import Path
from typing import Any

from supervised_bench import Attempts, Start, keys
from waiting import eventually

CHAIN = 40


def follow(attempts: Attempts, *jobs: tuple[int, int, str], **changes: Any) -> None:
    """Let attempts follow others: each is the job before, the job, and its command."""
    attempts.follow(((before, 1), attempts.command(job, text, **changes)) for before, job, text in jobs)


def reports_until(attempts: Attempts, *jobs: int) -> list[tuple[Any, ...]]:
    """Return all reports until these jobs are over."""
    found: list[tuple[Any, ...]] = []

    def poll() -> bool:
        select.select([attempts], [], [], 0.05)
        found.extend(attempts.poll())
        return {*jobs} <= {job for kind, job, *_ in found if kind in "ELXR"}

    eventually(poll, lambda: found, pause_s=0)
    return found


def test_a_follower_starts_after_exit_code_0(start: Start, tmp_path: Path) -> None:
    """It is reported before its predecessor's end, so that the launcher's user never starts it a second time."""
    attempts, gate = start(), tmp_path / "gate"
    attempts.run((1, f"while ! [ -e {gate} ]; do sleep 0.02; done"))
    follow(attempts, (1, 2, "exit 0"), (2, 3, "exit 5"), (3, 4, f"touch {tmp_path}/never"))
    gate.touch()
    found = reports_until(attempts, 1, 2, 3)
    assert [each[:5] for each in found if each[0] == "F"] == [("F", 2, 1, 1, 1), ("F", 3, 1, 2, 1)]
    for follower, before in ((2, 1), (3, 2)):
        of_both = [each[0] for each in found if each[1] in (follower, before) and each[0] in "FE"]
        assert of_both.index("F") < of_both.index("E")
    assert {job: details[0] >> 8 for kind, job, _, *details in found if kind == "E"} == {1: 0, 2: 0, 3: 5}
    attempts.run((4, "exit 4"))
    assert attempts.ends(4) == [4], "an attempt that was dropped can be started"
    assert not (tmp_path / "never").exists()


def test_a_stopped_attempt_has_no_follower(start: Start, tmp_path: Path) -> None:
    """Not even if it answers the signal with exit code 0."""
    attempts = start()
    attempts.run((1, f"trap 'exit 0' TERM; echo >{tmp_path}/up; while :; do sleep 0.02; done"))
    follow(attempts, (1, 2, f"touch {tmp_path}/never"))
    eventually((tmp_path / "up").exists, "the attempt runs")
    attempts.stop(keys(1), signal.SIGTERM)
    assert attempts.ends(1) == [0]
    attempts.run((3, "exit 3"))
    assert attempts.ends(3) == [3]
    assert 2 not in attempts.seen
    assert not (tmp_path / "never").exists()


def test_orders_are_given_up(start: Start, tmp_path: Path) -> None:
    """And those that come too late are dropped."""
    attempts, gate = start(), tmp_path / "gate"
    attempts.run((1, f"while ! [ -e {gate} ]; do sleep 0.02; done"))
    follow(attempts, (1, 2, f"touch {tmp_path}/never"))
    attempts.unfollow()
    gate.touch()
    assert attempts.ends(1) == [0]
    follow(attempts, (1, 2, f"touch {tmp_path}/never"))
    attempts.run((3, "exit 3"))
    assert attempts.ends(3) == [3]
    assert 2 not in attempts.seen
    assert not (tmp_path / "never").exists()


def test_a_queued_attempt_of_the_lane_goes_first(start: Start, tmp_path: Path) -> None:
    """The follower is then dropped."""
    attempts, gate = start(), tmp_path / "gate"
    attempts.start([attempts.command(1, f"while ! [ -e {gate} ]; do sleep 0.02; done", lane=7)])
    attempts.queue([attempts.command(5, "exit 5", lane=7)])
    follow(attempts, (1, 2, f"touch {tmp_path}/never"), lane=7)
    gate.touch()
    assert attempts.ends(1, 5) == [0, 5]
    assert 2 not in attempts.seen
    assert not (tmp_path / "never").exists()


def test_no_follower_starts_without_a_launcher(start: Start, tmp_path: Path) -> None:
    """The next launcher learns that it was never started."""
    first, gate = start(), tmp_path / "gate"
    first.run((1, f"echo >{tmp_path}/up; while ! [ -e {gate} ]; do sleep 0.02; done"))
    follow(first, (1, 2, f"touch {tmp_path}/never"))
    eventually((tmp_path / "up").exists, "the attempt runs")
    first.abandon()
    second = start()
    assert second.adopt(second.state(), keys(1, 2)) == (tuple(keys(1)), tuple(keys(2)), ())
    gate.touch()
    assert second.ends(1) == [0]
    assert not (tmp_path / "never").exists()


def test_a_killed_supervisor_in_the_middle_of_a_chain(start: Start, tmp_path: Path) -> None:
    """Each attempt runs once; those that were started are reported, the others are left to the launcher's user."""
    attempts, ran = start(), tmp_path / "ran"
    ran.touch()
    attempts.run((1, f"echo 1 >>{ran}"))
    follow(attempts, *((job - 1, job, f"echo {job} >>{ran}; sleep 0.01") for job in range(2, CHAIN + 1)))
    eventually(lambda: len(ran.read_text().split()) >= CHAIN // 4, "a part has run")
    os.kill(attempts.supervisor(), signal.SIGKILL)
    job, begun = 1, {1}
    while job <= CHAIN:
        found = reports_until(attempts, job)
        begun |= {each[1] for each in found if each[0] == "F"}
        over = {each[1] for each in found if each[0] in "ELXR"} | {job}
        assert over <= begun
        job = max(over) + 1
        if job not in begun and job <= CHAIN:
            attempts.run((job, f"echo {job} >>{ran}"))
            begun.add(job)
    assert ran.read_text().split() == [str(number) for number in range(1, CHAIN + 1)], "each ran once, in its order"
