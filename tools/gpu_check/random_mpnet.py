"""random_mpnet.py MODEL OUT: a model of mpnet-base's shape with random weights in bf16 and the tokenizer of MODEL."""

import json
import pathlib
import shutil
import sys

import torch
from transformers import MPNetConfig, MPNetModel

source, out = map(pathlib.Path, sys.argv[1:3])
torch.manual_seed(1)
MPNetModel(MPNetConfig(), add_pooling_layer=False).to(torch.bfloat16).save_pretrained(out)
for name in ("tokenizer.json", "tokenizer_config.json", "modules.json", "sentence_bert_config.json"):
    shutil.copy(source / name, out / name)
(out / "1_Pooling").mkdir(exist_ok=True)
pooling = json.loads((source / "1_Pooling" / "config.json").read_text())
pooling["word_embedding_dimension"] = 768
(out / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
