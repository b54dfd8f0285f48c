// PCRE2 with its just-in-time compiler searches patterns that come from a model file, so its
// work is bounded: steps and heap per match, and the length of the pattern. A match beyond the
// bound counts as none rather than as an error, and the rest of the text stays one piece.

#include "tokenizer/split/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string>

#include "tokenizer/split/regex_translation.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr std::uint32_t kMatchStepsMax = 100'000;  // a split pattern needs a few per character
constexpr std::uint32_t kHeapMaxKib = 16 * 1024;
constexpr std::size_t kPatternSizeMax = 16 * 1024;  // the longest known is 0.5 kB

constexpr std::uint32_t kOptions =
    PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C;

}  // namespace

struct Regex::Program {
  ~Program() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
};

struct Regex::Search::Working {
  explicit Working(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)) {}
  ~Working() { pcre2_match_data_free(data); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  pcre2_match_data* data;
};

Regex::Regex(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Regex::Regex(Regex&& other) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view oniguruma_pattern) {
  if (oniguruma_pattern.size() > kPatternSizeMax) {
    return Error{ErrorKind::Unsupported, "tokenizer.json: pattern is longer than 16384 bytes: " +
                                             std::to_string(oniguruma_pattern.size())};
  }
  const std::string translated = MUSTER_TRY(translate_pattern(oniguruma_pattern));
  return compile_translated(translated, oniguruma_pattern);
}

Result<Regex> Regex::literal(std::string_view text) {
  std::string pattern;
  for_each_utf8_char(
      text, [&](char32_t c, std::size_t, std::size_t) { append_pattern_character(c, pattern); });
  return compile_translated(pattern, text);
}

Result<Regex> Regex::compile_translated(std::string_view pattern, std::string_view original) {
  auto program = std::make_unique<Program>();
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  program->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                kOptions, &code, &offset, context);
  pcre2_compile_context_free(context);
  if (program->code == nullptr) {
    std::array<PCRE2_UCHAR, 160> reason{};
    pcre2_get_error_message(code, reason.data(), reason.size());
    return Error{ErrorKind::Unsupported,
                 "tokenizer.json: unsupported pattern, " +
                     std::string(reinterpret_cast<const char*>(reason.data())) + ": " +
                     std::string(original)};
  }
  // Without a JIT for this machine the interpreter gives the same matches, so failing is no error.
  pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE);
  program->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(program->limits, kMatchStepsMax);
  pcre2_set_heap_limit(program->limits, kHeapMaxKib);
  return Regex(std::unique_ptr<const Program>(std::move(program)));
}

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), working_(std::make_unique<Working>(regex.program_->code)) {}
Regex::Search::~Search() = default;

// The rules for empty matches are those of the iterator that the library uses (the onig crate).
bool Regex::Search::advance() {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  while (from_ <= text_.size()) {
    const int count =
        pcre2_match(regex_.program_->code, text_.empty() ? PCRE2_SPTR8("") : subject, text_.size(),
                    from_, PCRE2_NO_UTF_CHECK, working_->data, regex_.program_->limits);
    if (count < 0) {
      return false;
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(working_->data);
    const bool is_empty = bounds[0] == bounds[1];
    if (is_empty && has_match_ && bounds[1] == end_) {
      from_ += from_ < text_.size() ? utf8_char_at(text_, from_).size : 1;
      continue;
    }
    begin_ = bounds[0];
    end_ = bounds[1];
    from_ = end_;
    has_match_ = true;
    return true;
  }
  return false;
}

}  // namespace muster
