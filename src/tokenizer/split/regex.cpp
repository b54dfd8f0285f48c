// PCRE2 with its just-in-time compiler searches patterns that come from a model file, so its
// work is bounded: steps and heap per match, and the length of the pattern. Steps are bounded in
// proportion to the text: a pattern that takes a run of letters or blanks whole and then gives it
// back takes as many. A match beyond the bound counts as none rather than as an error, and the rest
// of the text stays one piece.

#include "tokenizer/split/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>

#include "tokenizer/split/regex_translation.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr std::uint32_t kMatchStepsLeast = 100'000;
// A split pattern has two or three alternatives that give a run back, a step for each character.
constexpr std::size_t kMatchStepsPerByte = 8;
// More than the longest context has characters: what comes behind such a run is in none.
constexpr std::uint32_t kMatchStepsMost = 4'000'000;
constexpr std::uint32_t kHeapMaxKib = 16 * 1024;
constexpr std::size_t kPatternSizeMax = 16 * 1024;  // the longest known is 0.5 kB

constexpr std::uint32_t kOptions =
    PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C;

// Of a text so short that it needs no more than all others have: no limit of its own.
std::uint32_t match_steps(std::size_t text_size) {
  const auto wanted = std::min<std::size_t>(text_size, kMatchStepsMost) * kMatchStepsPerByte;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(wanted, kMatchStepsLeast, kMatchStepsMost));
}

pcre2_match_context* make_limits(std::uint32_t steps) {
  auto* limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(limits, steps);
  pcre2_set_heap_limit(limits, kHeapMaxKib);
  return limits;
}

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
  Working(const Program& program, std::size_t text_size)
      : data(pcre2_match_data_create_from_pattern(program.code, nullptr)), limits(program.limits) {
    const auto steps = match_steps(text_size);
    if (steps > kMatchStepsLeast) limits = own_limits = make_limits(steps);
  }
  ~Working() {
    pcre2_match_context_free(own_limits);
    pcre2_match_data_free(data);
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  pcre2_match_data* data;
  pcre2_match_context* limits;                // the pattern's, or of a long text its own
  pcre2_match_context* own_limits = nullptr;  // freed where it is nullptr, too
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
  program->limits = make_limits(kMatchStepsLeast);
  return Regex(std::unique_ptr<const Program>(std::move(program)));
}

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex),
      text_(text),
      working_(std::make_unique<Working>(*regex.program_, text.size())) {}
Regex::Search::~Search() = default;

// The code of the just-in-time compiler has a stack of 32 kB for the passes of a group; where that
// is full the interpreter goes on, which has the heap. Source: pcre2jit(3) 10.42.
int Regex::Search::match() {
  const auto* subject =
      text_.empty() ? PCRE2_SPTR8("") : reinterpret_cast<PCRE2_SPTR>(text_.data());
  const auto match_with = [&](std::uint32_t options) {
    return pcre2_match(regex_.program_->code, subject, text_.size(), from_,
                       PCRE2_NO_UTF_CHECK | options, working_->data, working_->limits);
  };
  const int count = match_with(0);
  return count == PCRE2_ERROR_JIT_STACKLIMIT ? match_with(PCRE2_NO_JIT) : count;
}

// The rules for empty matches are those of the iterator that the library uses (the onig crate).
bool Regex::Search::advance() {
  while (from_ <= text_.size()) {
    if (match() < 0) {
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
