"""What `muster serve` exports, read where it is written down: docs/server-metrics.md, which a test of the program holds to its
own table (src/server/openapi_test.cpp), and the labels' values in the sources that write them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(muster_\w+)` \| (?:`([^`]*)`|–) \| (\w+) \|", re.MULTILINE)
# Names of the devices' metrics: their labels are left to devices.6 of ./accept.
DEVICE_ROW = re.compile(r"^\| `(muster_\w+)` \|", re.MULTILINE)
PARTS_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")


def source(path):
    return (ROOT / path).read_text()


def names_returned_by(function, path):
    """The strings that a C++ function of a switch returns, but for its "?"."""
    body = re.search(rf"\b{function}\(.*?\n}}", source(path), re.DOTALL)
    return [name for name in re.findall(r'return "([^"]+)"', body.group(0)) if name != "?"]


def label_values():
    """{(metric, label): values} for the labels that have a fixed set of them."""
    writer = source("src/server/service_metrics.cpp")
    values = {}
    for block in re.split(r"\bbegin\(", writer)[1:]:
        metric = re.match(r'text, "(\w+)"', block)
        for label, value in re.findall(r'\blabel\("(\w+)", "([^"]+)"\)', block):
            values.setdefault((f"muster_{metric.group(1)}", label), []).append(value)
    states = "src/coordinator/fleet_view.cpp"
    values["muster_device_state", "state"] = names_returned_by("group_state_name", states)
    values["muster_model_state", "state"] = names_returned_by("model_state_name", states)
    values["muster_device_model_state", "state"] = values["muster_model_state", "state"]
    values["muster_generation_worker_state", "state"] = values["muster_device_state", "state"]
    routes = re.findall(r'\bRoute\{\s*"([A-Z]+)",\s*"([^"]+)"', source("src/server/routes.cpp"))
    for metric in ("muster_http_requests_total", "muster_http_request_duration_seconds"):
        values[metric, "route"] = sorted({path for _, path in routes})
        values[metric, "method"] = sorted({method for method, _ in routes})
    bounds = re.search(r"kBounds\{([^}]*)\}", source("src/serving/inference_service.h")).group(1)
    for metric in (name for name, (_, kind) in families().items() if kind == "histogram"):
        values[metric, "le"] = [f"{float(bound):g}" for bound in bounds.split(",")] + ["+Inf"]
    return values


def families():
    """{name: (labels, type)} of the server."""
    return {name: ([label.strip() for label in labels.split(",")] if labels else [], kind)
            for name, labels, kind in ROW.findall(source("docs/server-metrics.md"))}


def series(families):
    """{name of a series: (its family, its labels)}: a histogram has three."""
    found = {}
    for name, (labels, kind) in families.items():
        if kind != "histogram":
            found[name] = (name, labels)
            continue
        for part in PARTS_OF_A_HISTOGRAM:
            found[name + part] = (name, labels + ["le"] if part == "_bucket" else labels)
    return found


def device_names():
    """Names of the series in docs/metrics.md, those of histograms in their parts too."""
    text = source("docs/metrics.md")
    names = set(DEVICE_ROW.findall(text))
    histograms = re.findall(r"^\| `(muster_\w+)` \|[^|]*\| histogram \|", text, re.MULTILINE)
    return names | {name + part for name in histograms for part in PARTS_OF_A_HISTOGRAM}
