"""The engine alone, without the command around it: `encode_bench --serve`."""

import os
import subprocess

from programs import BUILD, MODEL
from server import LineServer


def serve(precision, cores=None, build=BUILD):
    """One lane on `cores`; answers each line "TEXTSxTOKENS" with {"tokens", "wall_seconds", …} of half a second."""
    subprocess.run(["ninja", "-C", build, "encode_bench"], check=True, stdout=subprocess.DEVNULL)
    environment = {"LD_LIBRARY_PATH": os.path.join(os.environ["MUSTER_TORCH_ROOT"], "lib"), "OMP_NUM_THREADS": "1"}
    return LineServer([build / "bin" / "encode_bench", MODEL, "--precision", precision, "--serve"], cores, environment)
