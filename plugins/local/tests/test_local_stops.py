"""Stopping reaches every process of an attempt, softly or not; queues keep their order."""

import os
import signal

from local_bench import Bench, is_gone, python

from torc_framework.api import AttemptKey

KEY = AttemptKey(1, 1)


def test_force_kills_all_descendants(bench: Bench) -> None:
    """Also grandchildren, and those that ignore SIGTERM."""
    folder = bench.folder
    inner = f'trap "" TERM; echo $$ > {folder}/inner; sleep 100 & echo $! > {folder}/sleep; wait; wait'
    bench.launcher.start([bench.attempt(f"sh -c '{inner}' & wait")])
    pids = [int(bench.wait_for_file(name)) for name in ("inner", "sleep")]
    bench.launcher.stop([KEY], force=True)
    bench.until(lambda: KEY in bench.ended)
    assert bench.ended[KEY].signal == signal.SIGKILL
    bench.until(lambda: all(is_gone(pid) for pid in pids))


def test_force_kills_other_groups_of_the_session(bench: Bench) -> None:
    """A shell with job control gives its children groups of their own; they end as well."""
    path = f"{bench.folder}/pid"
    code = f'import os, time; os.setpgid(0, 0); open("{path}", "w").write(f"{{os.getpid()}}\\n"); time.sleep(100)'
    bench.launcher.start([bench.attempt(python(code).removeprefix("exec ") + " & wait")])
    pid = int(bench.wait_for_file("pid"))
    assert os.getpgid(pid) == pid
    bench.launcher.stop([KEY], force=True)
    bench.until(lambda: KEY in bench.ended and is_gone(pid))


def test_sigterm_can_be_trapped(bench: Bench) -> None:
    """The attempt decides how it ends."""
    bench.launcher.start([bench.attempt("trap 'echo cleaned; exit 3' TERM; echo up; while :; do sleep 0.01; done")])
    bench.wait_for_file("1.o")
    bench.launcher.stop([KEY], force=False)
    bench.until(lambda: KEY in bench.ended)
    assert bench.ended[KEY].exit_code == 3
    assert bench.text("1.o") == "up\ncleaned\n"


def test_sigterm_without_trap_ends_by_signal(bench: Bench) -> None:
    """The signal is observed as such."""
    bench.launcher.start([bench.attempt("echo up; exec sleep 100")])
    bench.wait_for_file("1.o")
    bench.launcher.stop([KEY], force=False)
    bench.until(lambda: KEY in bench.ended)
    assert bench.ended[KEY].signal == signal.SIGTERM


def test_an_end_waits_for_a_child_that_cleans_up(bench: Bench) -> None:
    """The shell dies of SIGTERM at once, its program takes a moment: it is given that moment."""
    code = (
        "import signal, sys, time; "
        'signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.4), print("saved", flush=True), sys.exit(0))); '
        'print("up", flush=True); time.sleep(100)'
    )
    bench.launcher.start([bench.attempt(python(code).removeprefix("exec ") + "; true")])
    bench.wait_for_file("1.o")
    bench.launcher.stop([KEY], force=False)
    bench.until(lambda: KEY in bench.ended)
    assert bench.ended[KEY].signal == signal.SIGTERM
    assert bench.text("1.o") == "up\nsaved\n"


def test_force_ends_a_child_that_does_not_leave(bench: Bench) -> None:
    """The leader's own end stays what was observed."""
    inner = f'trap "" TERM; echo $$ > {bench.folder}/pid; while :; do sleep 1; done'
    bench.launcher.start([bench.attempt(f"sh -c '{inner}'; true")])
    pid = int(bench.wait_for_file("pid"))
    bench.launcher.stop([KEY], force=False)
    bench.until(lambda: (bench.folder / ".torc_runner").exists() and " 15 " in journal(bench))
    assert KEY not in bench.ended
    bench.launcher.stop([KEY], force=True)
    bench.until(lambda: KEY in bench.ended and is_gone(pid))
    assert bench.ended[KEY].signal == signal.SIGTERM


