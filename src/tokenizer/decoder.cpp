#include "tokenizer/decoder.h"

#include <array>
#include <utility>

#include "tokenizer/split/byte_alphabet.h"

namespace muster {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found; (found = text.find(from, at)) != std::string_view::npos;) {
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return out.append(text.substr(at));
}

/// Source: `cleanup` of the WordPiece decoder of huggingface/tokenizers, in its order.
std::string clean_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : kRules) {
    text = replace_all(text, from, to);
  }
  return text;
}

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(WordPieceDecoderOptions options) : options_(std::move(options)) {}

  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      const std::string& prefix = options_.prefix;
      if (i > 0 && token.compare(0, prefix.size(), prefix) == 0) {
        token.erase(0, prefix.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      token = options_.cleanup ? clean_up(std::move(token)) : std::move(token);
    }
    return tokens;
  }

 private:
  const WordPieceDecoderOptions options_;
};

class ByteLevelDecoder final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      bytes.append(bytes_of_token(token).value_or(token));
    }
    return {replace_invalid_utf8(bytes)};
  }
};

class FuseDecoder final : public Decoder {
 public:
  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    std::string all;
    for (const std::string& token : tokens) {
      all.append(token);
    }
    return {std::move(all)};
  }
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
    return tokens;
  }

 private:
  const std::string suffix_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string mark, bool drops_first)
      : mark_(std::move(mark)), drops_first_(drops_first) {}

  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], mark_, i == 0 && drops_first_ ? "" : " ");
    }
    return tokens;
  }

 private:
  const std::string mark_;
  const bool drops_first_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<const Decoder>> steps)
      : steps_(std::move(steps)) {}

  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    for (const auto& step : steps_) {
      tokens = step->decode(std::move(tokens));
    }
    return tokens;
  }

 private:
  const std::vector<std::unique_ptr<const Decoder>> steps_;
};

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

std::unique_ptr<const Decoder> make_wordpiece_decoder(WordPieceDecoderOptions options) {
  return std::make_unique<WordPieceDecoder>(std::move(options));
}

std::unique_ptr<const Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<const Decoder> make_fuse_decoder() { return std::make_unique<FuseDecoder>(); }

std::unique_ptr<const Decoder> make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

std::unique_ptr<const Decoder> make_metaspace_decoder(std::string mark, bool drops_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(mark), drops_first);
}

std::unique_ptr<const Decoder> make_decoder_sequence(
    std::vector<std::unique_ptr<const Decoder>> steps) {
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace muster
