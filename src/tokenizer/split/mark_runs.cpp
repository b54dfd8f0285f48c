// A text without any splitting would be one word for the model, and the heap of its merges as
// large as the text. Where no token has a mark behind another character, a run of marks can
// begin a word without a change of ids. The words then are short and most of them are found in
// the cache.

#include <algorithm>
#include <utility>

#include "tokenizer/split/pre_tokenizer.h"

namespace muster {
namespace {

class MarkRunPreTokenizer final : public PreTokenizer {
 public:
  MarkRunPreTokenizer(std::string mark, bool spaces_are_marks)
      : mark_(std::move(mark)), spaces_are_marks_(spaces_are_marks) {}

  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      const auto text = pieces.text().substr(0, end);
      while (begin < end) {
        const auto next = run_begin(text, begin);
        out.push_back({begin, next});
        begin = next;
      }
    });
  }

  CutEffect cut_effect(CutPlace place) const override {
    return place == CutPlace::Space && spaces_are_marks_ ? CutEffect::Separates : CutEffect::Unsafe;
  }

  bool keeps_text() const override { return true; }

 private:
  /// The first run of marks behind the word that begins at `begin`, with marks or without.
  std::size_t run_begin(std::string_view text, std::size_t begin) const {
    while (text.substr(begin).starts_with(mark_)) begin += mark_.size();
    return std::min(text.find(mark_, begin), text.size());
  }

  const std::string mark_;
  const bool spaces_are_marks_;
};

}  // namespace

std::unique_ptr<const PreTokenizer> make_mark_run_pre_tokenizer(std::string mark,
                                                                bool spaces_are_marks) {
  return std::make_unique<MarkRunPreTokenizer>(std::move(mark), spaces_are_marks);
}

}  // namespace muster
