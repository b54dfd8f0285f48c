"""The dashboard of `muster serve`: the metrics in docs/server-metrics.md.

What is wrong comes first; the other rows follow a request: in at the door, through the queue, to a device, and what is kept of
it. Requests are those with POST where a share is meant: calls for computation. Probes with GET would thin it out.
"""

from panels import GREEN, HOST, ORANGE, RED, annotation, dashboard_of, label_variable, panel

POST = HOST + ',method="POST"'
DEVICE = HOST + ',device=~"$device"'
MODEL = HOST + ',model=~"$model"'
DEVICE_ALONE = 'device=~"$device"'
ONE = "{{instance}} {{device}}"
RATE = "[$__rate_interval]"
STATES = {"0": ("ready", GREEN), "1": ("drained", "blue"), "2": ("starting", ORANGE), "3": ("not fit", RED)}
MODEL_STATES = {"0": ("ready", GREEN), "1": ("drained", "blue"), "2": ("loading", ORANGE), "3": ("failed", RED)}
# Of --queue-budget, where it is not set: what is predicted above it is refused.
QUEUE_BUDGET_S = 2


def of_states(metric, by, *groups):
    """One series for each `by` whose value is the number of the group that its state is in."""
    return " or ".join(f'max by (instance, {by}) ({metric},state=~"{states}"}} * {number})'
                       for number, states in enumerate(groups))


def share_of(part, whole):
    """How much of the rate of `whole` is `part`, over all servers."""
    return f"sum(rate({part}{RATE})) / sum(rate({whole}{RATE}))"


def quantile(q, metric, *by):
    return f"histogram_quantile({q}, sum by ({', '.join([*by, 'le'])}) (rate({metric}{RATE})))"


def rate_by(labels, metric):
    return f"sum by ({labels}) (rate({metric}{RATE}))"


def wrong():
    total = "muster_http_requests_total"
    state = f"muster_device_state{{{DEVICE}"
    return [
        panel("Servers that take requests", "stat", [(f"sum(muster_ready{{{HOST}}})", "ready"),
                                                     (f"count(muster_ready{{{HOST}}})", "of")], width=5, height=4),
        # Zero, and not nothing, where none is ready.
        panel("Devices that work", "stat", [(f'sum({state},state="ready"}} or {state},state!="ready"}} * 0)', "ready"),
                                            (f'count({state},state!="idle"}})', "of")], width=5, height=4),
        panel("Requests that fail", "stat",
              [(share_of(f'{total}{{{POST},status=~"5..",status!="503"}}', f"{total}{{{POST}}}"), "")], "percentunit", 4, 4,
              steps=[(None, GREEN), (0.006, ORANGE), (0.0144, RED)], help="5xx without 503. Empty before the first one."),
        panel("Told to come again", "stat",
              [(share_of(f'{total}{{{POST},status=~"429|503"}}', f"{total}{{{POST}}}"), "")], "percentunit", 4, 4,
              steps=[(None, GREEN), (0.05, ORANGE)], help="429 and 503. Empty before the first one."),
        panel("Longest queue", "stat", [(f"max(muster_queue_drain_seconds{{{HOST}}})", "")], "s", 3, 4,
              steps=[(None, GREEN), (0.75 * QUEUE_BUDGET_S, ORANGE), (QUEUE_BUDGET_S, RED)]),
        panel("Youngest server", "stat", [(f"min(time() - muster_start_time_seconds{{{HOST}}})", "")], "s", 3, 4,
              help="How long ago it was started."),
        # That no server is left has no instance: the alerts go by their names.
        panel("Alerts that fire", "table", [('ALERTS{alertstate="firing",alertname=~"MusterServer.*"}', "")], width=24,
              hidden=("alertstate", "Value")),
    ]


