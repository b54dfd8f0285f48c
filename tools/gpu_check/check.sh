#!/usr/bin/env bash
# Runs muster on a GPU for the first time, from what tools/gpu_check/bundle made: the most important first, each step
# within its own time, all results in OUT (at most 8 files).
#
#   tools/gpu_check/check.sh BUNDLE OUT [STEP...]     steps: tests engine embed tenfold mpnet memory serve mixed kills
#                                                       telemetry screens kernels
set -uo pipefail
bundle=$(realpath "${1:?usage: check.sh BUNDLE OUT [STEP...]}")
out=$(realpath -m "${2:?usage: check.sh BUNDLE OUT [STEP...]}")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
shift 2
steps=("$@")
[[ $# -gt 0 ]] || steps=(tests engine embed tenfold mpnet memory serve mixed kills telemetry screens kernels)

work=${WORK:-/tmp/muster-gpu-check}
mkdir -p "$work" "$out"
exec > >(tee -a "$out/log.txt") 2>&1
say() { printf '\n=== [%d s] %s\n' "$SECONDS" "$*"; }

say "unpacking"
[[ -d $work/bin ]] || tar -xJf "$bundle/programs.tar.xz" -C "$work"
[[ -d $work/model ]] || tar -xJf "$bundle/data.tar.xz" -C "$work"
cd "$work" || exit 1
testdata=$(<testdata_path)
[[ -e $testdata ]] || { mkdir -p "$(dirname "$testdata")" && ln -s "$work/testdata" "$testdata"; }
torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])') ||
  { echo "there is no torch for python3 on the PATH: pip install torch==2.11.0"; exit 4; }
export LD_LIBRARY_PATH=$torch/lib
{
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  lscpu | sed -n 's/^Model name: *//p'
  nproc
  python3 -c 'import torch; print("torch", torch.__version__)'
} >"$out/machine.txt"
muster=bin/muster
model=model
corpus=packages.txt

# embed OUT ARGS...: a run with its report, without the bar.
embed() { timeout 90 $muster embed "$model" "${corpus}" -o "$1" --devices cuda:0 --restart --verbose --color never "${@:2}" 2>&1 | tr '\r' '\n' | grep -vE '^muster: [0-9]+ %'; }

step_tests() { timeout 150 bin/engine_test --gtest_filter='Gpu*'; }

step_engine() {
  [[ -d mpnet ]] || python3 "$here/random_mpnet.py" model mpnet 2>/dev/null
  local shapes=(--shape 1x16 --shape 1x128 --shape 8x16 --shape 200x20 --shape 800x20 --shape 32x128 --shape 128x128)
  for lanes in 1 2; do
    timeout 60 bin/encode_bench model --device cuda --precision bf16 --lanes $lanes --seconds 0.7 "${shapes[@]}"
  done
  timeout 60 bin/encode_bench model --device cuda --precision fp32 --lanes 2 --seconds 0.7 --shape 1x16 --shape 200x20 --shape 128x128
  timeout 60 bin/encode_bench mpnet --device cuda --precision bf16 --lanes 1 --seconds 0.7 --shape 1x16
  timeout 60 bin/encode_bench mpnet --device cuda --precision bf16 --lanes 2 --seconds 0.7 --shape 200x20 --shape 128x128
}

step_embed() {
  timeout 120 python3 "$here/peer.py" model $corpus reference.npy "${PEER_RUNS:-4}" 2>/dev/null
  for precision in fp32 bf16 fp16; do embed $precision.npy --precision $precision; done
  python3 "$here/compare.py" reference.npy fp32.npy bf16.npy fp16.npy
}

step_tenfold() {
  for i in 1 2 3 4 5 6 7 8 9 10; do sed "s/\$/ $i/" packages.txt; done >tenfold.txt
  corpus=tenfold.txt
  for tokens in 4096 16384; do embed tenfold.npy --precision bf16 --batch-tokens $tokens; done
  corpus=packages.txt
}

step_mpnet() {
  model=mpnet
  [[ -d mpnet ]] || python3 "$here/random_mpnet.py" model mpnet 2>/dev/null
  embed mpnet.npy --precision bf16
  timeout 100 python3 "$here/peer.py" mpnet $corpus mpnet-reference.npy 3 2>/dev/null
  model=model
}

# What the allocator held at most, and what the plan says of it.
step_memory() {
  local precision
  for precision in fp32 bf16; do
    timeout 60 $muster embed "$model" $corpus -o memory.npy --devices cuda:0 --restart --json --quiet --precision $precision |
      python3 -c 'import json, sys; print(json.dumps({"measured": sys.argv[1], **json.load(sys.stdin)["devices"][0]["memory"]}))' $precision
    timeout 20 $muster plan "$model" --dtype $precision --json |
      python3 -c 'import json, sys; print(json.dumps({"planned": sys.argv[1], **json.load(sys.stdin)["copies"][0]["stages"][0]["memory_per_device"]}))' $precision
  done
}

step_serve() { timeout 60 $muster bench embed model --devices cuda:0 --precision bf16 --clients 1,8,64 --duration 3s --color never; }

step_mixed() { timeout 90 python3 "$here/mixed.py" $muster model $corpus cuda:0 bf16; }

step_kills() {
  [[ -e fp32.npy ]] || embed fp32.npy --precision fp32
  (sleep 1.3; pkill -9 -x muster-worker; sleep 1.6; pkill -9 -x muster-worker) &
  embed killed.npy --precision fp32
  cmp fp32.npy killed.npy && echo "the same bytes as without kills"
}

step_telemetry() {
  nvidia-smi -q -x >"$out/before.xml"
  timeout 40 bin/nvml_bench 8 10 >"$out/nvml_bench.json"
  nvidia-smi -q -x >"$out/after.xml"
  python3 "$here/../../benchmarks/telemetry/nvidia_smi.py" "$out/before.xml" "$out/nvml_bench.json" "$out/after.xml" | grep -v '  ok '
  python3 "$here/nvml_fields.py"
}

step_screens() {
  $muster devices --color never
  timeout 60 $muster doctor --color never
  timeout 20 $muster top --once --color never
}

step_kernels() {
  command -v ncu >/dev/null || { echo "there is no ncu here: no times of kernels"; return; }
  for shape in 128x128 200x20; do timeout 90 python3 "$here/kernels.py" bin/encode_bench model $shape; done
}

for step in "${steps[@]}"; do
  say "$step"
  "step_$step"
done
say "done"
