"""Machines that are not there: scenarios of the stand-in driver, and `muster monitor` watching them."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

from programs import BUILD, MUSTER, is_alive, scratch

FAKE_NVML = BUILD / "lib" / "libfakenvml.so"
LISTENING = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):(\d+)")


def scenario(name, gpus, **settings):
    """Writes a scenario (docs/formats/fake-nvml.md) and returns its path."""
    path = scratch(f"{name}.json")
    path.write_text(json.dumps({"fake_nvml": 1, **settings, "gpus": gpus}, indent=1))
    return path


def environment(scenario_file):
    """What a program must find in its environment to see the scenario's machine."""
    return {**os.environ, "FAKENVML_SCENARIO": str(scenario_file)}


def fetch(url, timeout_s=10):
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:
        return answer.read().decode()


def wait_until(what, is_so, limit_s, every_s=0.2):
    """The first answer of `is_so` that is true, or an error naming `what` when the time is over."""
    end = time.monotonic() + limit_s
    while True:
        found = is_so()
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {limit_s} s")
        time.sleep(every_s)


def samplers_of(pid):
    """The pids of the live sampler processes that muster started."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                if words[0] == b"muster-sampler" and is_alive(int(child)):
                    found.append(int(child))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


class Monitor:
    """A running `muster monitor --listen`."""

    def __init__(self, process, port, log):
        self.process, self.port, self.log = process, port, log
        self.address = f"127.0.0.1:{port}"

    def metrics(self):
        return fetch(f"http://{self.address}/metrics")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def listening_port(process, log):
    """The port that the process says it listens on."""
    def said():
        if process.poll() is not None:
            raise RuntimeError(f"muster monitor ended with {process.returncode}: {log.read_text().strip()[-400:]}")
        return LISTENING.search(log.read_text(errors="replace"))
    return int(wait_until("muster monitor listens", said, 30, 0.05).group(1))


@contextlib.contextmanager
def monitor(scenario_file, *options, port=0, name="monitor", program=MUSTER):
    """`muster monitor --listen` on the scenario's machine; ended at the end of the block."""
    log = scratch(f"{name}.log")
    with log.open("w") as sink:
        process = subprocess.Popen([str(program), "monitor", "--nvml-path", str(FAKE_NVML), "--listen", f"127.0.0.1:{port}",
                                    *map(str, options)], stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=environment(scenario_file))
    running = Monitor(process, port, log)
    try:
        running.port = listening_port(process, log)
        running.address = f"127.0.0.1:{running.port}"
        yield running
    finally:
        running.stop()
