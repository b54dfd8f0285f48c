"""The rows of the list `gpu-path` that need no GPU. One module a row; tools/gpu_check is what runs on a GPU."""

ROWS = {
    7: "row07_feeding",
}
