"""A real Prometheus on a free port, and promtool: unpacked by tools/setup.sh, else the system's."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse

from devices.fleet import fetch, wait_until
from programs import DEPS, ROOT, scratch

RULES = ROOT / "packaging" / "prometheus" / "muster.rules.yml"
RULE_TESTS = sorted((ROOT / "packaging" / "prometheus").glob("muster.*test.yml"))


def tool(name):
    """The path of `prometheus` or `promtool`; None when there is none."""
    own = DEPS / "prometheus" / "usr" / "bin" / name
    return str(own) if own.exists() else shutil.which(name)


def skip_reason():
    missing = [name for name in ("prometheus", "promtool") if tool(name) is None]
    return f"no {missing[0]}: tools/setup.sh brings Debian's" if missing else None


def promtool(*arguments, text=None):
    """promtool's exit code and all that it says."""
    done = subprocess.run([tool("promtool"), *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300)
    return done.returncode, (done.stdout + done.stderr).strip()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def shortened(rules, limit_s):
    """The rules with every look-back longer than `limit_s` cut to it; how long an alert must wait stays as it is."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}

    def cut(found):
        seconds = int(found.group(2)) * units[found.group(3)]
        return found.group(0) if seconds <= limit_s else f"{found.group(1)}{limit_s}s"

    text = re.sub(r"(\[|offset )(\d+)([smhd])(?=[\]) ])", cut, rules)
    return re.sub(r"(_timestamp_seconds(?:\{[^}]*\})? < )\d+", rf"\g<1>{limit_s}", text)


class Prometheus:
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def api(self, path, **parameters):
        answer = json.loads(fetch(f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", 30))
        return answer["data"]

    def query(self, expression):
        """The series of an instant query, [(labels, value)]."""
        return [(series["metric"], float(series["value"][1])) for series in self.api("query", query=expression)["result"]]

    def firing(self):
        """The alerts that fire now, as their labels."""
        return [alert["labels"] for alert in self.api("alerts")["alerts"] if alert["state"] == "firing"]


@contextlib.contextmanager
def prometheus(targets, rules=None, scrape_s=1):
    """Prometheus scraping `targets` (host:port) as the job muster; ended, and its data removed, at the end of the block."""
    folder = scratch("prometheus")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "rules.yml").write_text(RULES.read_text() if rules is None else rules)
    (folder / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {scrape_s}s, scrape_timeout: {scrape_s}s, evaluation_interval: {scrape_s}s}}\n"
        "rule_files: [rules.yml]\n"
        f"scrape_configs: [{{job_name: muster, static_configs: [{{targets: {json.dumps(targets)}}}]}}]\n")
    port = free_port()
    log = folder / "log"
    with log.open("w") as sink:
        process = subprocess.Popen([tool("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
                                    f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"],
                                   stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        def is_ready():
            if process.poll() is not None:
                raise RuntimeError(f"prometheus ended with {process.returncode}: {log.read_text().strip()[-400:]}")
            try:
                return fetch(f"http://127.0.0.1:{port}/-/ready")
            except OSError:
                return None
        wait_until("prometheus is ready", is_ready, 60)
        yield Prometheus(port)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
