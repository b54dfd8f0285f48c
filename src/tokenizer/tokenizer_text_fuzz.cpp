// Any valid UTF-8 gets ids below vocab_size(), no more than length_max of them, and the same ones
// whether the text is worked through whole or in parts; all of them or none where they may not be
// more. A pair that is cut has as many as it may,
// and a text cut at the left the end of the whole.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/text_pass.h"
#include "tokenizer/utf8.h"

namespace {

using muster::TokenId;
using muster::Tokenizer;

constexpr std::string_view kBert = R"({
  "added_tokens": [
    {"content": "[M]", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false,
     "special": true},
    {"content": "ab", "single_word": true, "lstrip": true, "rstrip": false, "normalized": true,
     "special": false}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                 "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[S]", 1], "cls": ["[C]", 2]},
  "model": {"type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 20,
            "vocab": {"[U]": 0, "[S]": 1, "[C]": 2, "a": 3, "##a": 4, "b": 5, "##b": 6, "e": 7}}})";

/// All bytes as tokens and a few merges; `normalizer` and `pre_tokenizer` are JSON.
std::string byte_level(const std::string& normalizer, const std::string& pre_tokenizer) {
  std::string vocab;
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    muster::append_utf8(muster::kByteCharacters[byte], token);
    const bool is_escaped = token == "\"" || token == "\\";
    vocab +=
        "\"" + std::string(is_escaped ? "\\" : "") + token + "\":" + std::to_string(byte) + ",";
  }
  return R"({"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
         R"(,"model":{"type":"BPE","vocab":{)" + vocab +
         R"("Ġa":256,"aa":257,"aaa":258,"Ã©":259},)"
         R"("merges":["Ġ a","a a","aa a","Ã ©"]}})";
}

std::string after_split(std::string_view pattern) {
  std::string escaped;
  for (const char c : pattern) {
    escaped.append(c == '\\' ? "\\" : "").push_back(c);
  }
  return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + escaped +
         R"("},"behavior":"Isolated","invert":false},)"
         R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})";
}

/// Rules for é, line ends, "a" with an accent, ™, U+200B and U+0301; made by charsmap.py.
constexpr std::string_view kPrecompiled =
    R"({"type":"Precompiled","precompiled_charsmap":")"
    "AAQAAAAsAAAKDQAABAAAgAQAAIDMAAIAgQkAAA0VAAAGAACAqQUAAAAAAICBGQAAhOQCAAwAAICLDQAABAAAgIAk"
    "AgCiBQAACQAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABhiAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAADMMAEAw6QBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAA4pgBAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABlzIEAIADDoQBUTQAA"
    R"("})";

/// Few pieces, so that most paths are decided by unknown characters and equal sums.
std::string unigram(const std::string& normalizer, const std::string& pre_tokenizer) {
  return R"({"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
         R"(,"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],)"
         R"(["▁",-3],["a",-2.5],["b",-3.25],["▁a",-3],["aa",-5],["▁ab",-4.125],["aba",-6],)"
         R"(["é",-7],["<0xC3>",-1],["<0xA9>",-1],["中",-9.5]]}})";
}

class Subject {
 public:
  explicit Subject(std::string_view json) {
    auto tokenizer = Tokenizer::parse(json);
    auto parts = muster::read_tokenizer_json(json);
    MUSTER_CHECK(tokenizer && parts);
    tokenizer_ = *std::move(tokenizer);
    parts_ = *std::move(parts);
  }

