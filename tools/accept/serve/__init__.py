"""The rows of the list `serve`: an embedding service over all devices that no single device's failure stops. One module a row."""

ROWS = {
    1: "row01_clients",
    2: "row02_latency",
    3: "row03_throughput",
    4: "row04_cache_hits",
    5: "row05_kill",
    6: "row06_faults",
    7: "row07_poison",
    8: "row08_overload",
    9: "row09_scheduler",
    10: "row10_endings",
    11: "row11_hostile_clients",
    12: "row12_soak",
    13: "row13_schemathesis",
    14: "row14_xlmr",
    15: "row15_environment",
    16: "row16_peers",
    17: "row17_bad_inputs",
}
