"""to_bf16.py IN OUT: the float32 tensors of a safetensors file in bf16."""

import sys

import torch
from safetensors.torch import load_file, save_file

tensors = load_file(sys.argv[1])
halves = {name: t.to(torch.bfloat16) if t.dtype == torch.float32 else t for name, t in tensors.items()}
save_file(halves, sys.argv[2], metadata={"format": "pt"})