def requests():
    total = "muster_http_requests_total"
    seconds = "muster_http_request_duration_seconds_bucket"
    calls = f"muster_call_duration_seconds_bucket{{{HOST}}}"
    return [
        panel("Requests a second, by status", "timeseries", [(rate_by("status", f"{total}{{{HOST}}}"), "{{status}}")], "reqps",
              stack=True),
        panel("Requests a second, by route", "timeseries",
              [(rate_by("route, method", f"{total}{{{HOST}}}"), "{{method}} {{route}}")], "reqps", stack=True),
        panel("Requests that fail", "timeseries",
              [(rate_by("instance, route, status", f'{total}{{{HOST},status=~"5.."}}'), "{{instance}} {{route}} {{status}}")],
              "reqps", help="GET /readyz and /health answer 503 by design while something is not ready."),
        panel("Calls: time to the answer", "timeseries", [(quantile(q, calls), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)], "s",
              help="Of calls that were answered. The highest bound is 30 s."),
        panel("Median by route", "timeseries", [(quantile(0.5, f"{seconds}{{{POST}}}", "route"), "{{route}}")], "s"),
        panel("99th percentile by route", "timeseries", [(quantile(0.99, f"{seconds}{{{POST}}}", "route"), "{{route}}")], "s"),
        panel("Refused, by reason", "timeseries",
              [(rate_by("reason", f"muster_calls_refused_total{{{HOST}}}"), "{{reason}}: 429"),
               (f"sum(rate(muster_http_memory_refusals_total{{{HOST}}}{RATE}))", "memory: 503"),
               (f'sum(rate(muster_http_connection_ends_total{{{HOST},reason="too_many"}}{RATE}))', "connections"),
               (rate_by("status", f'{total}{{{HOST},status=~"401|403"}}'), "key: {{status}}")], "reqps",
              help="queue: the server has too much work. limit: the caller's own. connections: too many, or no descriptor left."),
        panel("Calls without an answer", "timeseries", [(rate_by("reason", f"muster_calls_ended_total{{{HOST}}}"), "{{reason}}")],
              "reqps", help="Of those that were let in."),
        panel("Requests without a route", "timeseries",
              [(rate_by("status", f"muster_http_stray_requests_total{{{HOST}}}"), "{{status}}")], "reqps",
              help="Nothing has that path, or they could not be read."),
    ]


def queue():
    return [
        panel("Time until all that waits and runs is done", "timeseries",
              [(f"muster_queue_drain_seconds{{{HOST}}}", "{{instance}}")], "s", steps=[(None, GREEN), (QUEUE_BUDGET_S, RED)],
              help="As predicted. The line is the queue_budget where it is not set."),
        panel("Texts that wait", "timeseries", [(f"muster_queue_texts{{{HOST}}}", "{{instance}}")]),
        panel("Tokens that wait", "timeseries", [(f"muster_queue_tokens{{{HOST}}}", "{{instance}}")]),
        panel("Calls in flight", "timeseries", [(f"muster_calls_waiting{{{HOST}}}", "{{instance}}")],
              help="Let in and not yet answered."),
        panel("Texts with a device", "timeseries", [(f"muster_device_in_flight_texts{{{DEVICE}}}", ONE)]),
        panel("Tokens with a device", "timeseries", [(f"muster_device_in_flight_tokens{{{DEVICE}}}", ONE)]),
    ]


def work():
    tokens = f"rate(muster_device_tokens_total{{{DEVICE}}}{RATE})"
    return [
        panel("Tokens a second, answered", "timeseries",
              [(rate_by("instance", f"muster_tokens_total{{{HOST}}}"), "{{instance}}")], help="Cached ones included."),
        panel("Tokens a second, by model", "timeseries",
              [(rate_by("model", f"muster_model_tokens_total{{{MODEL}}}"), "{{model}}")], stack=True),
        panel("Tokens a second, by device", "timeseries", [(tokens, ONE)], stack=True,
              help="Computed, canaries and repeats included."),
        panel("Texts a second", "timeseries",
              [(f"sum(rate(muster_texts_total{{{HOST}}}{RATE}))", "answered"),
               (f"sum(rate(muster_device_texts_total{{{DEVICE}}}{RATE}))", "computed"),
               (f"sum(rate(muster_texts_shared_total{{{HOST}}}{RATE}))", "shared one in flight")]),
        panel("Calls a second, by model", "timeseries", [(rate_by("model", f"muster_model_calls_total{{{MODEL}}}"), "{{model}}")],
              "reqps", stack=True),
        panel("Texts a second, by model", "timeseries", [(rate_by("model", f"muster_model_texts_total{{{MODEL}}}"), "{{model}}")],
              stack=True),
        panel("Time in the engine", "timeseries", [(f"rate(muster_device_engine_seconds_total{{{DEVICE}}}{RATE})", ONE)],
              "percentunit", share=True, help="1: the device always computes. Low while texts wait: it waits for its input."),
        panel("Tokens of a batch", "timeseries", [(f"{tokens} / rate(muster_device_batches_total{{{DEVICE}}}{RATE})", ONE)]),
        panel("Measured speed, tokens a second", "timeseries", [(f"muster_device_tokens_per_second{{{DEVICE}}}", ONE)],
              help="While it computes; what predictions go by."),
    ]


