"""Parts of logs and search in them: large files, long lines, characters of any length, and files that change."""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dash_bench import DashReader
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.monitoring.log_reads import SEARCH_BYTES, LogSearch, read_part, search


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a file for reading."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def part(path: Path, *, offset: int = 0, length: int = 1 << 16, is_tail: bool = False) -> dict[str, Any]:
    """Return a part of a file."""
    with opened(path) as descriptor:
        return read_part(descriptor, str(path), offset=offset, length=length, is_tail=is_tail)


def found(path: Path, text: str, *, start: int = 0, limit: int = 100, **more: Any) -> dict[str, Any]:
    """Search a file."""
    with opened(path) as descriptor:
        return search(descriptor, LogSearch(text, **more), start=start, limit=limit)


@given(
    text=st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60),
    length=st.integers(4, 12),
)
def test_parts_after_one_another_are_the_text(text: str, length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(text.encode())
    at, seen = 0, ""
    while at < path.stat().st_size:
        answer = part(path, offset=at, length=length)
        assert answer["next_offset"] > at
        seen += answer["text"]
        at = answer["next_offset"]
    assert seen == text


@given(content=st.binary(max_size=40), offset=st.integers(0, 50), length=st.integers(1, 20))
def test_any_bytes_have_an_answer(
    content: bytes, offset: int, length: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(content)
    answer = part(path, offset=offset, length=length)
    assert 0 <= answer["offset"] <= answer["next_offset"] <= len(content)
    if answer["is_binary"]:
        assert base64.b64decode(answer["base64"]) == content[offset : offset + length]


def test_the_end_begins_at_a_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("first line\nsecond\nthird\n")
    answer = part(path, length=10, is_tail=True)
    assert (answer["text"], answer["at_line_start"], answer["offset"]) == ("third\n", True, 18)
    assert part(path, length=1000, is_tail=True)["text"].startswith("first")


def test_a_file_that_became_shorter_or_another_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a" * 100)
    before = part(path)
    os.truncate(path, 10)
    after = part(path, offset=100)
    assert (after["size"], after["offset"], after["text"]) == (10, 10, "")
    path.rename(tmp_path / "log.1")
    path.write_text("new")
    assert part(path)["file"] != before["file"]


def test_a_large_file_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log:
        log.truncate(300 << 20)
        log.seek(200 << 20)
        log.write(b"\nneedle in the middle\n")
        log.seek(0, os.SEEK_END)
        log.write(b"\nthe end\n")
    assert part(path, length=100, is_tail=True)["text"] == "the end\n"
    at, matches = 0, []
    while at < path.stat().st_size:
        answer = found(path, "needle", start=at)
        assert answer["scanned_to"] - at <= SEARCH_BYTES
        matches += answer["matches"]
        at = answer["scanned_to"]
    assert [(match["offset"], match["text"]) for match in matches] == [((200 << 20) + 1, "needle in the middle")]


def test_a_line_of_fifty_megabytes_has_short_matches(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (50 << 20) + b"error" + b"y" * 1000)
    (match,) = found(path, "error")["matches"]
    assert (match["offset"], len(match["text"]) < 1000) == (50 << 20, True)


def test_a_match_across_two_chunks_is_found_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"-" * ((1 << 20) - 3) + b"needle" + b"-" * 100)
    assert len(found(path, "needle")["matches"]) == 1


def test_a_search_goes_on_after_its_last_match(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("Error\nerror\nwarning\nERROR\n")
    first = found(path, "error", ignore_case=True, limit=2)
    assert [match["line_offset"] for match in first["matches"]] == [0, 6]
    rest = found(path, "error", ignore_case=True, start=first["scanned_to"])
    assert [match["text"] for match in rest["matches"]] == ["ERROR"]
    assert rest["is_complete"] is True


def test_lines_of_problems_are_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("all is well\nTraceback (most recent call last):\nterror is no such word\nKilled\n")
    texts = [match["text"] for match in found(path, "", kind="problem")["matches"]]
    assert texts == ["Traceback (most recent call last):", "Killed"]


@pytest.mark.e2e
def test_a_log_grows_and_is_downloaded(owner: DashReader) -> None:
    id_ = owner.create({"name": "w", "jobs": [{"name": "a", "command": "printf 'h\\303\\244llo\\n'; echo oops >&2"}]})
    owner.run_to_its_end(id_)
    job_id = owner.get("api/jobs", workflow_id=id_)["items"][0]["id"]
    where = f"dash/workflows/{id_}/log"
    attempt = owner.get(f"dash/workflows/{id_}/jobs/{job_id}/attempts")["attempts"][0]
    path = Path(attempt["logs"]["stdout"]["path"])
    first = owner.get(where, job=job_id)
    assert (first["text"], first["size"]) == ("hällo\n", 7)
    with path.open("a") as log:
        log.write("more\n")
    assert owner.get(where, job=job_id, offset=first["next_offset"])["text"] == "more\n"
    assert owner.get(f"{where}/search", job=job_id, stream="stderr", text="oops")["matches"][0]["offset"] == 0
    answer = owner.http.get(f"{where}/download", params={"job": job_id})
    assert answer.content == "hällo\nmore\n".encode()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert owner.get(where, node=attempt["compute_node_id"])["text"].count("event=runner_started") == 1
    size = 64 << 20  # more than what the connection takes before it is read
    os.truncate(path, size)
    with owner.http.stream("GET", f"{where}/download", params={"job": job_id}) as stream:
        pieces = stream.iter_raw()
        read = len(next(pieces))
        os.truncate(path, 2 * size)
        assert read + sum(map(len, pieces)) == size
