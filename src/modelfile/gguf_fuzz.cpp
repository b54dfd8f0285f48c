// Any bytes as a GGUF file: an Error, or tensors that lie inside it, none over another, whose
// floats can be had, a tokenizer's lists that fit each other, and a decoder whose sizes do.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "modelfile/decoder_checks.h"
#include "modelfile/dequantize.h"
#include "modelfile/gguf_file.h"

namespace muster {
namespace {

constexpr std::size_t kElementsMax = 4096;

/// A file in memory with these bytes, by its path.
std::string path_of(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("gguf_fuzz", MFD_CLOEXEC);
  MUSTER_CHECK(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0);
  MUSTER_CHECK(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  return "/proc/self/fd/" + std::to_string(fd);
}

void check_header(const GgufHeader& header, std::size_t size) {
  std::uint64_t total = 0;
  for (const auto& tensor : header.tensors) {
    MUSTER_CHECK(tensor.size <= size && tensor.begin <= size - tensor.size);
    total += tensor.size;
  }
  MUSTER_CHECK(total <= size);
  if (const auto shape = parse_gguf_shape(header)) {
    MUSTER_CHECK(shape->hidden_size > 0 && !shape->layers.empty());
    for (const auto& layer : shape->layers) {
      MUSTER_CHECK(layer.head_count > 0 && layer.head_size > 0);
    }
  }
}

void check_weights(const GgufFile& file) {
  for (const auto& [name, view] : file.tensors()) {
    const auto blocks = view.data.size() / view.type->block_bytes;
    if (!can_dequantize(*view.type) || blocks * view.type->block_elements > kElementsMax) continue;
    std::vector<float> floats(blocks * view.type->block_elements);
    MUSTER_CHECK(dequantize(*view.type, view.data, floats).has_value());
  }
}

void check_tokens(const GgufTokens& tokens) {
  const auto count = tokens.tokens.size();
  MUSTER_CHECK(tokens.scores.empty() || tokens.scores.size() == count);
  MUSTER_CHECK(tokens.types.empty() || tokens.types.size() == count);
  for (const auto id : tokens.stop_ids) MUSTER_CHECK(id < count);
  MUSTER_CHECK(!tokens.bos_id || *tokens.bos_id < count);
}

void check_decoder(const DecoderSpec& spec) {
  MUSTER_CHECK(!decoder_fault(spec));
  MUSTER_CHECK(spec.windows.size() == spec.layer_count && spec.layer_count > 0);
  if (spec.rope.style == RopeStyle::None) return;
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{1} << 26U}) {
    MUSTER_CHECK(rope_frequencies(spec.rope, length).inverse_frequencies.size() ==
                 spec.rope.size / 2);
  }
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto header = parse_gguf_header(bytes, size);
  if (!header) {
    MUSTER_CHECK(!header.error().message.empty());
    return 0;
  }
  check_header(*header, size);
  const auto file = GgufFile::open(path_of(data, size));
  if (!file) return 0;
  check_weights(*file);
  if (const auto tokens = file->tokens()) check_tokens(*tokens);
  if (const auto spec = file->decoder()) check_decoder(*spec);
  return 0;
}
