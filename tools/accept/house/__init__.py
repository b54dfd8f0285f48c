"""The rows of the list `house`: a model comes to the machine, and what is about it. One module a row."""

ROWS = {
    2: "row02_house",
    3: "row03_clients",
    4: "row04_pull",
}
