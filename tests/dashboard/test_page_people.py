"""The page as a stranger, a member of an access group and an administrator see it, and how their sessions end."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from attrs import frozen
from browser_pages import DashPage, open_dash
from dash_bench import DashProgram, running_dash
from people import Person, guarded_server, password_of
from playwright.sync_api import Browser, Page, expect

RUN_MS = 60_000
COMMANDS = ("Run here…", "Reinitialize…", "Archive…", "Delete…", "Recover…", "Submit…")
"""Buttons of commands, which need the start token."""


@frozen
class World:
    """A server with access control, a dashboard in front of it, and a workflow of Ana with a failed job.

    Attributes:
        group: An access group that has the workflow, with Ben as its member.
    """

    dash: DashProgram
    root: Person
    workflow: int
    group: int


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Ana owns the workflow, Ben is a member of its access group, Eve is a stranger, and Root is an administrator."""
    folder = Path(tempfile.mkdtemp(prefix="torc-page-people-"))
    folder.chmod(0o755)  # logs are read with the rights of torc-dash, below folders that everyone may read
    (folder / "dash").mkdir()
    names = ("ana", "ben", "eve", "root")
    with (
        guarded_server(folder, names, "--require-auth", "--admin-user", "root") as server,
        running_dash(folder / "dash", "--api-url", server.url) as dash,
    ):
        owner = dash.owner().log_in("ana", password_of("ana"))
        workflow = owner.create({"name": "hers", "jobs": [{"name": "bad", "command": "exit 3"}]})
        owner.run_to_its_end(workflow)
        root, ana = (Person(server.url, name, password_of(name)) for name in ("root", "ana"))
        group = root.ok("POST", "/access_groups", {"name": "team"})["id"]
        root.ok("POST", f"/access_groups/{group}/members", {"user_name": "ben"})
        ana.ok("POST", f"/workflows/{workflow}/access_groups", {"group_id": group})
        yield World(dash, root, workflow, group)
    shutil.rmtree(folder)


def log_in(page: Page, name: str) -> None:
    """Fill in the form, and wait for the page behind it."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Password").fill(password_of(name))
    page.get_by_role("button", name="Log in", exact=True).first.click()
    expect(page.locator(".reader")).to_contain_text(name, timeout=RUN_MS)


@pytest.fixture
def as_person(browser: Browser, world: World) -> Iterator[Callable[..., DashPage]]:
    """Opens a view as a person, in a browser of the person's own; with the start token or without."""
    with ExitStack() as stack:

        def open_as(name: str, route: str, *, token: bool = False) -> DashPage:
            url = world.dash.url if token else world.dash.base
            opened = stack.enter_context(open_dash(browser, f"{url}#/{route}"))
            log_in(opened.page, name)
            return opened

        yield open_as


def commands_in(page: Page) -> list[str]:
    """Return the commands that are offered."""
    return [name for name in COMMANDS if page.get_by_role("button", name=name, exact=True).count()]


def views_in(page: Page) -> list[str]:
    """Return what the navigation offers."""
    return page.get_by_role("navigation", name="Views").get_by_role("link").all_inner_texts()


def test_a_stranger_is_told_that_a_workflow_is_not_theirs(world: World, as_person: Callable[..., DashPage]) -> None:
    """The list is empty; each address of the workflow says the same, offers nothing, and does not reconnect."""
    opened = as_person("eve", "w")
    page = opened.page
    expect(page.get_by_text("No workflows yet.")).to_be_visible(timeout=RUN_MS)
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "dash/events" in request.url else None)
    for view in ("", "/jobs", "/failures", "/j/1", "/data/results", "/events"):
        opened.show(f"w/{world.workflow}{view}")
        expect(page.get_by_text("You may not see this workflow.")).to_be_visible(timeout=RUN_MS)
        assert views_in(page) == ["Workflows", "Server", "Settings", "Help"]
        assert page.locator("main button").count() == 0
        assert "hers" not in page.content()
    expect(page.locator(".connection")).to_contain_text("not shared with you", timeout=RUN_MS)
    opened.show("w/999999")
    expect(page.get_by_text("There is no such workflow.")).to_be_visible(timeout=RUN_MS)
    assert opened.accessibility_findings() == []
    opened.show("create/wizard")
    expect(page.get_by_text("You may not create workflows here.")).to_be_visible()


