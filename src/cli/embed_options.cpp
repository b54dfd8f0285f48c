// Settings and words of `muster embed` and its like as what a job is asked to do. All that can be
// refused is refused here, before a device is looked for: output, model, inputs. Inputs are opened
// once to be checked; the run opens them again.

#include "cli/embed_options.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "cli/device_choice.h"
#include "cli/device_watch.h"
#include "cli/find_machine.h"
#include "cli/lost_gpus.h"
#include "cli/messages.h"
#include "cli/places.h"
#include "cli/plan_devices.h"
#include "cli/serve_doors.h"
#include "dataset/byte_source.h"
#include "dataset/vector_writer.h"
#include "hw/device_names.h"
#include "jobs/model_opening.h"
#include "modelfile/model_folder.h"
#include "spec/device.h"
#include "spec/generation.h"
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

Result<CorpusStream> standard_output(Output& output, const std::string& format) {
  CorpusStream stream{.format = StreamFormat::Jsonl,
                      .name = "standard output",
                      .write = [&output](std::string_view piece) { return output.append(piece); },
                      .flush = [&output] { return output.flush(); }};
  if (format == "jsonl") return stream;
  if (format != "f32") {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--output-format must be jsonl or f32: \"{}\"{}", format,
                             format == "npy" || format == "safetensors"
                                 ? "; its head needs the number of rows first, so -o names a file"
                                 : "")};
  }
  if (::isatty(STDOUT_FILENO) != 0) {
    return Error{ErrorKind::InvalidArgument,
                 "bare numbers (f32) are nothing for a terminal: pipe them, or write jsonl"};
  }
  stream.format = StreamFormat::F32;
  return stream;
}

// `lang,year` as two names. In .csv a name may hold a comma: a backslash before it keeps it.
std::vector<std::string> names_in_list(std::string_view list) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == ',') {
      names.emplace_back();
      continue;
    }
    if (list.substr(i).starts_with("\\,")) ++i;
    names.back() += list[i];
  }
  if (names.size() == 1) return names;
  for (auto& name : names) name = std::string(trim(name));
  return names;
}

}  // namespace

// One precision is for all devices of a run. One word is of models that generate, which share the
// setting.
Status check_precision(const Config& config, const EmbedOptions& options) {
  const auto refused = [&config](const std::string& message) {
    return invalid_setting(config, SettingId::Precision, message);
  };
  if (config.text(SettingId::Precision) == decoder_precision_name(DecoderPrecision::Own)) {
    return refused("own is for models that generate; embed has fp32, bf16, fp16 and int8");
  }
  const bool is_for_cpus = options.precision == Precision::Int8;
  if (!is_for_cpus && options.precision != Precision::Fp16) return Done{};
  const auto other =
      std::find_if(options.devices.begin(), options.devices.end(),
                   [&](const Device& device) { return runs_as_gpu(device.kind) == is_for_cpus; });
  if (other == options.devices.end()) return Done{};
  const auto error =
      is_for_cpus
          ? refused(fmt::format("int8 is computed on CPUs only, and {} is a GPU: use fp32, bf16 or "
                                "fp16, or --devices cpu",
                                other->name()))
          : refused(fmt::format("fp16 is computed on GPUs only, and {} is a CPU: use fp32, bf16 or "
                                "int8, or GPUs alone",
                                other->name()));
  return Error{ErrorKind::Unsupported, error.message};
}

Status set_output(const CommandContext& context, EmbedOptions& options) {
  const auto& arguments = context.arguments;
  const auto out = arguments.value("--out").value_or("");
  const auto format = arguments.value("--output-format");
  if (out.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "where should the vectors go? Name a file with -o, such as -o vectors.npy"};
  }
  if (out != "-") {
    if (format) {
      return Error{
          ErrorKind::InvalidArgument,
          fmt::format("--output-format is for standard output (-o -): a file's ending says "
                      "how it is written: {}",
                      out)};
    }
    options.out = out;
    MUSTER_TRY(vector_format_of(options.out));
    return Done{};
  }
  options.stream = MUSTER_TRY(standard_output(context.output, format.value_or("jsonl")));
  if (!arguments.has("--json")) return Done{};
  return Error{ErrorKind::InvalidArgument,
               "--json prints the report on standard output, where the vectors go (-o -)"};
}