def replies():
    """Of decoders. Requests may ask for several replies; tokens are those of replies unless it is said."""
    ended = f"muster_generation_ended_total{{{HOST}}}"
    hits, queries = (f"muster_prefix_cache_{what}_total{{{HOST}}}" for what in ("hits", "queries"))
    by_model = {what: rate_by("model", f"muster_generation_model_{what}_total{{{MODEL}}}")
                for what in ("requests", "prompt_tokens", "tokens")}
    state = of_states(f"muster_generation_worker_state{{{MODEL},{DEVICE_ALONE}", "model, device", "ready",
                      "draining|drained|idle", "starting|restarting", "quarantined|given up")
    return [
        panel("Requests for replies a second", "timeseries",
              [(f"sum(rate(muster_generation_requests_total{{{HOST}}}{RATE}))", "let in"),
               (rate_by("reason", f"muster_generation_refused_total{{{HOST}}}"), "{{reason}}: 429")], "reqps"),
        panel("Replies ended a second, by reason", "timeseries", [(rate_by("reason", ended), "{{reason}}")], stack=True,
              help="stop: a token or text that ends a reply. cancelled: the client went."),
        panel("Replies at once", "timeseries", [(f"muster_generation_running{{{HOST}}}", "{{instance}} with a device"),
                                                (f"muster_generation_waiting{{{HOST}}}", "{{instance}} waiting")]),
        *(panel(title, "timeseries",
                [(quantile(q, f"muster_generation_{what}_seconds_bucket{{{HOST}}}"), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)],
                "s", help=help)
          for title, what, help in (("Time to the first token", "first_token", "From asking; waiting included."),
                                    ("Time between two tokens", "token", ""),
                                    ("Time to the end of a reply", "duration", "Of replies that came to their end."))),
        panel("Tokens a second", "timeseries",
              [(f"sum(rate(muster_generation_tokens_total{{{HOST}}}{RATE}))", "of replies"),
               (f"sum(rate(muster_generation_prompt_tokens_total{{{HOST}}}{RATE}))", "of prompts"),
               (f"sum(rate({hits}{RATE}))", "not computed: in a prefix cache")]),
        panel("Found in prefix caches", "timeseries",
              [(f"sum by (instance) (rate({hits}{RATE})) / sum by (instance) (rate({queries}{RATE}))", "{{instance}}")],
              "percentunit", share=True, help="Of the tokens looked up as replies begin; they are not computed again."),
        panel("Requests a second, by model", "timeseries", [(by_model["requests"], "{{model}}")], "reqps", stack=True),
        panel("Tokens of replies a second, by model", "timeseries", [(by_model["tokens"], "{{model}}")], stack=True),
        panel("Tokens of prompts a second, by model", "timeseries", [(by_model["prompt_tokens"], "{{model}}")], stack=True),
        panel("Replies with a worker", "timeseries",
              [(f"muster_generation_worker_running{{{MODEL},{DEVICE_ALONE}}}", "{{instance}} {{device}} {{model}}")]),
        panel("Keys and values held", "timeseries",
              [(f"muster_generation_worker_kv_cache_usage_ratio{{{MODEL},{DEVICE_ALONE}}}", "{{instance}} {{device}} {{model}}")],
              "percentunit", share=True, help="Of each worker's cache, what its replies hold."),
        panel("Times that replies gave way", "timeseries",
              [(f"increase(muster_generation_worker_preemptions_total{{{MODEL},{DEVICE_ALONE}}}[10m])", "{{instance}} {{device}} {{model}}")],
              help="Within ten minutes: their keys and values are computed again."),
        panel("Tokens guessed ahead a second", "timeseries",
              [(rate_by("instance", f"muster_generation_worker_draft_tokens_total{{{MODEL},{DEVICE_ALONE}}}"), "{{instance}} guessed"),
               (rate_by("instance", f"muster_generation_worker_accepted_tokens_total{{{MODEL},{DEVICE_ALONE}}}"), "{{instance}} came true")],
              help="num_speculative_tokens: where few come true, guessing has cost time."),
        panel("Workers of decoders", "state-timeline", [(state, "{{instance}} {{device}} {{model}}")], width=16, names=STATES),
    ]


