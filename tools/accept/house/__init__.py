"""The rows of the list `house`: a model comes to the machine, and what is about it. One module a row."""

ROWS = {
    3: "row03_clients",
    4: "row04_pull",
}
