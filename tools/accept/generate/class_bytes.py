"""What a class of the decoder engine reads of a GGUF file's weights for one token: every matrix once, and the head, which is the table
where the file has no `output.weight`. Rows of the table that are looked up, keys and values are left out: they are a few in a hundred.
"""

import math

FLOAT = {"bf16": 2, "fp32": 4}  # bytes of a weight
INT8_INPUTS, INT8_SCALED = 64, 256  # docs/decisions/037-hadamard-int8.md


def matrix_bytes(shape, precision):
    """Of [outputs, inputs]; GGUF names the inputs first."""
    inputs, outputs = int(shape[0]), math.prod(map(int, shape[1:]))
    if precision != "int8":
        return outputs * inputs * FLOAT[precision]
    return outputs * (-(-inputs // INT8_INPUTS) * INT8_INPUTS + 4 * -(-inputs // INT8_SCALED))


def bytes_per_token(path, precision):
    """`own`: the bits as they are."""
    import gguf

    tensors = gguf.GGUFReader(path).tensors
    has_head = any(tensor.name == "output.weight" for tensor in tensors)
    total = 0
    for tensor in tensors:
        if has_head and tensor.name == "token_embd.weight":
            continue
        is_matrix = len(tensor.shape) > 1
        total += int(tensor.n_bytes) if precision == "own" or not is_matrix else matrix_bytes(tensor.shape, precision)
    return total


def bytes_of_a_place(path):
    """Keys and values of one token in float16."""
    import gguf

    fields = gguf.GGUFReader(path).fields
    family = fields["general.architecture"].contents()
    value = lambda name: int(fields[f"{family}.{name}"].contents())
    head = value("embedding_length") // value("attention.head_count")
    return 2 * value("block_count") * value("attention.head_count_kv") * head * 2
