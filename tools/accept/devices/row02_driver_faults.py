"""The detector under four generations of the driver, with each function failing and each symbol missing in turn."""

import concurrent.futures
import json
import re
import signal
import struct
import subprocess
import sys
import time

from devices import fleet
from programs import BUILD, MUSTER, ROOT, scratch
from report import holds

sys.path.insert(0, str(ROOT / "tools" / "fixtures"))
import hide_nvml_symbol  # noqa: E402

TITLE = "Four driver generations, each function failing, each symbol missing: only its own fields degrade"
IS_TIMED = False

GENERATIONS = {450: "A100-40G", 535: "H100-80G", 580: "H100-80G", 590: "H100-80G"}
UNKNOWN_ERROR = 999
AT_ONCE = 12  # runs that wait side by side
STEADY_S = 1.4  # the medium tier's second visit, which the first activities come of
LIMIT_S = 25

# What each driver cannot tell of a GPU; everything else that series 590 tells must be there.
# Source: nvml.h of CUDA 11.0, 12.2 and 13.0, which fields and functions they declare; no average power on GA100.
ACTIVITY = r"(sm|dram|fp16|fp32|fp64|int|tensor|tensor_\w+)_active_ratio|sm_occupancy_ratio"
TRAFFIC = r"pcie_(sent|received)_bytes"  # by GPM where the fields of drivers from 555 on are not there
NEW_THROTTLE = r"(sw_thermal|hw_thermal|hw_power_brake)_seconds"
ABSENT = {
    450: rf"{ACTIVITY}|{TRAFFIC}|{NEW_THROTTLE}|power_1s_watts|memory_reserved_bytes|temperature_headroom_celsius|recovery_action|"
         r"multiprocessor_count",
    535: rf"{NEW_THROTTLE}|temperature_headroom_celsius|recovery_action",
    580: NEW_THROTTLE,
    590: r"",
}

