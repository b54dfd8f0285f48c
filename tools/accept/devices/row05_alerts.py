"""Alerts: all rules in promtool, and those that wait a minute at most through a real Prometheus."""

import contextlib
import pathlib
import re
import shutil
import time

from devices import fleet
from devices.prometheus_server import RULE_TESTS, RULES, prometheus, promtool, shortened, skip_reason
from programs import MUSTER, kill, scratch
from report import at_least, holds

__all__ = ["TITLE", "IS_TIMED", "skip_reason", "measure"]
TITLE = "Alert rules: stand-in driver, muster, a real Prometheus; and promtool for every rule"
IS_TIMED = False

LOOK_BACK_S = 40   # look-backs of minutes and days are cut to this, so that an alert ends while the row runs
BEGIN_S, END_S = 20, 110  # when the faults are there, since the driver was opened; a rule waits up to 60 s


def for_a_while(value):
    return {"steps": [[0, 0], [BEGIN_S, value], [END_S, 0]]}


def faulty_machine():
    """Eight GPUs, a fault or two on each of seven."""
    h200 = {"model": "H200", "load": 0.5}
    return [
        h200 | {"xids": [{"at": BEGIN_S, "xid": 79}]},
        h200 | {"xids": [{"at": BEGIN_S, "xid": 94}, {"at": BEGIN_S, "xid": 31}]},
        h200 | {"values": {"recovery_action": for_a_while(4), "nvlink_replay": {"steps": [[0, 3], [BEGIN_S, 5]]}}},
        h200 | {"values": {"ecc_uncorrected_volatile": for_a_while(2)}},
        h200 | {"values": {"remap_failed": for_a_while(1), "remap_pending": for_a_while(1),
                           "remapped_uncorrectable": for_a_while(600)}},
        {"model": "V100-16G", "values": {"retired_single_bit": for_a_while(70)}},
        h200 | {"lost": {"from": BEGIN_S, "until": END_S}},
        h200 | {"values": {"nvlink_crc_flit": {"points": [[0, 0], [BEGIN_S, 0], [END_S, 200000]]}}},
    ]


# The alert, and the GPU of which it must speak; None: of the whole machine.
WANTED = [("GpuXidNeedsReset", "0"), ("GpuXidRestartProgram", "1"), ("GpuRecoveryAsked", "2"), ("GpuNvlinkRetries", "2"),
          ("GpuEccUncorrected", "3"), ("GpuRowRemapFailed", "4"), ("GpuRowRemapPending", "4"), ("GpuRowRemapsMany", "4"),
          ("GpuUnfit", "4"), ("GpuRetiredPagesMany", "5"), ("GpuRetiredPagesGrowing", "5"), ("GpuDown", "6"),
          ("GpuNvlinkCrcErrors", "7"), ("MusterSamplerRestarts", None), ("MusterDown", None), ("MusterDataStale", None)]


def wait_s(text):
    """The `for` of a rule; 0 without one."""
    found = re.search(r"^ *for: (\d+)([smh])$", text, re.MULTILINE)
    return int(found.group(1)) * {"s": 1, "m": 60, "h": 3600}[found.group(2)] if found else 0


def rules():
    """Each alert with how long it waits."""
    parts = re.split(r"^ *- alert: (\w+)$", RULES.read_text(), flags=re.MULTILINE)
    return {name: wait_s(body) for name, body in zip(parts[1::2], parts[2::2])}


def check_with_promtool(report, names):
    code, said = promtool("test", "rules", *RULE_TESTS)
    report.raw["promtool"] = {"exit": code, "said": said}
    report.add(holds("promtool test rules", code == 0 and "SUCCESS" in said, said.splitlines()[-1] if said else f"exit {code}",
                     "SUCCESS"))
    groups = re.split(r"^  - name: (\w+).*$", "\n".join(file.read_text() for file in RULE_TESTS), flags=re.MULTILINE)
    tests = dict(zip(groups[1::2], groups[2::2]))
    devices = {name: len(set(re.findall(r'instance="(\w)', body)) | set(re.findall(r'uuid="([^"]+)', body)))
               for name, body in tests.items()}
    lacking = [name for name in names if name not in tests or devices[name] < 3 or "exp_alerts" not in tests[name] or
               tests[name].count("eval_time") < 2]
    report.raw["devices_in_tests"] = devices
    report.add(at_least("alert rules", len(names), 20, 0))
    report.add(holds("rules with a firing, a threshold and a silent device, and a look before the wait is over",
                     not lacking, f"{len(names) - len(lacking)} of {len(names)}" + "".join(f", not {name}" for name in lacking),
                     "all"))