def searches():
    return [
        panel("Searches a second", "timeseries",
              [(f"sum(rate(muster_searches_total{{{HOST}}}{RATE}))", "begun"),
               (f"sum(rate(muster_searches_refused_total{{{HOST}}}{RATE}))", "refused")], "reqps"),
        panel("Time in searches", "timeseries", [(f"rate(muster_search_seconds_total{{{HOST}}}{RATE})", "{{instance}}")],
              "percentunit", share=True, help="1: the thread that searches is always busy."),
        panel("Time until all searches are done", "timeseries",
              [(f"muster_search_backlog_seconds{{{HOST}}}", "{{instance}}")], "s", help="As predicted."),
    ]


def devices():
    state = of_states(f"muster_device_state{{{DEVICE}", "device", "ready", "draining|drained|idle", "starting|restarting",
                      "quarantined|given up")
    model = of_states(f"muster_model_state{{{MODEL}", "model", "ready", "drained|absent", "loading", "failed")
    on_device = of_states(f"muster_device_model_state{{{MODEL},{DEVICE_ALONE}", "device, model", "ready", "drained|absent", "loading",
                          "failed")
    return [
        panel("Devices", "state-timeline", [(state, ONE)], names=STATES),
        panel("Models", "state-timeline", [(model, "{{instance}} {{model}}")], names=MODEL_STATES),
        panel("Models on devices", "state-timeline", [(on_device, "{{instance}} {{device}} {{model}}")], names=MODEL_STATES),
        panel("Workers started again", "timeseries", [(f"increase(muster_device_restarts_total{{{DEVICE}}}[10m])", ONE)],
              help="Within ten minutes."),
        panel("Decoder workers started again", "timeseries",
              [(f"increase(muster_generation_worker_restarts_total{{{DEVICE}}}[10m])", "{{instance}} {{device}} {{model}}")],
              help="Within ten minutes."),
        panel("Put aside", "timeseries", [(f"increase(muster_device_quarantines_total{{{DEVICE}}}[10m])", ONE)],
              help="Within ten minutes: it hung, was far too slow, or gave a wrong vector."),
        panel("Batches that did not come back", "timeseries",
              [(f"increase(muster_device_failed_batches_total{{{DEVICE}}}[10m])", ONE)], help="Within ten minutes."),
        panel("Tokens that a batch may have", "timeseries", [(f"muster_device_batch_tokens_limit{{{DEVICE}}}", ONE)],
              help="Lower for a while after an out-of-memory."),
        panel("Last canary", "timeseries", [(f"muster_device_canary_seconds{{{DEVICE}}}", ONE)], "s"),
    ]


