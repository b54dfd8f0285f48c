"""XIDs: each is counted under its code, and only what needs hands fires."""

import re
import time

from devices import fleet
from devices.prometheus_server import prometheus, skip_reason
from report import holds

__all__ = ["TITLE", "IS_TIMED", "skip_reason", "measure"]
TITLE = "XIDs 31, 79, 79, 13: counters 1, 2, 1; the alert fires for 79 alone; the GPU is lost afterwards"
IS_TIMED = False

SCRIPT = [(10, 31), (12, 79), (14, 79), (16, 13)]
LOST_S = 20
WANTED = {"31": 1, "79": 2, "13": 1}
COUNTER = re.compile(r'^muster_gpu_xid_errors_total\{gpu="0",.*xid="(\d+)"\} (\d+)$', re.MULTILINE)


def counters(text):
    """The counters of GPU 0 that are not zero."""
    return {xid: int(count) for xid, count in COUNTER.findall(text) if int(count)}


def measure(report, arguments):
    gpus = [{"model": "H200", "xids": [{"at": at, "xid": xid} for at, xid in SCRIPT], "lost": {"from": LOST_S}},
            {"model": "H200"}]
    with fleet.monitor(fleet.scenario("xids", gpus)) as running, prometheus([running.address]) as server:
        before = COUNTER.findall(running.metrics())
        fleet.wait_until("the XIDs are counted", lambda: counters(running.metrics()) == WANTED, 40)
        fleet.wait_until("the GPU is lost", lambda: 'muster_gpu_up{gpu="0",' in running.metrics() and
                         re.search(r'^muster_gpu_up\{gpu="0",.*\} 0$', running.metrics(), re.MULTILINE), 40)
        found = counters(running.metrics())
        fleet.wait_until("an alert fires", lambda: [alert for alert in server.firing() if "xid" in alert], 60)
        time.sleep(5)  # five evaluations more: would another code fire, it would by now
        firing = [(alert["alertname"], alert["gpu"], alert["xid"]) for alert in server.firing() if "xid" in alert]
        grown = {labels["xid"]: value for labels, value in
                 server.query('round(increase(muster_gpu_xid_errors_total{gpu="0"}[5m]))') if value}
    report.raw.update({"script": SCRIPT, "counters": found, "firing": firing, "increase_5m": grown, "at_start": before})
    report.add(holds("counters of 31, 79 and 13, after the GPU was lost", found == WANTED,
                     ", ".join(f"{xid}: {found.get(xid, 0)}" for xid in WANTED), "31: 1, 79: 2, 13: 1"))
    report.add(holds("counters that are there from the start, as 0", dict(before).get("79") == "0" and len(before) >= 10,
                     f"{len(before)} codes", ">= 10"))
    report.add(holds("increase() sees the first 79", round(grown.get("79", 0)) >= 2, f"{grown.get('79', 0):g}", ">= 2"))
    report.add(holds("alerts of XIDs that fire", firing == [("GpuXidNeedsReset", "0", "79")],
                     ", ".join(f"{name} {xid}" for name, _, xid in firing), "GpuXidNeedsReset 79"))
