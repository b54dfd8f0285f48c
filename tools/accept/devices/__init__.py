"""The rows of the list `devices`: what the machine has, what it does now, and what is wrong with it. As in `spine`: one module a row."""

ROWS = {
}