// A shell has emptied the file by now where it was opened with ">"; with ">>" a run would read what
// it writes, and might never end.
Status check_standard_output(const CorpusOptions& options) {
  struct stat out {};
  if (!options.stream || ::fstat(STDOUT_FILENO, &out) != 0 || !S_ISREG(out.st_mode)) return Done{};
  for (const auto& input : options.input.inputs) {
    struct stat in {};
    const int got = input == "-" ? ::fstat(STDIN_FILENO, &in) : ::stat(input.c_str(), &in);
    if (got != 0 || in.st_dev != out.st_dev || in.st_ino != out.st_ino) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("standard output goes into the input {}: name another file",
                             input_name(input))};
  }
  return Done{};
}

Result<std::vector<std::string>> kept_fields(const Arguments& arguments) {
  constexpr std::size_t kMost = 64;  // each is looked for in every record
  std::vector<std::string> names;
  for (const auto& list : arguments.values("--keep")) {
    for (auto& name : names_in_list(list)) {
      if (name.empty()) {
        return Error{ErrorKind::InvalidArgument,
                     list.empty()
                         ? "--keep needs the name of a field"
                         : fmt::format("--keep has a name missing beside a comma: \"{}\"; fields "
                                       "are named as in lang,year",
                                       list)};
      }
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
  }
  if (names.size() <= kMost) return names;
  return Error{ErrorKind::InvalidArgument,
               fmt::format("--keep takes at most {} fields: {}", kMost, names.size())};
}

TextReaderOptions input_options(const Config& config, std::vector<std::string> inputs) {
  TextReaderOptions options;
  options.inputs = std::move(inputs);
  options.format = parse_format(config.text(SettingId::Format).value_or(""));
  options.field = config.text(SettingId::Field).value_or(options.field);
  options.id_field = config.text(SettingId::IdField);
  options.is_field_asked_for = config.at(SettingId::Field).origin == Origin::Flag;
  options.is_id_field_asked_for = config.at(SettingId::IdField).origin == Origin::Flag;
  return options;
}

Status fill_machine_options(const CommandContext& context, const std::string& devices,
                            std::optional<std::size_t> device_most, EmbedOptions& options) {
  const auto& config = context.config;
  const auto found = MUSTER_TRY(find_machine(config, context.clock, may_name_gpus(devices)));
  options.devices = MUSTER_TRY(chosen_devices(config, devices, found.inventory));
  if (device_most && *device_most < options.devices.size()) options.devices.resize(*device_most);
  std::optional<std::size_t> most = config.count(SettingId::DeviceCountMost);
  if (device_most) most = std::min(*device_most, most.value_or(*device_most));
  if (const auto lost = lost_gpus_notice(devices, found.inventory, options.devices, most)) {
    say(Tone::Warning, *lost, context.color);
  }
  options.worker_program = MUSTER_TRY(find_worker_program(config)).path;
  options.cache_folder = MUSTER_TRY(find_cache_folder(config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(config)).path;
  return Done{};
}

Result<EmbedOptions> embed_options(const CommandContext& context) {
  const auto& config = context.config;
  const auto& words = context.arguments.positionals;
  EmbedOptions options;
  MUSTER_TRY(set_output(context, options));
  options.model = words.front();
  options.input = input_options(config, {words.begin() + 1, words.end()});
  options.input.keep = MUSTER_TRY(kept_fields(context.arguments));
  options.resume = context.arguments.has("--resume");
  options.restart = context.arguments.has("--restart");
  MUSTER_TRY(find_model(options.model));
  MUSTER_TRY(TextReader::open(options.input));
  MUSTER_TRY(check_standard_output(options));

  options.precision = parse_precision(config.text(SettingId::Precision).value_or(""));
  options.batch_tokens = config.count(SettingId::BatchTokens).value_or(options.batch_tokens);
  options.length_max = config.count(SettingId::MaxLength);
  options.pooling = parse_pooling(config.text(SettingId::Pooling).value_or(""));
  options.normalize = config.is_on(SettingId::Normalize);
  options.prompt_name = config.text(SettingId::PromptName);
  options.skip_bad = config.is_on(SettingId::SkipBad).value_or(false);
  const auto devices = MUSTER_TRY(devices_of_plan(context, options.model));
  MUSTER_TRY(fill_machine_options(context, devices, std::nullopt, options));
  MUSTER_TRY(check_precision(config, options));
  options.device_news = MUSTER_TRY(watch_for_faults(config, options.devices, context.clock));
  return options;
}

}  // namespace muster
