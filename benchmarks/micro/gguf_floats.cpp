// gguf_floats FILE.gguf: the tensors of a GGUF file as float32, one after the other by name, on
// standard output. `./accept generate.2` compares them with what llama.cpp makes of the same bytes.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "modelfile/dequantize.h"
#include "modelfile/gguf_file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gguf_floats FILE.gguf\n", stderr);
    return 2;
  }
  const auto file = muster::GgufFile::open(argv[1]);
  if (!file) {
    std::fprintf(stderr, "gguf_floats: %s\n", file.error().message.c_str());
    return 1;
  }
  constexpr std::size_t kBlocksAtOnce = 4096;
  std::vector<float> floats;
  for (const auto& [name, view] : file->tensors()) {
    const auto step = kBlocksAtOnce * view.type->block_bytes;
    for (auto left = view.data; !left.empty(); left = left.subspan(std::min(step, left.size()))) {
      const auto part = left.first(std::min(step, left.size()));
      floats.resize(part.size() / view.type->block_bytes * view.type->block_elements);
      const auto done = muster::dequantize(*view.type, part, floats);
      if (!done) {
        std::fprintf(stderr, "gguf_floats: %s: %s\n", name.c_str(), done.error().message.c_str());
        return 1;
      }
      std::fwrite(floats.data(), sizeof(float), floats.size(), stdout);
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
