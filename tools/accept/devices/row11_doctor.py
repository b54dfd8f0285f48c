"""`muster doctor` on machines with a planted fault each: named, with the right exit code; its YAML accepted unedited."""

import concurrent.futures
import dataclasses
import json
import os
import resource
import shutil
import subprocess

from devices import fleet
from programs import BUILD, MUSTER, TESTS, scratch
from report import holds

TITLE = "doctor with 20 planted faults and more: each named, right exit code; its YAML accepted unedited"
IS_TIMED = False

WELL, WARNINGS, UNFIT = 0, 20, 21
H200 = {"model": "H200"}
ON_PCI = {"sys/bus/pci/devices/0000:1b:00.0/class": "0x030200", "sys/bus/pci/devices/0000:1b:00.0/vendor": "0x10de"}
VERSION = "__version__ = '2.11.0+{}'\ncuda: Optional[str] = {}\n"


@dataclasses.dataclass
class Fault:
    """What is planted, and what must come of it."""
    what: str
    named: set           # (check, device or None) of every complaint there must be, and of no other
    code: int
    gpu: dict = dataclasses.field(default_factory=dict)       # of cuda:1, the second of two H200
    settings: dict = dataclasses.field(default_factory=dict)  # of the whole scenario
    files: dict = dataclasses.field(default_factory=dict)     # below the root; None: a folder of that name
    environment: dict = dataclasses.field(default_factory=dict)
    options: tuple = ("--no-compute",)
    torch_cuda: bool = True
    open_files: int = 1024


def of_gpu(what, check, code, *also, **gpu):
    return Fault(what, {(name, "cuda:1") for name in (check, *also)}, code, gpu=gpu)


def of_machine(what, check, code, **rest):
    return Fault(what, {(check, None)}, code, **rest)


def cgroup(**files):
    return {"proc/self/cgroup": "0::/box\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
            **{f"sys/fs/cgroup/box/{name.replace('_', '.')}": text for name, text in files.items()}}


GPU_FAULTS = [
    of_gpu("a lost GPU", "present", UNFIT, lost={"from": 0.5}),
    of_gpu("a hung GPU", "present", UNFIT, hang={"from": 0.5, "until": 30}),
    Fault("a driver call that crashes", {("present", "cuda:1"), ("driver_crashes", None)}, UNFIT, gpu={"crash": {"from": 0.5}}),
    of_gpu("a remap that waits for a reset", "remap", WARNINGS, values={"remap_pending": 1}),
    of_gpu("a remap that failed", "remap", UNFIT, values={"remap_failed": 1}),
    of_gpu("retired pages", "pages", WARNINGS, model="V100-32G", values={"retired_single_bit": 20}),
    of_gpu("ECC off", "ecc_mode", WARNINGS, ecc=False),
    of_gpu("uncorrected memory errors", "ecc", UNFIT, values={"ecc_uncorrected_volatile": 3}),
    of_gpu("XID 79 while watched", "xid", UNFIT, xids=[{"at": 0.5, "xid": 79}]),
    of_gpu("XID 94 while watched", "xid", WARNINGS, xids=[{"at": 0.5, "xid": 94}]),
    of_gpu("a recovery that the driver asks for", "recovery", UNFIT, values={"recovery_action": 2}),
    of_gpu("a PCIe link of generation 1 under load", "pcie", WARNINGS, load=0.9, values={"pcie_generation": 1}),
    of_gpu("half of the PCIe lanes under load", "pcie", WARNINGS, load=0.9, values={"pcie_lanes": 8}),
    of_gpu("NVLinks that are down", "nvlink", WARNINGS, "nvlink_peers", values={"nvlink_links_down": 4}),
    of_gpu("thermal slowdown", "thermal", WARNINGS, "throttling", throttle=[{"reason": "hw_thermal", "from": 0}]),
    of_gpu("power brake", "power_brake", WARNINGS, "throttling", throttle=[{"reason": "hw_power_brake", "from": 0}]),
    of_gpu("a power cap", "throttling", WARNINGS, throttle=[{"reason": "sw_power_cap", "from": 0}]),
    of_gpu("a foreign program", "processes", WARNINGS, processes=[{"pid": 1, "name": "init", "memory_bytes": 1 << 30}]),
    of_gpu("MIG without a slice", "mig", UNFIT, mig=[]),
    of_gpu("a prohibited compute mode", "compute_mode", UNFIT, compute_mode=2),
    of_gpu("an exclusive compute mode", "compute_mode", WARNINGS, compute_mode=3),
    of_gpu("memory nearly full", "memory", WARNINGS, values={"memory_used_bytes": 148_000_000_000}),
    of_gpu("persistence mode off", "persistence", WARNINGS, persistent=False),
]


