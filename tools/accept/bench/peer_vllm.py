"""vLLM's benchmarks.serve, called as a module because its `vllm` command does not start: peer_vllm.py URL RATE REQUESTS TOKENIZER, a folder
by which it makes its prompts. Prints the percentiles of the end-to-end latency in seconds as JSON."""

import argparse
import json
import pathlib
import sys
import tempfile

from vllm.benchmarks import serve


def main():
    url, rate, requests, tokenizer = sys.argv[1:]
    folder = pathlib.Path(tempfile.mkdtemp())
    words = ["--backend", "openai", "--base-url", url, "--endpoint", "/v1/completions", "--model", "null", "--tokenizer", tokenizer,
             "--dataset-name", "random", "--random-input-len", "8", "--random-output-len", "1",
             "--num-prompts", requests, "--request-rate", rate, "--percentile-metrics", "e2el", "--metric-percentiles", "50,95,99",
             "--save-result", "--result-dir", str(folder), "--result-filename", "result.json", "--disable-tqdm"]
    parser = argparse.ArgumentParser()
    serve.add_cli_args(parser)
    serve.main(parser.parse_args(words))
    result = json.loads((folder / "result.json").read_text())
    print(json.dumps({name: result[f"{name}_e2el_ms"] / 1000 for name in ("p50", "p95", "p99")}))


if __name__ == "__main__":
    main()
