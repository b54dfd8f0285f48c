// What a server says of its devices and models, as tables. A device's row is of all that runs
// there: the worker that embeds and ranks, and those of decoders.

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

std::int64_t count_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool is_true(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && *found == Json(true);
}

struct DecodersHere {
  std::vector<std::string> words;  // "chat", "chat (unloading)", "other (starting)"
  std::vector<std::string> faults;
  std::int64_t reply_count = 0;
  std::int64_t restart_count = 0;
};

DecodersHere decoders_here(const Json& device) {
  DecodersHere here;
  const auto list = device.find("decoders");
  if (list == device.end() || !list->is_array()) return here;
  for (const auto& decoder : *list) {
    const auto name = field_text(decoder, "name");
    const auto state = field_text(decoder, "state");
    const bool is_unloading = is_true(decoder, "is_unloading");
    const auto word = is_unloading ? std::string("unloading") : state;
    here.words.push_back(word == "ready" ? name : fmt::format("{} ({})", name, word));
    if (state == "given up" && !is_unloading) {
      here.faults.push_back(
          fmt::format("{} cannot be loaded: {}", name, field_text(decoder, "reason")));
    }
    here.reply_count += count_of(decoder, "in_flight_replies");
    here.restart_count += count_of(decoder, "restart_count");
  }
  return here;
}

// The models without workers of their own that a device cannot load.
std::vector<std::string> model_faults(const Json& device) {
  std::vector<std::string> faults;
  const auto list = device.find("models");
  if (list == device.end() || !list->is_array()) return faults;
  for (const auto& model : *list) {
    if (field_text(model, "state") != "failed" || is_true(model, "waits_for_memory")) continue;
    faults.push_back(fmt::format("{} cannot be loaded: {}", field_text(model, "name"),
                                 field_text(model, "reason")));
  }
  return faults;
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
  const auto state = field_text(device, "state");
  std::vector<TableCell> cells{field_text(device, "name"),
                               {state, style_of(state)},
                               field_text(device, "text_count"),
                               field_text(device, "in_flight_texts")};
  if (has_decoders) {
    cells.emplace_back(fmt::format("{}", fmt::join(here.words, ", ")));
    cells.emplace_back(std::to_string(here.reply_count));
  }
  cells.emplace_back(std::to_string(count_of(device, "restart_count") + here.restart_count));
  cells.emplace_back(why_of(device));
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
    has_decoders = has_decoders || !decoders_here(device).words.empty();
  }
  std::vector<Column> columns{{"device"},
                              {"state"},
                              {"texts", Align::Right},
                              {.title = "in flight", .align = Align::Right, .leaves = 1}};
  if (has_decoders) {
    columns.push_back({.title = "decoders", .leaves = 4});
    columns.push_back({.title = "replies in flight", .align = Align::Right});
  }
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

std::string changed_device_text(const Json& device) {
  const auto name = field_text(device, "name");
  const auto state = field_text(device, "state");
  if (state == "idle") return fmt::format("{}: idle, no model is on it\n", name);
  std::vector<std::string> words{state};
  for (auto& fault : model_faults(device)) words.push_back(std::move(fault));
  for (auto& fault : decoders_here(device).faults) words.push_back(std::move(fault));
  if (auto wait = memory_wait_text(device); !wait.empty()) words.push_back(std::move(wait));
  return fmt::format("{}: {}\n", name, fmt::join(words, "; "));
}

std::string memory_wait_text(const Json& device) {
  std::vector<std::string> waits;
  for (const auto* key : {"models", "decoders"}) {
    const auto list = device.find(key);
    if (list == device.end() || !list->is_array()) continue;
    for (const auto& model : *list) {
      if (!is_true(model, "waits_for_memory") || is_true(model, "is_unloading")) continue;
      waits.push_back(fmt::format("{} waits for memory: {}", field_text(model, "name"),
                                  field_text(model, "reason")));
    }
  }
  return fmt::format("{}", fmt::join(waits, "; "));
}

std::string unloaded_text(const std::string& name, const Json& answer) {
  const auto replies = count_of(answer, "in_flight_replies");
  if (replies == 0) return fmt::format("{}: unloaded\n", name);
  return fmt::format("{}: unloaded; {} of its replies {} to {} end\n", name, replies,
                     replies == 1 ? "goes on" : "go on", replies == 1 ? "its" : "their");
}

}  // namespace muster