  void check(std::string_view text, std::uint32_t content_max, std::size_t part_size) {
    const std::uint32_t length_max = tokenizer_->special_token_count() + content_max;
    ids_.clear();
    const auto encoded = tokenizer_->encode(text, length_max, scratch_, ids_);
    MUSTER_CHECK(encoded.token_count == ids_.size() && ids_.size() <= length_max);
    for (const TokenId id : ids_) {
      MUSTER_CHECK(id < tokenizer_->vocab_size());
    }
    const auto all = tokenizer_->encode_whole(text, length_max, true, scratch_);
    MUSTER_CHECK(all.has_value() != encoded.is_truncated && (!all || *all == ids_));
    tokenizer_->decode(ids_, true);
    whole_.clear();
    parted_.clear();
    muster::TextPass(parts_, scratch_, whole_, text.size() * 4).encode(text, text.size() + 1);
    muster::TextPass(parts_, scratch_, parted_, text.size() * 4).encode(text, part_size);
    MUSTER_CHECK(whole_ == parted_);
    check_left(text, content_max);
  }

  void check_pair(std::string_view first, std::string_view second, std::uint32_t content_max) {
    const std::uint32_t length_max = tokenizer_->pair_special_token_count() + content_max;
    whole_.clear();
    const auto whole = tokenizer_->encode_pair(first, second, kNoLimit, scratch_, whole_);
    ids_.clear();
    const auto cut = tokenizer_->encode_pair(first, second, length_max, scratch_, ids_);
    MUSTER_CHECK(!whole.is_truncated && whole.token_count == whole_.size());
    MUSTER_CHECK(cut.is_truncated == (whole.token_count > length_max));
    MUSTER_CHECK(cut.token_count == std::min(whole.token_count, length_max));
    MUSTER_CHECK(cut.first_segment <= cut.token_count && cut.token_count == ids_.size());
  }

 private:
  static constexpr std::uint32_t kNoLimit = 1U << 30;

  void check_left(std::string_view text, std::uint32_t content_max) {
    const std::uint32_t length_max = tokenizer_->special_token_count() + content_max;
    ids_.clear();
    tokenizer_->encode(text, length_max, scratch_, ids_, muster::TruncationSide::Left);
    const auto content = std::min<std::size_t>(whole_.size(), content_max);
    MUSTER_CHECK(ids_.size() == content + tokenizer_->special_token_count());
    // The specials before the text are at most one, as all subjects here have it.
    const auto begin = ids_.begin() + (tokenizer_->special_token_count() > 0 ? 1 : 0);
    MUSTER_CHECK(std::equal(begin, begin + static_cast<std::ptrdiff_t>(content),
                            whole_.end() - static_cast<std::ptrdiff_t>(content)));
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  muster::TokenizerParts parts_;
  Tokenizer::Scratch scratch_;
  std::vector<TokenId> ids_;
  std::vector<TokenId> whole_;
  std::vector<TokenId> parted_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::array<Subject, 6> subjects = {
      Subject(kBert),
      Subject(byte_level("null", R"({"type":"ByteLevel","add_prefix_space":true,)"
                                 R"("trim_offsets":true,"use_regex":true})")),
      Subject(byte_level(R"({"type":"NFC"})", after_split(muster::kLlama3Pattern))),
      Subject(byte_level(R"({"type":"NFKC"})", after_split(R"(\s?[^\s\p{N}]+|\p{N}|\s+)"))),
      Subject(unigram(std::string(kPrecompiled), R"({"type":"Sequence","pretokenizers":[)"
                                                 R"({"type":"WhitespaceSplit"},)"
                                                 R"({"type":"Metaspace","replacement":"▁"}]})")),
      Subject(unigram(R"({"type":"NFKC"})", R"({"type":"Metaspace","replacement":"▁",)"
                                            R"("prepend_scheme":"first"})"))};
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (muster::invalid_utf8_at(text)) {
    return 0;
  }
  std::size_t middle = text.size() / 2;
  while (middle > 0 && (static_cast<unsigned char>(text[middle]) & 0xC0U) == 0x80U) --middle;
  for (Subject& subject : subjects) {
    subject.check(text, data[0] % 32U, data[1] % 64U + 1);
    subject.check_pair(text.substr(0, middle), text.substr(middle), data[0] % 32U);
  }
  return 0;
}