def machine_faults():
    cores = len(os.sched_getaffinity(0))
    return [
        of_machine("driver and library of two versions", "driver", UNFIT,
                   settings={"errors": {"nvmlInit_v2": 18, "nvmlInitWithFlags": 18}}),
        of_machine("a GPU on the bus and no driver", "driver", UNFIT, files=ON_PCI,
                   options=("--no-compute", "--nvml-path", "libnvidia-that-is-not-here.so.1")),
        of_machine("a kernel module of another version", "driver", WARNINGS,
                   files={"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  580.95.05  Release Build\n"}),
        of_machine("a driver that is too old for torch", "driver_cuda", UNFIT, settings={"cuda": "12.2"}),
        of_machine("torch for CPUs alone beside GPUs", "cuda_libraries", UNFIT, torch_cuda=False),
        of_machine("no torch", "torch", UNFIT, options=("--no-compute", "--torch-root", "/nonexistent/torch")),
        of_machine("no worker", "worker", UNFIT, options=("--no-compute", "--worker-program", "/nonexistent/worker")),
        of_machine("a worker of another build", "worker", UNFIT, environment={"ZERO_WORKER": "other_build"}),
        of_machine("a cgroup's memory limit", "memory_limit", WARNINGS,
                   files=cgroup(memory_max="8000000000\n", memory_current="1000000\n", memory_stat="inactive_file 0\n")),
        of_machine("a cgroup's CPU quota", "cpu_limit", WARNINGS, files=cgroup(cpu_max="50000 100000\n")),
        of_machine("an affinity mask below the machine", "affinity", WARNINGS,
                   files={"sys/devices/system/cpu/online": f"0-{cores + 3}\n"}),
        of_machine("CUDA_VISIBLE_DEVICES names a GPU that is missing", "visible_devices", WARNINGS,
                   environment={"CUDA_VISIBLE_DEVICES": "0,1,5"}),
        of_machine("CUDA_VISIBLE_DEVICES hides a GPU", "visible_devices", WARNINGS, environment={"CUDA_VISIBLE_DEVICES": "1"}),
        of_machine("a clock that is read by system calls", "clock_source", WARNINGS,
                   files={"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}),
        of_machine("too few open files", "open_files", WARNINGS, open_files=70),
        of_machine("RAPL that cannot be read", "cpu_energy", WELL, files={"sys/class/powercap/intel-rapl:0/energy_uj": None}),
        Fault("XID 79 in the kernel's log", {("xid", "cuda:1")}, UNFIT, gpu={"pci": "00000000:CA:00.0"},
              files={"dev/kmsg": "4,7,99000000,-;NVRM: Xid (PCI:0000:ca:00): 79, GPU has fallen off the bus.\n"}),
        Fault("a device that is not here", {("requested", "cuda:7")}, UNFIT,
              options=("--no-compute", "--devices", "cuda:0,cuda:7")),
        of_compute("a product with one wrong entry", "compute", UNFIT, "wrong_product"),
        of_compute("a worker that fails", "compute", UNFIT, "fail_product"),
        of_compute("a worker that dies", "compute", UNFIT, "exit_at_start"),
        of_compute("a CPU much slower than it should be", "compute_speed", WARNINGS, "slow_product"),
    ]


def of_compute(what, check, code, orders):
    return Fault(what, {(check, "cpu:0")}, code, environment={"ZERO_WORKER": orders}, options=("--devices", "cpu:0"))


def test_worker():
    """The worker that answers what it is told to (stand_ins/zero_worker), of the same build as muster; None without one."""
    def build_of(program):
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        return done.stdout.partition(" ")[2]
    for folder in (BUILD, TESTS / "plain"):
        program = folder / "bin" / "zero_worker"
        if program.exists() and build_of(program) == build_of(MUSTER):
            return program
    return None


def skip_reason():
    if not fleet.FAKE_NVML.exists():
        return f"{fleet.FAKE_NVML} is not built"
    return None if test_worker() else "zero_worker of this build is not built (./test builds it)"


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.mkdir()
        else:
            path.write_text(text)


def well_tree(cores):
    frequency = {f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq": "2600000\n" for cpu in range(cores)}
    return {"proc/cpuinfo": "processor : 0\nmodel name : Recorded CPU\n", "proc/uptime": "100.0 50.0\n",
            "proc/meminfo": "MemTotal: 65536000 kB\nMemFree: 60000000 kB\nMemAvailable: 60000000 kB\n",
            "proc/stat": "cpu  1 0 1 100 0 0 0 0 0 0\n" + "".join(f"cpu{cpu} 1 0 1 100 0 0 0 0 0 0\n" for cpu in range(cores)),
            "sys/devices/system/cpu/online": f"0-{cores - 1}\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n", "dev/kmsg": "", **frequency}


def write_torch(folder, has_cuda):
    (folder / "lib").mkdir(parents=True)
    for name in ("libtorch_cpu.so", *(("libtorch_cuda.so",) if has_cuda else ())):
        (folder / "lib" / name).write_bytes(b"")
    (folder / "version.py").write_text(VERSION.format("cu130" if has_cuda else "cpu", "'13.0'" if has_cuda else "None"))


def run_doctor(folder, fault):
    """The finished process and its report."""
    root = folder / "root"
    write_tree(root, {**well_tree(len(os.sched_getaffinity(0))), **fault.files})
    write_torch(folder / "torch", fault.torch_cuda)
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"fake_nvml": 1, **fault.settings, "gpus": [H200, {**H200, **fault.gpu}]}))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "FAKENVML_SCENARIO": str(scenario), **fault.environment}
    places = {"--nvml-path": fleet.FAKE_NVML, "--sysfs-root": root, "--torch-root": folder / "torch",
              "--worker-program": test_worker(), "--cache-dir": folder / "cache"}
    words = [word for flag, value in places.items() if flag not in fault.options for word in (flag, str(value))]
    done = subprocess.run([MUSTER, "doctor", "--json", *words, *fault.options], capture_output=True, text=True, check=False,
                          env=environment, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (fault.open_files, 4096)))
    return done, json.loads(done.stdout) if done.stdout else None


