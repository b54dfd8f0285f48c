// The tokenizer's part of a GGUF file, with its lists checked against each other.
//
// Every list is as long as that of the tokens, and every id below their number, so code behind
// this point indexes without a check. Views point into the mapped file, which must outlive them.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>
#include <variant>

#include "modelfile/gguf_cursor.h"
#include "modelfile/gguf_ends.h"
#include "modelfile/gguf_file.h"
#include "modelfile/model_limits.h"
#include "modelfile/shown_name.h"

// The tokenizer's keys. A vocabulary of a hundred thousand tokens stays in the mapped file; what is
// made of it here is a list of views.

namespace muster {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

/// The keys of one file, by their names without "tokenizer.ggml.".
class TokenKeys {
 public:
  TokenKeys(const GgufHeader& header, std::span<const std::byte> file)
      : header_(header), file_(file) {}

  const GgufValue* find(std::string_view name) const {
    const auto found = header_.metadata.find(fmt::format("{}{}", kPrefix, name));
    return found == header_.metadata.end() ? nullptr : &found->second;
  }

  Result<std::string> text(std::string_view name) const {
    const auto* value = find(name);
    if (value == nullptr) return std::string();
    if (const auto* text = std::get_if<std::string>(value)) return *text;
    return wrong(name, "a text");
  }

  Result<std::optional<bool>> flag(std::string_view name) const {
    const auto* value = find(name);
    if (value == nullptr) return std::optional<bool>();
    if (const auto* flag = std::get_if<bool>(value)) return std::optional(*flag);
    return wrong(name, "true or false");
  }

  /// An id below `end`.
  Result<std::optional<std::uint32_t>> id(std::string_view name, std::size_t end) const {
    const auto* value = find(name);
    if (value == nullptr) return std::optional<std::uint32_t>();
    std::uint64_t id = end;
    if (const auto* number = std::get_if<std::uint64_t>(value)) id = *number;
    if (const auto* number = std::get_if<std::int64_t>(value); number && *number >= 0) {
      id = static_cast<std::uint64_t>(*number);
    }
    if (id < end) return std::optional(static_cast<std::uint32_t>(id));
    return wrong(name, fmt::format("an id below {}", end));
  }

  Result<std::vector<std::string_view>> texts(std::string_view name) const {
    std::vector<std::string_view> texts;
    const auto* list = MUSTER_TRY(list_of(name, {GgufValueType::String}));
    if (list == nullptr) return texts;
    // The header was read past this list, so all of it is in the file.
    GgufCursor cursor(file_.subspan(list->begin));
    texts.reserve(list->count);
    for (std::uint64_t i = 0; i < list->count; ++i) texts.push_back(MUSTER_TRY(cursor.text()));
    return texts;
  }

  /// 32-bit elements, as `Element` has them.
  template <typename Element>
  Result<std::vector<Element>> numbers(std::string_view name,
                                       std::initializer_list<GgufValueType> types) const {
    static_assert(sizeof(Element) == 4);
    std::vector<Element> numbers;
    const auto* list = MUSTER_TRY(list_of(name, types));
    if (list == nullptr) return numbers;
    numbers.resize(list->count);
    if (numbers.empty()) return numbers;
    std::memcpy(numbers.data(), file_.data() + list->begin, numbers.size() * sizeof(Element));
    return numbers;
  }

  Error wrong(std::string_view name, std::string_view wanted) const {
    return corrupt_error(fmt::format("{}{} is not {}", kPrefix, name, wanted));
  }

 private:
  Result<const GgufList*> list_of(std::string_view name,
                                  std::initializer_list<GgufValueType> types) const {
    const auto* value = find(name);
    if (value == nullptr) return static_cast<const GgufList*>(nullptr);
    const auto* list = std::get_if<GgufList>(value);
    const bool fits =
        list != nullptr && std::find(types.begin(), types.end(), list->type) != types.end();
    if (fits && list->count <= kRowsMax) return list;
    const bool is_text = *types.begin() == GgufValueType::String;
    return wrong(name, is_text ? "a list of texts" : "a list of 32-bit numbers");
  }