# What a function's failure or absence may take, beside nothing. A field that comes back by an older function may
# have another value: memory in use counts what is reserved, energy and power come from calls of their own.
OWN_FIELDS = {
    r"nvmlDeviceGetName": r"model|mig_profile",
    r"nvmlDeviceGetUUID": r"uuid",
    r"nvmlDeviceGetSerial": r"serial",
    r"nvmlDeviceGetVbiosVersion": r"vbios",
    r"nvmlDeviceGetPciInfo_v\d": r"pci_address|index|name|cuda_ordinal",
    # Multiprocessors are cores by the capability; power is an instant's on GA100, which it tells.
    r"nvmlDeviceGetCudaComputeCapability": r"compute_capability|multiprocessor_count|power_instant_watts",
    r"nvmlDeviceGetNumGpuCores": r"multiprocessor_count",
    r"nvmlDeviceGetPersistenceMode": r"persistence",
    r"nvmlDeviceGetComputeMode": r"compute_mode",
    r"nvmlDeviceGetEccMode": r"ecc",
    r"nvmlDeviceGetAddressingMode": r"unified_memory",
    r"nvmlDeviceGetMemoryAffinity": r"numa_node",
    r"nvmlDeviceGetMigMode": r"mig|cuda_ordinal",
    r"nvmlDeviceGetMaxMigDeviceCount|nvmlDeviceGetMigDeviceHandleByIndex": r"cuda_ordinal",
    r"nvmlDeviceGetAttributes_v2": r"memory_total_bytes|multiprocessor_count",
    r"nvmlDeviceGetGpuInstanceId": rf"gpu_instance|{ACTIVITY}",
    r"nvmlDeviceGetComputeInstanceId": r"compute_instance",
    r"nvmlSystemGetDriverVersion": r"driver_version",
    r"nvmlSystemGetCudaDriverVersion(_v2)?": r"cuda_version",
    r"nvmlSystemGetProcessName": r"processes\.\d+\.command",
    r"nvmlDeviceGetUtilizationRates": r"(utilization|memory_busy)_ratio",
    r"nvmlDeviceGetMemoryInfo(_v2)?": r"memory_(used|free|reserved|size|total)_bytes",
    r"nvmlDeviceGetTemperatureV?": r"temperature_core_celsius",
    r"nvmlDeviceGetTemperatureThreshold": r"temperature_limit_\w+_celsius",
    r"nvmlDeviceGetMarginTemperature": r"temperature_headroom_celsius",
    r"nvmlDeviceGetPowerUsage": r"power_(1s|instant)_watts",
    r"nvmlDeviceGetTotalEnergyConsumption": r"energy_joules",
    r"nvmlDeviceGetEnforcedPowerLimit": r"power_limit_watts",
    r"nvmlDeviceGetPowerManagement\w+": r"power_limit(_\w+)?_watts",
    r"nvmlDeviceGetClockInfo": r"clock_(graphics|sm|memory|video)_hertz",
    r"nvmlDeviceGetMaxClockInfo": r"clock_max_\w+_hertz",
    r"nvmlDeviceGetCurrentClocks(Event|Throttle)Reasons": r"clock_events",
    r"nvmlDeviceGetFieldValues": r"ecc_\w+|energy_joules|\w+_seconds|nvlink_\w+|pcie_\w+|power_\w+|recovery_action|remap\w+|"
                                 r"retired_\w+|temperature_memory_celsius",
    r"nvmlDeviceGetTotalEccErrors": r"ecc_\w+_errors",
    r"nvmlDeviceGetRemappedRows": r"remap\w+",
    r"nvmlDeviceGetRetiredPages": r"retired_\w+",
    r"nvmlDeviceGet(Curr|Max)PcieLinkGeneration": r"pcie_generation(_max)?",
    r"nvmlDeviceGet(Curr|Max)PcieLinkWidth": r"pcie_lanes(_max)?",
    r"nvmlDeviceGetPcieReplayCounter": r"pcie_replays",
    r"nvmlDeviceGetNvLinkState": r"nvlink_\w+",
    r"nvmlDeviceGetNvLinkRemote\w+|nvmlDeviceGetTopologyCommonAncestor": r"",  # of the topology alone
    r"nvmlDeviceGet(Compute|Graphics|MPSCompute)RunningProcesses(_v\d)?|nvmlDeviceGetRunningProcessDetailList": r"processes(\..+)?",
    r"nvmlDeviceGetConfComputeMemSizeInfo": r"",
    r"nvmlGpm\w+": rf"{ACTIVITY}|{TRAFFIC}",
    r"nvmlEvent\w+|nvmlDeviceRegisterEvents|nvmlDeviceGetSupportedEventTypes": r"",  # of XIDs alone
    r"nvmlShutdown|nvmlErrorString|nvmlSystemGetNVMLVersion": r"",
    r"nvmlInit(_v2)?|nvmlDeviceGetCount(_v2)?": r".*",  # without these there is no GPU
    r"nvmlDeviceGetHandleByIndex(_v2)?": r".*",         # a GPU that cannot be opened is there and lost
}
# Whose failure may take a slice, or a whole GPU, out of the list.
TAKES_SLICES = re.compile(r"nvmlDeviceGet(MigMode|MaxMigDeviceCount|MigDeviceHandleByIndex)|nvmlDeviceGetHandleByIndex(_v2)?")
TAKES_GPUS = re.compile(r"nvmlInit(_v2)?|nvmlDeviceGetCount(_v2)?")
# What the numbering of a neighbour may show of it: CUDA's numbers, and the place on the bus.
OF_THE_LIST = {"cuda_ordinal", "index", "name"}

# Counters and what the machine's own clock gives: they differ from run to run, their presence does not.
MOVES = re.compile(r"energy_joules|.*_seconds|.*_bytes$(?<!memory_used_bytes)(?<!memory_free_bytes)|last_success|processes\.\d+\.pid")


def gpus_of(model, faulty):
    """Three GPUs: the first and the last fail, the second is the neighbour that nothing may happen to."""
    slices = [{"profile": "1g.10gb" if model != "A100-40G" else "1g.5gb", "gpu_instance": 7}]
    faults = {"errors": faulty} if faulty else {}
    process = {"pid": 7, "name": "train", "memory_bytes": 3 << 30}
    in_slice = {**process, "memory_bytes": 2 << 30, "gpu_instance": 7, "compute_instance": 0}
    usual = {"model": model, "load": 0.5, "values": {"ecc_corrected_volatile": 3, "nvlink_replay": 2}}
    return [{**usual, "processes": [process], **faults}, {**usual, "processes": [process]},
            {**usual, "mig": slices, "processes": [in_slice], **faults}]


def is_of_a_device(function):
    """Whether a call of it is about one GPU, so that a fault can be one GPU's."""
    return (function.startswith("nvmlDevice") and "GetCount" not in function and "HandleBy" not in function) or \
        function in {"nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmQueryDeviceSupport"} or "HandleByIndex" in function


