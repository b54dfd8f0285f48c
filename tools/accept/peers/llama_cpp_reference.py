"""llama.cpp as it reads a GGUF file, for `./accept generate`. Run in .deps/peers by llama_cpp.py's own loader:

    llama_cpp_reference.py ids FILE.gguf TEXTS.jsonl        a line of ids for each text, special tokens added and found
    llama_cpp_reference.py stops FILE.gguf                  the ids that end a reply
    llama_cpp_reference.py floats FILE.gguf                 all tensors by name as float32, on standard output
    llama_cpp_reference.py quantise OUT.gguf SEED           a made model whose tensors are of every type that is read
    llama_cpp_reference.py convert IN.gguf OUT.gguf Q4_0    the same model with its weights in another type
    llama_cpp_reference.py divergence FILE.gguf IDS FOLDER TEXTS    how far its next tokens are from those in float32 over texts of ids (a text a
                                                            line), by KL: as the file is, in Q8_0, and, over the first TEXTS, in float32 with
                                                            keys and values in Q8_0; in the mean, and the sum of each text. FOLDER is for the
                                                            two models that it makes of the file
"""

import ctypes
import json
import os
import pathlib
import sys

import gguf
import llama_cpp
import numpy as np

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
ROWS, COLUMNS = 24, 1024
FILE_TYPES = {"F32": 0, "Q4_0": 2, "Q8_0": 7, "BF16": 32}  # llama.h, enum llama_ftype


class Traits(ctypes.Structure):
    """Source: ggml.h, struct ggml_type_traits."""

    _fields_ = [("type_name", ctypes.c_char_p), ("blck_size", ctypes.c_int64), ("blck_size_interleave", ctypes.c_int64),
                ("type_size", ctypes.c_size_t), ("is_quantized", ctypes.c_bool),
                ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64))]


def ggml():
    library = ctypes.CDLL(str(pathlib.Path(os.environ["LLAMA_CPP_LIB_PATH"]) / "libggml-base.so"))
    library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                            ctypes.c_int64, ctypes.c_void_p]
    return library


def open_vocabulary(path):
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
    return llama_cpp.llama_model_get_vocab(model)


def write_ids(path, texts):
    vocabulary = open_vocabulary(path)
    for line in open(texts, encoding="utf-8"):
        data = json.loads(line)["text"].encode()
        room = len(data) + 16
        ids = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(vocabulary, data, len(data), ids, room, True, True)
        print(json.dumps({"ids": list(ids[:count])}, separators=(",", ":")))


def write_stops(path):
    vocabulary = open_vocabulary(path)
    count = llama_cpp.llama_vocab_n_tokens(vocabulary)
    print(json.dumps([id for id in range(count) if llama_cpp.llama_vocab_is_eog(vocabulary, id)]))


def write_floats(path):
    library = ggml()
    tensors = sorted(gguf.GGUFReader(path).tensors, key=lambda tensor: tensor.name)
    for tensor in tensors:
        data = np.ascontiguousarray(tensor.data)
        out = np.empty(int(tensor.n_elements), np.float32)
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
            out[:] = data.reshape(-1)
        else:
            traits = library.ggml_get_type_traits(int(tensor.tensor_type)).contents
            traits.to_float(data.ctypes.data, out.ctypes.data, out.size)
        sys.stdout.buffer.write(out.tobytes())


def quantise(path, seed):
    library = ggml()
    random = np.random.default_rng(int(seed))
    writer = gguf.GGUFWriter(path, "llama")
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        values = random.normal(0, 0.04, (ROWS, COLUMNS)).astype(np.float32)
        if name == "F32":
            writer.add_tensor(name, values)
            continue
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        stored = np.empty((ROWS, COLUMNS // elements * size), np.uint8)
        written = library.ggml_quantize_chunk(int(kind), values.ctypes.data, stored.ctypes.data, 0, ROWS, COLUMNS, None)
        assert written == stored.nbytes
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(source, out, kind):
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize = FILE_TYPES[kind], True
    if llama_cpp.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(parameters)) != 0:
        sys.exit(f"llama.cpp cannot make {kind} of {source}")


def log_probabilities(path, texts, **options):
    """Of all positions of a text, text by text: [ids, vocabulary]."""
    longest = max(map(len, texts))
    model = llama_cpp.Llama(model_path=path, n_ctx=max(longest, 256), n_batch=max(longest, 256), logits_all=True, verbose=False, **options)
    for ids in texts:
        model.reset()
        model.eval(ids)
        logits = np.array(model.scores[:len(ids)], np.float32)
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits, dtype=np.float64).sum(axis=1, keepdims=True)).astype(np.float32)
        yield logits


def write_divergence(path, ids, folder, cached_texts):
    texts = [[int(word) for word in line.split()] for line in open(ids, encoding="ascii")]
    whole, q8_0 = (str(pathlib.Path(folder) / name) for name in ("f32.gguf", "q8_0.gguf"))
    convert(path, whole, "F32")
    convert(path, q8_0, "Q8_0")
    # All read a text together: the logits of one are kept. Keys and values in Q8_0, ggml's type 8, are read by its fused attention alone.
    ways = {"own": log_probabilities(path, texts), "q8_0": log_probabilities(q8_0, texts),
            "kv_q8_0": log_probabilities(whole, texts[:int(cached_texts)], type_k=8, type_v=8, flash_attn=True)}
    sums = {name: [] for name in ways}
    # With keys and values in float32, too: ggml's type 0.
    for p in log_probabilities(whole, texts, type_k=0, type_v=0):
        weights = np.exp(p.astype(np.float64))
        for name, way in ways.items():
            if (q := next(way, None)) is not None:
                sums[name].append(float((weights * (p.astype(np.float64) - q)).sum()))
    lengths = list(map(len, texts))
    means = {name: sum(each) / sum(lengths[:len(each)]) for name, each in sums.items()}
    print(json.dumps({"positions": sum(lengths), "lengths": lengths, **means, "sums": sums}))


# Held by a name: the library calls it to the end.
says_nothing = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
llama_cpp.llama_log_set(says_nothing, None)
llama_cpp.llama_backend_init()
{"ids": write_ids, "stops": write_stops, "floats": write_floats, "quantise": quantise, "convert": convert, "divergence": write_divergence}[sys.argv[1]](*sys.argv[2:])
