// What `muster search` prints. Texts come out of files and may hold anything, so what goes to a
// terminal is made printable first.

#include "cli/search_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "terminal/table.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// "lang=de year=2020".
std::string fields_text(const std::string& fields) {
  if (fields.empty()) return "";
  const auto json = Json::parse(fields, nullptr, /*allow_exceptions=*/false);
  std::string text;
  for (const auto& [name, value] : json.items()) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}={}", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

std::string describe_hits(const std::string& query, const std::vector<SearchHit>& hits,
                          const HitEntries& entries, const TerminalInfo& terminal) {
  const auto question = styled(printable(query), {.is_bold = true}, terminal.has_color);
  if (hits.empty()) return question + "\nno text fits\n\n";
  // The column is there only when a hit has something for it: most indexes keep no fields.
  const bool has_fields = std::any_of(hits.begin(), hits.end(), [&](const SearchHit& hit) {
    return !entries.at(hit.row).fields.empty();
  });
  std::vector<Column> columns{{"score", Align::Right},
                              {.title = "id", .leaves = 1, .goes_below = true}};
  if (has_fields) columns.push_back({.title = "fields", .may_shrink = true});
  columns.push_back({.title = "text", .may_shrink = true});
  Table table(std::move(columns));
  for (const auto& hit : hits) {
    const auto& entry = entries.at(hit.row);
    std::vector<TableCell> cells{fmt::format("{:.4f}", hit.score),
                                 entry.id.empty() ? fmt::format("row {}", hit.row) : entry.id};
    if (has_fields) cells.push_back(fields_text(entry.fields));
    cells.push_back(entry.text);
    table.add_row(std::move(cells));
  }
  return question + "\n" + table.render(terminal.width, terminal.has_color) + "\n";
}

// One line for each question, so that answers can be read as they come.
std::string hits_json(const std::string& query, const std::vector<SearchHit>& hits,
                      const HitEntries& entries) {
  auto list = Json::array();
  for (const auto& hit : hits) {
    const auto& entry = entries.at(hit.row);
    Json one{{"row", hit.row}, {"score", hit.score}};
    if (!entry.id.empty()) one["id"] = entry.id;
    one["input"] = entry.input;
    one["line"] = entry.line;
    if (!entry.fields.empty()) one["fields"] = Json::parse(entry.fields, nullptr, false);
    one["text"] = entry.text;
    list.push_back(std::move(one));
  }
  const Json json{{"query", query}, {"hits", std::move(list)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
