"""Addresses of hosts and worker files."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torc_ssh.addresses import HostAddress, parse_address, parse_addresses, read_worker_file

from torc_framework.api import UserError

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,30}", fullmatch=True)
hosts = names | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str)
addresses = st.builds(HostAddress, st.none() | names, hosts, st.none() | st.integers(1, 65535))


@given(addresses)
def test_the_text_of_an_address_stands_for_it(address: HostAddress) -> None:
    assert parse_address(str(address)) == address


@given(st.text())
def test_any_text_is_an_address_or_an_error_of_one_line(text: str) -> None:
    try:
        address = parse_address(text)
    except UserError as error:
        message = str(error)
    else:
        message = ""
        assert parse_address(str(address)) == address
        assert not re.search(r"\s", text)
        assert not address.host.startswith("-")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("worker1.example.com", HostAddress(None, "worker1.example.com", None)),
        ("alice@worker2.example.com", HostAddress("alice", "worker2.example.com", None)),
        ("admin@192.168.1.10:2222", HostAddress("admin", "192.168.1.10", 2222)),
        ("[2001:db8::1]", HostAddress(None, "2001:db8::1", None)),
        ("bob@[::1]:2222", HostAddress("bob", "::1", 2222)),
        ("my_alias", HostAddress(None, "my_alias", None)),
        (r"SITE\alice@h", HostAddress(r"SITE\alice", "h", None)),
    ],
)
def test_address(text: str, address: HostAddress) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the host is empty"),
        ("alice@", "the host is empty"),
        ("@h", "the user is empty"),
        ("h:", "port '' is not a number"),
        ("h:0", "port '0' is not a number from 1 to 65535"),
        ("h:65536", "port '65536'"),
        ("h:abc", "port 'abc'"),
        ("h:٢٢", "port"),
        ("::1", "stands in brackets"),
        ("[::1", "expected"),
        ("[]", "no IPv6 address"),
        ("[fe80::1%eth0]", "has a scope"),
        ("[h1]", "'h1' in brackets is no IPv6 address"),
        ("[::1]x", "expected"),
        ("a@b@c", "expected"),
        ("-oProxyCommand=x", "the host begins with a hyphen"),
        ("-l@h", "the user begins with a hyphen"),
        ("h1 h2", "the host contains ' '"),
        ("h1,h2", "the host contains ','"),
        ("$(id)@h", "the user contains '$'"),
        ("h\n", "the host contains '\\n'"),
    ],
)
def test_what_is_no_address(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=re.escape(problem)):
        parse_address(text)


def test_two_addresses_of_one_host_are_refused() -> None:
    assert len(parse_addresses(["h1", "h2:22"])) == 2
    problem = "address 3: host 'H1' again (first: address 1); each host can only appear once"
    with pytest.raises(UserError, match=re.escape(problem)):
        parse_addresses(["h1", "h2", "alice@H1:22"])
    with pytest.raises(UserError, match="again"):
        parse_addresses(["[::1]", "[0:0:0:0:0:0:0:1]:22"])


def test_worker_file(tmp_path: Path) -> None:
    path = tmp_path / "workers.txt"
    path.write_bytes(
        b"\xef\xbb\xbf# a comment\r\n\r\n  worker1  \n\t# another\nalice@worker2:2222 # the large one\n[::1]"
    )
    assert [str(address) for address in read_worker_file(path)] == ["worker1", "alice@worker2:2222", "[::1]"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"h1\n# x\nh2\nbob@h1:2222\n", "line 4: host 'h1' again (first: line 1); each host can only appear once"),
        (b"h1\nh2:x\n", "line 2: 'h2:x' is no address of a host: port 'x' is not a number from 1 to 65535"),
        (b"", "contains no hosts"),
        (b"# only\n\n", "contains no hosts"),
        (b"h1\n\xff\n", "byte 4 is not UTF-8"),
        (b"h1\n" * (1 << 20), "larger than 1 MiB"),
        (b"h1\x00\n", r"the host contains '\x00'"),
    ],
)
def test_a_wrong_worker_file_is_named_with_the_line(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "workers.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(problem)) as caught:
        read_worker_file(path)
    assert str(caught.value).startswith(f"worker file {path}: ")


def test_a_worker_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file or directory"):
        read_worker_file(tmp_path / "none")
    with pytest.raises(UserError, match="Is a directory"):
        read_worker_file(tmp_path)
