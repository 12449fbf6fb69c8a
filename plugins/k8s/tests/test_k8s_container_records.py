"""The records in the log of a container, also if the log is rotated, cut or mixed with other text."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from torc_k8s.container import LogEnd, LogStart, Record, RecordParser

POD = "torc-a-j1-a1"
_SWAPS = {"t": ("\r\x1e", "\x1e\r"), "n": ("\n\x01\r\x1e", "\x01\n\x1e\r")}
BYTES = st.lists(
    st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [
                b"\r\n",
                b"\x1e\n",
                b"\x1e\x01",
                b"\n",
                f"\n@{POD} o 0 3 t\n".encode(),
                f"\n@{POD} ".encode(),
                b"@",
                b".\n",
            ]
        ),
    ),
    max_size=12,
).map(b"".join)


def encoded(stream: str, offset: int, data: bytes, encoding: str) -> bytes:
    """Return a record as the program writes it."""
    if encoding == "x":
        body = b"".join(
            b"".join(b" %02x" % byte for byte in data[start : start + 16]) + b"\n" for start in range(0, len(data), 16)
        )
        body += b"."
    else:
        body = data.translate(bytes.maketrans(*(text.encode() for text in _SWAPS[encoding])))
    return f"@{POD} {stream} {offset} {len(data)} {encoding}\n".encode() + body + b"\n"


def dropped(log: bytes) -> bytes:
    """Return a log as container runtimes keep it."""
    return log.replace(b"\r\n", b"\n")


def parsed(log: bytes, cuts: list[int]) -> tuple[list[object], RecordParser]:
    """Return the items of a log that arrives in pieces."""
    parser = RecordParser(POD)
    places = sorted({0, len(log), *(cut % (len(log) + 1) for cut in cuts)})
    found: list[object] = []
    for start, end in itertools.pairwise(places):
        found += parser.feed(log[start:end])
    return found, parser


PIECES = st.lists(st.tuples(st.sampled_from("oe"), BYTES.filter(bool), st.sampled_from("tnx")), max_size=8)
CUTS = st.lists(st.integers(0, 2**16), max_size=8)


def log_of(pieces: list[tuple[str, bytes, str]]) -> tuple[bytes, list[Record]]:
    """Return the records of pieces of streams, and the log that has them."""
    sizes = {"o": 0, "e": 0}
    log, records = f"@{POD} start 1.5\n".encode(), []
    for stream, data, encoding in pieces:
        records.append(Record("o" if stream == "o" else "e", sizes[stream], data))
        log += encoded(stream, sizes[stream], data, encoding)
        sizes[stream] += len(data)
    return log + f"@{POD} end {sizes['o']} {sizes['e']} 1\n".encode(), records


def is_true(record: object, records: list[Record]) -> bool:
    """Return whether a record has the bytes of its stream."""
    assert isinstance(record, Record)
    whole = b"".join(each.data for each in records if each.stream == record.stream)
    return whole[record.offset : record.offset + len(record.data)] == record.data


@given(PIECES, CUTS)
def test_what_is_read_is_what_was_written(pieces: list[tuple[str, bytes, str]], cuts: list[int]) -> None:
    log, records = log_of(pieces)
    found, parser = parsed(log, cuts)
    read = [item for item in found if isinstance(item, Record)]
    whole = [each for each in records if f"\n@{POD} ".encode() not in b"\n" + each.data]
    assert all(is_true(each, records) for each in read if each in records)
    assert [each for each in whole if each not in read] == [] or parser.skipped
    assert found[0] == LogStart()
    assert isinstance(found[-1], LogEnd)


@given(st.lists(st.tuples(st.sampled_from("oe"), st.binary(min_size=1), st.sampled_from("tn")), max_size=8), CUTS)
def test_dropped_carriage_returns_are_noticed(pieces: list[tuple[str, bytes, str]], cuts: list[int]) -> None:
    log, records = log_of(pieces)
    found, _parser = parsed(dropped(log), cuts)
    assert all(is_true(item, records) for item in found if isinstance(item, Record))
    if dropped(log) == log:
        assert [item for item in found if isinstance(item, Record)] == records


@given(PIECES, st.integers(0, 2**16), st.integers(0, 2**16), CUTS)
def test_a_log_that_was_rotated_or_cut(
    pieces: list[tuple[str, bytes, str]], begin: int, end: int, cuts: list[int]
) -> None:
    plain = [(stream, data, "x") for stream, data, _encoding in pieces]
    log, records = log_of(plain)
    part = log[begin % len(log) :]
    part = part[: end % (len(part) + 1)]
    found, parser = parsed(part, cuts)
    assert all(is_true(item, records) for item in found if isinstance(item, Record))
    parser.rest()


@given(
    st.lists(st.one_of(st.binary(), st.sampled_from([f"\n@{POD} o 0 9".encode(), b" t\n", b" x\n", b"999999"]))).map(
        b"".join
    ),
    CUTS,
)
def test_any_bytes_are_read_without_an_error(log: bytes, cuts: list[int]) -> None:
    _found, parser = parsed(log, cuts)
    parser.rest()


def test_what_others_write_is_skipped() -> None:
    found, _parser = parsed(
        b"warning: x\n"
        + encoded("o", 0, b"one", "t")
        + b"hello\n@other-pod o 0 3 t\nabc\n"
        + encoded("o", 3, b"two", "t"),
        [],
    )
    assert found == [Record("o", 0, b"one"), Record("o", 3, b"two")]


def test_memory_is_bounded() -> None:
    parser = RecordParser(POD)
    for start in (b"\n@" + POD.encode() + b" ", f"\n@{POD} o 0 999999 t\n".encode(), f"\n@{POD} o 0 9 x\n".encode()):
        for _piece in range(40):
            parser.feed(start)
            parser.feed(b"a" * 100_000)
        assert len(parser._buffer) < 2_000_000


def test_the_rest_of_a_log_that_ends_within_a_record() -> None:
    parser = RecordParser(POD)
    parser.feed(encoded("e", 7, b"one\r\ntwo", "t")[:-4])
    assert parser.rest() == [Record("e", 7, b"one\r\n")]
