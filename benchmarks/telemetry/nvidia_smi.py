#!/usr/bin/env python3
"""Compares what nvml_bench reads of NVIDIA's GPUs with `nvidia-smi -q -x`, field by field.

    nvidia-smi -q -x > before.xml; build/bin/nvml_bench 60 10 > bench.json; nvidia-smi -q -x > after.xml
    benchmarks/telemetry/nvidia_smi.py before.xml bench.json after.xml

A value is right when it lies between the two of nvidia-smi, or beyond them by no more than the field's slack:
what moves between the readings (clocks, power, memory) has more than what does not.
"""

import json
import re
import sys
import xml.etree.ElementTree

MIB, MHZ = 2**20, 1e6

# Reading: paths in the order of drivers' ages, unit, slack (a share of the larger value, and an absolute one).
FIELDS = {
    "utilization_ratio": (["utilization/gpu_util"], 0.01, 0, 0.3),
    "memory_busy_ratio": (["utilization/memory_util"], 0.01, 0, 0.3),
    "power_instant_watts": (["gpu_power_readings/instant_power_draw", "power_readings/instant_power_draw"], 1, 0.1, 20),
    "power_1s_watts": (["gpu_power_readings/average_power_draw", "gpu_power_readings/power_draw",
                        "power_readings/average_power_draw"], 1, 0.1, 20),
    "memory_size_bytes": (["fb_memory_usage/total"], MIB, 0, MIB),
    "memory_reserved_bytes": (["fb_memory_usage/reserved"], MIB, 0, MIB),
    "memory_used_bytes": (["fb_memory_usage/used"], MIB, 0.01, 64 * MIB),
    "memory_free_bytes": (["fb_memory_usage/free"], MIB, 0.01, 64 * MIB),
    "temperature_core_celsius": (["temperature/gpu_temp"], 1, 0, 3),
    "temperature_memory_celsius": (["temperature/memory_temp"], 1, 0, 3),
    "temperature_headroom_celsius": (["temperature/gpu_temp_tlimit"], 1, 0, 3),
    "temperature_limit_shutdown_celsius": (["temperature/gpu_temp_max_threshold"], 1, 0, 0),
    "temperature_limit_slowdown_celsius": (["temperature/gpu_temp_slow_threshold"], 1, 0, 0),
    "temperature_limit_core_celsius": (["temperature/gpu_temp_max_gpu_threshold"], 1, 0, 0),
    "temperature_limit_memory_celsius": (["temperature/gpu_temp_max_mem_threshold"], 1, 0, 0),
    "clock_graphics_hertz": (["clocks/graphics_clock"], MHZ, 0.05, 100 * MHZ),
    "clock_sm_hertz": (["clocks/sm_clock"], MHZ, 0.05, 100 * MHZ),
    "clock_memory_hertz": (["clocks/mem_clock"], MHZ, 0.05, 100 * MHZ),
    "clock_video_hertz": (["clocks/video_clock"], MHZ, 0.05, 100 * MHZ),
    "clock_max_graphics_hertz": (["max_clocks/graphics_clock"], MHZ, 0, 0),
    "clock_max_sm_hertz": (["max_clocks/sm_clock"], MHZ, 0, 0),
    "clock_max_memory_hertz": (["max_clocks/mem_clock"], MHZ, 0, 0),
    "clock_max_video_hertz": (["max_clocks/video_clock"], MHZ, 0, 0),
    "power_limit_watts": (["gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"], 1, 0, 0.01),
    "power_limit_default_watts": (["gpu_power_readings/default_power_limit", "power_readings/default_power_limit"], 1, 0, 0.01),
    "power_limit_min_watts": (["gpu_power_readings/min_power_limit", "power_readings/min_power_limit"], 1, 0, 0.01),
    "power_limit_max_watts": (["gpu_power_readings/max_power_limit", "power_readings/max_power_limit"], 1, 0, 0.01),
    "pcie_generation": (["pci/pci_gpu_link_info/pcie_gen/current_link_gen"], 1, 0, 4),
    "pcie_generation_max": (["pci/pci_gpu_link_info/pcie_gen/max_link_gen"], 1, 0, 0),
    "pcie_lanes": (["pci/pci_gpu_link_info/link_widths/current_link_width"], 1, 0, 0),
    "pcie_lanes_max": (["pci/pci_gpu_link_info/link_widths/max_link_width"], 1, 0, 0),
    "pcie_replays": (["pci/replay_counter"], 1, 0, 0),
    "remapped_rows_correctable": (["remapped_rows/remapped_row_corr"], 1, 0, 0),
    "remapped_rows_uncorrectable": (["remapped_rows/remapped_row_unc"], 1, 0, 0),
}

