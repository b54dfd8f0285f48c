"""What a class of the decoder engine reads of a GGUF file's weights for one token: every matrix once, and the head, which is the table
where the file has no `output.weight`. Rows of the table that are looked up, keys and values are left out: they are a few in a hundred.
"""

BLOCK = {"int8": 34 / 32, "bf16": 2.0, "fp32": 4.0}  # bytes of a weight; docs/decisions/022-decoder-engine.md


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
        total += int(tensor.n_bytes) if precision == "own" or not is_matrix else int(tensor.n_elements) * BLOCK[precision]
    return total


def bytes_of_a_place(path):
    """Keys and values of one token in float16."""
    import gguf

    fields = gguf.GGUFReader(path).fields
    family = fields["general.architecture"].contents()
    value = lambda name: int(fields[f"{family}.{name}"].contents())
    head = value("embedding_length") // value("attention.head_count")
    return 2 * value("block_count") * value("attention.head_count_kv") * head * 2
