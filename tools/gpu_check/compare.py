"""compare.py REFERENCE.npy VECTORS.npy...: a JSON line of differences for each."""

import json
import sys

import numpy

reference = numpy.load(sys.argv[1])
for name in sys.argv[2:]:
    vectors = numpy.load(name)
    lengths = numpy.linalg.norm(reference, axis=1) * numpy.linalg.norm(vectors, axis=1)
    cosines = (reference * vectors).sum(axis=1) / lengths
    print(json.dumps({"vectors": name.split("/")[-1], "rows": len(vectors), "largest_difference": float(abs(reference - vectors).max()),
                      "cosine_worst": float(cosines.min()), "cosine_mean": float(cosines.mean())}))
