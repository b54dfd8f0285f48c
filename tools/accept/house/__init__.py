"""The rows of the list `house`: a model comes to the machine, and what is about it. One module a row."""

ROWS = {
    3: "row03_clients",
    4: "row04_commands_and_pull",
    6: "row06_documents",
    7: "row07_promises",
    8: "row08_quickstart",
}
