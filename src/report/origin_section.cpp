// Where a result comes from: what somebody needs to measure it again, or to doubt the comparison.
#include <fmt/format.h>

#include "report/html.h"
#include "report/sections.h"

namespace muster {
namespace {

constexpr std::size_t kValueBytesMost = 400;

void add_row(HtmlTable& table, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  table.rows.push_back(
      {html_name(name), "<bdi>" + html_escaped(cut_text(value, kValueBytesMost)) + "</bdi>"});
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (text.size() > kValueBytesMost) break;  // it is cut there
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

}  // namespace

std::string origin_section(const ReportResult& result) {
  HtmlTable table{.caption = cut_text(result.name, kValueBytesMost) + ": where it comes from",
                  .columns = {"", ""},
                  .has_words = true};
  add_row(table, "api", result.api);
  add_row(table, "url", result.url);
  add_row(table, "model", result.model);
  add_row(table, "server", result.server);
  add_row(table, "command", joined(result.command));
  add_row(table, "build of muster", result.build);
  constexpr std::size_t kRowsMost = 40;
  for (const auto& [name, value] : result.environment) {
    if (table.rows.size() < kRowsMost) add_row(table, name, value);
  }
  if (result.record) {
    add_row(table, "point", result.record->point);
    for (const auto& [name, value] : result.record->config) {
      if (table.rows.size() < 2 * kRowsMost) add_row(table, "config: " + name, value);
    }
  }
  return "<section>\n" + table.html() + "</section>\n";
}

}  // namespace muster
