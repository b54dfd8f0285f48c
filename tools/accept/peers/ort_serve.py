"""ONNX Runtime as a peer: a fused graph on one thread that does not spin.

    ort_serve.py make MODEL FOLDER          writes FOLDER/fp32.onnx and FOLDER/int8.onnx
    ort_serve.py serve FOLDER/fp32.onnx     answers each line "TEXTSxTOKENS" with {"tokens", "wall_seconds"} of half a second
"""

import json
import math
import pathlib
import sys
import time

import numpy

SERVE_S = 0.5  # as encode_bench --serve: long enough for noise of milliseconds, short to interleave


def make(model, folder):
    import onnx
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    encoder = transformers.AutoModel.from_pretrained(model, attn_implementation="eager").eval()

    # Attention and its mask as older versions of the library wrote them: the optimiser knows that form and
    # fuses it, and an unfused graph would be no fair peer.
    def attention(layer, hidden, attention_mask, **_):
        def heads(x):
            return x.view(x.size(0), x.size(1), layer.num_attention_heads, layer.attention_head_size).permute(0, 2, 1, 3)

        query, key, value = heads(layer.query(hidden)), heads(layer.key(hidden)), heads(layer.value(hidden))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(layer.attention_head_size)
        context = torch.matmul(torch.softmax(scores + attention_mask, dim=-1), value).permute(0, 2, 1, 3).contiguous()
        return context.view(context.size(0), context.size(1), layer.all_head_size), None

    transformers.models.bert.modeling_bert.BertSelfAttention.forward = attention

    class LastHiddenState(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask, token_type_ids):
            mask = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)) * -10000.0
            hidden = self.encoder.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
            for layer in self.encoder.encoder.layer:
                hidden = layer(hidden, mask)
                hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            return hidden

    ids = torch.randint(1000, 20000, (2, 16))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(LastHiddenState(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(folder / "plain.onnx"),
                      input_names=names, output_names=["hidden"], opset_version=17, dynamo=False,
                      dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*names, "hidden"]})
    config = encoder.config
    fused = optimizer.optimize_model(str(folder / "plain.onnx"), "bert", num_heads=config.num_attention_heads,
                                     hidden_size=config.hidden_size, opt_level=0)
    fused.save_model_to_file(str(folder / "fp32.onnx"))
    # Fused operators have no shape inference, so the quantiser is told what the weights of unknown type are.
    quantize_dynamic(str(folder / "fp32.onnx"), str(folder / "int8.onnx"), per_channel=True,
                     weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    statistics = fused.get_fused_operator_statistics()
    print(json.dumps(statistics))
    if statistics["Attention"] != config.num_hidden_layers:
        sys.exit("the optimiser did not fuse attention")


def serve(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for line in sys.stdin:
        texts, tokens = map(int, line.split("x"))
        ids = numpy.random.default_rng(0).integers(1000, 20000, (texts, tokens))
        values = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
        feed = {i.name: values[i.name].astype(numpy.int64 if "int64" in i.type else numpy.int32)
                for i in session.get_inputs()}
        session.run(None, feed)
        count, start = 0, time.perf_counter()
        while count == 0 or time.perf_counter() - start < SERVE_S:
            session.run(None, feed)
            count += 1
        print(json.dumps({"tokens": count * texts * tokens, "wall_seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        serve(sys.argv[2])
