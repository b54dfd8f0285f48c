// Shows what every setting is and which source it has it from. Values that other commands look for
// when they need them (torch, the worker, the cache) are looked for here too, so that what is shown
// is what `embed` would use. One that is not found is no error here.

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/places.h"
#include "cli/setting_json.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

CommandSpec config_spec() {
  std::vector<SettingId> all;
  for (const auto& setting : settings()) all.push_back(setting.id);
  return {
      .name = "config",
      .summary = "show every setting and where its value came from",
      .usage = "",
      .groups = {{"Output", {}, {{"--json", "", "the settings as a JSON object"}}},
                 {"Settings, as the other commands take them", std::move(all)}},
      .examples =
          "  muster config\n"
          "  MUSTER_DEVICES=2xcpu muster config --json | jq .devices\n"
          "\n"
          "A file muster.yaml has lines such as \"batch_tokens: 8192\"; a variable is\n"
          "MUSTER_BATCH_TOKENS. A flag wins over a variable, a variable over the file.\n"
          "`muster serve` and this command also read names of other programs, such as\n"
          "GPU_COUNT or EMBEDDING_CACHE_SIZE: docs/settings.md.\n",
      .reads_foreign_names = true,
  };
}

// Puts in what has to be looked for. What is not found stays without a value: `embed` says why.
void find_defaults(Config& config) {
  const auto put = [&config](SettingId id, const Result<FoundPlace>& found) {
    if (found && !config.at(id).value) config.set_default(id, found->path.string(), found->how);
  };
  put(SettingId::TorchRoot, find_torch_root(config));
  put(SettingId::WorkerProgram, find_worker_program(config));
  put(SettingId::CacheDir, find_cache_folder(config));
}

std::string origin_text(const EffectiveValue& effective) {
  const std::string origin(origin_name(effective.origin));
  return effective.place.empty() ? origin : fmt::format("{}: {}", origin, effective.place);
}

// Places and long values go below their row where the terminal is narrow: the names stay a column
// that can be read.
std::string describe(const Config& config, const TerminalInfo& terminal) {
  Table table({{"setting"},
               {.title = "value", .leaves = 1, .goes_below = true},
               {.title = "from", .leaves = 2, .goes_below = true}});
  for (const auto& setting : settings()) {
    const auto& effective = config.at(setting.id);
    const auto none = fmt::format("({})", setting.default_note);
    const auto value = effective.value ? shown_value(setting, *effective.value) : none;
    table.add_row({std::string(setting.name), value, origin_text(effective)});
  }
  return table.render(terminal.width, terminal.has_color);
}

std::string config_json(const Config& config) {
  nlohmann::ordered_json json;
  for (const auto& setting : settings()) {
    const auto& effective = config.at(setting.id);
    nlohmann::ordered_json place;
    if (!effective.place.empty()) place = effective.place;
    json[std::string(setting.name)] = {{"value", setting_json(config, setting)},
                                       {"origin", origin_name(effective.origin)},
                                       {"place", std::move(place)}};
  }
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<int> run_config(const CommandContext& context) {
  find_defaults(context.config);
  const bool wants_json = context.arguments.has("--json");
  MUSTER_TRY(context.output.append(
      wants_json ? config_json(context.config)
                 : describe(context.config, context.terminal(STDOUT_FILENO))));
  return 0;
}

}  // namespace

Command config_command() { return {config_spec(), run_config}; }

}  // namespace muster
