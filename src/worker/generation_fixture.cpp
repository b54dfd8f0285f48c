#include "worker/generation_fixture.h"

namespace muster {

std::filesystem::path tiny_llama() {
  return std::filesystem::path(MUSTER_SOURCE_DIR) / "src/engine/testdata/decoders/llama";
}

}  // namespace muster
