"""The rows of the list `house`: a model comes to the machine, what is about it, and what a person sees. One module a row."""

ROWS = {
    2: "row02_house",
    3: "row03_clients",
    4: "row04_pull",
    5: "row05_screens",
}
