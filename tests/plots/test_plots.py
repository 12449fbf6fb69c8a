"""Plots: which files there are, what they hold, and what a real browser makes of them."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from plot_samples import NASTY, one_sample_each, samples_every, write_samples

from torc_framework.errors import UserError
from torc_framework.plots import PlotRequest, write_plots
from torc_framework.plots import figures as plots

if TYPE_CHECKING:
    from playwright.sync_api import Page

Show = Callable[[Path], "Page"]
INK = """() => torcCharts.map(({plot}) => {
    const {canvas} = plot.ctx;
    const copy = Object.assign(document.createElement("canvas"), {width: canvas.width, height: canvas.height});
    const context = copy.getContext("2d", {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let at = 0; at < pixels.length; at += 4)
        if (pixels[at + 3] === 255) seen.add(pixels[at] << 16 | pixels[at + 1] << 8 | pixels[at + 2]);
    return seen.size;
})"""
"""Numbers of opaque colours in the charts: a chart without its lines has those of axes and text only."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with plots of three jobs."""
    write_plots(PlotRequest([write_samples(tmp_path / "resource_metrics_h_1_1.db")], tmp_path))
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".db"}


def pages(folder: Path, *databases: Path, **changes: Any) -> dict[str, Any]:
    """Write plots as JSON; return them by name."""
    written, _ = write_plots(PlotRequest(databases, folder, **{"format": "json", **changes}))
    return {path.stem.removeprefix("resource_plot_"): json.loads(path.read_text()) for path in written}


def test_names_of_files_are_torcs(folder: Path) -> None:
    expected = {f"resource_plot_job_{id_}.html" for id_ in (1, 2, 3)}
    overviews = {f"resource_plot_{name}.html" for name in ("cpu_all_jobs", "memory_all_jobs", "summary")}
    assert names(folder) == expected | overviews


def test_prefix_format_and_jobs_may_be_chosen(tmp_path: Path) -> None:
    source = write_samples(tmp_path / "x.db", jobs=5)
    write_plots(PlotRequest([source], tmp_path / "new" / "out", [2, 4], "mine", "json"))
    assert names(tmp_path / "new" / "out") == {
        *("mine_job_2.json", "mine_job_4.json"),
        *("mine_cpu_all_jobs.json", "mine_memory_all_jobs.json", "mine_summary.json"),
    }
    overview = json.loads((tmp_path / "new" / "out" / "mine_memory_all_jobs.json").read_text())
    assert [line["label"] for line in overview["charts"][0]["series"]] == ["train_4", "train_2"], "the largest first"


def test_attempts_and_files_are_kept_apart(tmp_path: Path) -> None:
    """Two attempts of each job, and the same job in the file of another host."""
    one = write_samples(tmp_path / "resource_metrics_a_1_1.db", jobs=2, attempts=2)
    other = write_samples(tmp_path / "resource_metrics_b_1_1.db", jobs=1, first_id=2)
    found = pages(tmp_path, one, other)
    titles = [chart["title"] for chart in found["job_2"]["charts"]]
    assert len(titles) == 9, "CPU, memory and processes of three attempts"
    labels = {row[0] for row in found["summary"]["table"]["rows"]}
    assert len(labels) == 5
    assert "train_2 (attempt 2)" in labels


def test_figures_are_those_of_the_samples(tmp_path: Path) -> None:
    source = write_samples(tmp_path / "x.db", jobs=2, ticks=60)
    row = pages(tmp_path, source)["summary"]["table"]["rows"][1]
    mean = 2 * 2**30 * (sum(range(1, 31)) / 30 + 30) / 60
    assert (row[0], row[1], row[2], row[5], row[7], row[9]) == ("train_2", 2, 1, 2 << 30, 4, 60)
    assert row[6] == pytest.approx(mean, rel=1e-6)


