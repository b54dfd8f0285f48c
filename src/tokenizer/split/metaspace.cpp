// Spaces become visible marks and each mark begins a word. Two passes: the first rewrites the
// text, the second cuts it, since the cuts depend on marks that the text may have held itself.
// With the scheme "first" only the piece that begins the caller's whole text gets a mark, which
// is why pieces carry that fact with them.

#include <utility>

#include "tokenizer/split/pre_tokenizer.h"

namespace muster {
namespace {

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceOptions options) : options_(std::move(options)) {}

  void split(Pieces& pieces) const override {
    bool is_text_start = pieces.begins_text();
    pieces.rewrite_each([&](std::string_view text, std::string& out) {
      const bool is_wanted = options_.prepend == MetaspacePrepend::Always ||
                             (options_.prepend == MetaspacePrepend::First && is_text_start);
      if (is_wanted && !begins_with_mark(text)) {
        out.append(options_.replacement);
      }
      append_marked(text, out);
      is_text_start = false;
    });
    if (options_.split) {
      pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
        split_before_marks(pieces.text().substr(0, end), begin, out);
      });
    }
  }

  CutEffect cut_effect(CutPlace place) const override {
    if (!options_.split) {
      return CutEffect::Unsafe;  // a later step would look for spaces and find none
    }
    if (place == CutPlace::Space) {
      return CutEffect::Separates;
    }
    // The second part would get a mark.
    return options_.prepend == MetaspacePrepend::Always ? CutEffect::Unsafe
                                                        : CutEffect::Transparent;
  }

  bool keeps_text() const override { return !options_.replacement.empty(); }

  std::string_view text_start_mark() const override {
    return options_.prepend == MetaspacePrepend::First ? std::string_view(options_.replacement)
                                                       : std::string_view();
  }

 private:
  bool begins_with_mark(std::string_view text) const {
    return text.front() == ' ' ||
           text.substr(0, options_.replacement.size()) == options_.replacement;
  }

  void append_marked(std::string_view text, std::string& out) const {
    while (true) {
      const std::size_t space = text.find(' ');
      out.append(text.substr(0, space));
      if (space == std::string_view::npos) {
        return;
      }
      out.append(options_.replacement);
      text.remove_prefix(space + 1);
    }
  }

  /// Each mark begins a piece.
  void split_before_marks(std::string_view text, std::size_t begin, std::vector<Piece>& out) const {
    while (begin < text.size()) {
      const std::size_t next = text.find(options_.replacement, begin + 1);
      const std::size_t end = next == std::string_view::npos ? text.size() : next;
      out.push_back({begin, end});
      begin = end;
    }
  }

  const MetaspaceOptions options_;
};

}  // namespace

std::unique_ptr<const PreTokenizer> make_metaspace_pre_tokenizer(MetaspaceOptions options) {
  return std::make_unique<MetaspacePreTokenizer>(std::move(options));
}

}  // namespace muster
