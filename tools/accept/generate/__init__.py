"""The rows of the list `generate`: decoders, from files to replies. One module a row."""

ROWS = {
    2: "row02_gguf",
    12: "row12_text_side",
}
