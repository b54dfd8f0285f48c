"""One physical device has one name in every view, whatever hides or renumbers the devices."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from devices import fleet
from programs import MUSTER, scratch
from report import holds, skipped

TITLE = "A pid namespace, a GPU subset, CUDA_VISIBLE_DEVICES and both orders: every view names the same physical device"
IS_TIMED = False

# The truth: each GPU by UUID, with a temperature that no other has. The driver counts them otherwise than the bus.
L4 = {"model": "L4", "uuid": "GPU-aaaa0000-1111-4222-8333-444444444444", "pci": "00000000:0A:00.0"}
H100 = {"model": "H100-80G", "uuid": "GPU-bbbb0000-1111-4222-8333-444444444444", "pci": "00000000:1B:00.0"}
OTHER_H100 = {"model": "H100-80G", "uuid": "GPU-cccc0000-1111-4222-8333-444444444444", "pci": "00000000:43:00.0"}
H200 = {"model": "H200", "uuid": "GPU-dddd0000-1111-4222-8333-444444444444", "pci": "00000000:9D:00.0"}
CELSIUS = {L4["uuid"]: 41, H100["uuid"]: 42, OTHER_H100["uuid"]: 43, H200["uuid"]: 44}
SICK = H200["uuid"]  # doctor must complain of this one
A, B, C, D = (gpu["uuid"] for gpu in (L4, H100, OTHER_H100, H200))
SLICE = "MIG-eeee0000-1111-4222-8333-444444444444"
OTHER_SLICE = "MIG-ffff0000-1111-4222-8333-444444444444"
SLICES = [{"profile": "1g.10gb", "index": 0, "gpu_instance": 9, "uuid": OTHER_SLICE},
          {"profile": "2g.20gb", "index": 3, "gpu_instance": 5, "uuid": SLICE}]
PCI_NAMES = {A: "cuda:0", B: "cuda:1", C: "cuda:2", D: "cuda:3"}

# What is set, and the devices that a CUDA program then counts from 0. Source: CUDA Programming Guide, "CUDA Environment
# Variables": indices after the order, UUIDs as far as they are unique, nothing after an entry that names nothing;
# FASTEST_FIRST puts the fastest (here the first H100 on the bus) before the others in the bus's order.
PLAIN = [
    ("nothing set", {}, [B, A, C, D]),
    ("order PCI_BUS_ID", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [A, B, C, D]),
    ("order FASTEST_FIRST", {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, [B, A, C, D]),
    ("indices 2,0 by PCI_BUS_ID", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,0"}, [C, A]),
    ("indices 1,2 by FASTEST_FIRST", {"CUDA_DEVICE_ORDER": "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "1,2"}, [A, C]),
    ("indices 3,9,1 by PCI_BUS_ID", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "3,9,1"}, [D]),
    ("two UUIDs", {"CUDA_VISIBLE_DEVICES": f"{D},{B}"}, [D, B]),
    ("the first digits of a UUID", {"CUDA_VISIBLE_DEVICES": "GPU-cccc"}, [C]),
    ("an empty list", {"CUDA_VISIBLE_DEVICES": ""}, []),
]
IN_SLICES = [
    ("a slice by UUID", {"CUDA_VISIBLE_DEVICES": SLICE}, [SLICE]),
    ("a slice in the form of older drivers", {"CUDA_VISIBLE_DEVICES": f"MIG-{C}/5/0"}, [SLICE]),
    ("a whole GPU beside slices", {"CUDA_VISIBLE_DEVICES": B}, [B]),
]


def machine(name, gpus):
    """A scenario of these GPUs, each with its temperature, the sick one sick."""
    listed = [{**gpu, "load": 0.5, "values": {"temperature_core": CELSIUS[gpu["uuid"]],
                                              **({"remap_pending": 1} if gpu["uuid"] == SICK else {})}} for gpu in gpus]
    return fleet.scenario(f"same-{name}", listed)


def run(words, environment, before=()):
    done = subprocess.run([*before, MUSTER, *words, "--nvml-path", fleet.FAKE_NVML], capture_output=True, text=True,
                          timeout=60, env=environment, check=False)
    return done.stdout


def by_devices(environment, before):
    """uuid -> (name, CUDA's number) of `muster devices --json`."""
    report = json.loads(run(("devices", "--json"), environment, before))
    return {device["uuid"]: (device["name"], device["cuda_ordinal"]) for device in report["gpus"] + report["slices"]}


def recorded(environment, before):
    """The GPUs of the first line of `muster monitor --out`."""
    out = scratch("same-device.jsonl")
    out.unlink(missing_ok=True)
    process = subprocess.Popen([*before, MUSTER, "monitor", "--out", out, "--interval", "200ms", "--nvml-path", fleet.FAKE_NVML],
                               stderr=subprocess.DEVNULL, env=environment)
    try:
        fleet.wait_until("a line of the recording", lambda: out.exists() and "\n" in out.read_text(), 20, 0.05)
    finally:
        # unshare passes no signal on; its end is the end of the namespace.
        process.send_signal(signal.SIGKILL if before else signal.SIGTERM)
        process.wait(20)
    return [device for device in json.loads(out.read_text().splitlines()[0])["devices"] if device["kind"] == "cuda"]


def by_metrics(environment):
    """uuid -> (name, temperature) of a scrape."""
    log = scratch("same-device.log")
    with log.open("w") as sink:
        process = subprocess.Popen([MUSTER, "monitor", "--listen", "127.0.0.1:0", "--nvml-path", fleet.FAKE_NVML],
                                   stdout=sink, stderr=subprocess.STDOUT, env=environment)
    try:
        text = fleet.fetch(f"http://127.0.0.1:{fleet.listening_port(process, log)}/metrics")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    found = {}
    for line in text.splitlines():
        if line.startswith("muster_gpu_temperature_celsius{") and 'sensor="core"' in line:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            # The label says the number alone; UUIDs are small letters there.
            found[labels["uuid"].lower()] = (labels["gpu"], float(line.rsplit(" ", 1)[1]))
    return found


def by_top(environment, before):
    """uuid -> (name, temperature) of `muster top --once`: a line of figures, and below it the UUID."""
    found, name, celsius = {}, None, None
    for line in run(("top", "--once"), {**environment, "COLUMNS": "200"}, before).splitlines():
        if line.startswith("cuda:"):
            name = line.split()[0]
            # "41/46": the core and what is left to 87 C; the last such pair, memory and watts stand before it.
            celsius = next((int(a) for a, b in reversed(re.findall(r"(\d+)/(\d+)", line)) if int(a) + int(b) == 87), None)
        elif name and re.match(r"\s+(GPU|MIG)-", line):
            found[line.split()[0]] = (name, celsius)
            name = None
    return found


def sick_by_doctor(environment, before):
    """The devices whose remapped rows `muster doctor` complains of."""
    report = json.loads(run(("doctor", "--no-compute", "--json"), environment, before))
    return sorted({check["device"] for check in report["checks"] if check["name"] == "remap" and check["verdict"] in ("warning", "unfit")})


def disagreements(environment, names, counted, before=()):
    """What any view says otherwise than the truth: `names` by UUID, `counted` the UUIDs in CUDA's order."""
    wrong = []
    numbers = {uuid: counted.index(uuid) if uuid in counted else None for uuid in names}
    devices = by_devices(environment, before)
    if devices != {uuid: (name, numbers[uuid]) for uuid, name in names.items()}:
        wrong.append(f"devices: {devices}")
    lines = recorded(environment, before)
    if {d["uuid"]: (d["name"], d.get("cuda_ordinal")) for d in lines} != {u: (n, numbers[u]) for u, n in names.items()}:
        wrong.append(f"monitor: {[(d['uuid'], d['name'], d.get('cuda_ordinal')) for d in lines]}")
    whole = {uuid: name for uuid, name in names.items() if uuid in CELSIUS}
    warm = {d["uuid"]: d["readings"].get("temperature_core_celsius") for d in lines if d["uuid"] in CELSIUS}
    if warm != {uuid: CELSIUS[uuid] for uuid in whole}:
        wrong.append(f"monitor's temperatures: {warm}")
    top = by_top(environment, before)
    if top != {uuid: (name, CELSIUS.get(uuid)) for uuid, name in names.items()}:
        wrong.append(f"top: {top}")
    if not before:
        metrics = by_metrics(environment)
        if metrics != {uuid.lower(): (name.split(":")[1], CELSIUS[uuid]) for uuid, name in whole.items()}:
            wrong.append(f"metrics: {metrics}")
    sick = sick_by_doctor(environment, before)
    if sick != [name for uuid, name in names.items() if uuid == SICK]:
        wrong.append(f"doctor: {sick}")
    return wrong


def usual_environment(scenario_file, settings):
    plain = {key: value for key, value in os.environ.items() if key not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")}
    return {**plain, "FAKENVML_SCENARIO": str(scenario_file), **settings}


def show(report, what, wrong, devices):
    report.raw[what] = wrong
    report.add(holds(what, not wrong, "; ".join(wrong)[:300] or f"{devices} devices, each the same one in every view",
                     "the same in devices, monitor, top, /metrics, doctor"))


def in_a_pid_namespace(report):
    """Processes of another namespace have no pid here, and the devices are the same."""
    what = "in a pid namespace of its own"
    unshare = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        report.add(skipped(what, "unshare --pid is not permitted here"))
        return
    # The first process of the namespace sleeps as 2; 3,999,999 is nobody there.
    processes = {A: {"pid": 2, "memory_bytes": 1 << 30}, B: {"pid": 3999999, "memory_bytes": 1 << 30}}
    gpus = [{**gpu, "processes": [processes[gpu["uuid"]]]} if gpu["uuid"] in processes else gpu
            for gpu in (H200, L4, OTHER_H100, H100)]
    before = (*unshare, "sh", "-c", 'sleep 30 & "$0" "$@"; code=$?; kill %1; exit $code')
    environment = usual_environment(machine("namespace", gpus), {})
    wrong = disagreements(environment, PCI_NAMES, [B, A, C, D], before)
    holders = {d["uuid"]: [(p["pid"], p["command"]) for p in d["processes"]] for d in recorded(environment, before) if d.get("processes")}
    if holders.get(A) != [(2, "sleep")] or [pid for pid, _ in holders.get(B, [])] != [0]:
        wrong.append(f"processes: {holders}")
    show(report, what, wrong, len(PCI_NAMES))


def measure(report, _arguments):
    start = time.monotonic()
    plain = machine("plain", [H200, L4, OTHER_H100, H100])
    for what, settings, counted in PLAIN:
        show(report, what, disagreements(usual_environment(plain, settings), PCI_NAMES, counted), len(PCI_NAMES))
    sliced = machine("slices", [H200, L4, {**OTHER_H100, "mig": SLICES}, H100])
    names = {A: "cuda:0", B: "cuda:1", C: "cuda:2", OTHER_SLICE: "cuda:2:0", SLICE: "cuda:2:1", D: "cuda:3"}
    for what, settings, counted in IN_SLICES:
        show(report, what, disagreements(usual_environment(sliced, settings), names, counted), len(names))
    # A container that was given two of the four: the driver lists these alone, under numbers of its own.
    subset = machine("subset", [H200, OTHER_H100])
    for what, settings, counted in (("a container with two of the GPUs", {}, [C, D]),
                                    ("index 1 in it", {"CUDA_VISIBLE_DEVICES": "1"}, [D])):
        show(report, what, disagreements(usual_environment(subset, settings), {C: "cuda:0", D: "cuda:1"}, counted), 2)
    in_a_pid_namespace(report)
    report.raw["measured_s"] = time.monotonic() - start
