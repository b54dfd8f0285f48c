"""The rows of the list `devices`: what the machine has, what it does now, and what is wrong with it. As in `spine`: one module a row."""

ROWS = {
    1: "row01_lint",
    2: "row02_driver_faults",
    3: "row03_hang",
    4: "row04_xids",
    5: "row05_alerts",
    6: "row06_dashboard",
    7: "row07_cost",
    8: "row08_energy",
    9: "row09_screens",
    10: "row10_memory_limits",
    11: "row11_doctor",
    12: "row12_same_device",
    13: "row13_real_gpu",
}