# Sums over parts that nvidia-smi tells apart.
SUMS = {
    "ecc_corrected_volatile_errors": "ecc_errors/volatile/*_correctable*",
    "ecc_corrected_aggregate_errors": "ecc_errors/aggregate/*_correctable*",
    "ecc_uncorrected_volatile_errors": "ecc_errors/volatile/*_uncorrectable*",
    "ecc_uncorrected_aggregate_errors": "ecc_errors/aggregate/*_uncorrectable*",
}

# Facts of the identity: path, and how nvidia-smi words it.
FACTS = {
    "uuid": ("uuid", str), "serial": ("serial", str), "vbios": ("vbios_version", str),
    "ecc": ("ecc_mode/current_ecc", lambda text: text == "Enabled"),
    "mig": ("mig_mode/current_mig", lambda text: text == "Enabled"),
    "persistence": ("persistence_mode", lambda text: text == "Enabled"),
    "model": ("product_name", str),
}

ABSENT = {"N/A", "[N/A]", "Not Supported", "Requested functionality has been deprecated", ""}


def text_of(gpu, path):
    found = gpu.findtext(path)
    return None if found is None or found.strip() in ABSENT else found.strip()


def number_of(gpu, paths, unit):
    for path in paths:
        text = text_of(gpu, path)
        if text is not None:
            number = re.match(r"-?[0-9.]+", text)
            return float(number.group()) * unit if number else None
    return None


def sum_of(gpu, pattern):
    folder, name = pattern.rsplit("/", 1)
    wanted = re.compile(name.replace("*", ".*"))
    parent = gpu.find(folder)
    counts = [int(part.text) for part in (parent if parent is not None else [])
              if wanted.fullmatch(part.tag) and (part.text or "").strip().isdigit()]
    return float(sum(counts)) if counts else None


def values_of(gpu):
    values = {name: number_of(gpu, paths, unit) for name, (paths, unit, _, _) in FIELDS.items()}
    values.update({name: sum_of(gpu, pattern) for name, pattern in SUMS.items()})
    return {name: value for name, value in values.items() if value is not None}


def gpus_of(xml_text):
    """The GPUs of an nvidia-smi answer, by upper-case PCI address."""
    root = xml.etree.ElementTree.fromstring(xml_text)
    return {gpu.get("id").upper(): gpu for gpu in root.findall("gpu")}


def is_within(name, value, before, after):
    share, absolute = FIELDS[name][2:] if name in FIELDS else (0, 0)
    slack = max(share * max(abs(before), abs(after)), absolute)
    return min(before, after) - slack <= value <= max(before, after) + slack


def compare_gpu(device, before, after):
    """Rows {field, ours, before, after, verdict}: ok, WRONG, or MISSING where only nvidia-smi has a value."""
    rows = []
    smi_before, smi_after = values_of(before), values_of(after)
    for name in [*FIELDS, *SUMS]:
        if name not in smi_before or name not in smi_after:
            continue
        ours = device["readings"].get(name)
        verdict = "MISSING" if ours is None else \
            "ok" if is_within(name, ours, smi_before[name], smi_after[name]) else "WRONG"
        rows.append({"field": name, "ours": ours, "before": smi_before[name], "after": smi_after[name], "verdict": verdict})
    for name, (path, meaning) in FACTS.items():
        text = text_of(before, path)
        if text is None:
            continue
        ours = device.get(name)
        verdict = "MISSING" if ours is None else "ok" if ours == meaning(text) else "WRONG"
        rows.append({"field": name, "ours": ours, "before": text, "after": text_of(after, path), "verdict": verdict})
    return rows


def compare(before_xml, bench, after_xml):
    """The same for every whole GPU of the bench: {PCI address: rows}."""
    before, after = gpus_of(before_xml), gpus_of(after_xml)
    found = {}
    for device in bench["devices"]:
        address = device.get("pci_address")
        if "parent" in device or address not in before or address not in after:
            continue
        found[address] = compare_gpu(device, before[address], after[address])
    return found


def main():
    if len(sys.argv) != 4:
        sys.exit("nvidia_smi.py BEFORE.xml BENCH.json AFTER.xml")
    before, bench, after = (open(name, encoding="utf-8").read() for name in sys.argv[1:])
    wrong = 0
    for address, rows in compare(before, json.loads(bench), after).items():
        print(address)
        for row in rows:
            wrong += row["verdict"] != "ok"
            print(f"  {row['verdict']:<8} {row['field']:<36} {row['ours']}   nvidia-smi {row['before']} .. {row['after']}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
