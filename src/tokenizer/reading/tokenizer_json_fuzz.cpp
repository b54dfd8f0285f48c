// A hostile tokenizer.json ends in an Error, or in a tokenizer that keeps its promises.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::TokenId;
  using muster::Tokenizer;
  const auto tokenizer =
      Tokenizer::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!tokenizer) {
    return 0;
  }
  const auto scratch = (*tokenizer)->make_scratch();
  for (const std::string_view text :
       {"", "Hello, wörld! it's 123", " \n\t中文 e\xCC\x81 [CLS]<s>"}) {
    std::vector<TokenId> ids;
    const std::uint32_t length_max = (*tokenizer)->special_token_count() + 8;
    const auto encoded = (*tokenizer)->encode(text, length_max, *scratch, ids);
    MUSTER_CHECK(encoded.token_count == ids.size() && ids.size() <= length_max);
    for (const TokenId id : ids) {
      MUSTER_CHECK(id < (*tokenizer)->vocab_size());
    }
    (*tokenizer)->decode(ids, false);
    (*tokenizer)->decode(ids, true);
  }
  return 0;
}
