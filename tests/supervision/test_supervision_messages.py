"""Messages between a launcher and its supervisor while many attempts end."""

from supervised_bench import Attempts, Start, keys
from waiting import eventually

LANES = 4


def run_in_lanes(attempts: Attempts, count: int) -> None:
    """Start the first attempt of each lane, and queue short ones behind them; they begin when all are queued."""
    gate = attempts.folder / "gate"
    wait = f"while ! [ -e {gate} ]; do sleep 0.02; done"
    commands = [
        attempts.command(job, "exit 0" if job > LANES else wait, lane=job % LANES, shell="sh")
        for job in range(1, count + 1)
    ]
    attempts.start(commands[:LANES])
    attempts.queue(commands[LANES:])
    gate.touch()


def test_a_launcher_that_reads_late_gets_all_ends(start: Start) -> None:
    """More reports than the socket takes: the supervisor keeps the others, and starts and ends attempts meanwhile."""
    attempts, count = start(), 2_500
    run_in_lanes(attempts, count)
    journal = attempts.state_folder() / "here.journal"
    eventually(lambda: journal.read_bytes().count(b"\nE ") == count, lambda: journal.read_bytes()[-300:])
    assert attempts.ends(*range(1, count + 1)) == [0] * count


def test_ends_do_not_delay_commands(start: Start) -> None:
    """Queued attempts are withdrawn while those before them end one after the other."""
    attempts, count, withdrawn = start(), 1_200, 600
    run_in_lanes(attempts, count)
    eventually(lambda: _count_over(attempts) > LANES, pause_s=0.001)
    asked = range(count - withdrawn + 1, count + 1)
    attempts.withdraw(keys(*asked))
    eventually(lambda: _count_over(attempts) == count)
    assert [attempts.seen[job][-1][0] for job in asked] == ["R"] * withdrawn


def _count_over(attempts: Attempts) -> int:
    """Take the reports that have arrived; return how many attempts are over."""
    for report in attempts.poll():
        attempts.seen.setdefault(report[1], []).append(report)
    return sum(reports[-1][0] != "S" for reports in attempts.seen.values())
