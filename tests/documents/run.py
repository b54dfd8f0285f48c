"""The documents' own words and the page about them (docs/from-the-documents.md), tried on the program.

    run.py BUILD [--real] [blocks|promises]...     with stand-ins, part of ./test; --real: ./accept house.6 and house.7
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "commands")]

from blocks import Blocks
from promises import Promises
from state import MODEL, State

PARTS = {"blocks": Blocks, "promises": Promises}


def check(build, part, is_real):
    """(faults, counts) of one part, on a machine with eight GPUs that libfakenvml plays."""
    state = State(build, not is_real)
    try:
        wrong = state.start_server(f"env MUSTER_NVML_PATH={state.build}/lib/libfakenvml.so muster serve {MODEL} --devices 2xcpu")
        if wrong:
            return [f"muster serve: {wrong}"], {}
        return PARTS[part](state).check()
    finally:
        state.close()


def main():
    words = [word for word in sys.argv[2:] if word != "--real"]
    failed = False
    for part in words or PARTS:
        faults, counts = check(pathlib.Path(sys.argv[1]), part, "--real" in sys.argv)
        for fault in faults:
            print(f"FAILED {' '.join(fault.split())}")
        print(f"{part}: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + f", {len(faults)} failed")
        failed |= bool(faults) or not counts
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
