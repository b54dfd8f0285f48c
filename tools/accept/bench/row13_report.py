"""`muster bench report` in a real browser: on a phone, a laptop and a large screen, light and dark, and on paper; nothing is fetched."""

import html.parser
import json
import shutil

from bench import browser, running
from bench.sweeps import Sweep
from programs import scratch
from report import at_most, holds

TITLE = "the report in Debian's chromium: 390, 1024 and 1920 px, light and dark, printed; no request, at most 500 KB"
IS_TIMED = False

BYTES_MOST = 500_000
SCREENS = ((390, 844), (1024, 768), (1920, 1080))
TEXT_HEIGHT_MIN = 9  # px, of the smallest letters of a plot
HOSTILE = "\"><script>window.hostile = 1</script><img src=x onerror=\"window.hostile = 1\">"
SAMPLES = 1_000_000

# What is looked at on the page. Boxes within .wide scroll by themselves; what is in no such box must not be wider than the page.
LOOK = """({scroll: document.documentElement.scrollWidth, body: document.body.scrollWidth, scripts: document.scripts.length,
 images: document.images.length, hostile: typeof window.hostile, background: getComputedStyle(document.body).backgroundColor,
 plots: document.querySelectorAll('svg.plot').length,
 untold: [...document.querySelectorAll('svg.plot')].filter(s => !s.querySelector('title') || !s.querySelector('desc')).length,
 letters: Math.min(...[...document.querySelectorAll('svg.plot text')].map(t => t.getBoundingClientRect().height)),
 cut: [...document.querySelectorAll('svg.plot text')].filter(t => {
   const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
   return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1 || a.top < b.top - 1;}).length})"""


def skip_reason():
    return None if browser.find() else "there is no chromium: apt-get install chromium"


def measured(folder, name, mean_s):
    """A result of two loads with five trials each."""
    with running.null_server("--law", "exponential", "--mean", mean_s) as url:
        code, _, said = running.bench("http", f"{url}/", "--rate", "20,60", "--duration", "3s", "--trials", "5", "--cooldown", "100ms",
                                      "-o", folder / name)
    if code not in (0, running.LATE):
        raise RuntimeError(f"muster bench ended with {code}: {said[-400:]}")
    # Whether sends were late depends on what else the machine does, which is not meant here.
    result = json.loads((folder / name).read_text())
    for point in result["points"]:
        for trial in point["trials"]:
            trial["valid"] = True
    (folder / name).write_text(json.dumps(result))
    return folder / name


def with_hostile_names(source, target):
    """The same result as a server with such names would have it, and a late generator and an unsteady trial in it."""
    result = json.loads(source.read_text())
    result["target"].update(model=HOSTILE, url=f"http://h/{HOSTILE}", server=HOSTILE)
    result["command"].append(HOSTILE)
    for point in result["points"]:
        point["load"] += f" {HOSTILE}"
        point["trials"][0].update(valid=False, steady=False, drift=0.5, problems=[HOSTILE])
    target.write_text(json.dumps(result))
    return target


def with_many_samples(source, target):
    """One trial of a million samples, one of which is a thousand times as slow as the others."""
    result = json.loads(source.read_text())
    del result["points"][1:]
    point = result["points"][0]
    del point["trials"][1:]
    trial = point["trials"][0]
    latency = [10_000_000 + 1000 * (i % 997) for i in range(SAMPLES)]
    latency[654_321] = 10_000_000_000
    trial["samples"] = {"intended_ns": list(range(0, SAMPLES * 1000, 1000)), "latency_ns": latency, "outcome": ["answered"] * SAMPLES}
    trial["warm_up_seconds"] = 0
    target.write_text(json.dumps(result))
    return target


def recording_of(source, target):
    """A line each second from before the first trial to behind the last, as `muster monitor --out` writes them."""
    trials = [trial for point in json.loads(source.read_text())["points"] for trial in point["trials"]]
    begin = min(trial["started_at"] for trial in trials) - 2
    end = max(trial["started_at"] for trial in trials) + 6
    lines = []
    for second in range(int(end - begin)):
        device = {"name": "cuda:0", "kind": "cuda", "index": 0, "model": "H200", "up": True,
                  "readings": {"power_instant_watts": 90 + 200 * (second % 2)}, "health": []}
        lines.append(json.dumps({"time": begin + second, "machine": "here", "expected_gpus": 1, "devices": [device]}) + "\n")
    target.write_text("".join(lines))
    return target


