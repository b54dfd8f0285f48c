// Everything that results and command lines name goes through `html_escaped` on its way into a
// report: model names, URLs and sentences of servers are strangers' words.
#include "report/html.h"

#include <fmt/format.h>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kNameBytesMost = 200;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void append_character(std::string& html, char c) {
  constexpr unsigned char kFirstPrintable = 0x20;
  constexpr unsigned char kDelete = 0x7F;
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '&':
      html += "&amp;";
      return;
    case '<':
      html += "&lt;";
      return;
    case '>':
      html += "&gt;";
      return;
    case '"':
      html += "&quot;";
      return;
    case '\'':
      html += "&#39;";
      return;
    default:
      break;
  }
  const bool is_control = (byte < kFirstPrintable && c != '\t' && c != '\n') || byte == kDelete;
  if (is_control) {
    html += kReplacement;
  } else {
    html += c;
  }
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  while (!text.empty()) {
    const auto broken = invalid_utf8_at(text);
    for (const char c : text.substr(0, broken.value_or(text.size()))) append_character(html, c);
    if (!broken) break;
    html += kReplacement;
    text.remove_prefix(*broken + 1);
  }
  return html;
}

std::string cut_text(std::string_view text, std::size_t bytes_most) {
  if (text.size() <= bytes_most) return std::string(text);
  constexpr unsigned kContinuationMask = 0xC0;
  constexpr unsigned kContinuation = 0x80;
  auto end = bytes_most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & kContinuationMask) == kContinuation) {
    --end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string html_name(std::string_view name) {
  return "<bdi>" + html_escaped(cut_text(name, kNameBytesMost)) + "</bdi>";
}

std::string HtmlTable::html() const {
  if (rows.empty()) return {};
  const auto title = html_escaped(caption);
  auto text = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table{}>"
      "<caption>{}</caption>\n<thead><tr>",
      title, has_words ? " class=\"words\"" : "", title);
  for (const auto& column : columns) text += fmt::format("<th scope=\"col\">{}</th>", column);
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    bool is_first = true;
    for (const auto& cell : row) {
      text += fmt::format("{}{}{}", is_first ? "<th scope=\"row\">" : "<td>", cell,
                          is_first ? "</th>" : "</td>");
      is_first = false;
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace muster
