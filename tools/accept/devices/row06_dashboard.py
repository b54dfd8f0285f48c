"""The dashboard: each of its queries, asked of a real Prometheus that watches the stand-in fleet."""

import json
import time

from devices import fleet
from devices.prometheus_server import prometheus, skip_reason
from programs import ROOT
from report import holds

__all__ = ["TITLE", "IS_TIMED", "skip_reason", "measure"]
TITLE = "Every query of the dashboard through the real Prometheus API on the stand-in fleet; NVIDIA's 12239 with --compat dcgm"
IS_TIMED = False

DASHBOARD = ROOT / "packaging" / "grafana" / "muster.json"
KINDS = {"row", "stat", "table", "timeseries", "state-timeline", "heatmap"}
VARIABLES = {"$__rate_interval": "20s", "$__range": "1h", "$instance": ".*", "$gpu": ".*", "$intensity": "400", "$pue": "1.2"}
# A minute of data and more: the subquery of idle energy looks at whole minutes.
DATA_S = 75
# The queries of NVIDIA's dashboard for dcgm-exporter (grafana.com/grafana/dashboards/12239, revision 2).
NVIDIA_12239 = ['DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"}', 'avg(DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"})',
                'DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"}', 'sum(DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"})',
                'DCGM_FI_DEV_SM_CLOCK{instance=~".*", gpu=~".*"} * 1000000', 'DCGM_FI_DEV_GPU_UTIL{instance=~".*", gpu=~".*"}',
                'DCGM_FI_DEV_FB_USED{instance=~".*", gpu=~".*"}', 'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~".*", gpu=~".*"}']


def fleet_of_two():
    """Eight busy H200 with processes and an XID, and H100s of which two are cut into slices."""
    busy = {"model": "H200", "load": {"square": {"period": 8, "low": 0.2, "high": 1}},
            "processes": [{"pid": 999001, "memory_bytes": 40 << 30}], "throttle": [{"reason": "sw_power_cap", "period": 4, "duty": 0.5}]}
    first = fleet.scenario("dashboard-h200", [busy | {"xids": [{"at": 5, "xid": 79}]}, busy | {"count": 7}], nvlink="switch")
    slices = [{"profile": "1g.10gb", "load": 0.5}, {"profile": "2g.20gb", "load": 0.9}]
    second = fleet.scenario("dashboard-h100", [{"model": "H100-80G", "count": 2, "mig": slices}, {"model": "H100-80G", "count": 6}])
    return first, second


def queries():
    """(where, expression) of every panel and annotation, the variables replaced."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = [(f"{panel['title']} {target['refId']}", target["expr"])
             for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [(f"annotation {one['name']}", one["expr"]) for one in dashboard["annotations"]["list"]]
    for name, value in VARIABLES.items():
        found = [(where, expression.replace(name, value)) for where, expression in found]
    return dashboard, found


def ask_all(server, expressions):
    """How many series each expression has, or what Prometheus says of it."""
    answers = {}
    for where, expression in expressions:
        try:
            answers[where] = {"query": expression, "series": len(server.query(expression))}
        except Exception as error:  # urllib raises what Prometheus answers to a query that does not parse
            answers[where] = {"query": expression, "series": 0, "error": str(error)}
    return answers


def add_answers(report, what, answers):
    empty = [where for where, answer in answers.items() if not answer["series"]]
    report.raw[what] = answers
    report.add(holds(f"{what} that return data", answers and not empty,
                     f"{len(answers) - len(empty)} of {len(answers)}" + "".join(f", not {where}" for where in empty[:8]), "all"))


def measure(report, arguments):
    dashboard, expressions = queries()
    kinds = {panel["type"] for panel in dashboard["panels"]}
    report.add(holds("kinds of panels", kinds <= KINDS, ", ".join(sorted(kinds - {"row"})), "none that Grafana removed"))
    report.add(holds("schemaVersion", dashboard["schemaVersion"] >= 39, str(dashboard["schemaVersion"]), ">= 39"))
    text = DASHBOARD.read_text()
    crutches = [crutch for crutch in ("vector(", "__inputs", "${DS_") if crutch in text]
    report.add(holds("or vector(), __inputs, ${DS_…}", not crutches, ", ".join(crutches) or "none", "none"))

    first, second = fleet_of_two()
    with fleet.monitor(first, "--compat", "dcgm", name="h200") as busy, fleet.monitor(second, name="h100") as sliced, \
            prometheus([busy.address, sliced.address]) as server:
        time.sleep(DATA_S)
        add_answers(report, "queries of the dashboard", ask_all(server, expressions))
        add_answers(report, "queries of NVIDIA's dashboard 12239",
                    ask_all(server, [(expression.split("{")[0], expression) if "(" not in expression else (expression, expression)
                                     for expression in NVIDIA_12239]))
        slowest = server.query("max(scrape_duration_seconds)")
        report.raw["scrape_duration_s"] = slowest[0][1] if slowest else None
