// SentencePiece's compiled rules, applied as the library applies them: to a grapheme cluster if
// it is short, else to its characters. Most text is ASCII, where a cluster is one byte, so those
// replacements are looked up once and kept in a table. The trie and the cluster rules run only
// beside a byte beyond ASCII or at CR LF.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tokenizer/normalize/grapheme.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

// A longer cluster is replaced character by character.
constexpr std::size_t kClusterSizeMax = 5;

class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Charsmap rules) : rules_(std::move(rules)) {
    for (unsigned c = 0; c < ascii_.size(); ++c) {
      const char text = static_cast<char>(c);
      ascii_[c] = rules_.find({&text, 1});
    }
    growth_max_ = largest_growth();
  }
  PrecompiledNormalizer(const PrecompiledNormalizer&) = delete;  // ascii_ points into rules_
  PrecompiledNormalizer& operator=(const PrecompiledNormalizer&) = delete;

  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    for (std::size_t at = 0; at < text.size();) {
      if (stands_alone(text, at)) {
        append_ascii(text[at], spare);
        ++at;
        continue;
      }
      const std::size_t end = grapheme_end(text, at);
      append_cluster(std::string_view(text).substr(at, end - at), spare);
      at = end;
    }
    text.swap(spare);
  }

  // A cluster ends before a space unless a letter of the class Prepend is there, and text_cut.h
  // knows those. What becomes of the white space must not depend on what is behind it.
  bool allows_cuts() const override {
    const auto line_feed = ascii_[U'\n'];
    return !rules_.has_key_from(' ') && (!line_feed || line_feed == " " || line_feed == "\n");
  }

  bool keeps_start(std::string_view mark) const override {
    const auto content = rules_.find(mark);
    return !content || content == mark || content == " ";  // a space becomes the mark
  }

  double growth_max() const override { return growth_max_; }

 private:
  /// The longest content for its key, counted out for one and two bytes; the rest have three or
  /// more.
  double largest_growth() const {
    auto growth = std::max(1.0, static_cast<double>(rules_.content_size_max()) / 3);
    const auto regard = [&](std::string_view key) {
      const std::size_t size = rules_.find(key).value_or(key).size();
      growth = std::max(growth, static_cast<double>(size) / static_cast<double>(key.size()));
    };
    std::string key;
    for (char32_t c = 0; c < 0x800; ++c) {
      key.clear();
      append_utf8(c, key);
      regard(key);
    }
    regard("\r\n");  // the only cluster of two ASCII characters
    return growth;
  }

  /// Whether an ASCII character is a cluster of its own because ASCII comes next.
  static bool stands_alone(std::string_view text, std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x80) {
      return false;
    }
    const char next = at + 1 < text.size() ? text[at + 1] : ' ';
    return static_cast<unsigned char>(next) < 0x80 && !(byte == '\r' && next == '\n');
  }

  void append_ascii(char c, std::string& out) const {
    if (const auto& content = ascii_[static_cast<unsigned char>(c)]) {
      out.append(*content);
    } else {
      out.push_back(c);
    }
  }

  void append_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() <= kClusterSizeMax) {
      if (const auto content = rules_.find(cluster)) {
        out.append(*content);
        return;
      }
    }
    for_each_utf8_char(cluster, [&](char32_t, std::size_t begin, std::size_t end) {
      const std::string_view character = cluster.substr(begin, end - begin);
      out.append(rules_.find(character).value_or(character));
    });
  }

  const Charsmap rules_;
  double growth_max_ = 1;
  std::array<std::optional<std::string_view>, 128> ascii_;  // what the library replaces it by
};

/// Removes control characters and turns what others count as white space into spaces.
/// Source: normalizers/unicode.rs of huggingface/tokenizers, do_nmt.
class NmtNormalizer final : public Normalizer {
 public:
  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    for_each_utf8_char(text, [&](char32_t c, std::size_t, std::size_t) {
      if (!is_removed(c)) {
        append_utf8(is_space(c) ? U' ' : c, spare);
      }
    });
    text.swap(spare);
  }

  bool keeps_start(std::string_view) const override { return false; }

 private:
  static bool is_removed(char32_t c) {
    return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
           c == 0x8F || c == 0x9F;
  }
  static bool is_space(char32_t c) {
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  }
};

}  // namespace

std::unique_ptr<const Normalizer> make_precompiled_normalizer(Charsmap rules) {
  return std::make_unique<PrecompiledNormalizer>(std::move(rules));
}

std::unique_ptr<const Normalizer> make_nmt_normalizer() {
  return std::make_unique<NmtNormalizer>();
}

}  // namespace muster
