"""The page in a browser, from the wizard to a finished run, and from failures to their repair."""

import json
from pathlib import Path

from browser_pages import DashPage
from dash_bench import DashProgram, DashReader
from playwright.sync_api import expect

RUN_MS = 60_000
"""How long a started run may take until the page shows its end."""


def sweep(name: str, marker: Path) -> dict[str, object]:
    """Return a spec of twelve jobs, of which three fail until the marker exists, and one that waits for all."""
    test = f"[ $(( {{i}} % 4 )) = 1 ] && [ ! -e {marker} ]"
    command = f'if {test}; then echo "ValueError: bad shard {{i}}" >&2; exit 3; fi'
    return {
        "name": name,
        "jobs": [
            {"name": "train_{i}", "command": command, "parameters": {"i": "1:12"}},
            {"name": "report", "command": "echo report", "depends_on_regexes": ["train_.*"]},
        ],
    }


def test_wizard_to_a_finished_run(page: DashPage) -> None:
    """Three jobs are typed into the wizard, created, run here, and the overview shows the end without a reload."""
    shown = page.show("create/wizard")
    shown.get_by_label("Workflow name").fill("by-wizard")
    shown.get_by_role("button", name="Next").click()
    shown.get_by_role("button", name="Next").click()
    expect(shown.get_by_role("alert")).to_contain_text("Job 1 needs a name and a command")
    for number, name in enumerate(("preprocess", "analyze", "report"), start=1):
        job = shown.get_by_role("group", name=f"Job {number}", exact=True)
        job.get_by_label("Job name").fill(name)
        job.get_by_label("Command").fill(f"echo {name}")
        if number > 1:
            job.get_by_role("checkbox", name=("preprocess", "analyze")[number - 2]).check()
        if number < 3:
            shown.get_by_role("button", name="+ Add job").click()
    for _ in range(3):
        shown.get_by_role("button", name="Next").click()
    expect(shown.locator("pre.block")).to_contain_text('"depends_on": [')
    shown.get_by_role("button", name="Check", exact=True).click()
    expect(shown.get_by_text("The spec is right: 3 jobs")).to_be_visible(timeout=RUN_MS)
    shown.get_by_role("button", name="Create and run here").click()
    expect(shown.locator(".headline")).to_contain_text("by-wizard", timeout=RUN_MS)
    expect(shown.locator(".headline")).to_contain_text("completed: 3 jobs", timeout=RUN_MS)
    expect(shown.locator(".connection")).to_have_text("● Live")


