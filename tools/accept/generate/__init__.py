"""The rows of the list `generate`: decoders, from files to replies, with the real SmolLM2-135M-Instruct. The numbers are those of the
requirement. 15 simulates and needs no model; 16 is a file of prompts and 17 what precisions cost, for which the requirement has no number.
What rows 5 to 8 share: contenders.py (who), speeds.py and closed_loop.py (how it is measured)."""

ROWS = {
    1: "row01_parity",
    2: "row02_gguf",
    3: "row03_same_tokens",
    4: "row04_memory",
    5: "row05_prefill",
    6: "row06_one_stream",
    7: "row07_clients",
    8: "row08_start_and_memory",
    9: "row09_encoders",
    10: "row10_clients",
    11: "row11_faults",
    12: "row12_text_side",
    13: "row13_gpus",
    14: "row14_soak",
    15: "row15_steps",
    16: "row16_prompts",
    17: "row17_divergence",
}
