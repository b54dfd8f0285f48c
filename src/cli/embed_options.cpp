#include "cli/embed_options.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/places.h"
#include "cli/plan_devices.h"
#include "dataset/vector_writer.h"
#include "hw/device_names.h"
#include "jobs/model_opening.h"
#include "modelfile/model_folder.h"
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
  const auto devices = MUSTER_TRY(devices_of_plan(context, options.model));
  MUSTER_TRY(fill_machine_options(config, context.clock, devices, options));
  return options;
}

}  // namespace muster
