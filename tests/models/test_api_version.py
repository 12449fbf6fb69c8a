"""Which differences between the versions of a server and a client matter."""

import pytest

from torc_framework.models.api_version import API_VERSION, compare_versions, version_text


@pytest.mark.parametrize(
    "server",
    [
        version_text("0.2.0"),
        f"{API_VERSION} (torc-framework 0.2.7)",
        f"{API_VERSION} (torc-framework 0.3.0)",
        f"{API_VERSION} (torc-framework 1.0.0)",
        "0.10.9 (torc-framework 0.2.0)",
        "v0.11.0-beta (torc-framework 0.2.0.dev1)",
    ],
)
def test_a_newer_server_and_other_patches_do_not_matter(server: str) -> None:
    assert compare_versions(server, "0.2.0") is None


@pytest.mark.parametrize(
    ("server", "part"),
    [
        (f"{API_VERSION} (torc-framework 0.1.9)", "is torc-framework 0.1.9, older than this program (0.2.0)"),
        ("0.9.0 (torc-framework 0.2.0)", "is torc-framework 0.2.0, older than this program"),
        ("0.10.0", "the server is Torc 0.10.0, not torc-framework"),
        ("0.10.0 (abc1234-dirty)", "the server is Torc 0.10.0, not torc-framework"),
        ("", "names '' as its version"),
        ("latest", "names 'latest' as its version"),
    ],
)
def test_what_a_server_may_lack_is_said(server: str, part: str) -> None:
    found = compare_versions(server, "0.2.0")
    assert found is not None
    assert part in found.message
    assert not found.is_incompatible


@pytest.mark.parametrize("server", ["1.0.0 (torc-framework 2.0.0)", "2.3.4"])
def test_another_major_version_of_the_api_is_incompatible(server: str) -> None:
    found = compare_versions(server, "0.2.0")
    assert found is not None
    assert found.is_incompatible
    assert "--skip-version-check" in found.message