def cache():
    lookups = f"muster_cache_lookups_total{{{HOST}"
    return [
        panel("Hit ratio", "timeseries",
              [(f'sum by (instance) (rate({lookups},result="hit"}}{RATE})) / sum by (instance) (rate({lookups}}}{RATE}))',
                "{{instance}}")], "percentunit", share=True),
        panel("Size", "timeseries", [(f"muster_cache_size_bytes{{{HOST}}}", "{{instance}}")], "bytes"),
        panel("Vectors", "timeseries", [(f"muster_cache_entries{{{HOST}}}", "{{instance}}")]),
        panel("Look-ups a second", "timeseries", [(rate_by("result", f"{lookups}}}"), "{{result}}")], stack=True),
        panel("Thrown out a second", "timeseries", [(rate_by("reason", f"muster_cache_removals_total{{{HOST}}}"), "{{reason}}")]),
        panel("The file has what memory has", "state-timeline", [(f"muster_cache_file_ok{{{HOST}}}", "{{instance}}")],
              names={"0": ("behind", RED), "1": ("yes", GREEN)}),
    ]


def door():
    memory = f"muster_http_memory_bytes{{{HOST}}}"
    return [
        panel("Connections", "timeseries", [(f"muster_http_connections{{{HOST}}}", "{{instance}}")]),
        panel("Connections accepted a second", "timeseries",
              [(f"rate(muster_http_connections_total{{{HOST}}}{RATE})", "{{instance}}")], "cps"),
        panel("Connections refused or cut off", "timeseries",
              [(rate_by("reason", f"muster_http_connection_ends_total{{{HOST}}}"), "{{reason}}")], "cps"),
        panel("Held for clients", "timeseries", [(memory, "{{instance}}"),
                                                 (f"muster_http_memory_limit_bytes{{{HOST}}}", "{{instance}} limit")], "bytes"),
        panel("Share of memory_most", "timeseries", [(f"{memory} / muster_http_memory_limit_bytes{{{HOST}}}", "{{instance}}")],
              "percentunit", share=True, steps=[(None, GREEN), (0.9, ORANGE)]),
        panel("Refused or cut off for memory", "timeseries",
              [(f"sum(rate(muster_http_memory_refusals_total{{{HOST}}}{RATE}))", "refused"),
               (f"sum(rate(muster_http_memory_evictions_total{{{HOST}}}{RATE}))", "slow clients cut off")], "reqps"),
    ]


def records():
    return [
        panel("Audit lines a second", "timeseries", [(rate_by("outcome", f"muster_audit_lines_total{{{HOST}}}"), "{{outcome}}")]),
        panel("The audit log is written", "state-timeline", [(f"muster_audit_failing{{{HOST}}}", "{{instance}}")],
              names={"0": ("yes", GREEN), "1": ("lines are lost", RED)}),
        panel("Lost in ten minutes", "timeseries",
              [(f'increase(muster_audit_lines_total{{{HOST},outcome="lost"}}[10m])', "{{instance}} audit lines"),
               (f"increase(muster_log_lost_lines_total{{{HOST}}}[10m])", "{{instance}} log lines"),
               (f"increase(muster_cache_file_failures_total{{{HOST}}}[10m])", "{{instance}} writes of the cache file")]),
    ]


ROWS = [("What is wrong", wrong), ("Requests", requests), ("Queue", queue), ("Work", work), ("Replies", replies),
        ("Searches", searches), ("Devices and models", devices), ("Cache", cache), ("Connections and memory", door), ("Logs", records)]


def dashboard():
    return dashboard_of(
        "muster-server", "muster: server", ["muster"], ROWS,
        annotations=[
            annotation("Starts", f"muster_start_time_seconds{{{HOST}}} * 1000", "blue", useValueForTime=True, step="60s",
                       titleFormat="started", textFormat="{{instance}}"),
            annotation("Alerts", 'ALERTS{alertstate="firing",alertname=~"MusterServer.*"}', "orange", titleFormat="{{alertname}}",
                       textFormat="{{instance}} {{device}}{{model}}")],
        variables=[
            label_variable("instance", "Server", "label_values(muster_start_time_seconds, instance)"),
            label_variable("device", "Device", 'label_values(muster_device_state{instance=~"$instance"}, device)'),
            label_variable("model", "Model", 'label_values(muster_model_state{instance=~"$instance"}, model)')])
