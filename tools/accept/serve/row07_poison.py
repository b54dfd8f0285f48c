"""A text that kills every worker that computes it."""

import json

from programs import MODEL
from report import at_most, holds
from serve.running import serving
from serve.watching import FAULTY_WORKER, Watch, asking, right_answers, texts

TITLE = "a request that kills any worker, among good ones"
IS_TIMED = False

IN_FLIGHT, TEXTS, LOST, AFTERWARDS = 64, 1000, 2, 5000
WORD = "zebra"


def skip_reason():
    return None if FAULTY_WORKER.exists() else "muster-worker-faulty is not built (./test builds it)"


def deadly_token():
    """The id of WORD, which a server without faults tells."""
    with serving(MODEL, "--devices", "1xcpu", "--worker-program", FAULTY_WORKER, name="poison-token") as server:
        ids = json.loads(server.call("POST", "/v1/tokenize", {"input": WORD})[1])["data"][0]["ids"]
        assert len(ids) == 3, ids  # [CLS] zebra [SEP]
        return ids[1]


def measure(report, arguments):
    lines = texts(TEXTS, without=WORD)
    faults = {name: {"abort_on_token": deadly_token(), "batch_us_per_token": 20} for name in ("cpu:0", "cpu:1")}
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--queue-budget", "60s", "--worker-program", FAULTY_WORKER,
                 environment={"FAULTY_WORKER": json.dumps(faults)}, name="poison") as server:
        known, watch = right_answers(server, lines), Watch(server)
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            before = watch.until_serving()
            status, body = server.call("POST", "/v1/embeddings", {"model": "", "input": f"a {WORD} in the street"}, timeout_s=90)
            served = sum(device["text_count"] for device in watch.devices().values()) + AFTERWARDS
            seen, after = watch.until(lambda all_: all(device["state"] == "ready" for device in all_.values())
                                      and sum(device["text_count"] for device in all_.values()) >= served, 60)
        lost = sum(after[name]["restart_count"] - before[name]["restart_count"] for name in after)
        server.stop()
    report.raw.update(status=status, body=body.decode(errors="replace"), outcome=outcome, devices=after)
    report.add(at_most("workers lost", lost, LOST, 0))
    report.add(holds("the request that kills", status >= 400, f"{status}: {body[:160].decode(errors='replace')}", "an error"))
    report.add(holds("all others", outcome.get("failed_count") == 0 and outcome.get("wrong") == 0 and outcome.get("right", 0) > 0,
                     f"{outcome.get('right')} right, {outcome.get('wrong')} wrong, {outcome.get('failed_count')} failed; "
                     f"{outcome.get('failed', [])[:2]}", "served"))
    report.add(holds("all devices serve again", seen is not None, "yes" if seen else "no"))
