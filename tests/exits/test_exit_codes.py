"""Exit codes with signals, exit actions of OSMO, and the same functions in the public face."""

from hypothesis import given
from hypothesis import strategies as st

from torc_framework import api
from torc_framework.exits import code_signal, osmo_exit_actions
from torc_framework.models.exits import ExitClass


@given(st.integers(-1, 255), st.integers(0, 64))
def test_pairs_come_back(code: int, signal: int) -> None:
    """What is rendered is parsed again; both halves are kept."""
    assert code_signal.parse_exit(code_signal.render_exit(code, signal)) == (code, signal)


@given(st.integers(1, 64))
def test_reasons_come_back(signal: int) -> None:
    """The signal of a reason is named, and read from it."""
    shown = code_signal.render_end_reason("RaisedSignal", signal)
    assert " " not in shown
    assert code_signal.parse_end_reason(shown) == ("RaisedSignal", signal)


def test_names_of_signals() -> None:
    """Real-time signals count from the first; what is no signal has no name of one."""
    assert code_signal.slurm_signal_name(34) == "Real-time_signal_0"
    assert code_signal.slurm_signal_name(code_signal.OOM_MARK) == "Unknown_signal_125"
    assert code_signal.render_end_reason("RaisedSignal") == "RaisedSignal"
    assert code_signal.decode_wait_status(0x0D00) == (13, 0)
    assert code_signal.decode_wait_status(0x8B) == (0, 11)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 60)), min_size=1, max_size=5), st.integers(0, 4100))
def test_ranges_include_their_ends(ranges: list[tuple[int, int]], code: int) -> None:
    """A list of codes covers what its ranges do."""
    text = ",".join(f"{low}-{low + more}" if more else f"{low}" for low, more in ranges)
    assert not osmo_exit_actions.exit_action_problems({"FAIL": text})
    assert osmo_exit_actions.covers(text, code) == any(low <= code <= low + more for low, more in ranges)
    assert osmo_exit_actions.match_exit_actions({"fail": text}, code) in (None, "FAIL")


def test_the_first_action_wins_and_overlaps_are_told() -> None:
    """Order of the map decides."""
    actions = {"FAIL": "1-5", "RESCHEDULE": "5,9"}
    assert osmo_exit_actions.match_exit_actions(actions, 5) == "FAIL"
    assert osmo_exit_actions.overlaps(actions) == ["FAIL and RESCHEDULE both list 5: FAIL gets it"]


def test_the_public_face_has_them() -> None:
    """Scripts and plugins call the same functions."""
    assert api.render_exit(0, 9) == "0:9"
    assert api.parse_time_limit("1-12") == 129_600
    assert api.osmo_class_of_code(3004) is ExitClass.EVICTED
    assert api.SYSEXITS[75][0] == "EX_TEMPFAIL"
