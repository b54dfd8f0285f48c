// Any bytes as a GGUF file: an Error, or a tokenizer that keeps its promises and whose stream of a
// reply is what decoding it at once gives.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "modelfile/gguf_file.h"
#include "tokenizer/decoder.h"
#include "tokenizer/reading/gguf_tokenizer.h"
#include "tokenizer/text_stream.h"

namespace muster {
namespace {

/// A file in memory with these bytes, by its path.
std::string path_of(const std::uint8_t* data, std::size_t size) {
  static const int fd = ::memfd_create("gguf_text_fuzz", MFD_CLOEXEC);
  MUSTER_CHECK(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0);
  MUSTER_CHECK(::pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  return "/proc/self/fd/" + std::to_string(fd);
}

void check(const Tokenizer& tokenizer) {
  const auto scratch = tokenizer.make_scratch();
  for (const std::string_view text :
       {"", "Hello, wörld! it's 123", " \n\t中文 e\xCC\x81 </s><s>  x"}) {
    std::vector<TokenId> ids;
    const std::uint32_t length_max = tokenizer.special_token_count() + 40;
    const auto encoded = tokenizer.encode(text, length_max, *scratch, ids);
    MUSTER_CHECK(encoded.token_count == ids.size() && ids.size() <= length_max);
    for (const bool skips : {false, true}) {
      TextStream stream(tokenizer, {.skips_special_tokens = skips, .continues_text = false});
      std::string joined;
      for (const auto id : ids) {
        MUSTER_CHECK(id < tokenizer.vocab_size());
        joined += stream.push(id);
      }
      joined += stream.finish();
      MUSTER_CHECK(joined == tokenizer.decode(ids, skips));
    }
  }
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace muster;
  const auto file = GgufFile::open(path_of(data, size));
  if (!file) return 0;
  const auto tokens = file->tokens();
  if (!tokens) return 0;
  const auto tokenizer = make_gguf_tokenizer(*tokens);
  if (tokenizer) {
    check(**tokenizer);
  } else {
    MUSTER_CHECK(!tokenizer.error().message.empty());
  }
  return 0;
}
