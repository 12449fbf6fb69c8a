"""Tests of launchers: lanes of queued attempts, and the adoption of attempts after a crash."""

import json

from torc_framework.api import AttemptKey
from torc_framework.testing.contracts.launcher_stops import is_gone
from torc_framework.testing.contracts.launcher_suite import LauncherSuite
from torc_framework.testing.support.clauses import require
from torc_framework.testing.support.launcher_bench import ONE_END, DyingRunner, LauncherBench


class LauncherLaneTests(LauncherSuite):
    """Tests of queued attempts; skipped unless the launcher declares ``queues``."""

    def test_queued_attempts_follow_in_their_lane(self, bench: LauncherBench) -> None:
        """Queued attempts begin one after the other when one of their lane ends, not when one of another lane does."""
        self._needs("queues")
        log = bench.folder / "log"
        step = [bench.attempt(f"echo +{n} >> '{log}'; sleep 0.02; echo -{n} >> '{log}'", job_id=n) for n in range(1, 6)]
        bench.start(step[0])
        bench.queue(step[1:])
        bench.run(bench.attempt("exit 1", job_id=50, lane=1))
        bench.until(lambda: len(bench.ended) == 6, "a queued attempt begins when a running one of its lane ends")
        order = log.read_text().split()
        expected = [f"{sign}{n}" for n in range(1, 6) for sign in "+-"]
        require(order == expected, "queued attempts of a lane run one after the other, in their order", order)

    def test_queued_attempts_can_be_given_back(self, bench: LauncherBench) -> None:
        """`withdraw` and `stop` give queued attempts back; `withdraw` does not affect running ones."""
        self._needs("queues")
        first, second, third = (AttemptKey(job, 1) for job in (1, 2, 3))
        bench.start(bench.attempt("sleep 100"))
        bench.queue([bench.attempt("exit 1", job_id=2), bench.attempt("exit 1", job_id=3)])
        bench.until(lambda: first in bench.started, "the start of an attempt is told")
        bench.launcher.withdraw([first, second])
        bench.until(lambda: second in bench.returned, "withdraw gives a queued attempt back as AttemptWithdrawn")
        require(first not in bench.ended, "withdraw leaves alone what has begun", bench.ended)
        bench.launcher.stop([first, third], force=True)
        bench.until(
            lambda: first in bench.ended and third in bench.returned,
            "a queued attempt that is stopped is given back as AttemptWithdrawn, and never begins",
        )
        require(not {second, third} & bench.started.keys(), "what was given back never begins", bench.started)

    def test_a_queued_attempt_can_be_started_at_once(self, bench: LauncherBench) -> None:
        """`start` of a queued attempt begins it at once, and it runs once."""
        self._needs("queues")
        second = bench.attempt("echo ran >> ran", job_id=2)
        bench.start(bench.attempt("sleep 100"))
        bench.queue([second])
        bench.start(second)
        bench.until(lambda: second.key in bench.ended, "start of a queued attempt begins it at once")
        bench.launcher.stop([AttemptKey(1, 1)], force=True)
        bench.until(lambda: len(bench.ended) == 2, ONE_END)
        ran = (bench.folder / "ran").read_text()
        require(ran == "ran\n", "an attempt runs once, however often it is ordered", ran)


