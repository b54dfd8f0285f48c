"""The rows of the list `gpu-path` that need no GPU, most of them on the stand-in for one. One module a row; what
tools/gpu_check packs runs on a GPU."""

ROWS = {
    1: "row01_same_rows",
    2: "row02_mistakes",
    3: "row03_equality",
    4: "row04_memory",
    5: "row05_errors",
    6: "row06_traffic",
    7: "row07_feeding",
    8: "row08_the_kit",
}