def swept():
    """A folder of points: batch sizes by clients."""
    sweep = Sweep("bench-report-sweep")
    with running.null_server("--law", "deterministic", "--mean", "0.005") as url:
        sweep.write("b.yaml", f"backend: {{url: \"{url}\", model: \"null\", task: embed}}\n"
                              "scenario: {num_samples: 60, clients: [1, 4], input_shapes: {batch_size: [1, 2, 4]}}\n"
                              "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n")
        code, _, said = sweep.run("b.yaml")
    if code not in (0, running.LATE):
        raise RuntimeError(f"muster bench run ended with {code}: {said[-400:]}")
    return sweep.points


class Tags(html.parser.HTMLParser):
    """The tags of a page and their attributes that a browser would fetch or run; what stands in its text is none."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "link", "img", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        self.found += [name for name, _ in attrs if name in ("src", "href", "srcset", "xlink:href") or name.startswith("on")]


def written(report, what, out, *words):
    """Makes a report; the checks that need no browser."""
    out.unlink(missing_ok=True)
    code, printed, said = running.bench("report", *words, "-o", out)
    if code != 0:
        raise RuntimeError(f"muster bench report ended with {code}: {said[-400:]}")
    report.add(at_most(f"{what}: bytes", out.stat().st_size, BYTES_MOST, 0))
    text = out.read_text()
    tags = Tags()
    tags.feed(text)
    style = text[text.index("<style>"):text.index("</style>")]
    fetched = tags.found + [part for part in ("url(", "@import") if part in style]
    report.add(holds(f"{what}: nothing in it that a browser would fetch or run", not fetched and not printed, fetched or "nothing"))


def looked_at(report, page, what, file, shots):
    for width, height in SCREENS:
        backgrounds = set()
        for theme in ("light", "dark"):
            page.open(file, width, height, theme)
            seen = page.evaluate(LOOK)
            backgrounds.add(seen["background"])
            others = [url for url in page.requests() if url != file.resolve().as_uri()]
            is_well = (max(seen["scroll"], seen["body"]) <= width and not others and not page.complaints() and seen["scripts"] == 0 and
                       seen["images"] == 0 and seen["hostile"] == "undefined" and seen["plots"] > 0 and seen["untold"] == 0 and
                       seen["letters"] >= TEXT_HEIGHT_MIN and seen["cut"] == 0)
            report.add(holds(f"{what}, {width} px, {theme}", is_well, f"{seen} {others[:3]} {page.complaints()[:3]}",
                             "no wider than the screen, no request, no script; letters of plots whole and large enough"))
            page.screenshot(shots / f"{what}-{width}-{theme}.png")
        report.add(holds(f"{what}, {width} px: dark is dark", len(backgrounds) == 2, ", ".join(sorted(backgrounds))))
    page.open(file, 794, 1123, "dark", media="print")  # A4 at 96 dots an inch
    seen = page.evaluate(LOOK)
    report.add(holds(f"{what}, printed: on white, no wider than the paper", seen["background"] == "rgb(255, 255, 255)" and seen["scroll"] <= 794,
                     f"{seen['background']}, {seen['scroll']} px"))
    page.print_pdf(shots / f"{what}.pdf")


def measure(report, arguments):
    folder = scratch("bench-report")
    shutil.rmtree(folder, ignore_errors=True)
    shots = folder / "shots"
    shots.mkdir(parents=True)
    fast, slow = measured(folder, "fast.json", "0.002"), measured(folder, "slow.json", "0.006")
    power = recording_of(fast, folder / "power.jsonl")
    hostile = with_hostile_names(slow, folder / "hostile.json")
    many = with_many_samples(fast, folder / "many.json")
    reports = {"one": (fast, power), "compared": (fast, slow, hostile), "sweep": (swept(),), "many": (many,)}
    for what, words in reports.items():
        written(report, what, folder / f"{what}.html", *words)
    texts = {what: (folder / f"{what}.html").read_text() for what in reports}
    report.add(holds("the slowest of a million is named", "the largest latency is 10000 ms" in texts["many"], "yes"))
    report.add(holds("INVALID and NOT steady stand in large letters", 'class="alert"><bdi>' in texts["compared"] and "NOT steady: " in texts["compared"], "yes"))
    report.add(holds("the verdict of diff", "WORSE by" in texts["compared"], "yes"))
    report.add(holds("power with its phases", 'class="counted"' in texts["one"] and "Power over time" in texts["one"], "yes"))
    report.add(holds("the sweep by batch size", "Throughput by batch_size" in texts["sweep"], "yes"))
    with browser.Browser() as page:
        for what in reports:
            looked_at(report, page, what, folder / f"{what}.html", shots)
    print(f"  note  to be looked at: {shots}", flush=True)
