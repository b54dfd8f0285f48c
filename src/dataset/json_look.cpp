// Guesses whether an input that is taken for plain lines is JSON, from its front. No JSON parser
// serves: the bytes may end anywhere. The walk ends at the first key of an object, since text that
// begins with `{"key":` is hardly prose; where no key comes, all values read must be well formed.

#include "dataset/json_look.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace muster {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

enum class Step : std::uint8_t { Good, Key, Bad, End };  // End: the bytes ended within it

bool is_blank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; }

// Walks over values that hold no key; the first key ends the walk.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  bool is_at_end() const { return at_ == text_.size(); }
  char here() const { return text_[at_]; }
  bool has_passed_line_end() const { return has_passed_line_end_; }

  void skip_blanks() {
    for (; !is_at_end() && is_blank(here()); ++at_) has_passed_line_end_ |= here() == '\n';
  }

  // Blanks up to the end of the line.
  void skip_spaces() {
    while (!is_at_end() && here() != '\n' && is_blank(here())) ++at_;
  }

  // One value, with arrays within arrays counted and not recursed into: depth is the input's
  // choice.
  Step value() {
    std::size_t depth = 0;
    bool may_close = false;  // behind a "[" or a value
    bool wants_value = true;
    do {
      skip_blanks();
      if (is_at_end()) return Step::End;
      if (here() == ']' && may_close && depth > 0) {
        ++at_;
        --depth;
        wants_value = false;
      } else if (wants_value && here() == '[') {
        ++at_;
        ++depth;
        may_close = true;
        continue;
      } else if (wants_value) {
        if (const auto step = scalar_or_object(); step != Step::Good) return step;
        wants_value = false;
      } else if (here() == ',') {
        ++at_;
        wants_value = true;
      } else {
        return Step::Bad;
      }
      may_close = !wants_value;
    } while (depth > 0);
    return Step::Good;
  }

 private:
  Step scalar_or_object() {
    if (here() == '"') return string();
    if (here() == '{') return object();
    const auto begin = at_;
    const auto is_part = [](char byte) {
      return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == 'E' ||
             byte == '+' || byte == '-' || byte == '.';
    };
    while (!is_at_end() && is_part(here())) ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false" || word == "null") return Step::Good;
    const bool is_number =
        !word.empty() && (word.front() == '-' || (word[0] >= '0' && word[0] <= '9'));
    double number = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool is_all = is_number && parsed.ptr == word.data() + word.size();
    if (is_at_end()) return Step::End;
    return is_all ? Step::Good : Step::Bad;
  }

  Step string() {
    for (++at_; !is_at_end(); ++at_) {
      // JSON escapes a line end within a string: a bare one shows that this is no JSON.
      if (here() == '\n') return Step::Bad;
      if (here() == '\\') {
        if (++at_ == text_.size()) return Step::End;
      } else if (here() == '"') {
        ++at_;
        return Step::Good;
      }
    }
    return Step::End;
  }

  Step object() {
    ++at_;
    skip_blanks();
    if (is_at_end()) return Step::End;
    if (here() == '}') {
      ++at_;
      return Step::Good;
    }
    if (here() != '"') return Step::Bad;
    const bool had_line_end = has_passed_line_end_;
    if (const auto step = string(); step != Step::Good) return step;
    skip_blanks();
    if (is_at_end()) return Step::End;
    has_passed_line_end_ = had_line_end;
    return here() == ':' ? Step::Key : Step::Bad;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool has_passed_line_end_ = false;
};

}  // namespace

JsonLook look_for_json(std::string_view head, bool is_whole) {
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const auto begin = std::find_if_not(head.begin(), head.end(), is_blank);
  head.remove_prefix(static_cast<std::size_t>(begin - head.begin()));
  const auto open = is_whole ? JsonLook::Text : JsonLook::Open;
  if (head.empty()) return open;
  if (head.front() != '{' && head.front() != '[') return JsonLook::Text;
  Walker walker(head);
  const auto step = walker.value();
  const auto found =
      head.front() == '[' || walker.has_passed_line_end() ? JsonLook::Document : JsonLook::Lines;
  if (step == Step::Bad) return JsonLook::Text;
  if (step == Step::End) return open;
  if (step == Step::Key) return found;
  walker.skip_spaces();
  if (walker.is_at_end()) return is_whole ? found : JsonLook::Open;
  constexpr std::string_view kMayFollow = "\n,[{";
  return kMayFollow.find(walker.here()) == std::string_view::npos ? JsonLook::Text : found;
}

}  // namespace muster
