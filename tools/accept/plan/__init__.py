"""The rows of the list `plan`: where a model goes, what it needs to the byte, and why. As in `spine`: one module a row."""

ROWS = {
    1: "row01_accelerate",
    2: "row02_mixed_devices",
    3: "row03_exact_chains",
    4: "row04_planning_speed",
    5: "row05_model_facts",
    6: "row06_memory",
    7: "row07_hostile_files",
    8: "row08_link_matrices",
    9: "row09_containers",
    10: "row10_same_bytes",
    11: "row11_plans_as_text",
    12: "row12_bad_input",
}
