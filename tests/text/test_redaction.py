"""Tests of redaction: secrets in known forms are removed from texts, and the rest stays unchanged."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.text.redaction import MARK, is_secret_name, redact, secret_values

WORD = st.text(string.ascii_letters + string.digits, min_size=12, max_size=40)
SAFE = st.text(string.ascii_letters + string.digits + "-_.+/", min_size=12, max_size=40).filter(
    lambda text: text[0].isalnum()
)
PLACES = [
    "password={}",
    "PGPASSWORD={}",
    "export AWS_SECRET_ACCESS_KEY='{}'",
    'GITHUB_TOKEN="{}"',
    '{{"password": "{}"}}',
    "{{'client_secret': '{}'}}",
    "api-key: {}",
    "db.password : {}",
    "tool --password {} --verbose",
    "tool --api-key={} --verbose",
    "tool --auth-token {}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "-H 'Authorization: token {}'",
    "sent bearer {}",
    "postgresql://ann:{}@db.example.com/torc",
    "GET https://example.com/x?a=1&token={}&b=2",
    "GET https://example.com/x?X-Amz-Signature={}",
    "Cookie: session={}; theme=dark",
    "curl -u ann:{} https://example.com",
    "ValueError: wrong passphrase: {}",
    "-----BEGIN " + "OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN " + "RSA PRIVATE KEY-----\n{}\ncut off",
]


@pytest.mark.parametrize("place", PLACES)
@given(secret=WORD)
def test_no_secret_stays_where_secrets_stand(place: str, secret: str) -> None:
    """Whatever it is made of; what stands around it stays."""
    shown = redact(f"before\n{place.format(secret)}\nafter" if "cut off" not in place else place.format(secret))
    assert secret not in shown
    assert MARK in shown
    if "cut off" not in place:
        assert shown.startswith("before\n")
        assert shown.endswith("\nafter")


@given(secret=SAFE)
def test_passwords_of_urls_may_hold_signs(secret: str) -> None:
    secret = secret.replace("/", "%2F") + "@:"
    assert secret not in redact(f"mysql://u:{secret}@host/db failed")
    assert redact(f"mysql://u:{secret}@host/db failed") == f"mysql://u:{MARK}@host/db failed"


KEYS = [
    "AKIA" + "Q" * 16,
    "ghp_" + "a1" * 18,
    "github_pat_" + "a" * 30,
    "glpat-" + "x" * 20,
    "xoxb-" + "1" * 12 + "-abc",
    "sk-ant-" + "a1" * 20,
    "AIza" + "b" * 35,
    "hf_" + "c" * 34,
    "pypi-" + "d" * 40,
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "$2b$12$" + "e" * 53,
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_known_by_their_look(key: str) -> None:
    assert redact(f"used {key} here") == f"used {MARK} here"


@pytest.mark.parametrize(
    "line",
    [
        "ConnectionError: Connection refused to storage.internal:443",
        "ModuleNotFoundError: No module named 'tokenizers'",
        "TOKENIZERS_PARALLELISM=false max_tokens=512",
        "KeyError: 'name'",
        "see https://example.com/docs?page=2#top",
        "ncclInternalError: Internal check failed, NCCL timeout after 1800 s",
        "srun: error: node12: task 0: Exited with exit code 1",
        "the secretary passed the key to user: ann",
        '  File "/data/run.py", line 3, in main',
        "memory 16g runtime PT1H key=value",
    ],
)
def test_ordinary_lines_stay(line: str) -> None:
    assert redact(line) == line


@given(text=st.text(max_size=300))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(parts=st.lists(st.sampled_from([*PLACES, " ", "\n", "=", ":", '"', "'", MARK, "token", "password", "@", "://"])))
def test_also_in_texts_full_of_secrets(parts: list[str]) -> None:
    once = redact("".join(parts))
    assert redact(once) == once


def test_values_of_secret_variables_are_found_elsewhere() -> None:
    """Those that are long enough to be told from words; the longest first, so that none is cut."""
    environment = {"DB_PASSWORD": "tiger-and-more", "SHORT_TOKEN": "abc", "MY_SECRET": "tiger-", "HOME": "/data/ann"}
    values = secret_values(environment)
    assert values == ["tiger-and-more", "tiger-"]
    assert redact("log in with tiger-and-more at /data/ann", values) == f"log in with {MARK} at /data/ann"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("TORC_PASSWORD", True), ("accessToken", True), ("TOKENIZER", False), ("SSH_KEY_PATH", True), ("PATH", False)],
)
def test_names_that_hold_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


HOSTILE = [
    "a",
    "a_",
    "token",
    " ",
    "a://",
    "?key=",
    "-----BEGIN " + "PRIVATE KEY-----",
    "password:",
    "eyJaaaaaaaaa.",
    "'",
    '\\"',
]


@pytest.mark.parametrize("part", HOSTILE)
def test_no_text_takes_for_ever(part: str) -> None:
    """Texts on which a careless pattern would spend hours."""
    assert redact(part * 20_000)