def test_failures_are_found_and_repaired(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """From the list to the cause, its log, and a retry that finishes the workflow; without a word from the manual."""
    marker = tmp_path / "fixed"
    workflow = owner.create(sweep("shards", marker))
    owner.run_to_its_end(workflow)

    shown = page.show("w")
    attention = shown.get_by_role("region", name="Needs attention")
    attention.get_by_role("link", name="shards").click()
    expect(shown.locator(".headline")).to_contain_text("3 failed")
    shown.get_by_role("link", name="See why").click()
    cause = shown.locator(".cause")
    expect(cause).to_have_count(1)
    expect(cause).to_contain_text("3 jobs: ValueError: bad shard", timeout=RUN_MS)  # when the logs have been read
    expect(cause).to_contain_text("All failed jobs, exit code 3.")

    cause.get_by_role("link", name="train_05").or_(cause.get_by_role("link", name="train_5")).click()
    expect(shown.get_by_role("log")).to_contain_text("ValueError: bad shard 5")
    expect(shown.get_by_role("region", name="Attempts")).to_contain_text("exit code 3")

    marker.touch()
    shown.go_back()
    cause.get_by_role("button", name="Retry failed jobs…").click()
    dialog = shown.get_by_role("dialog")
    expect(dialog.locator("code")).to_have_text(f"torc run {workflow} --retry-failed")
    expect(dialog.locator(".effects")).to_contain_text("4 jobs run again: 3 failed, 1 canceled.")
    dialog.get_by_role("button", name="Retry failed jobs").click()
    expect(shown.get_by_text("Nothing failed.")).to_be_visible(timeout=RUN_MS)
    page.show(f"w/{workflow}")
    expect(shown.locator(".headline")).to_contain_text("completed: 13 jobs", timeout=RUN_MS)


def test_a_newcomer_gets_37_failed_jobs_done(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """Two causes are told apart by what their logs say, and retried one by one: by a card, then by a filter."""
    disk, input_ = tmp_path / "disk", tmp_path / "input"
    command = f"""
        if [ $(( {{i}} % 43 )) = 1 ] && [ ! -e {input_} ]; then echo "KeyError: 'gain'" >&2; exit 1; fi
        if [ $(( {{i}} % 77 )) = 6 ] && [ ! -e {disk} ]; then echo "OSError: No space left" >&2; exit 28; fi"""
    calibrate = {"name": "calibrate_{i}", "command": command, "parameters": {"i": "1:1000"}}
    report = {"name": "report", "command": "echo report", "depends_on_regexes": ["calibrate_.*"]}
    workflow = owner.create({"name": "sensors", "jobs": [calibrate, report]})
    owner.run_to_its_end(workflow)

    shown = page.show("w")
    shown.get_by_role("region", name="Needs attention").get_by_role("link", name="sensors").click()
    expect(shown.locator(".headline")).to_contain_text("37 failed, 1 canceled")
    shown.get_by_role("link", name="See why").click()
    causes = shown.locator(".cause")
    expect(causes).to_contain_text(["24 jobs: KeyError: 'gain'", "13 jobs: OSError: No space left"])

    disk.touch()
    causes.nth(1).get_by_role("button", name="Retry these 13 jobs…").click()
    dialog = shown.get_by_role("dialog")
    expect(dialog).to_contain_text("The jobs that failed with: OSError: No space left")
    expect(dialog).to_contain_text("13 failed jobs run again, with the same requests.")
    expect(dialog).to_contain_text("24 other failed jobs stay failed.")
    dialog.get_by_role("button", name="Retry 13 jobs").click()
    expect(causes).to_have_count(1, timeout=RUN_MS)
    page.show(f"w/{workflow}")
    expect(shown.locator(".headline")).to_contain_text(f"(workflow {workflow}) failed", timeout=RUN_MS)

    input_.touch()
    shown.locator(".counts").get_by_role("link", name="24 failed").click()
    shown.get_by_role("button", name="Retry the 24 failed jobs that match…").click()
    expect(dialog).to_contain_text("24 failed jobs run again")
    expect(dialog).to_contain_text("1 job that follows from them runs again too.")
    dialog.get_by_role("button", name="Retry 24 jobs").click()
    expect(shown.get_by_text("No job matches.")).to_be_visible(timeout=RUN_MS)
    page.show(f"w/{workflow}")
    expect(shown.locator(".headline")).to_contain_text("completed: 1,001 jobs", timeout=RUN_MS)


def test_a_retry_that_is_refused_says_why(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """While jobs of the workflow can still run, failed ones are not retried; the dialog says so and changes nothing."""
    gate = tmp_path / "gate"
    wait = {"name": "wait", "command": f"while [ ! -e {gate} ]; do sleep 0.05; done"}
    workflow = owner.create({"name": "busy", "jobs": [{"name": "bad", "command": "exit 7"}, wait]})
    owner.order("run", workflow, wait=0)
    shown = page.show(f"w/{workflow}/jobs?q=bad")
    shown.get_by_role("button", name="Retry the 1 failed job that matches…").click(timeout=RUN_MS)
    dialog = shown.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("Cannot recover workflow")
    expect(dialog.get_by_role("button", name="Retry", exact=True)).to_be_disabled()
    gate.touch()


def test_archive_says_how_it_is_undone(page: DashPage, owner: DashReader) -> None:
    """The dialogs of an action and of its inverse name each other; the dialog closes when its view is left."""
    workflow = owner.create({"name": "put-away", "jobs": [{"name": "a", "command": "true"}]})
    owner.run_to_its_end(workflow)
    shown = page.show(f"w/{workflow}")
    dialog = shown.get_by_role("dialog")
    shown.get_by_role("button", name="Archive…").click()
    expect(dialog).to_contain_text("Its jobs, results and logs stay.")
    expect(dialog).to_contain_text("Take out of the archive undoes it.")
    shown.evaluate("location.hash = '#/w'")
    expect(dialog).to_have_count(0)
    page.show(f"w/{workflow}").get_by_role("button", name="Archive…").click()
    dialog.get_by_role("button", name="Archive", exact=True).click()
    shown.get_by_role("button", name="Take out of the archive…").click(timeout=RUN_MS)
    expect(dialog).to_contain_text("Archive undoes it.")
    dialog.get_by_role("button", name="Take out of the archive", exact=True).click()
    expect(shown.get_by_role("button", name="Archive…")).to_be_visible(timeout=RUN_MS)


def test_recover_shows_each_change_before_it_is_made(page: DashPage, owner: DashReader) -> None:
    """The preview of a recovery lists the jobs; it changes nothing, and the recovery then does."""
    workflow = owner.create({"name": "unknown", "jobs": [{"name": "bad", "command": "exit 7"}]})
    owner.run_to_its_end(workflow)
    shown = page.show(f"w/{workflow}/failures")
    shown.get_by_role("button", name="Recover…").first.click()
    dialog = shown.get_by_role("dialog")
    expect(dialog).to_contain_text("Of 1 failed job, none runs again", timeout=RUN_MS)
    expect(dialog.get_by_role("button", name="Recover", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="Run it again too, unchanged").click()
    changes = dialog.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("bad", timeout=RUN_MS)
    expect(dialog).to_contain_text("Nothing was changed yet")
    assert owner.get(f"api/workflows/{workflow}/job_counts")["counts"] == {"failed": 1}
    dialog.get_by_role("button", name="Recover", exact=True).click()
    expect(dialog).not_to_be_visible(timeout=RUN_MS)
    assert owner.get(f"api/workflows/{workflow}/job_counts")["counts"] == {"ready": 1}


def test_a_log_follows_its_growth(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """Lines that a running job writes appear by themselves, and earlier ones are there when asked for."""
    gate = tmp_path / "gate"
    command = (
        f"for i in $(seq 1 4000); do echo line $i; done; while [ ! -e {gate} ]; do sleep 0.05; done; echo last words"
    )
    workflow = owner.create({"name": "talker", "jobs": [{"name": "talk", "command": command}]})
    owner.order("run", workflow, wait=0)
    job = owner.get("api/jobs", workflow_id=workflow)["items"][0]["id"]
    shown = page.show(f"w/{workflow}")
    expect(shown.locator(".counts")).to_contain_text("running", timeout=RUN_MS)
    page.show(f"w/{workflow}/j/{job}")
    log = shown.get_by_role("log")
    expect(log).to_contain_text("line 4000", timeout=RUN_MS)
    gate.touch()
    expect(log).to_contain_text("last words", timeout=RUN_MS)
    shown.get_by_role("button", name="Begin").click()
    expect(log).to_contain_text("line 1")
    shown.get_by_label("Search in the whole log").fill("line 3777")
    shown.get_by_role("button", name="Find", exact=True).click()
    expect(shown.locator(".log-line.found")).to_have_text("line 3777")


def test_filters_are_part_of_the_address(page: DashPage, owner: DashReader, tmp_path: Path) -> None:
    """A link leads to the same rows; a wrong filter says where; nothing found offers to clear it."""
    workflow = owner.create(sweep("filtered", tmp_path / "never"))
    owner.run_to_its_end(workflow)
    shown = page.show(f"w/{workflow}/jobs?q=status:failed&sort=-id")
    grid = shown.get_by_role("grid", name="Jobs")
    expect(grid).to_have_attribute("aria-rowcount", "4")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("train_9")
    shown.get_by_label("Filter", exact=True).fill("status:faild")
    expect(shown.get_by_role("alert")).to_contain_text("did you mean")
    shown.get_by_label("Filter", exact=True).fill("nothing_like_this")
    expect(shown.get_by_text("No job matches.")).to_be_visible()
    shown.get_by_role("button", name="Clear the filter").click()
    expect(grid).to_have_attribute("aria-rowcount", "14")
    expect(shown).to_have_url(f"{page.base}#/w/{workflow}/jobs?sort=-id")


def test_keyboard_alone_reaches_a_failed_job(page: DashPage, owner: DashReader) -> None:
    """From the list by keys: jobs, a filter, the table, the row; Escape leads back."""
    workflow = owner.create(
        {"name": "keys", "jobs": [{"name": "bad", "command": "exit 7"}, {"name": "good", "command": "true"}]}
    )
    owner.run_to_its_end(workflow)
    shown = page.show(f"w/{workflow}")
    keys = shown.keyboard
    keys.press("g")
    keys.press("j")
    expect(shown.get_by_role("heading", name="Jobs")).to_be_visible()
    keys.press("/")
    keys.type("status:failed")
    expect(shown.get_by_role("grid")).to_have_attribute("aria-rowcount", "2")
    for _ in range(30):
        if shown.evaluate("document.activeElement.getAttribute('role')") == "grid":
            break
        keys.press("Tab")
    keys.press("Enter")
    expect(shown.get_by_role("heading", name="bad")).to_be_visible()
    keys.press("Escape")
    expect(shown.get_by_role("heading", name="Jobs")).to_be_visible()
    keys.press("?")
    expect(shown.get_by_role("heading", name="Help")).to_be_visible()


def test_delete_says_what_it_destroys(page: DashPage, owner: DashReader) -> None:
    """The dialog counts the records; the list then does not have the workflow."""
    workflow = owner.create({"name": "doomed", "jobs": [{"name": "a", "command": "true"}]})
    shown = page.show(f"w/{workflow}")
    shown.get_by_role("button", name="Delete…").click()
    dialog = shown.get_by_role("dialog")
    expect(dialog.locator(".warning")).to_contain_text("1 job")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog).not_to_be_visible(timeout=RUN_MS)
    page.show("w")
    expect(shown.get_by_role("link", name="doomed")).to_have_count(0)


def test_errors_in_a_spec_are_shown_at_their_line(page: DashPage) -> None:
    """The editor names the line of a wrong key, and creates the workflow once it is right."""
    shown = page.show("create/editor")
    spec = shown.get_by_label("Spec", exact=True)
    spec.fill("name: typed\njobs:\n  - name: a\n    comand: echo\n")
    shown.get_by_role("button", name="Check", exact=True).click()
    expect(shown.get_by_role("alert")).to_contain_text("did you mean 'command'", timeout=RUN_MS)
    expect(shown.get_by_role("button", name="Line 4")).to_be_visible()
    spec.fill("name: typed\njobs:\n  - name: a\n    command: echo\n")
    shown.get_by_role("button", name="Create", exact=True).click()
    expect(shown.locator(".headline")).to_contain_text("typed", timeout=RUN_MS)


def test_upload_of_a_file(page: DashPage) -> None:
    """A chosen file is shown and created; one of another kind is refused with a reason."""
    shown = page.show("create/file")
    field = shown.get_by_label("Spec file")
    field.set_input_files({"name": "photo.png", "mimeType": "image/png", "buffer": b"x"})
    expect(shown.get_by_role("alert")).to_contain_text("photo.png is no spec")
    spec = json.dumps({"name": "uploaded", "jobs": [{"name": "a", "command": "true"}]})
    field.set_input_files({"name": "spec.json", "mimeType": "application/json", "buffer": spec.encode()})
    shown.get_by_role("button", name="Create", exact=True).click()
    expect(shown.locator(".headline")).to_contain_text("uploaded", timeout=RUN_MS)


def test_log_out_and_in_again_keeps_the_address(page: DashPage, dash: DashProgram) -> None:
    """The log-in shows in place, and the view of the address appears after it."""
    shown = page.show("server")
    shown.get_by_role("button", name="Log out").click()
    shown.get_by_label("Token").fill("wrong")
    shown.get_by_role("button", name="Log in").click()
    expect(shown.get_by_role("alert")).to_be_visible()
    shown.get_by_label("Token").fill(dash.url.partition("token=")[2])
    shown.get_by_role("button", name="Log in").click()
    expect(shown.get_by_role("heading", name="torc-server")).to_be_visible()
