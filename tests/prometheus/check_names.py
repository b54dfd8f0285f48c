"""Alert rules, their tests and dashboards name only what is exported: metrics, labels and values of labels. Every alert has a
summary, a description, a severity, and tests in which it fires and is silent."""

import json
import re
import sys

from server_metrics import ROOT, device_names, families, label_values, series

FOLDER = ROOT / "packaging"
RULES = ("muster", "muster_server")
DASHBOARDS = ("muster.json", "muster_server.json")
# Families that need no panel of their own, and why.
SHOWN_OTHERWISE = {"muster_calls_total": "by model"}
# What Prometheus adds, and what aggregation and joins of the devices' metrics may name.
ADDED = {"instance", "job"}
SEVERITIES = {"critical", "warning", "info"}
# Not the middle of a recorded series, nor the beginning of a file's name.
METRIC = re.compile(r"(?<![\w:])muster_\w+(?![\w:]|\.\w)")
RECORDED = re.compile(r"\b[a-z]+:muster_\w+:\w+")
SELECTOR = re.compile(r"(?<![\w:])(muster_\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')
GROUPING = re.compile(r"\b(?:by|without|ignoring|on|group_left) \(([^)]*)\)")


class Exported:
    """What may be named."""

    def __init__(self, families, values, device_names):
        self.series = series(families)
        self.values = values
        self.names = set(self.series) | device_names
        self.labels = ADDED | {label for _, labels in self.series.values() for label in labels}


def unknown_metrics(text, exported):
    return [f"no metric {name}" for name in sorted(set(METRIC.findall(text)) - exported.names)]


def unknown_records(text, recorded):
    return [f"nothing records {name}" for name in sorted(set(RECORDED.findall(text)) - recorded)]


def wrong_matchers(text, exported):
    """Matchers of the server's series whose label it lacks, or whose value it never has."""
    faults = []
    for name, matchers in SELECTOR.findall(text):
        if name not in exported.series:
            continue
        family, labels = exported.series[name]
        for label, operator, value in MATCHER.findall(matchers):
            if label not in ADDED and label not in labels:
                faults.append(f"{name} has no label {label}")
                continue
            known = exported.values.get((family, label))
            if known is None or "$" in value:
                continue
            for one in value.split("|") if "~" in operator else [re.escape(value)]:
                if not any(re.fullmatch(one, whole) for whole in known):
                    faults.append(f"{name}: {label} is never {value}")
    return faults


def unknown_labels(text, exported):
    """Labels of the server's aggregations, joins and sentences."""
    named = {label.strip() for inside in GROUPING.findall(text) for label in inside.split(",") if label.strip()}
    named |= set(re.findall(r"\$labels\.(\w+)", text))
    return [f"no series has the label {label}" for label in sorted(named - exported.labels)]


def series_with_other_labels(text, exported):
    """Input series of tests must be as the server writes them: all labels, and no more."""
    faults = []
    for name, matchers in SELECTOR.findall("\n".join(re.findall(r"series: '([^']*)'", text))):
        if name not in exported.series:
            continue
        given, wanted = {label for label, _, _ in MATCHER.findall(matchers)}, set(exported.series[name][1]) | ADDED
        if given != wanted:
            faults.append(f"{name} has the labels {', '.join(sorted(wanted))}, not {', '.join(sorted(given))}")
    return faults


def parts(text, beginning):
    """{name: what follows} of a list whose entries begin so."""
    found = re.split(rf"^ *- {beginning}: (\w+)\b.*$", text, flags=re.MULTILINE)
    merged = {}
    for name, body in zip(found[1::2], found[2::2]):
        merged[name] = merged.get(name, "") + body
    return merged


def wanting_alerts(rules, tests):
    faults = []
    tested = parts(tests, "name")
    for name, body in parts(rules, "alert").items():
        severity = re.search(r"severity: (\w+)", body)
        if not severity or severity.group(1) not in SEVERITIES or "summary: " not in body or "description: " not in body:
            faults.append(f"{name} lacks a severity, a summary or a description")
        looks = re.split(r"eval_time:", tested.get(name, ""))[1:]
        if not any("exp_alerts" in look for look in looks) or all("exp_alerts" in look for look in looks):
            faults.append(f"no test in which {name} fires and is silent")
    faults += [f"a test of {name}, which is no alert" for name in sorted(tested.keys() - parts(rules, "alert").keys())]
    return faults


def without_comments(text):
    return re.sub(r"(?m)^\s*#.*$", "", text)


def faults_in_rules(rules, tests, exported, is_of_server):
    recorded = set(re.findall(r"record: (\S+)", rules))
    faults = wanting_alerts(rules, tests)
    for text in (rules, tests):
        faults += unknown_metrics(text, exported) + unknown_records(text, recorded) + wrong_matchers(text, exported)
    if is_of_server:
        faults += unknown_labels(rules, exported) + series_with_other_labels(tests, exported)
    return faults


def expressions(dashboard):
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [one["expr"] for one in dashboard["annotations"]["list"]]
    return found + [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]


def faults_in_dashboard(dashboard, exported, is_of_server):
    text = "\n".join(expressions(dashboard))
    faults = unknown_metrics(text, exported) + wrong_matchers(text, exported)
    return faults + unknown_labels(text, exported) if is_of_server else faults


def unshown_metrics(dashboard, exported, shown_otherwise):
    """Families of which no panel shows a series."""
    named = METRIC.findall("\n".join(expressions(dashboard)))
    shown = {exported.series[name][0] for name in named if name in exported.series} | set(shown_otherwise)
    return [f"no panel shows {family}" for family in sorted({family for family, _ in exported.series.values()} - shown)]


def main():
    exported = Exported(families(), label_values(), device_names())
    faults = []
    for name in RULES:
        rules = (FOLDER / "prometheus" / f"{name}.rules.yml").read_text()
        tests = "\n".join(file.read_text() for file in sorted((FOLDER / "prometheus").glob(f"{name}.*test.yml")))
        found = faults_in_rules(without_comments(rules), without_comments(tests), exported, name == "muster_server")
        faults += [f"{name}.rules.yml: {fault}" for fault in found]
    for name in DASHBOARDS:
        dashboard = json.loads((FOLDER / "grafana" / name).read_text())
        is_of_server = name == "muster_server.json"
        found = faults_in_dashboard(dashboard, exported, is_of_server)
        found += unshown_metrics(dashboard, exported, SHOWN_OTHERWISE) if is_of_server else []
        faults += [f"{name}: {fault}" for fault in found]
    print("\n".join(faults) if faults else "rules and dashboards name what is exported")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
