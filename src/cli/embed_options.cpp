#include "cli/embed_options.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/file.h"
#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/places.h"
#include "dataset/vector_writer.h"
#include "hw/device_names.h"
#include "jobs/model_opening.h"
#include "modelfile/model_folder.h"
#include "planner/forms/plan_files.h"
#include "spec/pooling.h"

namespace muster {
namespace {

std::optional<TextFormat> parse_format(std::string_view name) {
  if (name == "lines") return TextFormat::Lines;
  if (name == "jsonl") return TextFormat::Jsonl;
  if (name == "csv") return TextFormat::Csv;
  if (name == "tsv") return TextFormat::Tsv;
  return std::nullopt;  // auto
}

// The devices of --plan, else the setting; a flag --devices beside a plan must say the same.
Result<std::string> devices_text(const CommandContext& context) {
  const auto file = context.arguments.value("--plan");
  if (!file) return context.config.text(SettingId::Devices).value_or("auto");
  const auto text = MUSTER_TRY(read_file(*file));
  const auto plan = MUSTER_TRY(parse_plan_yaml(*file, text));
  const auto folder = MUSTER_TRY(find_model(context.arguments.positionals.front()));
  const auto model = MUSTER_TRY(read_model_folder(folder));
  const auto devices = MUSTER_TRY(devices_to_embed(*file, plan, model.name));
  for (const auto& given : context.arguments.settings) {
    if (given.id == SettingId::Devices && given.value != devices) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("--devices {} and the plan's {} disagree", given.value, devices)};
    }
  }
  return devices;
}

}  // namespace

Result<std::string> out_file(const Arguments& arguments) {
  auto out = arguments.value("--out").value_or("");
  if (out.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "where should the vectors go? Name a file with -o, such as -o vectors.npy"};
  }
  return out;
}

TextReaderOptions input_options(const Config& config, std::vector<std::string> inputs) {
  TextReaderOptions options;
  options.inputs = std::move(inputs);
  options.format = parse_format(config.text(SettingId::Format).value_or(""));
  options.field = config.text(SettingId::Field).value_or(options.field);
  options.id_field = config.text(SettingId::IdField);
  return options;
}

Status fill_machine_options(const Config& config, const Clock& clock, const std::string& devices,
                            EmbedOptions& options) {
  const auto found = MUSTER_TRY(find_machine(config, clock, may_name_gpus(devices)));
  options.devices = MUSTER_TRY(chosen_devices(config, devices, found.inventory));
  options.worker_program = MUSTER_TRY(find_worker_program(config)).path;
  options.cache_folder = MUSTER_TRY(find_cache_folder(config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(config)).path;
  return Done{};
}

Result<EmbedOptions> embed_options(const CommandContext& context) {
  const auto& config = context.config;
  const auto& words = context.arguments.positionals;
  const auto out = MUSTER_TRY(out_file(context.arguments));
  EmbedOptions options;
  options.model = words.front();
  options.input = input_options(config, {words.begin() + 1, words.end()});
  options.out = out;
  options.resume = context.arguments.has("--resume");
  options.restart = context.arguments.has("--restart");
  MUSTER_TRY(find_model(options.model));
  MUSTER_TRY(vector_format_of(options.out));
  MUSTER_TRY(TextReader::open(options.input));

  options.precision = parse_precision(config.text(SettingId::Precision).value_or(""));
  options.batch_tokens = config.count(SettingId::BatchTokens).value_or(options.batch_tokens);
  options.length_max = config.count(SettingId::MaxLength);
  options.pooling = parse_pooling(config.text(SettingId::Pooling).value_or(""));
  options.normalize = config.is_on(SettingId::Normalize);
  options.prompt_name = config.text(SettingId::PromptName);
  options.skip_bad = config.is_on(SettingId::SkipBad).value_or(false);
  const auto devices = MUSTER_TRY(devices_text(context));
  MUSTER_TRY(fill_machine_options(config, context.clock, devices, options));
  return options;
}

}  // namespace muster
