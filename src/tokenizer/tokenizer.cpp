// Encoding reads only as much text as the limit asks for. TextPass stops one word beyond the
// limit, and that surplus is how truncation is noticed; it is cut off afterwards. Cutting at the
// left cannot stop early. Of a pair, the first text is kept between calls, since a reranker
// sends one query with many documents.

#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/text_pass.h"
#include "tokenizer/text_stream.h"

namespace muster {
namespace {

constexpr std::uint64_t kFileSizeMax = std::uint64_t{256} << 20;  // the largest known have 35 MB

std::uint64_t id_end(const std::vector<TokenId>& ids) {
  const auto highest = std::max_element(ids.begin(), ids.end());
  return highest == ids.end() ? 0 : std::uint64_t{*highest} + 1;
}

std::uint32_t id_end(const TokenizerParts& parts) {
  const auto pair = parts.post_processor.pair.value_or(PairTemplate{});
  const std::uint64_t end =
      std::max({parts.model->vocabulary().id_end(), parts.added_tokens.id_end(),
                id_end(parts.post_processor.before), id_end(parts.post_processor.after),
                id_end(pair.before), id_end(pair.between), id_end(pair.after)});
  return static_cast<std::uint32_t>(end);  // an id is at most 2^32 - 2
}

void append(std::vector<TokenId>& ids, std::span<const TokenId> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

struct PairLengths {
  std::size_t first = 0;
  std::size_t second = 0;
};

// Source: truncate_encodings of huggingface/tokenizers 0.23, utils/truncation.rs, LongestFirst.
PairLengths longest_first(PairLengths whole, std::size_t room) {
  if (whole.first + whole.second <= room) return whole;
  const bool is_swapped = whole.first > whole.second;
  auto shorter = std::min(whole.first, whole.second);
  auto longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return is_swapped ? PairLengths{longer, shorter} : PairLengths{shorter, longer};
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
  const std::string text = MUSTER_TRY(read_regular_file(tokenizer_json, kFileSizeMax));
  return parse(text);
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::parse(std::string_view tokenizer_json) {
  return of_parts(MUSTER_TRY(read_tokenizer_json(tokenizer_json)));
}

std::unique_ptr<const Tokenizer> Tokenizer::of_parts(TokenizerParts parts) {
  auto whole = std::make_unique<Parts>();
  whole->described = std::move(parts);
  whole->vocab_size = id_end(whole->described);
  return std::unique_ptr<const Tokenizer>(new Tokenizer(std::move(whole)));
}

std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> Tokenizer::make_scratch() const {
  return {new Scratch, [](Scratch* scratch) { delete scratch; }};
}

std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> Tokenizer::make_scratch(
    std::size_t text_bytes) const {
  return {new Scratch(text_bytes), [](Scratch* scratch) { delete scratch; }};
}

Tokenizer::Encoded Tokenizer::encode(std::string_view text, std::uint32_t length_max,
                                     Scratch& scratch, std::vector<TokenId>& ids,
                                     TruncationSide side) const {
  MUSTER_CHECK(length_max >= special_token_count());
  const PostProcessor& special = parts_->described.post_processor;
  const std::size_t begin = ids.size();
  append(ids, special.before);
  const std::size_t content_begin = ids.size();
  const std::size_t content_end = begin + length_max - special.after.size();
  const bool is_right = side == TruncationSide::Right;
  TextPass(parts_->described, scratch, ids,
           is_right ? content_end : std::numeric_limits<std::size_t>::max())
      .encode(text);
  const bool is_truncated = ids.size() > content_end;
  if (is_truncated && is_right) {
    ids.resize(content_end);
  } else if (is_truncated) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(content_begin);
    ids.erase(from, from + static_cast<std::ptrdiff_t>(ids.size() - content_end));
  }
  append(ids, special.after);
  return {static_cast<std::uint32_t>(ids.size() - begin), is_truncated};
}

Tokenizer::Encoded Tokenizer::encode_content(std::string_view text, std::uint32_t length_max,
                                             Scratch& scratch, std::vector<TokenId>& ids) const {
  const std::size_t begin = ids.size();
  const std::size_t end = begin + length_max;
  TextPass(parts_->described, scratch, ids, end).encode(text);
  const bool is_truncated = ids.size() > end;
  if (is_truncated) ids.resize(end);
  return {static_cast<std::uint32_t>(ids.size() - begin), is_truncated};
}

std::optional<std::vector<TokenId>> Tokenizer::encode_whole(std::string_view text,
                                                            std::uint32_t length_max,
                                                            bool adds_special_tokens,
                                                            Scratch& scratch) const {
  MUSTER_CHECK(length_max >= special_token_count());
  const PostProcessor none{};
  const auto& special = adds_special_tokens ? parts_->described.post_processor : none;
  std::vector<TokenId> ids(special.before);
  TextPass pass(parts_->described, scratch, ids, length_max - special.after.size(), Beyond::IsTold);
  pass.encode(text);
  if (pass.is_full()) return std::nullopt;
  append(ids, special.after);
  return ids;
}

Tokenizer::EncodedPair Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                              std::uint32_t length_max, Scratch& scratch,
                                              std::vector<TokenId>& ids) const {
  FirstOfPairs once{std::string(first)};
  return encode_pair(once, second, length_max, scratch, ids);
}

// What was read further than `end` before stays: all that is looked at is whether there are more
// ids than `end`, and the first of them.
void Tokenizer::read_first(FirstOfPairs& first, std::size_t end, Scratch& scratch) const {
  if (first.is_read_ && (first.is_whole_ || first.ids_.size() > end)) return;
  first.ids_.clear();
  TextPass(parts_->described, scratch, first.ids_, end).encode(first.text_);
  first.is_read_ = true;
  first.is_whole_ = first.ids_.size() <= end;
}

// Both texts are read until one is whole or, where that already tells how much stays of each, until
// both have more than `room` tokens. Only if both are longer and `room` is odd does it matter which
// one is the longer.
Tokenizer::EncodedPair Tokenizer::encode_pair(FirstOfPairs& first, std::string_view second,
                                              std::uint32_t length_max, Scratch& scratch,
                                              std::vector<TokenId>& ids) const {
  MUSTER_CHECK(encodes_pairs() && length_max >= pair_special_token_count());
  const PairTemplate& special = *parts_->described.post_processor.pair;
  const std::size_t room = length_max - special.special_count();
  std::vector<TokenId> second_ids;
  for (std::size_t end = room;; end *= 2) {
    read_first(first, end, scratch);
    second_ids.clear();
    TextPass(parts_->described, scratch, second_ids, end).encode(second);
    const bool both_go_on = first.ids_.size() > end && second_ids.size() > end;
    if (!both_go_on || room % 2 == 0) break;
  }
  const auto kept = longest_first({first.ids_.size(), second_ids.size()}, room);
  const std::size_t begin = ids.size();
  append(ids, special.before);
  append(ids, std::span(first.ids_).first(kept.first));
  const auto middle = ids.size() - begin;
  append(ids, special.between);
  append(ids, std::span(second_ids).first(kept.second));
  append(ids, special.after);
  const auto token_count = ids.size() - begin;
  const auto first_segment =
      special.has_segments ? middle + special.between_first_count : token_count;
  return {static_cast<std::uint32_t>(token_count), static_cast<std::uint32_t>(first_segment),
          kept.first < first.ids_.size() || kept.second < second_ids.size()};
}

bool Tokenizer::encodes_pairs() const { return parts_->described.post_processor.pair.has_value(); }

std::uint32_t Tokenizer::pair_special_token_count() const {
  const auto& pair = parts_->described.post_processor.pair;
  return pair ? static_cast<std::uint32_t>(pair->special_count()) : 0;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  const TokenizerParts& parts = parts_->described;
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    const auto text = token_text(id);
    if (text && !(skip_special_tokens && parts.added_tokens.is_special(*text))) {
      tokens.emplace_back(*text);
    }
  }
  if (parts.decoder) {
    tokens = parts.decoder->decode(tokens);
  }
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    out.append(!parts.decoder && i > 0 ? " " : "").append(tokens[i]);
  }
  return out;
}