class LauncherAdoptionTests(LauncherSuite):
    """Tests of adoption."""

    def test_attempts_outlive_their_runner(self, bench: LauncherBench) -> None:
        """Attempts that ended before the kill, before the adoption or after it are reported once, truly."""
        self._needs("survives_runner")
        self._needs_files()
        gate = bench.folder / "gate"
        commands = ("echo up; exit 11", f"echo up; while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 12")
        keys = [AttemptKey(job, 1) for job in (1, 2, 3)]
        bench.expect(keys)
        runner = DyingRunner(self.executor, self.options_in(bench.folder), bench.folder, *commands, site=self.site)
        for name in ("1.o", "2.o"):
            bench.wait_for(name)
        state = runner.kill()
        adoption = bench.launcher.adopt(state, keys)
        require(set(keys[:2]) <= set(adoption.adopted), "attempts that were begun survive their runner", adoption)
        require(keys[2] not in adoption.adopted, "what was never begun cannot be adopted", adoption)
        bench.until(lambda: keys[0] in bench.ended, "the end of an adopted attempt arrives by poll")
        require(keys[1] not in bench.ended, "an adopted attempt runs on", bench.ended)
        gate.touch()
        bench.until(lambda: keys[1] in bench.ended, "the end of an adopted attempt arrives by poll")
        codes = [bench.ended[key].exit_code for key in keys[:2]]
        require(codes == [11, 12], "an adopted attempt has its true end", codes)
        bench.launcher.forget(state)

    def test_what_is_not_known_is_said_to_be_unknown(self, bench: LauncherBench) -> None:
        """`adopt` reports attempts as unknown if their files were deleted."""
        keys = [AttemptKey(1, 1), AttemptKey(2, 1)]
        adoption = bench.launcher.adopt({}, keys)
        require(adoption.adopted == (), "without a state there is nothing to adopt", adoption)

    def test_what_is_not_asked_for_is_stopped(self, bench: LauncherBench) -> None:
        """Attempts of the dead runner that are not among the keys are stopped, and no event tells of them."""
        self._needs("survives_runner")
        self._needs_this_machine()
        first, second = AttemptKey(1, 1), AttemptKey(2, 1)
        bench.expect([first])
        commands = ["echo $$; sleep 100; true"] * 2
        runner = DyingRunner(self.executor, self.options_in(bench.folder), bench.folder, *commands, site=self.site)
        kept, left = int(bench.wait_for("1.o")), int(bench.wait_for("2.o"))
        adoption = bench.launcher.adopt(runner.kill(), [first])
        require(adoption.adopted == (first,), "attempts that were begun survive their runner", adoption)
        bench.until(lambda: is_gone(left), "adopt stops attempts of the dead runner that it is not asked about")
        require(not is_gone(kept), "an adopted attempt runs on", bench.ended)
        bench.launcher.stop([first, second], force=True)
        bench.until(lambda: first in bench.ended, "a forced stop ends an adopted attempt")
        require(is_gone(kept), "a forced stop ends an adopted attempt", kept)

    def test_an_end_that_is_not_stored_is_told_again(self, bench: LauncherBench) -> None:
        """An end that `poll` has returned is kept for `adopt`, until `ends_stored`."""
        self._needs("survives_runner")
        self._needs_files()
        stored, open_ = AttemptKey(1, 1), AttemptKey(2, 1)
        former = self.make_bench(bench.folder)
        former.run(former.attempt("exit 15"), former.attempt("exit 16", job_id=2))
        former.launcher.ends_stored([stored])
        state = former.launcher.state()
        former.launcher.abandon()
        bench.expect([open_])
        adoption = bench.launcher.adopt(json.loads(json.dumps(state)), [open_])
        require(adoption.adopted == (open_,), "an end is kept for adopt until ends_stored", adoption)
        bench.until(lambda: open_ in bench.ended, "an end that was not stored is told again after an adoption")
        require(bench.ended[open_].exit_code == 16, "an adopted attempt has its true end", bench.ended)
        bench.launcher.ends_stored([open_])
        bench.launcher.forget(state)

    def test_abandoned_attempts_can_be_adopted(self, bench: LauncherBench) -> None:
        """`abandon` keeps what a later launcher needs in order to adopt."""
        self._needs("survives_runner")
        self._needs_files()
        gate, key = bench.folder / "gate", AttemptKey(1, 1)
        former = self.make_bench(bench.folder)
        former.start(former.attempt(f"echo up; while ! [ -e '{gate}' ]; do sleep 0.05; done; exit 14"))
        former.wait_for("1.o")
        state = former.launcher.state()
        former.launcher.abandon()
        bench.expect([key])
        adoption = bench.launcher.adopt(json.loads(json.dumps(state)), [key])
        require(adoption.adopted == (key,), "abandon keeps what a later runner needs in order to adopt", adoption)
        gate.touch()
        bench.until(lambda: key in bench.ended, "the end of an adopted attempt arrives by poll")
        require(bench.ended[key].exit_code == 14, "an adopted attempt has its true end", bench.ended)
