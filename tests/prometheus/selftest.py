"""check_names.py finds what it is for: each test gives it one fault."""

import unittest

import check_names
from server_metrics import families, label_values

EXPORTED = check_names.Exported(
    {"muster_calls_refused_total": (["reason"], "counter"), "muster_call_duration_seconds": ([], "histogram")},
    {("muster_calls_refused_total", "reason"): ["queue", "limit"]}, {"muster_gpu_up"})
RULES = """
      - record: server:muster_calls:rate5m
        expr: sum without (reason) (rate(muster_calls_refused_total{reason="queue"}[5m]))
      - alert: Refused
        expr: server:muster_calls:rate5m > 1 or muster_gpu_up == 0
        labels: {severity: warning}
        annotations: {summary: "{{ $labels.instance }}", description: "See muster_server.rules.yml."}
"""
TESTS = """
  - name: Refused
      - {series: 'muster_calls_refused_total{reason="queue", instance="a", job="m"}', values: '1'}
      - eval_time: 1m
      - eval_time: 2m
        exp_alerts: []
"""


class Rules(unittest.TestCase):
    def faults(self, old="", new="", tests=TESTS):
        self.assertIn(old, RULES)
        return check_names.faults_in_rules(RULES.replace(old, new, 1) if old else RULES, tests, EXPORTED, True)

    def test_what_is_exported_passes(self):
        self.assertEqual(self.faults(), [])

    def test_a_metric_that_nothing_exports(self):
        self.assertEqual(self.faults("muster_gpu_up", "muster_gpu_upp"), ["no metric muster_gpu_upp"])

    def test_a_histogram_has_no_series_of_its_own_name(self):
        self.assertEqual(self.faults("muster_gpu_up", "muster_call_duration_seconds"), ["no metric muster_call_duration_seconds"])
        self.assertEqual(self.faults("muster_gpu_up", "muster_call_duration_seconds_bucket"), [])

    def test_a_series_that_nothing_records(self):
        self.assertEqual(self.faults("> 1", "> server:muster_calls:rate1h"), ["nothing records server:muster_calls:rate1h"])

    def test_a_label_that_the_metric_lacks(self):
        self.assertEqual(self.faults('reason="queue"', 'why="queue"'), ["muster_calls_refused_total has no label why"])

    def test_a_value_that_the_label_never_has(self):
        wrong = ["muster_calls_refused_total: reason is never queued"]
        self.assertEqual(self.faults('reason="queue"', 'reason="queued"'), wrong)
        self.assertEqual(self.faults('reason="queue"', 'reason=~"queue|limit|l.*"'), [])
        self.assertEqual(self.faults('reason="queue"', 'reason=~"limit|queued"'),
                         ["muster_calls_refused_total: reason is never limit|queued"])

    def test_a_label_that_no_series_has(self):
        self.assertEqual(self.faults("without (reason)", "without (why)"), ["no series has the label why"])
        self.assertEqual(self.faults("$labels.instance", "$labels.host"), ["no series has the label host"])

    def test_an_alert_without_a_severity_that_is_known(self):
        self.assertEqual(self.faults("severity: warning", "severity: page"),
                         ["Refused lacks a severity, a summary or a description"])

    def test_an_alert_without_a_test_of_both_kinds(self):
        wrong = ["no test in which Refused fires and is silent"]
        self.assertEqual(self.faults(tests=TESTS.replace("        exp_alerts: []\n", "")), wrong)
        self.assertEqual(self.faults(tests=TESTS.replace("      - eval_time: 1m\n", "")), wrong)
        self.assertEqual(self.faults(tests=""), wrong)

    def test_a_test_of_no_alert(self):
        self.assertEqual(self.faults(tests=TESTS + "  - name: Other\n"), ["a test of Other, which is no alert"])

    def test_a_series_of_a_test_that_the_server_would_not_write(self):
        self.assertEqual(self.faults(tests=TESTS.replace('reason="queue", ', "")),
                         ["muster_calls_refused_total has the labels instance, job, reason, not instance, job"])


class Dashboards(unittest.TestCase):
    def test_panels_annotations_and_variables_are_looked_at(self):
        wrong = {"panels": [{}, {"targets": [{"expr": "muster_a"}]}], "annotations": {"list": [{"expr": "muster_b"}]},
                 "templating": {"list": [{"type": "query", "query": {"query": "label_values(muster_c, instance)"}}]}}
        self.assertEqual(check_names.faults_in_dashboard(wrong, EXPORTED, True),
                         ["no metric muster_a", "no metric muster_b", "no metric muster_c"])


class Panels(unittest.TestCase):
    def faults(self, *queries, shown_otherwise=()):
        dashboard = {"panels": [{"targets": [{"expr": query} for query in queries]}], "annotations": {"list": []},
                     "templating": {"list": []}}
        return check_names.unshown_metrics(dashboard, EXPORTED, shown_otherwise)

    def test_a_family_that_no_panel_shows(self):
        missing = ["no panel shows muster_call_duration_seconds"]
        self.assertEqual(self.faults("rate(muster_calls_refused_total[5m])"), missing)
        self.assertEqual(self.faults("muster_calls_refused_total", shown_otherwise=["muster_call_duration_seconds"]), [])

    def test_a_part_of_a_histogram_shows_it(self):
        self.assertEqual(self.faults("muster_calls_refused_total", "rate(muster_call_duration_seconds_bucket[5m])"), [])


class Sources(unittest.TestCase):
    """What is read out of documents and sources is what a look at them gives."""

    def test_families(self):
        found = families()
        self.assertEqual(found["muster_http_requests_total"], (["route", "method", "status"], "counter"))
        self.assertEqual(found["muster_ready"], ([], "gauge"))
        self.assertEqual(found["muster_call_duration_seconds"], ([], "histogram"))

    def test_values_of_labels(self):
        values = label_values()
        self.assertEqual(values["muster_calls_refused_total", "reason"], ["queue", "limit"])
        self.assertEqual(values["muster_audit_lines_total", "outcome"], ["written", "lost"])
        self.assertIn("given up", values["muster_device_state", "state"])
        self.assertIn("failed", values["muster_model_state", "state"])
        self.assertIn("/v1/embeddings", values["muster_http_requests_total", "route"])
        self.assertEqual(values["muster_call_duration_seconds", "le"][0], "0.001")

    def test_every_label_with_fixed_values_has_them(self):
        free = {"status", "model", "device"}
        lacking = [(name, label) for name, (labels, _) in families().items() for label in labels
                   if label not in free and (name, label) not in label_values()]
        self.assertEqual(lacking, [])


if __name__ == "__main__":
    unittest.main()
