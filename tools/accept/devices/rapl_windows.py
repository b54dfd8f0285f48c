"""RAPL's half of the energy row: counters that start again, counted through the whole program."""

import time

from devices.fleet import wait_until
from devices.machine_trees import Tree, device, last_line, recording
from report import holds

STEPS = 2**32  # of the counter behind energy_uj
PACKAGE_RANGE, PACKAGE_STEP_NJ = 65532610987, 15258    # floor((2^32 - 1) x 15,258 / 1000)
DRAM_RANGE, DRAM_STEP_NJ = 65712999613, 15300
HELD_S = 2.5  # each value is seen: the counters are read every second
# Whole microjoules of the package; where a value is smaller than the one before, the counter has turned.
PACKAGE_VALUES = [65_000_000_000, 1_000_000, 40_000_000_000, 500_000_000, 65_532_610_987, 12, 777_000_000]
DRAM_VALUES = [10, 20_000_000, 65_712_999_613, 0, 5_000_000, 4_000_000, 9_000_000]


def turned(values):
    return sum(after < before for before, after in zip(values, values[1:]))


def joules(values, step_nj):
    """What lies between the first and the last value, in joules, by whole numbers."""
    return (turned(values) * STEPS * step_nj + (values[-1] - values[0]) * 1000) / 1e9


def zone(tree, folder, name, range_uj):
    tree.write(f"sys/class/powercap/{folder}/name", name)
    tree.write(f"sys/class/powercap/{folder}/max_energy_range_uj", range_uj)


def measure_rapl(report):
    """Adds the checks of RAPL to a row's report. Takes about 20 s."""
    tree = Tree("rapl")
    zone(tree, "intel-rapl:0", "package-0", PACKAGE_RANGE)
    zone(tree, "intel-rapl:0:0", "core", PACKAGE_RANGE)
    zone(tree, "intel-rapl:0:1", "dram", DRAM_RANGE)
    zone(tree, "intel-rapl-mmio:0", "package-0", PACKAGE_RANGE)
    for cpu in range(256):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", 0)

    def put(index):
        package, dram = PACKAGE_VALUES[index], DRAM_VALUES[index]
        for folder, value in (("intel-rapl:0", package), ("intel-rapl:0:0", package), ("intel-rapl-mmio:0", package),
                              ("intel-rapl:0:1", dram)):
            tree.write(f"sys/class/powercap/{folder}/energy_uj", value)

    put(0)
    with recording(tree.root, "rapl") as out:
        for index in range(1, len(PACKAGE_VALUES)):
            time.sleep(HELD_S)
            put(index)
        time.sleep(HELD_S)
        readings = device(last_line(out), "cpu:0")["readings"]
        for name, values, step in (("package", PACKAGE_VALUES, PACKAGE_STEP_NJ), ("dram", DRAM_VALUES, DRAM_STEP_NJ)):
            expected, found = joules(values, step), readings.get(f"cpu_energy_{name}_joules")
            report.raw[f"rapl_{name}"] = {"values_uj": values, "expected_joules": expected, "found_joules": found}
            report.add(holds(f"RAPL {name} with {turned(values)} turns of its counter",
                             found is not None and abs(found - expected) < 2e-6, f"{found} J", f"{expected:.6f} J"))
    # A counter that cannot be read is absent, with what the system said.
    counter = tree.root / "sys/class/powercap/intel-rapl:0/energy_uj"
    counter.unlink()
    counter.mkdir()
    with recording(tree.root, "rapl") as out:
        wait_until("an error of RAPL", lambda: "21" in device(last_line(out), "cpu:0").get("errors", {}), 15)
        line = device(last_line(out), "cpu:0")
        errors = line.get("errors", {})
        is_absent = "cpu_energy_package_joules" not in line["readings"]
        report.add(holds("RAPL that cannot be read is absent, and the errno is told", is_absent and "21" in errors,
                         f"absent: {is_absent}, errors {errors}", "absent, errno 21 (a folder in its place)"))