def test_rights_that_change_show_while_the_page_is_open(world: World, as_person: Callable[..., DashPage]) -> None:
    """A workflow that is shared appears without a reload, live; one that is no longer shared disappears."""
    page = as_person("eve", f"w/{world.workflow}").page
    members = f"/access_groups/{world.group}/members"
    refused = page.get_by_text("You may not see this workflow.")
    for _ in range(2):
        expect(refused).to_be_visible(timeout=RUN_MS)
        world.root.ok("POST", members, {"user_name": "eve"})
        expect(page.locator(".headline")).to_contain_text("1 failed", timeout=RUN_MS)
        expect(page.locator(".connection")).to_have_text("● Live", timeout=RUN_MS)
        assert "Jobs" in views_in(page)
        world.root.ok("DELETE", f"{members}/eve")
        expect(refused).to_be_visible(timeout=RUN_MS)
        expect(page.locator(".headline")).to_have_count(0)
        assert "hers" not in page.locator("body").inner_text()


def test_a_member_may_repair_but_gives_no_commands(world: World, as_person: Callable[..., DashPage]) -> None:
    """Without the start token the API is what a member has: failed jobs can be retried, commands are not offered."""
    opened = as_person("ben", "w")
    page = opened.page
    page.get_by_role("link", name="hers").click()
    expect(page.locator(".headline")).to_contain_text("1 failed", timeout=RUN_MS)
    for view in ("", "/jobs", "/failures", "/runners", "/data"):
        opened.show(f"w/{world.workflow}{view}")
        assert commands_in(page) == []
    opened.show("w")
    expect(page.get_by_role("link", name="hers")).to_be_visible()
    assert page.get_by_role("combobox", name="Actions of hers").count() == 0
    opened.show(f"w/{world.workflow}/failures").get_by_role("button", name="Retry failed jobs…").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 failed job runs again", timeout=RUN_MS)
    assert dialog.get_by_label("Run the workflow here at once").count() == 0
    opened.page.keyboard.press("Escape")
    opened.show("settings")
    assert page.get_by_role("heading", name="Settings of torc").count() == 0


def test_an_administrator_sees_the_workflows_of_all(world: World, as_person: Callable[..., DashPage]) -> None:
    """With their owners; with the start token commands on them are offered, too."""
    opened = as_person("root", "w", token=True)
    page = opened.page
    expect(page.locator(".workflow")).to_contain_text("ana", timeout=RUN_MS)
    expect(page.get_by_role("combobox", name="Actions of hers")).to_be_visible(timeout=RUN_MS)
    opened.show(f"w/{world.workflow}")
    expect(page.get_by_role("button", name="Delete…")).to_be_visible(timeout=RUN_MS)
    opened.show("server")
    expect(page.get_by_role("heading", name="Commands that ran here")).to_be_visible(timeout=RUN_MS)


@pytest.mark.parametrize("token", [False, True])
def test_a_session_that_ends_in_the_middle_of_work(
    world: World, as_person: Callable[..., DashPage], *, token: bool
) -> None:
    """A log-out in another tab: this one asks for the log-in with its next request, and then shows what it showed."""
    opened = as_person("ben", f"w/{world.workflow}/failures", token=token)
    page = opened.page
    page.get_by_role("button", name="Retry failed jobs…").first.click()  # also the next step above, once that is known
    expect(page.get_by_role("dialog")).to_be_visible()
    with page.context.expect_page():
        page.evaluate("open(document.baseURI)")
    other = page.context.pages[-1]
    other.get_by_role("button", name="Log out").click()
    expect(other.get_by_role("heading", name="Log in", exact=True)).to_be_visible(timeout=RUN_MS)
    page.keyboard.press("Escape")
    page.goto(f"{opened.base}#/w/{world.workflow}/jobs")
    expect(page.get_by_role("heading", name="Log in", exact=True)).to_be_visible(timeout=RUN_MS)
    assert page.get_by_role("heading", name="Log in with the start token").count() == 1
    assert "as well" not in page.locator("main").inner_text()
    assert "bad" not in page.locator("body").inner_text()
    log_in(page, "ben")
    expect(page.get_by_role("row").filter(has_text="bad")).to_be_visible(timeout=RUN_MS)
    assert page.get_by_role("dialog").count() == 0
    assert page.url.endswith(f"#/w/{world.workflow}/jobs")


def test_another_person_in_the_same_tab_sees_their_own(world: World, as_person: Callable[..., DashPage]) -> None:
    """After a log-out; nothing of the first person is left in the page."""
    page = as_person("ana", f"w/{world.workflow}", token=True).page
    expect(page.get_by_role("button", name="Delete…")).to_be_visible(timeout=RUN_MS)
    page.get_by_role("button", name="Log out").click()
    log_in(page, "eve")
    expect(page.get_by_text("You may not see this workflow.")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("link", name="Create")).to_have_count(0)
    assert "hers" not in page.content()
