"""Widths of texts in a terminal, and shortening to a width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.text.widths import padded_text, shortened, text_width


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("naïve", 5), ("nai\u0308ve", 5), ("日本", 4), ("🚀x", 3), ("e\u0301\u0301", 1)],
)
def test_widths(text: str, width: int) -> None:
    assert text_width(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("train_lr0.01_seed=07", 20, "train_lr0.01_seed=07"),
        ("train_lr0.001_batch_seed=07", 16, "train_lr…seed=07"),
        ("日本語日本語", 7, "日…語"),
        ("abc", 1, "a"),
        ("abc", 0, ""),
    ],
)
def test_names_keep_both_ends(text: str, width: int, shown: str) -> None:
    assert shortened(text, width) == shown


def test_sentences_keep_their_beginning() -> None:
    assert shortened("ValueError: out of range", 12, at_end=True) == "ValueError:…"


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    for at_end in (False, True):
        assert text_width(shortened(text, width, at_end=at_end)) <= width


def test_padding_counts_columns() -> None:
    assert padded_text("日", 4) == "日  "
    assert padded_text("日", 4, right=True) == "  日"