def kill_sampler(running, times):
    """Kills the sampler, and each that is started in its place."""
    def samplers():
        return fleet.samplers_of(running.process.pid)
    for _ in range(times):
        pids = fleet.wait_until("a sampler runs", samplers, 20)
        for pid in pids:
            kill(pid)
        fleet.wait_until("another sampler runs", lambda: set(samplers()) - set(pids), 20)


@contextlib.contextmanager
def blind(scenario_file):
    """A monitor of a copy of the programs, and what takes its sampler away and gives it back."""
    folder = scratch("blind")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    program, sampler = (pathlib.Path(shutil.copy(MUSTER.with_name(name), folder)) for name in ("muster", "muster-sampler"))
    with fleet.monitor(scenario_file, name="blind", program=program) as running:
        def take():
            sampler.chmod(0)
            for pid in fleet.wait_until("a sampler runs", lambda: fleet.samplers_of(running.process.pid), 20):
                kill(pid)
        yield running, take, lambda: sampler.chmod(0o755)


class Watch:
    """Which alerts have fired and ended, by (alert, gpu, instance)."""

    def __init__(self, server):
        self.server, self.start = server, time.monotonic()
        self.fired, self.ended = {}, {}

    def look(self):
        now = time.monotonic() - self.start
        firing = {(alert["alertname"], alert.get("gpu"), alert["instance"]) for alert in self.server.firing()}
        for key in firing:
            self.fired.setdefault(key, now)
            self.ended.pop(key, None)
        for key in self.fired.keys() - firing:
            self.ended.setdefault(key, now)

    def until(self, what, is_so, limit_s):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            self.look()
            if is_so():
                return
            time.sleep(1)
        print(f"  note  {what}: not within {limit_s} s", flush=True)


def staged(report):
    """Runs the faults through Prometheus and returns what fired and ended."""
    faulty = fleet.scenario("alerts-faulty", faulty_machine(), nvlink="switch")
    quiet = fleet.scenario("alerts-quiet", [{"model": "H200"}])
    with fleet.monitor(faulty, name="faulty") as machine, fleet.monitor(quiet, name="quiet") as other, \
            blind(quiet) as (unseeing, take_sampler, give_sampler), \
            prometheus([machine.address, other.address, unseeing.address], shortened(RULES.read_text(), LOOK_BACK_S)) as server:
        watch = Watch(server)
        where = {"MusterDataStale": unseeing.address}
        wanted = {(name, gpu, machine.address if gpu else where.get(name, other.address)) for name, gpu in WANTED}
        time.sleep(5)
        take_sampler()
        kill_sampler(other, 3)
        watch.until("alerts of the sampler fire and end", lambda: ("MusterSamplerRestarts", None, other.address) in watch.ended, 90)
        port = other.port
        other.stop()
        watch.until("every alert fires", lambda: wanted <= watch.fired.keys(), 150)
        give_sampler()
        with fleet.monitor(quiet, port=port, name="quiet-again"):
            watch.until("every alert ends", lambda: wanted <= watch.ended.keys(), 180)
        report.raw["fired_s"] = {" ".join(map(str, key)): round(at, 1) for key, at in sorted(watch.fired.items(), key=str)}
        report.raw["ended_s"] = {" ".join(map(str, key)): round(at, 1) for key, at in sorted(watch.ended.items(), key=str)}
    return wanted, watch, other.address


def measure(report, arguments):
    waits = rules()
    check_with_promtool(report, waits)
    short_waits = {name for name, seconds in waits.items() if seconds <= 60}
    wanted, watch, quiet = staged(report)
    lacking = sorted(short_waits ^ {name for name, _ in WANTED})
    report.add(holds("rules that wait a minute at most and are staged", not lacking,
                     f"{len(short_waits) - len(lacking)} of {len(short_waits)}" + "".join(f", not {name}" for name in lacking), "all"))
    for what, seen in (("go firing", watch.fired), ("resolve", watch.ended)):
        missing = sorted(f"{name} of {gpu or 'the machine'}" for name, gpu, instance in wanted - seen.keys())
        report.add(holds(f"in /api/v1/alerts they {what} (look-backs cut to {LOOK_BACK_S} s)", not missing,
                         f"{len(wanted) - len(missing)} of {len(wanted)}" + "".join(f", not {one}" for one in missing), "all"))
    healthy = sorted(f"{name} of {gpu}" for name, gpu, instance in watch.fired if gpu is not None and instance == quiet)
    report.add(holds("alerts that name the GPU without a fault", not healthy, ", ".join(healthy) or "none", "none"))
