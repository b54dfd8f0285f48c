"""Running `muster generate`, and prompts to run it with."""

import json
import os
import subprocess

from programs import DEPS, MUSTER

DECODER = DEPS / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"

# Without digits: transformers loses the file's pre-tokeniser and splits them otherwise.
OPENINGS = [
    "The old lighthouse keeper climbed the stairs every evening and",
    "To bake a good loaf of bread at home, you first need to",
    "When the train finally arrived at the small station near the sea,",
    "Most birds that live in cold places leave in autumn because",
    "A compiler reads the text of a program and",
    "The committee could not agree on the colour of the new bridge, so",
    "If you want to learn to play the violin, remember that",
    "Rain fell on the market square, and the merchants",
    "The history of paper begins in China, where",
    "My grandmother kept a garden behind her house, full of",
    "Glass is made from sand, which",
    "In a democracy, the people choose",
    "The spider builds its web by",
    "Nobody in the village believed the boy until",
    "Coffee was first drunk in Yemen, from where it",
    "The moon pulls at the water of the oceans, and therefore",
    "A good letter of application should be short and",
    "The carpenter measured the door again, because",
    "Volcanoes form where",
    "She opened the box slowly and found",
]


def skip_reason():
    return None if DECODER.exists() else f"{DECODER} is missing: run ./quickstart"


def generate(prompt, *options, muster=MUSTER, cores=None, environment=None):
    """The report of one `muster generate --raw --json`."""
    command = [str(muster), "generate", str(DECODER), "-p", prompt, "--raw", "--json", *map(str, options)]
    if cores:
        command += ["--devices", "1xcpu", "--cores-per-device", str(cores)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError(f"muster generate ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)
