#!/bin/sh
# curl against a running `muster serve`; the address is the first argument.
set -eu
url=${1:-http://127.0.0.1:8000}
json='Content-Type: application/json'

curl -sf "$url/readyz"; echo
model=$(curl -sf "$url/v1/models" | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])')
echo "model: $model"

curl -sf "$url/v1/embeddings" -H "$json" -d "{\"model\": \"$model\", \"input\": \"The quick brown fox.\"}" | head -c 120; echo " ..."

# The rows alone: float32 in little-endian order, 4 bytes a value.
curl -sf "$url/v1/embeddings" -H "$json" -H 'Accept: application/octet-stream' \
  -d "{\"model\": \"$model\", \"input\": [\"one\", \"two\"]}" | wc -c

curl -sf "$url/v1/tokenize" -H "$json" -d "{\"model\": \"$model\", \"input\": \"The quick brown fox.\"}"; echo
curl -sf "$url/health"; echo
curl -sf "$url/metrics" | grep '^muster_http_requests_total'

# A mistake, and what is said of it.
curl -s "$url/v1/embeddings" -H "$json" -d "{\"model\": \"$model\", \"imput\": \"text\"}"; echo