def flat(value, prefix=""):
    """Every leaf of a device's JSON by its path."""
    if isinstance(value, dict):
        return {key: leaf for name, part in value.items() for key, leaf in flat(part, f"{prefix}{name}.").items()}
    if isinstance(value, list):
        return {key: leaf for i, part in enumerate(value) for key, leaf in flat(part, f"{prefix}{i}.").items()}
    return {prefix.rstrip("."): value}


def devices_of(line):
    """The GPUs of a line of `muster monitor --out`: their fields, without health, and how many readings failed."""
    found = []
    for device in json.loads(line)["devices"]:
        if device["kind"] == "cuda":
            fields = {key.removeprefix("readings."): value for key, value in flat(device).items()
                      if not key.startswith(("health.", "errors."))}
            found.append((fields, sum(device.get("errors", {}).values())))
    return found


def same_device(devices, fields):
    """The fields of the device that is the same one: by UUID, by what else names it where that failed."""
    for key in ("uuid", "serial", "pci_address", "name"):
        for other, _ in devices:
            if key in fields and other.get(key) == fields[key]:
                return other
    return None


def watch(library, scenario_file, out, is_enough):
    """Runs `muster monitor` until a line is enough, and returns exit code, stderr and that line."""
    out.unlink(missing_ok=True)
    process = subprocess.Popen([MUSTER, "monitor", "--nvml-path", library, "--out", out, "--interval", "200ms"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env=fleet.environment(scenario_file))
    line, first, end = "", None, time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        lines = out.read_text().splitlines(keepends=True) if out.exists() else []
        if not lines or not lines[-1].endswith("\n"):
            continue
        line, first = lines[-1], first or time.monotonic()
        if time.monotonic() - first > STEADY_S and is_enough(line, time.monotonic() - first):
            break
    process.send_signal(signal.SIGTERM)
    try:
        said = process.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[1]
    return process.returncode, said, line


def library_of(generation):
    return BUILD / "lib" / ("libfakenvml.so" if generation == 590 else f"libfakenvml-{generation}.so")


def case(generation, name, function=None, library=None, settings=None, wanted=None):
    """One run: exit code, what it said, and the devices it saw."""
    fails_alone = function is not None and is_of_a_device(function)
    faulty = {function: UNKNOWN_ERROR} if fails_alone else None
    everywhere = {} if function is None or fails_alone else {"errors": {function: UNKNOWN_ERROR}}
    where = fleet.scenario(f"faults-{generation}-{name}", gpus_of(GENERATIONS[generation], faulty), **everywhere, **(settings or {}))

    def is_enough(line, waited_s):
        # The neighbour has all that it will have; a machine that is busy may be late with it.
        if waited_s > 4 or wanted is None:
            return waited_s > 4
        neighbour = same_device(devices_of(line), wanted)
        return neighbour is not None and wanted.keys() <= neighbour.keys()
    code, said, line = watch(library or library_of(generation), where, scratch(f"faults-{generation}-{name}.jsonl"), is_enough)
    return {"exit": code, "said": said.strip(), "devices": devices_of(line) if line else None}


def functions_called(path):
    """Of a statistics file (docs/formats/fake-nvml.md): the functions that were called."""
    image = path.read_bytes()
    rows, = struct.unpack_from("<I", image, 12)
    names = {}
    for i in range(rows):
        name, calls = struct.unpack_from("<56sQ", image, 16 + 64 * i)
        names[name.rstrip(b"\0").decode()] = calls
    return {name for name, calls in names.items() if calls}


def differences(fields, baseline):
    """Keys that are missing or have another value; a key that came in addition counts as another value."""
    different = set()
    for key in baseline.keys() | fields.keys():
        if key not in fields or key not in baseline:
            different.add(key)
        elif not MOVES.fullmatch(key) and not is_close(fields[key], baseline[key]):
            different.add(key)
    return different


def is_close(a, b):
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return a == b


def own_fields(function):
    for pattern, fields in OWN_FIELDS.items():
        if re.fullmatch(pattern, function):
            return re.compile(fields)
    raise KeyError(f"{function} has no row in OWN_FIELDS")


def faults_of(found, baseline, function, is_hidden):
    """What is wrong beyond what the function is for; empty when only its own fields degraded."""
    if found["exit"] != 0 or found["devices"] is None:
        return [f"exit {found['exit']}: {found['said'][-200:]}"]
    if TAKES_GPUS.fullmatch(function):
        return []
    wrong, own = [], own_fields(function)
    for position, (fields, _) in enumerate(baseline):
        device = same_device(found["devices"], fields)
        if device is None:
            is_slice = "gpu_instance" in fields
            if not (is_slice and (TAKES_SLICES.fullmatch(function) or function == "nvmlDeviceGetUUID")):
                wrong.append(f"{fields['name']} is gone")
            continue
        is_neighbour = position == 1 and not is_hidden and is_of_a_device(function)
        for key in sorted(differences(device, fields)):
            if not (key in OF_THE_LIST if is_neighbour else own.fullmatch(key)):
                wrong.append(f"{fields['name']}: {key}")
    return wrong


def run_all(generation, called, baseline):
    """Every function of `called` failing, and missing: its name, how, and what is wrong."""
    neighbour = baseline[1][0]

    def failing(function):
        return case(generation, function, function, wanted=neighbour)

    def missing(function):
        library = scratch(f"faults-{generation}-{function}.so")
        hide_nvml_symbol.hide(library_of(generation), function, library)
        try:
            return case(generation, f"{function}-missing", library=library, wanted=neighbour)
        finally:
            library.unlink()

    def one(job):
        function, is_hidden = job
        found = missing(function) if is_hidden else failing(function)
        return function, is_hidden, faults_of(found, baseline, function, is_hidden)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, [(function, is_hidden) for function in sorted(called) for is_hidden in (False, True)]))


