"""Classes of endings that only the executor ``ssh`` causes."""

from torc_ssh.executor.endings import TRANSFER_ERROR, classify, host_lost, with_raw

from torc_framework.api import ExitClass, ExitObservation, exit_return_code

DONE = ExitObservation("ssh", exit_code=0, ended_at=1.0)


def test_a_lost_host_is_a_failure_of_the_node() -> None:
    for seen in (None, DONE, ExitObservation("ssh", signal=9)):
        verdict = classify(host_lost("host h1 is gone", seen))
        assert verdict is not None
        assert (verdict.exit_class, verdict.reason) == (ExitClass.NODE_FAILURE, "host h1 is gone")


def test_outputs_that_did_not_come_home_are_a_failure_of_a_service() -> None:
    seen = with_raw(DONE, {TRANSFER_ERROR: "its output could not be brought home"})
    seen = ExitObservation("ssh", exit_code=0, raw=seen.raw, missing_outputs=("x",))
    verdict = classify(seen)
    assert verdict is not None
    assert verdict.exit_class is ExitClass.SERVICE_ERROR
    assert exit_return_code(seen, verdict) == 1


def test_the_programs_own_failure_comes_first() -> None:
    assert classify(with_raw(ExitObservation("ssh", exit_code=7), {TRANSFER_ERROR: "x"})) is None
    assert classify(DONE) is None
    assert classify(ExitObservation("local", raw={"host_lost": "x", TRANSFER_ERROR: "y"})) is None