def test_many_jobs_have_overviews_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are named. Overviews are thinned out, but the peaks stay."""
    monkeypatch.setattr(plots, "MOST_JOB_PAGES", 10)
    monkeypatch.setattr(plots, "OVERVIEW_POINTS", 200)
    source = write_samples(tmp_path / "x.db", jobs=11, ticks=100)
    written, remarks = write_plots(PlotRequest([source], tmp_path / "out", format="json"))
    assert len(written) == 3
    assert remarks == ["11 jobs: only jobs named with --job-ids get pages of their own"]
    overview = json.loads(written[1].read_text())["charts"][0]["series"]
    assert {len(line["values"]) for line in overview} == {18}
    assert [max(line["values"]) for line in overview] == [id_ << 30 for id_ in range(11, 0, -1)]
    assert len(write_plots(PlotRequest([source], tmp_path / "out", [11], format="json"))[0]) == 4


def test_what_cannot_be_plotted_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("no database at all, but long enough to be looked at as one: " * 40)
    good = write_samples(tmp_path / "x.db", jobs=2)
    empty = write_samples(tmp_path / "empty.db", ticks=0)
    for databases, job_ids, message in (
        ([tmp_path / "none.db"], [], "none.db: No such file"),
        ([tmp_path / "bad.db"], [], "bad.db is not a file of resource samples"),
        ([good], [1, 7, 9], r"no samples of job 7, 9; there are some of 1, 2"),
        ([empty], [], "no job ran long enough"),
    ):
        with pytest.raises(UserError, match=message):
            write_plots(PlotRequest(databases, tmp_path / "out", job_ids))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        write_plots(PlotRequest([good], tmp_path / "file"))


def test_a_file_of_samples_does_not_choose_the_folder(tmp_path: Path) -> None:
    """Its ids of jobs become names of files; it may come from a host."""
    source, folder = write_samples(tmp_path / "x.db", jobs=1), tmp_path / "out"
    (folder / "resource_plot_job_").mkdir(parents=True)
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("UPDATE job_resource_samples SET job_id = '/../../theirs'")
    with pytest.raises(UserError, match="cannot write to"):
        write_plots(PlotRequest([source], folder))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.db"]


# --- in a browser ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["job_1", "job_2", "cpu_all_jobs", "memory_all_jobs", "summary"])
def test_pages_are_drawn_without_a_network(folder: Path, show: Show, name: str) -> None:
    """Nothing is loaded, the browser reports no error, every chart has its lines, for any names of jobs."""
    page = show(folder / f"resource_plot_{name}.html")
    assert page.title() != "broken"
    page.wait_for_function("torcCharts.length > 0 && torcCharts.every(({plot}) => plot && plot.status === 1)")
    drawn = page.evaluate(INK)
    page.evaluate(
        "torcCharts.forEach(({plot}) => plot.series.forEach((s, i) => i && plot.setSeries(i, {show: false})))"
    )
    page.wait_for_function("torcCharts.every(({plot}) => plot.series.slice(1).every((s) => !s.show))")
    bare = page.evaluate(INK)
    assert len(drawn) == {"job_1": 3, "job_2": 3, "summary": 2}.get(name, 1)
    assert all(one > other for one, other in zip(drawn, bare, strict=True))


def test_hovering_shows_values(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_memory_all_jobs.html")
    over = page.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
    text = page.locator(".tip").inner_text()
    assert "train_3: 3 GiB" in text
    assert "train_2: 2 GiB" in text
    assert f"{NASTY.strip()}: 1 GiB".replace("\u2028", "") in text.replace("\u2028", "").replace("\n", " ")
    legend = page.locator(".u-legend").inner_text()
    assert re.search(r"train_3:?\s*3 GiB", legend)


def test_a_click_in_the_legend_hides_a_line(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_memory_all_jobs.html")
    page.locator(".u-legend .u-series", has_text="train_3").locator("th").click()
    assert page.evaluate("torcCharts[0].plot.series[1].show") is False
    assert page.evaluate("torcCharts[0].plot.series[2].show") is True
    page.locator(".u-legend .u-series", has_text="train_3").locator("th").click()
    assert page.evaluate("torcCharts[0].plot.series[1].show") is True


def test_dragging_zooms_and_the_button_shows_everything_again(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_job_2.html")
    whole = page.evaluate("torcCharts[0].plot.scales.x.max - torcCharts[0].plot.scales.x.min")
    box = page.locator(".u-over").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 50)
    page.mouse.up()
    span = "torcCharts[0].plot.scales.x.max - torcCharts[0].plot.scales.x.min"
    page.wait_for_function(f"{span} < {whole} / 2")
    page.get_by_role("button", name="Reset zoom").first.click()
    page.wait_for_function(f"{span} === {whole}")


def test_the_wheel_and_dragging_with_shift(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_job_2.html")
    x = "torcCharts[0].plot.scales.x"
    whole = page.evaluate(f"{x}.max - {x}.min")
    box = page.locator(".u-over").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"{x}.max - {x}.min < {whole} * 0.8")
    before = page.evaluate(f"{x}.min")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + 50)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function(f"{x}.min < {before}")


def test_the_table_sorts(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_summary.html")

    def column(number: int) -> list[str]:
        return page.locator(f".figures tbody tr td:nth-child({number})").all_inner_texts()

    head = page.get_by_role("button", name="Peak memory")
    head.click()
    assert column(6) == ["3 GiB", "2 GiB", "1 GiB"]
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    head.click()
    assert column(2) == ["1", "2", "3"]
    page.get_by_role("button", name="Job", exact=True).click()
    assert column(1)[1:] == ["train_2", "train_3"]


def test_of_many_jobs_the_largest_are_drawn_and_others_can_be_picked(tmp_path: Path, show: Show) -> None:
    write_plots(PlotRequest([write_samples(tmp_path / "x.db", jobs=30, ticks=5)], tmp_path))
    page = show(tmp_path / "resource_plot_memory_all_jobs.html")
    count = "torcCharts[0].plot.series.length - 1"
    assert page.evaluate(count) == 20
    page.get_by_role("searchbox", name="Find jobs").fill("train_2")
    page.get_by_role("checkbox", name="train_2", exact=True).check()
    assert page.evaluate(count) == 21
    page.get_by_role("checkbox", name="train_29").uncheck()
    assert page.evaluate(count) == 20


def test_a_picture_can_be_saved(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_job_2.html")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save PNG").first.click()
    assert download.value.suggested_filename == "CPU.png"
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


ONE_TIME = """() => torcCharts.map(({plot}) => {
    const {canvas} = plot.ctx;
    const copy = Object.assign(document.createElement("canvas"), {width: canvas.width, height: canvas.height});
    const context = copy.getContext("2d", {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    const painted = plot.series.slice(1).map((_, at) => {
        const [x, y] = [plot.valToPos(plot.data[0][0], "x", true), plot.valToPos(plot.data[at + 1][0], "y", true)];
        const [red, green, blue] = context.getImageData(Math.round(x), Math.round(y), 1, 1).data;
        return Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
    });
    return [plot.scales.x.max - plot.scales.x.min, painted];
})"""
"""For each chart the seconds of its time axis, and for each line whether its first point is painted in a colour."""


@pytest.mark.parametrize("name", ["job_2", "memory_all_jobs"])
def test_a_job_with_one_sample_is_a_marker_within_a_minute(tmp_path: Path, show: Show, name: str) -> None:
    """Alone, and among more jobs than get markers at their samples."""
    write_plots(PlotRequest([one_sample_each(tmp_path / "x.db", jobs=8)], tmp_path))
    page = show(tmp_path / f"resource_plot_{name}.html")
    page.wait_for_function("torcCharts.every(({plot}) => plot && plot.status === 1)")
    for seconds, painted in page.evaluate(ONE_TIME):
        assert seconds == 60
        assert painted
        assert all(painted)


OVERLAPS = """() => torcCharts.flatMap(({plot}) => plot.axes.flatMap((axis) => {
    const {ctx} = plot;
    ctx.font = axis.font[0];
    const labels = axis._values.map((text, at) => ({
        at: plot.valToPos(axis._splits[at], axis.scale),
        wide: Math.max(...`${text ?? ""}`.split("\\n").map((line) => ctx.measureText(line).width)) / devicePixelRatio,
    })).filter(({wide}) => wide > 0);
    const turned = Math.abs(axis.rotate()) * Math.PI / 180;
    const room = (one, other) => axis.side % 2 ? 12 : turned ? 12 / Math.sin(turned) : (one.wide + other.wide) / 2;
    return labels.slice(1).filter((each, at) => Math.abs(each.at - labels[at].at) < room(each, labels[at]));
}))"""
"""Labels of axes that reach into the one before."""


@pytest.mark.parametrize("width", [520, 1200, 2400])
@pytest.mark.parametrize("name", ["job_1", "memory_all_jobs", "summary"])
@pytest.mark.parametrize("case", ["many jobs with long names", "five days", "a second"])
def test_labels_of_axes_do_not_overlap(tmp_path: Path, show: Show, case: str, name: str, width: int) -> None:
    jobs, ticks, step_s = {
        "many jobs with long names": (100, 3, 1.0),
        "five days": (4, 720, 600.0),
        "a second": (8, 5, 0.2),
    }[case]
    source = samples_every(tmp_path / "x.db", jobs=jobs, ticks=ticks, step_s=step_s)
    write_plots(PlotRequest([source], tmp_path))
    page = show(tmp_path / f"resource_plot_{name}.html")
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_function("torcCharts.every(({plot}) => plot && plot.status === 1)")
    assert page.evaluate(OVERLAPS) == []


def test_axes_have_names_and_units(folder: Path, show: Show) -> None:
    page = show(folder / "resource_plot_job_2.html")
    page.wait_for_function("torcCharts.every(({plot}) => plot && plot.status === 1)")
    labels = page.evaluate("torcCharts.map(({plot}) => plot.axes.map((axis) => axis.label))")
    assert [left for _, left in labels] == ["CPU (100% is one core)", "Memory", "Number of processes"]
    assert all(re.fullmatch(r"Time \(.+\)", below) for below, _ in labels)
    assert page.evaluate("torcCharts[1].plot.axes[1]._values.at(-1)") == "2 GiB"
    assert re.match(r"\d\d:\d\d:\d\d\n2023-11-1\d", page.evaluate("torcCharts[1].plot.axes[0]._values[0]"))


def test_long_names_below_bars_are_shortened_to_what_differs(tmp_path: Path, show: Show) -> None:
    write_plots(PlotRequest([samples_every(tmp_path / "x.db", jobs=3, ticks=2, step_s=1.0)], tmp_path))
    page = show(tmp_path / "resource_plot_summary.html")
    page.wait_for_function("torcCharts.every(({plot}) => plot && plot.status === 1)")
    labels = page.evaluate("torcCharts[1].plot.axes[0]._values")
    assert [label for label in labels if label] == [
        "simul…300_gamma_0003",
        "simul…200_gamma_0002",
        "simul…100_gamma_0001",
    ]
