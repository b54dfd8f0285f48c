// What a server says of its devices and models, as tables. A drain ends the worker for texts alone:
// decoders have workers of their own, so a device that computes a reply is never shown as drained.

#include "cli/ctl_view.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "terminal/table.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

struct DecodersHere {
  std::vector<std::string> names;
  std::int64_t reply_count = 0;
};

DecodersHere decoders_here(const Json& device) {
  DecodersHere here;
  const auto list = device.find("decoders");
  if (list == device.end() || !list->is_array()) return here;
  for (const auto& decoder : *list) {
    here.names.push_back(field_text(decoder, "name"));
    const auto count = decoder.find("in_flight_replies");
    if (count != decoder.end() && count->is_number_integer()) {
      here.reply_count += count->get<std::int64_t>();
    }
  }
  return here;
}

Style style_of(const std::string& state) {
  if (state == "ready") return kGood;
  return state == "quarantined" || state == "given up" || state == "failed" ? kBad : kWarning;
}

std::string why_of(const Json& json) {
  const auto reason = field_text(json, "reason");
  return reason == "-" ? "" : reason;
}

void add_device(const Json& device, bool has_decoders, Table& table) {
  const auto here = decoders_here(device);
  auto state = field_text(device, "state");
  auto why = why_of(device);
  if (state == "drained" && !here.names.empty()) {
    why = fmt::format("drained of texts alone; {} is not", fmt::join(here.names, ", "));
    if (here.reply_count > 0) state = "generating";
  }
  const auto style = style_of(state);
  std::vector<TableCell> cells{field_text(device, "name"),
                               {state, style},
                               field_text(device, "text_count"),
                               field_text(device, "in_flight_texts")};
  if (has_decoders) cells.emplace_back(std::to_string(here.reply_count));
  cells.emplace_back(field_text(device, "restart_count"));
  cells.emplace_back(std::move(why));
  table.add_row(std::move(cells));
}

}  // namespace

std::string field_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "-";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string ctl_device_table(const Json& devices, const TerminalInfo& terminal) {
  bool has_decoders = false;
  for (const auto& device : devices) {
    has_decoders = has_decoders || !decoders_here(device).names.empty();
  }
  std::vector<Column> columns{{"device"},
                              {"state"},
                              {"texts", Align::Right},
                              {.title = "in flight", .align = Align::Right, .leaves = 1}};
  if (has_decoders) columns.push_back({.title = "replies in flight", .align = Align::Right});
  columns.push_back({.title = "restarts", .align = Align::Right, .leaves = 2});
  columns.push_back({.title = "why", .leaves = 3, .goes_below = true});
  Table table(std::move(columns));
  for (const auto& device : devices) add_device(device, has_decoders, table);
  return table.render(terminal.width, terminal.has_color);
}

std::string ctl_model_table(const Json& models, const TerminalInfo& terminal) {
  Table table({{"model"},
               {"kind"},
               {"state"},
               {.title = "requests", .align = Align::Right, .leaves = 1},
               {.title = "why", .leaves = 2, .goes_below = true}});
  for (const auto& model : models) {
    const auto state = field_text(model, "state");
    table.add_row({field_text(model, "id"),
                   field_text(model, "task"),
                   {state, style_of(state)},
                   field_text(model, "requests"),
                   why_of(model)});
  }
  return table.render(terminal.width, terminal.has_color);
}

std::string changed_device_text(const std::string& name, const std::string& state,
                                const std::string& note) {
  if (note.empty()) return fmt::format("{}: {}\n", name, state);
  return fmt::format("{}: {}; {}\n", name, state == "drained" ? "drained of texts" : state, note);
}

}  // namespace muster
