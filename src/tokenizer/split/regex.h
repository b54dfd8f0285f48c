#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace muster {

/// A pattern of tokenizer.json, with the matches that Oniguruma finds. PCRE2 does the work, on a
/// pattern translated so that both mean the same (regex_translation.h).
///
/// Threads: immutable and thread-safe.
class Regex {
 public:
  /// Errors: Unsupported for a construct whose meaning differs or is not known to be the same.
  static Result<Regex> compile(std::string_view oniguruma_pattern);

  /// A pattern that is exactly this text.
  static Result<Regex> literal(std::string_view text);

  Regex(Regex&& other) noexcept;
  ~Regex();

  /// Calls `visit(begin, end)` for each match from left to right, none overlapping. An empty match
  /// counts unless it touches the end of the one before. A match that would take more than 8 steps
  /// a byte of the text does not count, nor does any behind it; 100,000 steps are allowed in any
  /// case, and 4,000,000 at most.
  template <typename Visit>
  void for_each_match(std::string_view text, Visit&& visit) const {
    Search search(*this, text);
    while (search.advance()) {
      visit(search.begin(), search.end());
    }
  }

 private:
  struct Program;

  /// One pass over one text.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    bool advance();
    std::size_t begin() const { return begin_; }
    std::size_t end() const { return end_; }

   private:
    struct Working;
    int match();

    const Regex& regex_;
    const std::string_view text_;
    std::unique_ptr<Working> working_;
    std::size_t from_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool has_match_ = false;
  };

  explicit Regex(std::unique_ptr<const Program> program);
  static Result<Regex> compile_translated(std::string_view pattern, std::string_view original);

  std::unique_ptr<const Program> program_;
};

}  // namespace muster
