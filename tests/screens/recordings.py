"""Recordings that `muster top --replay` shows: machines in the form of docs/formats/telemetry.md, the same each time.

    recordings.py FOLDER     writes every one of them there, as NAME.jsonl
"""

import json
import math
import pathlib
import sys

BEGIN = 1_700_000_000  # 2023-11-14 22:13:20 UTC
SECONDS = 121
GIB = 1 << 30
WELL = ("present", "xid", "recovery", "ecc", "remap", "thermal", "power_brake", "nvlink", "pcie", "memory")


def load(index, second):
    """A share that goes up and down, each device at its own pace."""
    return round(0.55 + 0.4 * math.sin((second + 7 * index) / (5 + index % 8)), 3)


def h200(index, second):
    busy = load(index, second)
    watts = round(77.7 + 549.3 * busy, 1)
    return {
        "name": f"cuda:{index}", "kind": "cuda", "index": index, "model": "NVIDIA H200",
        "uuid": f"GPU-{index:08x}-1111-2222-3333-444444444444", "pci_address": f"00000000:{0x1B + index:02X}:00.0",
        "memory_total_bytes": 150754820096, "driver_version": "590.48.01", "cuda_version": "13.1", "numa_node": index // 4,
        "cuda_ordinal": index, "up": True, "last_success": BEGIN + second,
        "readings": {
            "utilization_ratio": busy, "power_instant_watts": watts, "power_1s_watts": watts,
            "energy_joules": 1e6 + index * 1e5 + 400.0 * second, "clock_events": 0,
            "memory_used_bytes": (90 + 5 * (index % 8)) * GIB, "memory_size_bytes": 150754820096,
            "temperature_core_celsius": round(28 + 24 * busy), "temperature_memory_celsius": round(32 + 8 * busy),
            "temperature_headroom_celsius": round(59 - 24 * busy),
            "clock_sm_hertz": 1.98e9, "clock_max_sm_hertz": 1.98e9, "clock_memory_hertz": 3.201e9,
            "sm_active_ratio": round(busy * 0.94, 3), "tensor_active_ratio": round(busy * 0.5, 3),
            "dram_active_ratio": round(busy * 0.4, 3), "sm_occupancy_ratio": round(busy * 0.3, 3),
            "sw_power_cap_seconds": 10.0, "pcie_sent_bytes": 2e9 * second, "pcie_received_bytes": 1e9 * second,
            "nvlink_sent_bytes": 30e9 * second, "nvlink_received_bytes": 30e9 * second,
            "power_limit_watts": 700, "power_limit_default_watts": 700, "power_limit_min_watts": 200,
            "power_limit_max_watts": 700, "pcie_generation": 5, "pcie_lanes": 16, "nvlink_links_active": 18,
            "ecc_corrected_volatile_errors": 0, "ecc_uncorrected_volatile_errors": 0,
        },
        "processes": [{"pid": 4000 + index, "command": "python3", "memory_bytes": (88 + 5 * (index % 8)) * GIB, "kind": "compute"}],
        "health": [{"watch": watch, "state": "well"} for watch in WELL],
    }


def cpu(index, second):
    busy = load(index + 3, second)
    return {
        "name": f"cpu:{index}", "kind": "cpu", "index": index, "model": "AMD EPYC 9654 96-Core Processor", "numa_node": index,
        "cpus": list(range(index * 8, index * 8 + 8)), "memory_total_bytes": 768 * 10**9, "up": True,
        "last_success": BEGIN + second, "core_loads": [round(load(core, second), 2) for core in range(8)],
        "readings": {
            "cpu_utilization_ratio": busy, "cpu_frequency_hertz": 3.7e9, "cpu_energy_package_joules": 210.0 * second,
            "cpu_memory_size_bytes": 768e9, "cpu_memory_free_bytes": 120e9,  # the rest is page cache
            "cpu_memory_available_bytes": 700e9 - 1e9 * index,
            **({"host_memory_size_bytes": 1536e9, "host_memory_available_bytes": 1390e9} if index == 0 else {}),
        },
        "health": [],
    }


# Programs that run on any server, with the share of a core and the memory that each takes.
SERVICES = (("prometheus", 0.11, 512), ("dockerd", 0.03, 98), ("containerd", 0.02, 61), ("node_exporter", 0.02, 24), ("sshd", 0, 11),
            ("systemd-journal", 0.01, 48), ("systemd", 0, 14), ("rsyslogd", 0, 9), ("chronyd", 0, 5), ("dbus-daemon", 0, 6), ("cron", 0, 3),
            ("agetty", 0, 2), ("systemd-logind", 0, 9), ("systemd-udevd", 0, 12), ("bash", 0, 5), ("tmux: server", 0.01, 7), ("vim", 0, 22))


def process(pid, command, cores, megabytes, **more):
    return {"pid": pid, "command": command, "cores": cores, "memory_bytes": megabytes * 10**6} | more


def services(first_pid):
    return [process(first_pid + 13 * number, name, cores, megabytes) for number, (name, cores, megabytes) in enumerate(SERVICES)]


def take_down(device, reason):
    device.update({"up": False, "down_reason": reason, "readings": {}, "processes": []})
    find(device, "present").update({"state": "unfit", "sentence": reason})


def find(device, watch):
    return next(finding for finding in device["health"] if finding["watch"] == watch)


