"""The files that list host keys."""

import multiprocessing
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_ssh.connection.known_hosts import KnownKey, add_known_key, find_known_keys, name_in_known_hosts

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIORH88XSRh2mTeNuFhmWrQhf5cSVuQpPh+wk6p0000aa"


def found(path: Path, content: str, name: str) -> list[tuple[int, str]]:
    """Return line and kind of the keys that a file with this content lists for a host."""
    path.write_text(content)
    return [(key.line, key.kind) for key in find_known_keys([path], name)]


@pytest.mark.parametrize(
    ("host", "port", "name"), [("H1", 22, "h1"), ("h1", 2222, "[h1]:2222"), ("::1", 22, "::1"), ("::1", 99, "[::1]:99")]
)
def test_name(host: str, port: int, name: str) -> None:
    assert name_in_known_hosts(host, port) == name


@pytest.mark.parametrize(
    ("line", "name", "kinds"),
    [
        (f"h1 {KEY}", "h1", ["key"]),
        (f"H1 {KEY} a comment", "h1", ["key"]),
        (f"h1,h2,10.0.0.1 {KEY}", "h2", ["key"]),
        (f"h11,xh1 {KEY}", "h1", []),
        (f"[h1]:2222 {KEY}", "[h1]:2222", ["key"]),
        (f"[h1]:2222 {KEY}", "h1", []),
        (f"*.example.com {KEY}", "a.example.com", ["key"]),
        (f"*.example.com,!b.example.com {KEY}", "b.example.com", []),
        (f"!h1,h1 {KEY}", "h1", []),
        (f"h? {KEY}", "h1", ["key"]),
        (f"h? {KEY}", "h12", []),
        (f"h.1 {KEY}", "hx1", []),
        (f"@cert-authority * {KEY}", "h1", ["authority"]),
        (f"@revoked h1 {KEY}", "h1", ["revoked"]),
        (f"@unheard-of h1 {KEY}", "h1", []),
        (f"# h1 {KEY}", "h1", []),
        ("h1", "h1", []),
        ("h1 ssh-ed25519", "h1", []),
        ("@revoked", "h1", []),
        ("|1|broken", "h1", []),
        (f"|1|!!!|??? {KEY}", "h1", []),
        (f"|2|AAAA|AAAA {KEY}", "h1", []),
        (f"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= {KEY}", "192.168.1.61", ["key"]),
        ("\x00\xff garbage \x1b[2J", "h1", []),
    ],
)
def test_line(tmp_path: Path, line: str, name: str, kinds: list[str]) -> None:
    content = f"\n{line}\n"
    assert found(tmp_path / "known_hosts", content, name) == [(2, kind) for kind in kinds]


@given(st.binary() | st.text().map(str.encode), st.text())
def test_no_content_of_a_file_is_an_error(content: bytes, name: str) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        assert all(key.path == Path(file.name) for key in find_known_keys([Path(file.name)], name))


@pytest.mark.parametrize("is_hashed", [False, True])
@pytest.mark.parametrize("before", ["", f"h2 {KEY}\n", f"h2 {KEY}"])
def test_a_key_is_added_once(tmp_path: Path, before: str, is_hashed: bool) -> None:
    path = tmp_path / "folder" / "known_hosts"
    if before:
        path.parent.mkdir()
        path.write_text(before)
    for _ in range(2):
        add_known_key(path, "[h1]:99", KEY, is_hashed=is_hashed)
    assert find_known_keys([path], "[h1]:99") == [KnownKey(path, 2 if before else 1, "key", KEY)]
    assert len(path.read_text().splitlines()) == (2 if before else 1)
    assert ("[h1]" in path.read_text()) != is_hashed
    assert path.stat().st_mode & 0o77 in (0, 0o44)


def test_a_file_that_is_not_there_lists_nothing(tmp_path: Path) -> None:
    assert find_known_keys([tmp_path / "none", tmp_path], "h1") == []
    with pytest.raises(OSError, match="File exists"):
        add_known_key(Path("/dev/null/known_hosts"), "h1", KEY)
    add_known_key(Path("/dev/null"), "h1", KEY)


def _add_all(path: Path) -> None:
    for number in range(50):
        add_known_key(path, f"h{number}", KEY)


def test_several_processes_add_keys(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    processes = [multiprocessing.get_context("spawn").Process(target=_add_all, args=(path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = path.read_text().splitlines()
    assert sorted(lines) == sorted(f"h{number} {KEY}" for number in range(50))


def test_a_large_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("".join(f"h{number} {KEY}\n" for number in range(100_000)))
    assert [key.line for key in find_known_keys([path], "h99999")] == [100_000]
    monkeypatch.setattr(Path, "open", None)
    assert [key.line for key in find_known_keys([path], "h5")] == [6]
