#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "tokenizer/text_pass.h"

namespace muster {
namespace {

constexpr std::uint64_t kFileSizeMax = std::uint64_t{256} << 20;  // the largest known have 35 MB

std::uint64_t id_end(const std::vector<TokenId>& ids) {
  const auto highest = std::max_element(ids.begin(), ids.end());
  return highest == ids.end() ? 0 : std::uint64_t{*highest} + 1;
}

std::uint32_t id_end(const TokenizerParts& parts) {
  const std::uint64_t end =
      std::max({parts.model->vocabulary().id_end(), parts.added_tokens.id_end(),
                id_end(parts.post_processor.before), id_end(parts.post_processor.after)});
  return static_cast<std::uint32_t>(end);  // an id is at most 2^32 - 2
}

}  // namespace

struct Tokenizer::Parts {
  TokenizerParts described;
  std::uint32_t vocab_size = 0;
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<const Tokenizer>> Tokenizer::load(
    const std::filesystem::path& tokenizer_json) {
  const std::string text = MUSTER_TRY(read_file(tokenizer_json, kFileSizeMax));
  return parse(text);
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::parse(std::string_view tokenizer_json) {
  auto parts = std::make_unique<Parts>();
  parts->described = MUSTER_TRY(read_tokenizer_json(tokenizer_json));
  parts->vocab_size = id_end(parts->described);
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));
}

std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> Tokenizer::make_scratch() const {
  return {new Scratch, [](Scratch* scratch) { delete scratch; }};
}

Tokenizer::Encoded Tokenizer::encode(std::string_view text, std::uint32_t length_max,
                                     Scratch& scratch, std::vector<TokenId>& ids) const {
  MUSTER_CHECK(length_max >= special_token_count());
  const PostProcessor& special = parts_->described.post_processor;
  const std::size_t begin = ids.size();
  ids.insert(ids.end(), special.before.begin(), special.before.end());
  const std::size_t content_end = begin + length_max - special.after.size();
  TextPass(parts_->described, scratch, ids, content_end).encode(text);
  const bool is_truncated = ids.size() > content_end;
  if (is_truncated) {
    ids.resize(content_end);
  }
  ids.insert(ids.end(), special.after.begin(), special.after.end());
  return {static_cast<std::uint32_t>(ids.size() - begin), is_truncated};
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  const TokenizerParts& parts = parts_->described;
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    auto text = parts.added_tokens.text_of(id);
    if (!text) {
      text = parts.model->vocabulary().token_of(id);
    }
    if (text && !(skip_special_tokens && parts.added_tokens.is_special(*text))) {
      tokens.emplace_back(*text);
    }
  }
  if (parts.decoder) {
    tokens = parts.decoder->decode(std::move(tokens));
  }
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    out.append(!parts.decoder && i > 0 ? " " : "").append(tokens[i]);
  }
  return out;
}

std::uint32_t Tokenizer::special_token_count() const {
  const PostProcessor& special = parts_->described.post_processor;
  return static_cast<std::uint32_t>(special.before.size() + special.after.size());
}

std::uint32_t Tokenizer::vocab_size() const { return parts_->vocab_size; }

}  // namespace muster