  const GgufHeader& header_;
  std::span<const std::byte> file_;
};

Result<std::vector<GgufTokenType>> read_types(const TokenKeys& keys, std::size_t count) {
  const auto numbers = MUSTER_TRY(
      keys.numbers<std::int32_t>("token_type", {GgufValueType::I32, GgufValueType::U32}));
  if (!numbers.empty() && numbers.size() != count) {
    return keys.wrong("token_type", fmt::format("a list of {} numbers", count));
  }
  std::vector<GgufTokenType> types;
  types.reserve(numbers.size());
  for (const auto number : numbers) {
    const bool is_known = number >= 0 && number <= static_cast<std::int32_t>(GgufTokenType::Byte);
    types.push_back(is_known ? static_cast<GgufTokenType>(number) : GgufTokenType::Undefined);
  }
  return types;
}

Result<std::vector<float>> read_scores(const TokenKeys& keys, std::size_t count) {
  const auto scores = MUSTER_TRY(keys.numbers<float>("scores", {GgufValueType::F32}));
  if (scores.empty() || scores.size() == count) return scores;
  return keys.wrong("scores", fmt::format("a list of {} numbers", count));
}

bool names_phi3(const GgufHeader& header) {
  const auto found = header.metadata.find("general.name");
  const auto* name =
      found == header.metadata.end() ? nullptr : std::get_if<std::string>(&found->second);
  if (name == nullptr) return false;
  std::string lower = *name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

/// The special ids. sentencepiece's own numbers stand for those that a file of model "llama" leaves
/// out. Source: llama-vocab.cpp, "default special tokens".
Status read_ids(const TokenKeys& keys, GgufTokens& tokens) {
  const auto count = tokens.tokens.size();
  const auto default_id = [&](std::uint32_t id) {
    return tokens.model == "llama" && id < count ? std::optional(id) : std::nullopt;
  };
  const auto read =
      [&](std::string_view name,
          std::optional<std::uint32_t> fallback) -> Result<std::optional<std::uint32_t>> {
    const auto id = MUSTER_TRY(keys.id(name, count));
    return id ? id : fallback;
  };
  tokens.unknown_id = MUSTER_TRY(read("unknown_token_id", default_id(0)));
  tokens.bos_id = MUSTER_TRY(read("bos_token_id", default_id(1)));
  tokens.eos_id = MUSTER_TRY(read("eos_token_id", default_id(2)));
  tokens.adds_bos = MUSTER_TRY(keys.flag("add_bos_token"));
  tokens.adds_eos = MUSTER_TRY(keys.flag("add_eos_token"));
  tokens.adds_space_prefix = MUSTER_TRY(keys.flag("add_space_prefix"));
  std::vector<std::uint32_t> ends;
  if (tokens.eos_id) ends.push_back(*tokens.eos_id);
  for (const auto* name : {"eot_token_id", "eom_token_id", "fim_pad_token_id", "fim_rep_token_id",
                           "fim_sep_token_id"}) {
    if (const auto id = MUSTER_TRY(keys.id(name, count))) ends.push_back(*id);
  }
  find_reply_ends(ends, tokens);
  return Done{};
}

}  // namespace

Result<GgufTokens> read_gguf_tokens(const GgufHeader& header, std::span<const std::byte> file) {
  const TokenKeys keys(header, file);
  GgufTokens tokens;
  tokens.model = MUSTER_TRY(keys.text("model"));
  tokens.tokens = MUSTER_TRY(keys.texts("tokens"));
  if (tokens.model.empty() || tokens.tokens.empty()) {
    return Error{ErrorKind::NotFound,
                 "the file has no tokenizer: tokenizer.ggml.model or tokenizer.ggml.tokens is "
                 "missing"};
  }
  tokens.pre = MUSTER_TRY(keys.text("pre"));
  tokens.scores = MUSTER_TRY(read_scores(keys, tokens.tokens.size()));
  tokens.types = MUSTER_TRY(read_types(keys, tokens.tokens.size()));
  tokens.merges = MUSTER_TRY(keys.texts("merges"));
  MUSTER_TRY(read_ids(keys, tokens));
  tokens.strips_behind_special = names_phi3(header);
  const auto found = header.metadata.find("tokenizer.chat_template");
  if (found == header.metadata.end()) return tokens;
  const auto* text = std::get_if<std::string>(&found->second);
  if (text == nullptr) return corrupt_error("tokenizer.chat_template is not a text");
  tokens.chat_template = *text;
  return tokens;
}

}  // namespace muster
