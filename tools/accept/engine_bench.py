"""The engine alone, without the command around it: `encode_bench --serve`."""

import os

from programs import MODEL, ROOT
from server import LineServer

ENCODE_BENCH = ROOT / "build-test" / "plain" / "bin" / "encode_bench"


def torch_environment():
    lib = os.path.join(os.environ["MUSTER_TORCH_ROOT"], "lib")
    return {"LD_LIBRARY_PATH": lib, "OMP_NUM_THREADS": "1"}


def serve(precision, cores=None):
    """One lane on `cores`; answers "TEXTSxTOKENS" with {"tokens", "seconds"}."""
    if not ENCODE_BENCH.exists():
        raise RuntimeError("encode_bench is not built: run ./test, or ninja -C build-test/plain encode_bench")
    return LineServer([ENCODE_BENCH, "--serve", "--model", MODEL, "--precision", precision], cores,
                      torch_environment()).wait_until_ready()
