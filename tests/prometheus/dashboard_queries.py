"""Each query of the server's dashboard has an answer: promtool asks it of a server with every series that one can have.

    dashboard_queries.py PROMTOOL

devices.6 of ./accept asks the queries of the devices' dashboard of a real Prometheus.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from check_names import expressions
from server_metrics import ROOT, families, label_values, series

VARIABLES = {"$__rate_interval": "5m", "$instance": ".*", "$device": ".*", "$model": ".*"}
# Labels whose values the server takes from elsewhere, and routes enough: one for calls, one for probes.
FREE = {"status": ["200", "401", "429", "500", "503"], "model": ["m"], "device": ["cpu:0", "cpu:1"]}
ROUTES = {"route": ["/v1/embeddings", "/readyz"]}
FIRING = 'ALERTS{alertname="MusterServerDown", alertstate="firing", instance="a:8000", job="muster-server"}'


def input_series():
    """All series of one server; each rises by one a second, so that shares are numbers and no start lies ahead."""
    values = label_values()
    lines = [FIRING]
    for name, (family, labels) in series(families()).items():
        choices = [ROUTES.get(label) or values.get((family, label)) or FREE[label] for label in labels]
        for chosen in itertools.product(*choices):
            pairs = [*zip(labels, chosen), ("instance", "a:8000"), ("job", "muster-server")]
            lines.append(name + "{" + ", ".join(f'{label}="{value}"' for label, value in pairs) + "}")
    return [{"series": line, "values": "0+60x15"} for line in lines]


def queries():
    """Those of panels and annotations; variables ask for labels and are no expressions."""
    dashboard = json.loads((ROOT / "packaging" / "grafana" / "muster_server.json").read_text())
    for expression in expressions(dashboard):
        if expression.startswith("label_values("):
            continue
        for name, value in VARIABLES.items():
            expression = expression.replace(name, value)
        yield expression


def main():
    # `>= 0` leaves out what is no number.
    asked = [{"expr": f"count(({expression}) >= 0) > bool 0", "eval_time": "15m", "exp_samples": [{"labels": "{}", "value": 1}]}
             for expression in queries()]
    test = {"rule_files": [], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": input_series(), "promql_expr_test": asked}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "queries.yml"
        path.write_text(json.dumps(test))
        done = subprocess.run([sys.argv[1], "test", "rules", str(path)], capture_output=True, text=True)
    print(f"{len(asked)} queries\n{done.stdout}{done.stderr}".strip())
    sys.exit(0 if asked and done.returncode == 0 else 1)


if __name__ == "__main__":
    main()
