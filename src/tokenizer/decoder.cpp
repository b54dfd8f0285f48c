// Each step of decoding is a stream, so that a reply can be printed while it is generated.
// Decoding all tokens at once uses the same streams, so the two cannot give different text. A
// step that has to see a whole token derives from WholeTokens, which gathers the parts first;
// the others pass parts on as they come. Source: the decoders of huggingface/tokenizers 0.23.

#include "tokenizer/decoder.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace muster {
namespace {

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

/// A step that looks at whole tokens.
class WholeTokens : public DecoderStream {
 public:
  void push(TokenPart part, std::vector<TokenPart>& out) final {
    token_.append(part.text);
    if (!part.ends_token) return;
    take(std::exchange(token_, {}), out);
  }
  void finish(std::vector<TokenPart>& /*out*/) override {}

 protected:
  virtual void take(std::string token, std::vector<TokenPart>& out) = 0;

 private:
  std::string token_;
};

class WordPieceStream final : public WholeTokens {
 public:
  WordPieceStream(const WordPieceDecoderOptions& options, bool is_first)
      : options_(options), is_first_(is_first) {}

 protected:
  void take(std::string token, std::vector<TokenPart>& out) override {
    if (!std::exchange(is_first_, false)) {
      if (token.starts_with(options_.prefix)) {
        token.erase(0, options_.prefix.size());
      } else {
        token.insert(0, " ");
      }
    }
    out.push_back({options_.cleanup ? clean_up(std::move(token)) : std::move(token)});
  }

 private:
  const WordPieceDecoderOptions& options_;
  bool is_first_;
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(WordPieceDecoderOptions options) : options_(std::move(options)) {}

  std::unique_ptr<DecoderStream> stream(bool continues_text) const override {
    return std::make_unique<WordPieceStream>(options_, !continues_text);
  }

 private:
  const WordPieceDecoderOptions options_;
};

// Never ends its token before the text ends: all that follows sees one token in many parts, and
// nothing needs to be held back for it.
class FuseStream final : public DecoderStream {
 public:
  void push(TokenPart part, std::vector<TokenPart>& out) override {
    out.push_back({std::move(part.text), false});
  }
  void finish(std::vector<TokenPart>& out) override { out.push_back({}); }
};

class FuseDecoder final : public Decoder {
 public:
  std::unique_ptr<DecoderStream> stream(bool /*continues_text*/) const override {
    return std::make_unique<FuseStream>();
  }
};

// The suffix of the last token becomes nothing, of any other a space. Which one a token is shows
// only when the next arrives or the text ends, so one token is always held back.
class BpeStream final : public WholeTokens {
 public:
  explicit BpeStream(const std::string& suffix) : suffix_(suffix) {}

  void finish(std::vector<TokenPart>& out) override { give_last("", out); }

 protected:
  void take(std::string token, std::vector<TokenPart>& out) override {
    give_last(" ", out);
    last_ = std::move(token);
    has_last_ = true;
  }

 private:
  void give_last(std::string_view space, std::vector<TokenPart>& out) {
    if (std::exchange(has_last_, false)) out.push_back({replace_all(last_, suffix_, space)});
  }

  const std::string& suffix_;
  std::string last_;
  bool has_last_ = false;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  std::unique_ptr<DecoderStream> stream(bool /*continues_text*/) const override {
    return std::make_unique<BpeStream>(suffix_);
  }

 private:
  const std::string suffix_;
};

class MetaspaceStream final : public WholeTokens {
 public:
  MetaspaceStream(const std::string& mark, bool drops_mark)
      : mark_(mark), drops_mark_(drops_mark) {}

 protected:
  void take(std::string token, std::vector<TokenPart>& out) override {
    out.push_back({replace_all(token, mark_, std::exchange(drops_mark_, false) ? "" : " ")});
  }

 private:
  const std::string& mark_;
  bool drops_mark_;  // in the next token
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string mark, bool drops_first)
      : mark_(std::move(mark)), drops_first_(drops_first) {}

  std::unique_ptr<DecoderStream> stream(bool continues_text) const override {
    return std::make_unique<MetaspaceStream>(mark_, drops_first_ && !continues_text);
  }

 private:
  const std::string mark_;
  const bool drops_first_;
};

class ReplaceStream final : public WholeTokens {
 public:
  ReplaceStream(const Regex& pattern, const std::string& content)
      : pattern_(pattern), content_(content) {}

 protected:
  void take(std::string token, std::vector<TokenPart>& out) override {
    std::string text;
    std::size_t copied = 0;
    pattern_.for_each_match(token, [&](std::size_t begin, std::size_t end) {
      text.append(token, copied, begin - copied).append(content_);
      copied = end;
    });
    out.push_back({text.append(token, copied)});
  }

