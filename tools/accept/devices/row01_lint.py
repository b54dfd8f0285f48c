"""What a scrape gives, read by Prometheus' own linter."""

import contextlib
import subprocess
import sys
import time

from devices import fleet
from devices.prometheus_server import promtool, skip_reason
from report import holds

__all__ = ["TITLE", "IS_TIMED", "skip_reason", "measure"]
TITLE = "promtool check metrics on 0, 1, 8 and 64 GPUs, MIG, a lost GPU and hostile process names"
IS_TIMED = False

# A process's name is at most 15 bytes, any but NUL: quotes, line ends, backslashes, no UTF-8, a terminal's commands.
HOSTILE = [b'a"} 1\nmuster 0', b"\\n\\\"\\", b"\xff\xfe\xc3(\xed\xa0\x80", b"\x1b[2J\x1b[31m", b"{}=,# HELP a b", b"\t\r \x7f"]
OF_BOARDS = ("_power_", "_energy_", "_temperature_", "_clock_", "_pcie_", "_nvlink_", "_ecc_", "_health_", "_xid_", "_gpu_up")
NAME_ITSELF = "import sys, time; open('/proc/self/comm', 'wb').write(bytes.fromhex(sys.argv[1])); print(flush=True); time.sleep(600)"


@contextlib.contextmanager
def processes_named(names):
    """The pids of sleeping processes that call themselves so."""
    started = []
    try:
        for name in names:
            started.append(subprocess.Popen([sys.executable, "-c", NAME_ITSELF, name.hex()], stdout=subprocess.PIPE))
        for process in started:
            process.stdout.readline()
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def lines_of(text, family):
    return [line for line in text.splitlines() if line.startswith(family) and line[len(family)] in "{ "]


def lint(report, what, scenario_file, is_there):
    """Scrapes until `is_there`, then lets the linter read it; returns the text."""
    with fleet.monitor(scenario_file) as running:
        def scraped():
            text = running.metrics()
            return text if is_there(text) else None
        text = fleet.wait_until(f"the metrics of {what}", scraped, 40, 0.5)
        start = time.monotonic()
        text = running.metrics()
        scrape_s = time.monotonic() - start
    code, said = promtool("check", "metrics", text=text)
    series = sum(not line.startswith("#") for line in text.splitlines())
    values = [line.rsplit(" ", 1)[1].lower() for line in text.splitlines() if not line.startswith("#")]
    report.raw[what] = {"exit": code, "said": said, "series": series, "bytes": len(text), "scrape_s": scrape_s}
    report.add(holds(f"{what}: {series:,} series", code == 0 and not said and not {"nan", "+inf", "-inf"} & set(values),
                     f"exit {code}, {len(said.splitlines())} lint lines", "exit 0, 0 lint lines, no NaN"))
    return text


def has_gpus(count):
    """Whether all GPUs are up and visited by the slow tier."""
    return lambda text: (sum(line.endswith(" 1") for line in lines_of(text, "muster_gpu_up")) == count and
                         len(lines_of(text, "muster_gpu_processes")) >= count)


def measure(report, arguments):
    for count in (0, 1, 8, 64):
        gpus = [{"model": "H200", "count": count, "load": 0.7}] if count else []
        lint(report, f"{count} GPU{'s' if count != 1 else ''}", fleet.scenario(f"lint-{count}", gpus), has_gpus(count))

    slices = [{"profile": "1g.10gb"}, {"profile": "2g.20gb", "index": 2}]
    text = lint(report, "MIG", fleet.scenario("lint-mig", [{"model": "H100-80G", "count": 2, "mig": slices, "load": 0.5}]),
                lambda scraped: len(lines_of(scraped, "muster_gpu_info")) == 6)
    of_slices = [line for line in text.splitlines() if ',mig="' in line]
    repeated = [line for line in of_slices if any(word in line for word in OF_BOARDS)]
    report.add(holds("MIG: series of a board repeated for its slices", of_slices and not repeated,
                     f"{len(repeated)} of {len(of_slices)} series with mig", "0"))

    lint(report, "a lost GPU", fleet.scenario("lint-lost", [{"model": "H200", "count": 3}, {"model": "H200", "lost": {"from": 3}}]),
         lambda scraped: any(line.endswith(" 0") for line in lines_of(scraped, "muster_gpu_up")))

    with processes_named(HOSTILE) as pids:
        gpus = [{"model": "H200", "processes": [{"pid": pid, "memory_bytes": 1 << 30} for pid in pids]}]
        text = lint(report, "hostile process names", fleet.scenario("lint-names", gpus),
                    lambda scraped: len(lines_of(scraped, "muster_gpu_process_memory_bytes")) == len(pids))
    named = sum('command=""' not in line for line in lines_of(text, "muster_gpu_process_memory_bytes"))
    report.add(holds("hostile names that are shown", named == len(HOSTILE), f"{named} of {len(HOSTILE)}", "all"))