def journal(bench: Bench) -> str:
    """Return the journal's text."""
    (path,) = (bench.folder / ".torc_runner").glob("*.journal")
    return path.read_text()


def test_stopping_what_is_unknown_or_over_does_nothing(bench: Bench) -> None:
    """A late request to stop is harmless."""
    bench.run(bench.attempt("true"))
    bench.launcher.stop([KEY, AttemptKey(99, 1)], force=True)
    (seen,) = bench.run(bench.attempt("exit 4", job_id=2))
    assert seen.exit_code == 4


def test_queued_attempts_follow_in_their_lane(bench: Bench) -> None:
    """One runs at a time, in order, without further commands of the runner."""
    log = bench.folder / "log"

    def step(number: int) -> str:
        return f"echo +{number} >> {log}; sleep 0.02; echo -{number} >> {log}"

    bench.launcher.start([bench.attempt(step(1), job_id=1)])
    bench.launcher.queue([bench.attempt(step(i), job_id=i) for i in range(2, 8)])
    bench.until(lambda: len(bench.ended) == 7)
    assert log.read_text().split() == [f"{sign}{i}" for i in range(1, 8) for sign in "+-"]


def test_another_lane_does_not_wake_the_queue(bench: Bench) -> None:
    """A place is taken only within its lane."""
    bench.launcher.start(
        [bench.attempt("sleep 100", job_id=1, lane=1), bench.attempt("exit 1", job_id=2, lane=2)],
    )
    bench.launcher.queue([bench.attempt("exit 3", job_id=3, lane=1)])
    bench.until(lambda: AttemptKey(2, 1) in bench.ended)
    assert AttemptKey(3, 1) not in bench.ended
    bench.launcher.stop([KEY], force=True)
    bench.until(lambda: AttemptKey(3, 1) in bench.ended)


def test_a_failed_launch_lets_the_next_one_begin(bench: Bench) -> None:
    """A queue does not end with an attempt that cannot be started."""
    bench.launcher.start([bench.attempt("true", job_id=1)])
    bench.launcher.queue(
        [bench.attempt("true", job_id=i, stdout_path="/proc/no/such/x") for i in range(2, 5)]
        + [bench.attempt("exit 6", job_id=5)]
    )
    bench.until(lambda: len(bench.ended) == 5)
    assert bench.ended[AttemptKey(5, 1)].exit_code == 6


def test_start_of_a_queued_attempt_begins_it_at_once(bench: Bench) -> None:
    """And only once."""
    second = bench.attempt(f"echo ran >> {bench.folder}/ran", job_id=2)
    bench.launcher.start([bench.attempt("sleep 100")])
    bench.launcher.queue([second])
    bench.launcher.start([second])
    bench.until(lambda: AttemptKey(2, 1) in bench.ended)
    bench.launcher.stop([KEY], force=True)
    bench.until(lambda: KEY in bench.ended)
    assert bench.text("ran") == "ran\n"


def test_queued_attempts_can_be_withdrawn(bench: Bench) -> None:
    """They come back, and never begin; running ones are left alone."""
    bench.launcher.start([bench.attempt("echo up; sleep 100")])
    bench.launcher.queue([bench.attempt("true", job_id=2), bench.attempt("exit 9", job_id=3)])
    bench.wait_for_file("1.o")
    bench.launcher.withdraw([KEY, AttemptKey(2, 1)])
    bench.until(lambda: bench.returned == {AttemptKey(2, 1)})
    assert not bench.ended
    bench.launcher.stop([KEY, AttemptKey(3, 1)], force=True)
    bench.until(lambda: KEY in bench.ended and AttemptKey(3, 1) in bench.returned)
    assert not (bench.folder / "2.o").exists()


def test_nothing_is_left_on_disk(bench: Bench) -> None:
    """A closed launcher has removed its journal."""
    bench.run(bench.attempt("true"))
    assert (bench.folder / ".torc_runner").exists()
    bench.launcher.close()
    assert not (bench.folder / ".torc_runner").exists()
