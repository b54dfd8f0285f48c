"""The rows of the list `spine`: a real corpus embedded on every device. One module a row; each has TITLE,
IS_TIMED (it measures times, so it wants a quiet machine) and measure(report, arguments); a row that needs what not
every machine has tells by skip_reason() why it cannot run."""

ROWS = {
    1: "row01_quickstart",
    2: "row02_parity",
    3: "row03_families",
    4: "row04_token_ids",
    5: "row05_tokenizer_speed",
    6: "row06_same_bits",
    7: "row07_dead_workers",
    8: "row08_resume",
    9: "row09_engine_speed",
    10: "row10_command_speed",
    11: "row11_scaling",
    12: "row12_footprint",
    13: "row13_search_arrows_package",
    14: "row14_bad_input",
    15: "row15_fuzzing",
    16: "row16_gpu",
}