std::unique_ptr<DecoderStream> Tokenizer::decoder_stream(bool continues_text) const {
  const auto& decoder = parts_->described.decoder;
  return decoder ? decoder->stream(continues_text) : nullptr;
}

std::optional<std::string_view> Tokenizer::token_text(TokenId id) const {
  const TokenizerParts& parts = parts_->described;
  const auto added = parts.added_tokens.text_of(id);
  return added ? added : parts.model->vocabulary().token_of(id);
}

// The decoder by itself tells all but the bytes of a part of a character, for which it has the
// replacement. These are read off the token, which then is a byte token or of the byte alphabet.
std::optional<std::string> Tokenizer::token_bytes(TokenId id, bool continues_text) const {
  const auto token = token_text(id);
  if (!token || is_special(id)) return std::nullopt;
  TextStream stream(*this, {.skips_special_tokens = true, .continues_text = continues_text});
  auto text = stream.push(id);
  text += stream.finish();
  if (text.find("\xEF\xBF\xBD") == std::string::npos) return text;
  if (const auto byte = byte_of_byte_token(*token)) {
    return std::string(1, static_cast<char>(*byte));
  }
  return bytes_of_token(*token).value_or(text);
}

std::optional<TokenId> Tokenizer::find_token(std::string_view text) const {
  const TokenizerParts& parts = parts_->described;
  const auto added = parts.added_tokens.id_of(text);
  return added ? added : parts.model->vocabulary().id_of(text);
}

// Special is a property of the text, as in the library: two ids with the same text are both
// special.
bool Tokenizer::is_special(TokenId id) const {
  const auto text = token_text(id);
  return text && parts_->described.added_tokens.is_special(*text);
}

std::uint32_t Tokenizer::special_token_count() const {
  const PostProcessor& special = parts_->described.post_processor;
  return static_cast<std::uint32_t>(special.before.size() + special.after.size());
}

std::span<const TokenId> Tokenizer::special_tokens_before() const {
  return parts_->described.post_processor.before;
}

std::span<const TokenId> Tokenizer::special_tokens_after() const {
  return parts_->described.post_processor.after;
}

std::uint32_t Tokenizer::vocab_size() const { return parts_->vocab_size; }

}  // namespace muster
