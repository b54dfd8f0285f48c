"""ONNX Runtime GenAI as a peer: serve_onnx.py MODEL TOKENIZER.json PORT THREADS. Nothing joins a running batch there, so requests are
answered one after the other. Its model is made by its own builder."""

import collections
import json
import pathlib
import sys

CONTEXT = 2048


def set_threads(folder, count):
    path = pathlib.Path(folder) / "genai_config.json"
    config = json.loads(path.read_text())
    options = config["model"]["decoder"].setdefault("session_options", {})
    if options.get("intra_op_num_threads") != count:
        options["intra_op_num_threads"] = count
        path.write_text(json.dumps(config, indent=1))


class Engine:
    def __init__(self, folder, threads):
        import numpy
        import onnxruntime_genai

        self.as_array = lambda ids: numpy.array(ids, dtype=numpy.int32)
        set_threads(folder, int(threads))
        self.library = onnxruntime_genai
        self.model = onnxruntime_genai.Model(folder)
        self.waiting, self.generator, self.key, self.left = collections.deque(), None, None, 0

    def is_busy(self):
        return self.generator is not None or bool(self.waiting)

    def add(self, key, ids, count):
        self.waiting.append((key, ids, count))

    def begin(self):
        self.key, ids, self.left = self.waiting.popleft()
        parameters = self.library.GeneratorParams(self.model)
        # A least length keeps it from ending a reply earlier.
        length = len(ids) + self.left
        parameters.set_search_options(do_sample=False, min_length=length, max_length=min(CONTEXT, length))
        self.generator = self.library.Generator(self.model, parameters)
        self.generator.append_tokens(self.as_array(ids))

    def step(self):
        if self.generator is None:
            self.begin()
        self.generator.generate_next_token()
        id = int(self.generator.get_next_tokens()[0])
        self.left -= 1
        is_finished = self.left == 0 or self.generator.is_done()
        if is_finished:
            self.generator = None
        return [(self.key, [id], is_finished)]


if __name__ == "__main__":
    from completions_loop import serve

    folder, tokenizer, port, threads = sys.argv[1:]
    serve(Engine(folder, threads), tokenizer, port)
