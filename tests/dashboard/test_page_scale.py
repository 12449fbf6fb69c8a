"""The page with 100,000 jobs: only what is in view is asked for and drawn."""

from browser_pages import DashPage
from dash_bench import DashReader
from playwright.sync_api import expect

JOBS = 100_000
LONG_MS = 60_000


def test_a_hundred_thousand_jobs(page: DashPage, owner: DashReader) -> None:
    """The overview, the last row of the table, a filter, the graph of groups and its members."""
    spec = {
        "name": "large",
        "jobs": [
            {"name": "train_{i}", "command": "true", "parameters": {"i": f"1:{JOBS}"}},
            {"name": "report", "command": "true", "depends_on_regexes": ["train_.*"]},
        ],
    }
    workflow = owner.create(spec)
    shown = page.show(f"w/{workflow}")
    expect(shown.locator(".headline")).to_contain_text("100,001 jobs", timeout=LONG_MS)
    page.show(f"w/{workflow}/jobs")
    grid = shown.get_by_role("grid", name="Jobs")
    expect(grid).to_have_attribute("aria-rowcount", str(JOBS + 2), timeout=LONG_MS)
    grid.press("End")
    last = grid.locator(f'[aria-rowindex="{JOBS + 2}"]')
    expect(last).to_contain_text("report", timeout=LONG_MS)
    assert grid.get_by_role("row").count() < 100
    grid.press("PageUp")
    grid.press("Home")
    expect(grid.locator('[aria-rowindex="2"]')).to_have_attribute("aria-selected", "true")
    shown.get_by_label("Filter", exact=True).fill("train_99999 -train_9999")
    expect(shown.get_by_text("No job matches.")).to_be_visible(timeout=LONG_MS)
    page.show(f"w/{workflow}/graph")
    boxes = shown.get_by_role("region", name="Boxes of the graph")
    expect(boxes).to_contain_text("100,000", timeout=LONG_MS)
    boxes.get_by_role("link", name="open").click()
    expect(shown.get_by_role("button", name="Further members")).to_be_visible(timeout=LONG_MS)


def test_ten_thousand_boxes_are_drawn(page: DashPage) -> None:
    """A drawing of 10,000 nodes and 19,000 edges draws all of them, and finds the node under the pointer."""
    script = """async () => {
        const { GraphScene } = await import(new URL("static/parts/graph_scene.js", document.baseURI));
        const nodes = Array.from({length: 10000}, (_, index) => ({
            id: `j${index}`, kind: "job", label: `job_${index}`, count: 1, job_id: index + 1, layer: index % 50,
            order: Math.floor(index / 50), counts: {[index % 3 ? "completed" : "failed"]: 1}}));
        const edges = Array.from({length: 19000}, (_, index) => [index % 9949, index % 9949 + 1 + (index % 50), 1]);
        const scene = new GraphScene(nodes, edges);
        const canvas = document.createElement("canvas");
        canvas.width = 1200; canvas.height = 800;
        const context = canvas.getContext("2d");
        scene.draw(context, {x: 10, y: 10, scale: 0.08}, 1200, 800);
        const pixels = context.getImageData(0, 0, 1200, 800).data;
        let drawn = 0;
        for (let at = 3; at < pixels.length; at += 4) drawn += pixels[at] > 0;
        const {x, y} = scene;
        return [scene.nodeAt(x[777] + 5, y[777] + 5), scene.nodeAt(-10, -10), drawn > 100000, scene.isHeavy]}"""
    assert page.show("w").evaluate(script) == [777, -1, True, True]


def test_a_heavy_drawing_is_moved_as_a_picture(page: DashPage) -> None:
    """While a heavy drawing moves it is not drawn anew; after a rest, and when its picture no longer fills, it is."""
    script = """async () => {
        const { CanvasView } = await import(new URL("static/parts/canvas_view.js", document.baseURI));
        const canvas = document.createElement("canvas");
        canvas.style.cssText = "width: 400px; height: 300px";
        document.body.append(canvas);
        let drawn = 0;
        const view = new CanvasView(canvas, {draw: () => { drawn += 1; }, onClick: () => {}, isHeavy: true});
        const frame = () => new Promise(requestAnimationFrame);
        view.resize(); await frame(); await frame();
        const first = drawn;
        for (let step = 0; step < 10; step += 1) { view.pan(-2, 0); await frame(); }
        const moving = drawn;
        await new Promise((done) => setTimeout(done, 400));
        return [moving - first, drawn - moving]}"""
    assert page.show("w").evaluate(script) == [0, 1]
