"""What watching costs: processor time of parent and sampler, memory, driver calls."""

import concurrent.futures
import pathlib
import re
import time

from devices import fleet
from report import at_most

TITLE = "The cost of watching 8 GPUs ten times a second, with a driver that takes no time"
IS_TIMED = True

GPUS, SECONDS = 8, 60
CORE_PERCENT_PER_GPU, RSS_MIB, RSS_GROWTH_KIB, CALLS_PER_FAST_VISIT = 0.02, 25, 256, 3
SCRAPERS, SCRAPE_SECONDS = 100, 20
CALLS = re.compile(r'^muster_gpu_collector_calls_total\{call="(nvml[^"]+)"\} (\d+)', re.MULTILINE)
TOLD_EVERY_S = 5  # the sampler tells its costs so often


def cpu_ns(pid):
    """Time on a processor of all threads, as the scheduler counts it."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def calls(running):
    return {name: int(count) for name, count in CALLS.findall(running.metrics())}


def call_rate(running, seconds):
    """Driver calls a second: of all, and of the three that a fast visit makes. Between two tellings of the sampler."""
    def next_telling(known):
        return fleet.wait_until("the sampler tells its costs", lambda: (found := calls(running)) != known and found, 20, 0.05)
    before = after = next_telling(calls(running))
    # By the sampler's own clock, as a hundred scrapers make this program late.
    for _ in range(seconds // TOLD_EVERY_S):
        after = next_telling(after)
    return {name: (count - before.get(name, 0)) / seconds for name, count in after.items()}


def scrape_for(running, seconds):
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        running.metrics()
        count += 1
        time.sleep(0.5)
    return count


def measure(report, _arguments):
    gpus = [{"model": "H200", "count": GPUS, "load": 0.7}]
    with fleet.monitor(fleet.scenario("cost", gpus), name="cost") as running:
        time.sleep(12)  # the first slow tier and everything that is allocated once
        pids = [running.process.pid, *fleet.samplers_of(running.process.pid)]
        assert len(pids) == 2, pids
        rss = [sum(map(rss_kib, pids))]
        times, begin = list(map(cpu_ns, pids)), time.monotonic()
        time.sleep(SECONDS)
        spent, span = [after - before for before, after in zip(times, map(cpu_ns, pids))], time.monotonic() - begin
        rss.append(sum(map(rss_kib, pids)))
        quiet = call_rate(running, SCRAPE_SECONDS)
        with concurrent.futures.ThreadPoolExecutor(SCRAPERS + 1) as pool:
            scrapes = [pool.submit(scrape_for, running, SCRAPE_SECONDS + 2 * TOLD_EVERY_S) for _ in range(SCRAPERS)]
            busy = call_rate(running, SCRAPE_SECONDS)
            scrape_count = sum(one.result() for one in scrapes)
    percent = [ns / 1e9 / span * 100 / GPUS for ns in spent]
    visits = GPUS * 10
    fast = sum(rate for rate in quiet.values() if rate > 0.9 * visits)
    medium = sum(quiet.values()) - fast
    report.raw.update({"cpu_ns": spent, "seconds": span, "rss_kib": rss, "calls_per_second": quiet,
                       "calls_per_second_with_scrapers": busy, "scrapes": scrape_count})
    report.add(at_most("of a core per GPU, parent and sampler", sum(percent), CORE_PERCENT_PER_GPU, 4, " %"))
    report.add(at_most("memory of both", max(rss) / 1024, RSS_MIB, 2, " MiB"))
    report.add(at_most(f"growth of it over {SECONDS} s", rss[1] - rss[0], RSS_GROWTH_KIB, 0, " KiB"))
    named = [name for name, rate in quiet.items() if rate > 0.9 * visits]
    report.add(at_most(f"functions called at each fast visit ({', '.join(sorted(named))})", len(named), CALLS_PER_FAST_VISIT, 0))
    print(f"  note  {fast:.0f} calls a second of the functions of each fast visit, {medium:.0f} of all others; "
          f"parent {percent[0]:.4f} %, sampler {percent[1]:.4f} % of a core per GPU")
    change = abs(sum(busy.values()) / sum(quiet.values()) - 1) * 100
    report.add(at_most(f"change of the rate of calls by {SCRAPERS} scrapers ({scrape_count:,} scrapes)", change, 2, 2, " %"))
