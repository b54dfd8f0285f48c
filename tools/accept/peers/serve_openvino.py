"""OpenVINO GenAI's continuous batching as a peer:

    serve_openvino.py make FOLDER OUT bf16|int8|int4                  the model of a folder in OpenVINO's form
    serve_openvino.py serve MODEL TOKENIZER.json PORT THREADS         a server of completions
"""

import sys

CACHE_GB = 2
# A prompt of 512 tokens in one step; its default is 256.
STEP_TOKENS = 512


def make(folder, out, kind):
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig

    # Groups of 64: the default of 128 does not divide rows of 576.
    words = {"bf16": dict(load_in_8bit=False), "int8": dict(load_in_8bit=True),
             "int4": dict(quantization_config=OVWeightQuantizationConfig(bits=4, group_size=64))}[kind]
    OVModelForCausalLM.from_pretrained(folder, export=True, compile=False, **words).save_pretrained(out)


class Engine:
    def __init__(self, model, threads):
        import numpy
        import openvino
        import openvino_genai

        self.library, self.as_tensor = openvino_genai, lambda ids: openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size, scheduler.max_num_batched_tokens = CACHE_GB, STEP_TOKENS
        scheduler.dynamic_split_fuse, scheduler.enable_prefix_caching = True, False
        # Its precision is left to it: bfloat16 where the processor multiplies that, and rows of 8 bits for int8 and int4.
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": int(threads)})
        self.handles = {}

    def is_busy(self):
        return bool(self.handles)

    def add(self, key, ids, count):
        config = self.library.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = count, True, False
        self.handles[key] = self.pipeline.add_request(key, self.as_tensor(ids), config)

    def step(self):
        self.pipeline.step()
        found = []
        for key, handle in list(self.handles.items()):
            ids = []
            while handle.can_read():
                ids += [id for output in handle.read().values() for id in output.generated_ids]
            is_finished = handle.get_status() != self.library.GenerationStatus.RUNNING
            if is_finished:
                del self.handles[key]
            if ids or is_finished:
                found.append((key, ids, is_finished))
        return found


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        from completions_loop import serve

        model, tokenizer, port, threads = sys.argv[2:]
        serve(Engine(model, threads), tokenizer, port)
