"""The rows of the list `ground`: nothing lost, nothing silently wrong, a server that stands in the open. One module a row."""

ROWS = {
    1: "row01_faults",
    2: "row02_interleavings",
    3: "row03_broken_devices",
    4: "row04_first_minute",
    5: "row05_attacks",
    6: "row06_fair_shares",
    7: "row07_sigterm",
    8: "row08_overload",
    9: "row09_test_time",
    10: "row10_long_tests",
}
