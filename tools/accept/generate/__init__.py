"""The rows of the list `generate`: a decoder on the CPU, with the real SmolLM2-135M-Instruct. The numbers are those of the
requirement; rows that are missing are not built yet."""

ROWS = {
    1: "row01_parity",
    3: "row03_same_tokens",
    6: "row06_one_stream",
}
