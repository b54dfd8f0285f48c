"""The rows of the list `serve`: an embedding service over all devices that no single device's failure stops. One module a row."""

ROWS = {
}
