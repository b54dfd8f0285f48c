"""A sweep of twelve points that is killed, interrupted, left without a disk, a server or a GPU: what was finished is whole, and --resume does the rest."""

import json
import resource
import signal
import subprocess

from bench.running import NULL_SERVER, null_server
from bench.sweeps import TINY, Sweep, stand_in_devices
from report import holds

TITLE = "kill -9, Ctrl-C, a full disk, a lost server, a lost GPU in a sweep of 12 points"
IS_TIMED = False

SERVICE = ("--law", "deterministic", "--mean", "0.02")
POINTS = 12


def remote_sweep(name, url):
    sweep = Sweep(name)
    sweep.write("b.yaml", f"backend: {{url: \"{url}\", model: \"null\", task: embed}}\n"
                          "scenario: {num_samples: 24, clients: [1, 2, 3, 4, 5, 6], input_shapes: {batch_size: [1, 2]}}\n"
                          "metrics: {enabled: false}\nreporter: {output_file: x.csv}\n")
    return sweep


def resume(report, sweep, what, kept, **where):
    """Finished points are whole, the others are measured, and none that was valid is measured again."""
    finished = {result["run"]["point"]: result["run"] for result in kept}
    code, _, said = sweep.run("b.yaml", "--resume", **where)
    after = {result["run"]["point"]: result["run"] for result in sweep.results()}
    again = [point for point, record in finished.items() if record["valid"] and after.get(point) != record]
    report.add(holds(f"{what}: {len(kept)} points were kept whole, --resume did the rest",
                     code in (0, 22) and 0 < len(kept) < POINTS and len(after) == POINTS and not again and not sweep.differences(),
                     f"exit code {code}, {len(after)} points, {len(again)} measured twice {said[-200:] if code not in (0, 22) else ''}"))


def stop(report, what, code, act):
    with null_server(*SERVICE) as url:
        sweep = remote_sweep(f"bench-run-{what.split()[0]}", url)
        process = sweep.start("b.yaml")
        if not sweep.wait_for(process, 4):
            raise RuntimeError(process.communicate()[1][-400:])
        act(process)
        said = process.communicate(timeout=120)[1]
        report.add(holds(f"{what}: it ends with {code}", process.returncode == code, f"{process.returncode} {said.splitlines()[-1:]}"))
        resume(report, sweep, what, sweep.results())


def lose_server(report):
    server = subprocess.Popen([str(NULL_SERVER), *SERVICE], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().split()[-1]
    sweep = remote_sweep("bench-run-server", url)
    process = sweep.start("b.yaml")
    sweep.wait_for(process, 4)
    server.kill()
    server.wait()
    said = process.communicate(timeout=120)[1]
    report.add(holds("a lost server: it ends with 6 and says what is kept", process.returncode == 6 and "points are in x.csv" in said,
                     f"{process.returncode} {said.splitlines()[-1:]}"))
    kept = sweep.results()
    with null_server(*SERVICE, "--listen", url.removeprefix("http://")):
        resume(report, sweep, "a lost server", kept)


def lose_gpu(report):
    sweep = Sweep("bench-run-gpu")
    sweep.write("b.yaml", f"backend: {{model: {TINY}, device_ids: [[0], [1], [0, 1]], torch_dtype: [fp32, bf16]}}\n"
                          "scenario: {num_samples: 8, input_shapes: {batch_size: [1, 2]}}\nreporter: {output_file: x.csv}\n")

    def play(more):
        sweep.write("gpus.json", json.dumps({"fake_nvml": 1, "gpus": [{"model": "H200"}, {"model": "H200", **more}]}))
    env = dict(stand_in_devices(), FAKENVML_SCENARIO=str(sweep.folder / "gpus.json"))
    play({})
    process = sweep.start("b.yaml", env=env)
    sweep.wait_for(process, 4)
    play({"lost": {"from": 0}})
    said = process.communicate(timeout=600)[1]
    report.add(holds("a lost GPU: it ends and says what is kept", process.returncode not in (0, 22) and "points are in x.csv" in said,
                     f"{process.returncode} {said.splitlines()[-1:]}"))
    kept = sweep.results()
    play({})
    resume(report, sweep, "a lost GPU", kept, env=env)


def measure(report, arguments):
    stop(report, "kill -9", -signal.SIGKILL, lambda process: process.kill())
    stop(report, "Ctrl-C", 128 + signal.SIGINT, lambda process: process.send_signal(signal.SIGINT))
    # From here on no file of the run may have a byte: what a full disk says, too, and only to this process.
    stop(report, "a full disk", 8, lambda process: resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, 1)))
    lose_server(report)
    lose_gpu(report)
