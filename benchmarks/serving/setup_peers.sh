#!/usr/bin/env bash
# Installs the servers that muster serve is compared with, each into an environment of its own below .deps/serving-peers:
#
#   benchmarks/serving/setup_peers.sh [fastapi] [infinity] [ray]     all three without arguments
#
# Where .deps/peers has torch and sentence-transformers, they are used again, so that FastAPI takes 50 MB and Ray 400 MB more.
# infinity takes its older versions of the rest beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."

base=.deps/peers/bin/python
[[ -x $base ]] || base=python3

# Shares what the peers of ./accept have: a name is first looked up in the environment's own packages.
environment() {
  local folder=.deps/serving-peers/$1
  [[ -x $folder/bin/python ]] || "$base" -m venv "$folder"
  if "$base" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("sentence_transformers"))'; then
    local own; own=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$own/peers.pth"
  else
    "$folder/bin/pip" install --quiet 'torch==2.11.*' 'sentence-transformers==6.*'
  fi
}

install_fastapi() {
  environment fastapi
  .deps/serving-peers/fastapi/bin/pip install --quiet 'fastapi==0.*' 'uvicorn[standard]==0.*'
}

# The versions are those with which 0.0.78 was seen to work: it asks for no upper bounds, and newer ones break it.
install_infinity() {
  environment infinity
  .deps/serving-peers/infinity/bin/pip install --quiet 'infinity-emb[server,torch,optimum]==0.0.78' 'sentence-transformers==3.4.1' \
    'transformers==4.57.6' 'optimum==2.1.0' 'optimum-onnx==0.1.0' 'onnxruntime==1.31.1' 'uvicorn==0.32.1' \
    'click<8.2' 'onnx==1.*'
  # Its ONNX engine makes no graph of a local folder, it only takes one that is there, and one that has the states of all tokens.
  .deps/serving-peers/infinity/bin/optimum-cli export onnx --model .deps/models/all-MiniLM-L6-v2 \
    --library transformers --task feature-extraction .deps/serving-peers/infinity/onnx
}

install_ray() {
  environment ray
  .deps/serving-peers/ray/bin/pip install --quiet 'ray[serve]==2.60.0'
}

for name in "${@:-fastapi infinity ray}"; do
  for one in $name; do
    echo "installing $one" >&2
    "install_$one"
  done
done