def moment(second, devices, gpus, links=None, absent=None, processes=()):
    line = {"time": BEGIN + second, "machine": "here", "expected_gpus": gpus}
    if absent:
        line["gpu_absent_reason"] = absent
    label = "NV18" if links is None else links
    return line | {
        "devices": devices,
        "processes": sorted(processes, key=lambda one: (-one["cores"], -one["memory_bytes"])),
        "links": ["X" if a == b else label for a in range(gpus) for b in range(gpus)],
        "collector": {"restarts": 0, "cpu_seconds": 1 + 0.0016 * second, "rss_bytes": 8_600_000, "sampler_pid": 77,
                      "missed_visits": [0, 0, 0]},
    }


def fleet(second):
    """Eight GPUs, of which one hangs, one is lost, one is held back by its power cap; hostile names."""
    devices = [h200(index, second) for index in range(8)]
    take_down(devices[3], "hung in nvmlDeviceGetFieldValues for 3 s")
    find(devices[6], "xid").update({"state": "unfit", "sentence": "XID 79 was reported: the GPU has fallen off the bus"})
    devices[6]["xids"] = {"79": {"count": 1, "last": BEGIN}}
    take_down(devices[6], "GPU is lost (NVML 15)")
    find(devices[1], "memory").update({"state": "warning", "sentence": "memory is 97 % full"})
    devices[1]["readings"]["memory_used_bytes"] = 0.97 * 150754820096
    devices[5]["readings"] |= {"clock_events": 4, "sw_power_cap_seconds": 10 + 0.62 * second, "clock_sm_hertz": 1.305e9}
    devices[0]["processes"] += [
        {"pid": 0, "command": "", "memory_bytes": 3 * GIB, "kind": "mps"},
        {"pid": 31337, "command": "évil \x1b[2J\n漢字", "memory_bytes": 2 * GIB, "kind": "graphics"},
    ]
    loaders = [process(4000 + index, "python3", round(1.2 + 0.1 * index, 2), 18_000 + 500 * index) for index in range(8)]
    return moment(second, devices + [cpu(0, second), cpu(1, second)], 8, processes=loaders + services(600))


def slices(second):
    """Two GPUs, the first split by MIG."""
    devices = [h200(0, second), h200(1, second)]
    devices[0]["mig"] = True
    del devices[0]["cuda_ordinal"]
    for reading in ("utilization_ratio", "clock_events"):
        del devices[0]["readings"][reading]
    parts = []
    for index, (profile, size) in enumerate((("3g.71gb", 71), ("2g.35gb", 35), ("1g.18gb", 18))):
        parts.append({
            "name": f"cuda:0:{index}", "kind": "cuda", "index": index, "model": f"NVIDIA H200 MIG {profile}",
            "uuid": f"MIG-{index:08x}-1111-2222-3333-444444444444", "memory_total_bytes": size * 10**9,
            "driver_version": "590.48.01", "cuda_ordinal": index, "parent": devices[0]["uuid"], "mig_profile": profile,
            "up": True, "last_success": BEGIN + second,
            "readings": {"memory_used_bytes": size * 0.5e9, "memory_size_bytes": size * 1e9, "sm_active_ratio": load(index, second)},
            "health": [{"watch": "present", "state": "well"}],
        })
    # The driver lists what runs on a slice once more for the whole GPU.
    shared = {"pid": 5151, "command": "tritonserver", "memory_bytes": 30 * GIB, "kind": "compute"}
    devices[0]["processes"], parts[0]["processes"] = [shared], [dict(shared)]
    return moment(second, [devices[0], *parts, devices[1], cpu(0, second)], 2)


def cpu_only(second):
    return moment(second, [cpu(0, second), cpu(1, second)], 0, absent="no NVIDIA driver (libnvidia-ml.so.1)")


def cpu_busy(second):
    """A small machine without a GPU, while `muster embed` runs on two halves of its CPU."""
    device = cpu(0, second)
    device.update({"model": "AMD EPYC 9B14 96-Core Processor", "cpus": list(range(8)), "memory_total_bytes": 33 * 10**9})
    used = round(2.9e9 + 1.4e9 * load(2, second))
    device["readings"].update({"cpu_memory_size_bytes": 33e9, "cpu_memory_free_bytes": 3e9, "cpu_memory_available_bytes": 33e9 - used,
                               "host_memory_size_bytes": 33e9, "host_memory_available_bytes": 33e9 - used})
    del device["readings"]["cpu_energy_package_joules"]
    device["health"] = [{"watch": "present", "state": "well"}, {"watch": "memory", "state": "well"}]
    embed = [process(7311 + index, "muster-worker", round(3.7 - 0.3 * index, 2), 412 + index, device=f"cpu:{index}", models="all-MiniLM-L6-v2")
             for index in range(2)]
    embed.append(process(7300, "muster", 0.21, 96))
    return moment(second, [device], 0, absent="no NVIDIA driver (libnvidia-ml.so.1)", processes=embed + services(300))


def one(second):
    return moment(second, [h200(0, second), cpu(0, second)], 1)


def rack(second):
    return moment(second, [h200(index, second) for index in range(64)] + [cpu(0, second)], 64)


RECORDINGS = {"fleet": fleet, "slices": slices, "cpu_only": cpu_only, "cpu_busy": cpu_busy, "one": one, "rack": rack}


def write(folder):
    """Writes all of them; the paths by name."""
    paths = {}
    for name, at in RECORDINGS.items():
        path = pathlib.Path(folder) / f"{name}.jsonl"
        count = SECONDS if name != "rack" else 3
        with path.open("w", encoding="utf-8") as out:
            for second in range(count):
                out.write(json.dumps(at(second), ensure_ascii=False, separators=(",", ":")) + "\n")
        paths[name] = path
    return paths


if __name__ == "__main__":
    write(sys.argv[1])
