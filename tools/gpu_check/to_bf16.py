"""to_bf16.py IN OUT: the float32 tensors of a safetensors file in bf16, rounded to zero: the upper half of each number.

Needs nothing but Python. Source of the format: safetensors, README, "Format": 8 bytes with the length of a JSON header, the header,
the tensors' bytes.
"""

import json
import struct
import sys


def main():
    with open(sys.argv[1], "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    out, tensors = bytearray(), {}
    for name, entry in sorted(header.items(), key=lambda item: item[1].get("data_offsets", [0])[0]):
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        piece, kind = data[begin:end], entry["dtype"]
        if kind == "F32":
            half = bytearray(len(piece) // 2)
            half[0::2], half[1::2] = piece[2::4], piece[3::4]
            piece, kind = half, "BF16"
        tensors[name] = {"dtype": kind, "shape": entry["shape"], "data_offsets": [len(out), len(out) + len(piece)]}
        out += piece
    head = json.dumps({"__metadata__": {"format": "pt"}, **tensors}, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + out)


if __name__ == "__main__":
    main()
