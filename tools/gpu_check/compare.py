"""compare.py REFERENCE.npy VECTORS.npy...: a JSON line of differences for each. Needs nothing but Python."""

import array
import ast
import json
import math
import operator
import struct
import sys


def load(path):
    """The rows of a float32 .npy file. Source of the format: numpy.lib.format, version 1.0."""
    with open(path, "rb") as file:
        magic = file.read(8)
        if magic[:6] != b"\x93NUMPY":
            sys.exit(f"compare.py: {path} is no .npy file")
        (length,) = struct.unpack("<H", file.read(2)) if magic[6] == 1 else struct.unpack("<I", file.read(4))
        header = ast.literal_eval(file.read(length).decode("latin-1"))
        if header["descr"] != "<f4" or header["fortran_order"]:
            sys.exit(f"compare.py: {path} holds no rows of float32")
        values = array.array("f")
        values.frombytes(file.read())
    rows, dim = header["shape"]
    return [values[i * dim:(i + 1) * dim] for i in range(rows)]


def dot(a, b):
    return sum(map(operator.mul, a, b))


def main():
    reference, are_numbers = load(sys.argv[1]), True
    for name in sys.argv[2:]:
        vectors = load(name)
        if [*map(len, vectors)] != [*map(len, reference)]:
            sys.exit(f"compare.py: {name} has not the {len(reference)} x {len(reference[0])} numbers of {sys.argv[1]}: {len(vectors)} rows")
        largest, cosines = 0.0, []
        for a, b in zip(reference, vectors):
            # max() would pass over a NaN.
            difference = max(map(abs, map(operator.sub, a, b))) if not any(map(math.isnan, b)) else math.nan
            largest = difference if math.isnan(difference) else max(largest, difference) if not math.isnan(largest) else largest
            cosines.append(dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)))
        print(json.dumps({"vectors": name.split("/")[-1], "rows": len(vectors), "largest_difference": largest,
                          "cosine_worst": math.nan if any(map(math.isnan, cosines)) else min(cosines),
                          "cosine_mean": sum(cosines) / len(cosines)}), flush=True)
        are_numbers = are_numbers and not math.isnan(largest)
    sys.exit(0 if are_numbers else "compare.py: some of these vectors are no numbers")


if __name__ == "__main__":
    main()
