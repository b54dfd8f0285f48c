"""The rows of the list `house`: a model comes to the machine, what is about it, and what a person sees. One module a row."""

ROWS = {
    1: "row01_findings",
    2: "row02_house",
    3: "row03_clients",
    4: "row04_commands_and_pull",
    5: "row05_screens",
    6: "row06_documents",
    7: "row07_promises",
    8: "row08_quickstart",
    9: "row09_paths",
}