 private:
  const Regex& pattern_;
  const std::string& content_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(Regex pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  std::unique_ptr<DecoderStream> stream(bool /*continues_text*/) const override {
    return std::make_unique<ReplaceStream>(pattern_, content_);
  }

 private:
  const Regex pattern_;
  const std::string content_;
};

/// Works on parts: behind Fuse the one token ends with the text.
class StripStream final : public DecoderStream {
 public:
  StripStream(const StripDecoderOptions& options, bool continues_text)
      : options_(options), start_left_(continues_text ? 0 : options.start) {}

  void push(TokenPart part, std::vector<TokenPart>& out) override {
    std::string text = std::exchange(held_, {}) + part.text;
    const auto& content = options_.content;
    std::size_t begin = 0;
    for (; start_left_ > 0 && std::string_view(text).substr(begin).starts_with(content);
         --start_left_) {
      begin += content.size();
    }
    if (begin < text.size()) start_left_ = 0;
    text.erase(0, begin);
    std::size_t end = text.size();
    for (auto left = options_.stop;
         left > 0 && std::string_view(text).substr(0, end).ends_with(content); --left) {
      end -= content.size();
    }
    if (!part.ends_token) held_ = text.substr(end);
    text.resize(end);
    out.push_back({std::move(text), part.ends_token});
    if (part.ends_token) start_left_ = options_.start;
  }
  void finish(std::vector<TokenPart>& /*out*/) override {}

 private:
  const StripDecoderOptions& options_;
  std::uint64_t start_left_;
  std::string held_;
};

class StripDecoder final : public Decoder {
 public:
  explicit StripDecoder(StripDecoderOptions options) : options_(std::move(options)) {}

  std::unique_ptr<DecoderStream> stream(bool continues_text) const override {
    return std::make_unique<StripStream>(options_, continues_text);
  }

 private:
  const StripDecoderOptions options_;
};

class SequenceStream final : public DecoderStream {
 public:
  explicit SequenceStream(std::vector<std::unique_ptr<DecoderStream>> steps)
      : steps_(std::move(steps)) {}

  void push(TokenPart part, std::vector<TokenPart>& out) override {
    std::vector<TokenPart> parts;
    parts.push_back(std::move(part));
    run(0, std::move(parts), out);
  }

  void finish(std::vector<TokenPart>& out) override {
    // What a step held back still has to pass through all steps behind it, before those finish.
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::vector<TokenPart> parts;
      steps_[i]->finish(parts);
      run(i + 1, std::move(parts), out);
    }
  }

 private:
  void run(std::size_t first, std::vector<TokenPart> parts, std::vector<TokenPart>& out) {
    for (std::size_t i = first; i < steps_.size(); ++i) {
      std::vector<TokenPart> next;
      for (auto& part : parts) steps_[i]->push(std::move(part), next);
      parts = std::move(next);
    }
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
  }

  const std::vector<std::unique_ptr<DecoderStream>> steps_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<const Decoder>> steps)
      : steps_(std::move(steps)) {}

  std::unique_ptr<DecoderStream> stream(bool continues_text) const override {
    std::vector<std::unique_ptr<DecoderStream>> streams;
    for (const auto& step : steps_) streams.push_back(step->stream(continues_text));
    return std::make_unique<SequenceStream>(std::move(streams));
  }

 private:
  const std::vector<std::unique_ptr<const Decoder>> steps_;
};

}  // namespace

std::vector<std::string> Decoder::decode(const std::vector<std::string>& tokens) const {
  const auto steps = stream(/*continues_text=*/false);
  std::vector<TokenPart> parts;
  for (const auto& token : tokens) steps->push({token}, parts);
  steps->finish(parts);
  std::vector<std::string> texts;
  // Parts are put together again to tokens: a part continues the one before unless that has
  // ended its token.
  bool is_open = false;
  for (auto& part : parts) {
    if (is_open) {
      texts.back().append(part.text);
    } else {
      texts.push_back(std::move(part.text));
    }
    is_open = !part.ends_token;
  }
  return texts;
}

std::unique_ptr<const Decoder> make_wordpiece_decoder(WordPieceDecoderOptions options) {
  return std::make_unique<WordPieceDecoder>(std::move(options));
}

std::unique_ptr<const Decoder> make_fuse_decoder() { return std::make_unique<FuseDecoder>(); }

std::unique_ptr<const Decoder> make_bpe_decoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

std::unique_ptr<const Decoder> make_metaspace_decoder(std::string mark, bool drops_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(mark), drops_first);
}

std::unique_ptr<const Decoder> make_replace_decoder(Regex pattern, std::string content) {
  return std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content));
}

std::unique_ptr<const Decoder> make_strip_decoder(StripDecoderOptions options) {
  return std::make_unique<StripDecoder>(std::move(options));
}

std::unique_ptr<const Decoder> make_decoder_sequence(
    std::vector<std::unique_ptr<const Decoder>> steps) {
  return std::make_unique<DecoderSequence>(std::move(steps));
}

}  // namespace muster
