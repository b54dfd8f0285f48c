"""The rows of the list `bench`: the instrument of `muster bench` tried on servers and series whose truth is known. One module a row."""

ROWS = {
    1: "row01_queues",
    2: "row02_freeze",
    3: "row03_rate",
    4: "row04_intervals",
    5: "row05_comparisons",
    6: "row06_warm_up",
    7: "row07_energy",
    8: "row08_documents_file",
    9: "row09_embed_table",
    10: "row10_remote_servers",
    11: "row11_accounting",
    12: "row12_interrupted_sweeps",
    13: "row13_report",
    14: "row14_bad_input",
}
