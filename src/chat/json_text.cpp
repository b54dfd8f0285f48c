// Models are trained on what Python writes, so the bytes must be those of json.dumps and no other
// valid JSON: its spaces, its escapes and its names for values that JSON lacks. A map keeps the
// order in which its keys were set. Cost is counted for each value, so nesting and size are both
// bounded by the budget. Source: CPython 3.11, Lib/json/encoder.py.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chat/filters.h"
#include "chat/float_text.h"

// json.dumps as transformers' templates see it: not ASCII alone, a space behind each comma and
// colon.

namespace muster {
namespace {

void append_escape(unsigned code, std::string& out) { out += fmt::format("\\u{:04x}", code); }

// Only what JSON forbids is escaped unless ASCII is asked for; then every other character becomes
// UTF-16 units, and so does DEL, as Python prints from ' ' to '~'.
void append_inner(std::string_view text, bool ensures_ascii, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\b') {
      out += "\\b";
    } else if (c == '\f') {
      out += "\\f";
    } else if (c < 0x20 || (c == 0x7F && ensures_ascii)) {
      append_escape(c, out);
    } else if (c < 0x80 || !ensures_ascii) {
      out += static_cast<char>(c);
    } else {
      // A character of several bytes; above U+FFFF as two surrogates.
      const std::size_t size = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
      unsigned code = c & (0x7FU >> size);
      for (std::size_t j = 1; j < size && i + 1 < text.size(); ++j) {
        code = code << 6U | (static_cast<unsigned char>(text[++i]) & 0x3FU);
      }
      if (code >= 0x10000) {
        append_escape(0xD800 + ((code - 0x10000) >> 10U), out);
        append_escape(0xDC00 + ((code - 0x10000) & 0x3FFU), out);
      } else {
        append_escape(code, out);
      }
    }
  }
}

/// The beginning of a text that is quoted at a time: some thousand bytes of whole characters.
std::string_view quoted_part(std::string_view text) {
  auto size = std::min<std::size_t>(text.size(), 4096);
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
  return text.substr(0, size);
}

class Writer {
 public:
  Writer(const JsonStyle& style, ChatBudget& budget) : style_(style), budget_(budget) {}

  Status write(const ChatValue& value, std::size_t depth) {
    // What stands around it: a line break with its indent, and a separator.
    const auto indent = style_.indent ? depth * style_.indent->size() : 0;
    MUSTER_TRY(budget_.take(indent + style_.item_separator.size() + style_.key_separator.size()));
    if (const auto* list = value.as_list()) return write_list(*list, depth);
    if (const auto* map = value.as_map()) return write_map(*map, depth);
    if (const auto* text = value.as_text()) return write_text(*text);
    const auto before = out_.size();
    MUSTER_TRY(write_scalar(value));
    return budget_.take(out_.size() - before);
  }

  std::string take() { return std::move(out_); }

 private:
  Status write_scalar(const ChatValue& value) {
    if (value.is_none()) {
      out_ += "null";
    } else if (const auto* flag = value.as_flag()) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* integer = value.as_integer()) {
      out_ += std::to_string(*integer);
    } else if (const auto* real = value.as_float()) {
      out_ += std::isnan(*real)   ? "NaN"
              : std::isinf(*real) ? (*real < 0 ? "-Infinity" : "Infinity")
                                  : float_text(*real);
    } else {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("tojson of {}", value.is_undefined()
                                                   ? value.as_undefined()->name + ", undefined"
                                                   : std::string(kind_name(value)))};
    }
    return Done{};
  }

  // A text is paid for part by part, as escapes may make it six times as long.
  Status write_text(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const auto part = quoted_part(text);
      const auto before = out_.size();
      append_inner(part, style_.ensures_ascii, out_);
      MUSTER_TRY(budget_.take(out_.size() - before));
      text.remove_prefix(part.size());
    }
    out_ += '"';
    return budget_.take(2);
  }

  void break_line(std::size_t depth) {
    if (!style_.indent) return;
    out_ += '\n';
    for (std::size_t i = 0; i < depth; ++i) out_ += *style_.indent;
  }

  Status write_list(const ChatValue::List& list, std::size_t depth) {
    out_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(depth + 1);
      MUSTER_TRY(write(list[i], depth + 1));
    }
    if (!list.empty()) break_line(depth);
    out_ += ']';
    return Done{};
  }

  // Sorting goes over places, so the map is neither copied nor changed.
  Status write_map(const ChatValue::Map& map, std::size_t depth) {
    std::vector<std::size_t> order(map.size());
    std::iota(order.begin(), order.end(), 0U);
    if (style_.sorts_keys) {
      MUSTER_TRY(budget_.spend(map.size() * 64));
      std::sort(order.begin(), order.end(),
                [&](std::size_t a, std::size_t b) { return map[a].first < map[b].first; });
    }
    out_ += '{';
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(depth + 1);
      MUSTER_TRY(write_text(map[order[i]].first));
      out_ += style_.key_separator;
      MUSTER_TRY(write(map[order[i]].second, depth + 1));
    }
    if (!map.empty()) break_line(depth);
    out_ += '}';
    return Done{};
  }

  const JsonStyle& style_;
  ChatBudget& budget_;
  std::string out_;
};

}  // namespace

Result<std::string> json_text(const ChatValue& value, const JsonStyle& style, ChatBudget& budget) {
  Writer writer(style, budget);
  MUSTER_TRY(writer.write(value, 0));
  return writer.take();
}

}  // namespace muster