def vendor_libraries():
    """Of what the loader brings in with muster and its sampler: names of a GPU vendor's libraries."""
    said = subprocess.run(["ldd", MUSTER, MUSTER.with_name("muster-sampler")], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines() if re.match(r"\s*lib(nvidia|nvml|cuda|cublas|amdhip|rocm|amd_?smi|hsa)", line)]


def baseline_of(generation):
    statistics = scratch(f"faults-{generation}.calls")
    statistics.unlink(missing_ok=True)
    found = case(generation, "none", settings={"statistics_file": str(statistics)})
    # The file is opened by the start itself, and the end comes after the last line.
    return found, functions_called(statistics) | {"nvmlInit_v2", "nvmlShutdown", "nvmlErrorString"}


def show_generation(report, generation, newest):
    found, called = baseline_of(generation)
    devices = found["devices"] or []
    absent = set()
    for (fields, _), (all_fields, _) in zip(devices, newest):
        if "gpu_instance" not in all_fields:
            absent |= all_fields.keys() - fields.keys()
    expected = re.compile(ABSENT[generation])
    unexpected = sorted(key for key in absent if not expected.fullmatch(key))
    held = [fields.get("processes.0.memory_bytes") for fields, _ in devices]
    is_right = found["exit"] == 0 and len(devices) == 4 and not unexpected and held == [3 << 30, 3 << 30, 2 << 30, 2 << 30]
    report.raw[f"series {generation}"] = {"absent": sorted(absent), "called": sorted(called), "fields": [len(f) for f, _ in devices]}
    report.add(holds(f"driver {generation}: 3 GPUs and a slice, their processes", is_right,
                     f"{len(devices)} devices, {len(absent)} fields fewer than with 590" +
                     (f", unexpected: {unexpected}" if unexpected else ""), "all that this driver can tell"))
    if not is_right:
        return
    results = run_all(generation, called, devices)
    for is_hidden, how in ((False, "failing"), (True, "missing")):
        of_kind = [(function, wrong) for function, hidden, wrong in results if hidden == is_hidden]
        wrong = {function: faults for function, faults in of_kind if faults}
        report.raw[f"series {generation}, {how}"] = wrong
        report.add(holds(f"driver {generation}: each of {len(of_kind)} functions {how} in turn", not wrong,
                         f"{len(of_kind) - len(wrong)} took their own fields alone" + (f"; {json.dumps(wrong)[:300]}" if wrong else ""),
                         "only its own fields, exit 0"))


def measure(report, _arguments):
    vendors = vendor_libraries()
    report.add(holds("libraries of a GPU vendor that muster is linked to", not vendors, ", ".join(vendors) or "none", "none"))
    newest = baseline_of(590)[0]["devices"]
    for generation in GENERATIONS:
        show_generation(report, generation, newest)