def is_accepted(folder, report):
    """Whether `muster config` takes every key of the recommended file as it is; what it said if not; None without a file."""
    if not report["recommended"]:
        return None
    file = folder / "muster.yaml"
    file.write_text(report["recommended"])
    done = subprocess.run([MUSTER, "config", "--json", "--config", file], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": str(folder)})
    if done.returncode != 0:
        return done.stderr
    given = {line.partition(":")[0] for line in report["recommended"].splitlines() if not line.startswith("#")}
    taken = {name for name, setting in json.loads(done.stdout).items() if setting["origin"] == "file"}
    return given == taken or f"given {sorted(given)}, taken {sorted(taken)}"


def examine(folder, fault):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done, report = run_doctor(folder, fault)
    if report is None:
        return {"what": fault.what, "fault": f"exit {done.returncode}: {done.stderr.strip()}"}
    complaints = [check for check in report["checks"] if check["verdict"] in ("not seen", "warning", "unfit")]
    named = {(check["name"], check["device"]) for check in complaints}
    yaml = is_accepted(folder, report)
    is_right = named == fault.named and done.returncode == fault.code == report["exit_code"]
    return {"what": fault.what, "exit": done.returncode, "named": sorted(f"{name} {device or 'machine'}" for name, device in named),
            "said": [check["sentence"] for check in complaints], "all_available": report["availability"]["all_available"],
            "yaml_accepted": yaml, "fault": None if is_right else f"wanted {sorted(fault.named, key=str)} and exit {fault.code}"}


BAD_INPUT = [
    ("a misspelt device", ("--devices", "cdua:0"), 2, ("cdua:0", "did you mean")),
    ("a driver that is not there", ("--nvml-path", "/nonexistent/libnvidia-ml.so.1"), 3, ("--nvml-path", "/nonexistent")),
    ("a root that is not there", ("--sysfs-root", "/nonexistent"), 3, ("--sysfs-root", "/nonexistent")),
    ("an unknown machine", ("--machine", "sim:8xH10-80G"), 3, ("H10-80G", "H100-80G")),
    ("an unknown flag", ("--recomend",), 2, ("--recomend", "--recommend")),
]


def measure_bad_input(report):
    for what, words, code, parts in BAD_INPUT:
        done = subprocess.run([MUSTER, "doctor", "--no-compute", *words], capture_output=True, text=True, check=False, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
        said = done.stderr.strip()
        is_right = (done.returncode == code and not done.stdout and len(said.splitlines()) == 1
                    and all(part in said for part in parts))
        report.add(holds(what, is_right, f"exit {done.returncode}: {said.removeprefix('muster: ')[:110]}", f"exit {code}"))


def measure(report, _arguments):
    faults = [Fault("nothing at all", set(), WELL), *GPU_FAULTS, *machine_faults()]
    top = scratch("doctor")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # each mostly waits for what it watches
        found = list(pool.map(lambda pair: examine(top / f"{pair[0]:02}", pair[1]), enumerate(faults)))
    report.raw["faults"] = found
    wrong = [case for case in found if case["fault"]]
    for case in wrong:
        print(f"  note  {case['what']}: {case['fault']}; exit {case.get('exit')}, {case.get('named')}: {case.get('said')}")
    report.add(holds("a machine without a fault", not found[0]["fault"], f"exit {found[0].get('exit')}, no complaint", "exit 0"))
    planted = len(found) - 1
    right = sum(not case["fault"] for case in found[1:])
    report.add(holds("planted faults that are named, alone, with their exit code", right == planted >= 20,
                     f"{right} of {planted}", "all, >= 20"))
    yaml = [case["yaml_accepted"] for case in found if case.get("yaml_accepted") is not None]
    report.add(holds("recommended files that `muster config` accepts unedited", yaml and all(is_so is True for is_so in yaml),
                     f"{sum(is_so is True for is_so in yaml)} of {len(yaml)}", "all"))
    unfit = [case for case in found if case.get("exit") == UNFIT and any("cuda:" in name or "cpu:" in name for name in case["named"])]
    report.add(holds("an unfit device is not available", unfit and not any(case["all_available"] for case in unfit),
                     f"{len(unfit)} machines, all_available false", "all"))
    measure_bad_input(report)
