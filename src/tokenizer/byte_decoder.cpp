// Characters out of bytes that arrive in several tokens.
//
// A character may be spread over tokens, so both streams hold bytes back until they can tell
// what these are. The byte alphabet decides character by character. Byte tokens such as <0xE4>
// decide only at the end of a run, because one broken byte makes the library replace each byte
// of the run.
//
// Source: The Unicode Standard 15.0, table 3-7 (well-formed UTF-8).

#include <algorithm>
#include <utility>

#include "tokenizer/decoder.h"
#include "tokenizer/models/sentencepiece_text.h"
#include "tokenizer/split/byte_alphabet.h"

// The steps that make characters of bytes which come in several tokens.

namespace muster {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// How many bytes from `at` are a character, or a proper beginning of one, and which of the two.
struct Utf8Start {
  std::size_t size;
  bool is_whole;
};

Utf8Start utf8_start(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  if (lead < 0x80) {
    return {1, true};
  }
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) {
    return {1, false};
  }
  // The second byte has a narrower range after four of the leads (table 3-7).
  const unsigned low = lead == 0xE0 ? 0xA0U : lead == 0xF0 ? 0x90U : 0x80U;
  const unsigned high = lead == 0xED ? 0x9FU : lead == 0xF4 ? 0x8FU : 0xBFU;
  for (std::size_t i = 1; i < size; ++i) {
    const bool fits = at + i < text.size() && byte(at + i) >= (i == 1 ? low : 0x80U) &&
                      byte(at + i) <= (i == 1 ? high : 0xBFU);
    if (!fits) {
      return {i, false};
    }
  }
  return {size, true};
}

bool may_become_character(std::string_view text, std::size_t at, Utf8Start start) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return !start.is_whole && at + start.size == text.size() && lead >= 0xC2 && lead <= 0xF4;
}

class ByteLevelStream final : public DecoderStream {
 public:
  void push(TokenPart part, std::vector<TokenPart>& out) override {
    token_.append(part.text);
    if (!part.ends_token) return;
    bytes_.append(bytes_of_token(token_).value_or(token_));
    token_.clear();
    const auto size = bytes_.size() - unfinished_utf8_size(bytes_);
    out.push_back({replace_invalid_utf8(std::string_view(bytes_).substr(0, size)), false});
    bytes_.erase(0, size);
  }
  void finish(std::vector<TokenPart>& out) override {
    out.push_back({replace_invalid_utf8(std::exchange(bytes_, {}))});
  }

 private:
  std::string token_;  // what has come of it
  std::string bytes_;  // the beginning of a character
};

class ByteLevelDecoder final : public Decoder {
 public:
  std::unique_ptr<DecoderStream> stream(bool /*continues_text*/) const override {
    return std::make_unique<ByteLevelStream>();
  }
};

class ByteFallbackStream final : public DecoderStream {
 public:
  void push(TokenPart part, std::vector<TokenPart>& out) override {
    token_.append(part.text);
    if (!part.ends_token) return;
    auto token = std::exchange(token_, {});
    if (const auto byte = byte_of_byte_token(token)) {
      run_.push_back(static_cast<char>(*byte));
      return;
    }
    finish(out);
    out.push_back({std::move(token)});
  }

  void finish(std::vector<TokenPart>& out) override {
    if (run_.empty()) return;
    auto run = std::exchange(run_, {});
    if (replace_invalid_utf8(run) == run) {
      out.push_back({std::move(run)});
      return;
    }
    for (std::size_t i = 0; i < run.size(); ++i) out.push_back({std::string(kReplacement)});
  }

 private:
  std::string token_;
  std::string run_;  // bytes of the tokens that have come one after the other
};

class ByteFallbackDecoder final : public Decoder {
 public:
  std::unique_ptr<DecoderStream> stream(bool /*continues_text*/) const override {
    return std::make_unique<ByteFallbackStream>();
  }
};

}  // namespace

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text, at);
    out.append(start.is_whole ? text.substr(at, start.size) : kReplacement);
    at += start.size;
  }
  return out;
}

std::size_t unfinished_utf8_size(std::string_view text) {
  // No beginning of a character has more than three bytes.
  for (std::size_t size = std::min<std::size_t>(3, text.size()); size > 0; --size) {
    const auto at = text.size() - size;
    if (may_become_character(text, at, utf8_start(text, at))) return size;
  }
  return 0;
}

std::unique_ptr<const Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<const Decoder> make_byte_fallback_decoder() {
  return std::make_unique<ByteFallbackDecoder>();
}

}  // namespace muster
