// Flags of `muster generate` where there are many prompts. All that can be refused is refused here,
// before a device is looked for. Inputs are opened once to be checked; the run opens them again.

#include "cli/replies_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/decoder_choice.h"
#include "cli/decoder_flags.h"
#include "cli/embed_options.h"
#include "cli/places.h"
#include "modelfile/decoder_config.h"
#include "serving/decoder_memory.h"

namespace muster {
namespace {

Error is_for_many(const std::string& flag) {
  return {ErrorKind::InvalidArgument,
          fmt::format("{} is for many prompts: name their file with --prompts", flag)};
}

Status set_replies_output(const CommandContext& context, RepliesOptions& options) {
  const auto out = context.arguments.value("--out").value_or("");
  if (out.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "where should the replies go? Name a file with -o, such as -o replies.jsonl"};
  }
  if (out != "-") {
    options.out = out;
    return check_replies_name(options.out);
  }
  if (context.arguments.has("--json")) {
    return Error{ErrorKind::InvalidArgument,
                 "--json prints the report on standard output, where the replies go (-o -)"};
  }
  auto& output = context.output;
  options.stream =
      CorpusStream{.name = "standard output",
                   .write = [&output](std::string_view piece) { return output.append(piece); },
                   .flush = [&output] { return output.flush(); }};
  return Done{};
}

// Replies of one run are of one precision, whatever a second measurement would say.
Result<DecoderPrecisionChoice> precision_for(
    const CommandContext& context, const RepliesOptions& options,
    const std::function<void(const std::string&)>& on_notice,
    const std::function<void()>& while_measuring) {
  const auto named = MUSTER_TRY(named_precision(context.arguments));
  if (const auto earlier = named ? std::nullopt : earlier_precision(options)) {
    return DecoderPrecisionChoice{.precision = *earlier, .reason = "that of the run before"};
  }
  if (!named) MUSTER_TRY(check_may_begin(options));
  const auto free_bytes = options.memory.free_bytes;
  return chosen_precision(
      context,
      {.source = options.source,
       .device = device_to_measure(options.devices),
       .memory_bytes = free_bytes == 0 ? std::nullopt : std::optional(free_bytes),
       .worker_program = options.worker_program,
       .torch_root = options.torch_root},
      on_notice, while_measuring);
}

}  // namespace

const Device& device_to_measure(const std::vector<Device>& devices) {
  return *std::max_element(devices.begin(), devices.end(), [](const Device& a, const Device& b) {
    return a.cpus.size() < b.cpus.size();
  });
}

bool has_many_prompts(const Arguments& arguments) { return !arguments.values("--prompts").empty(); }

Status check_prompt_flags(const CommandContext& context) {
  const auto& arguments = context.arguments;
  if (has_many_prompts(arguments)) {
    if (!arguments.has("--prompt")) return Done{};
    return Error{ErrorKind::InvalidArgument,
                 "-p is one prompt and --prompts a file of them: give one of the two"};
  }
  for (const auto* flag : {"--out", "--resume", "--restart"}) {
    if (arguments.has(flag)) return is_for_many(flag);
  }
  for (const auto& given : arguments.settings) {
    for (const auto id :
         {SettingId::Field, SettingId::IdField, SettingId::Format, SettingId::SkipBad}) {
      if (given.id == id) return is_for_many(given.place);
    }
  }
  return Done{};
}

std::uint64_t bytes_beside_cache(const std::filesystem::path& source, DecoderPrecision precision,
                                 const DecoderPlace& place) {
  const auto spec = read_decoder_spec(source);
  const auto demand =
      spec ? decoder_demand(source, precision, spec->length_max, place) : spec.error();
  return demand ? demand->total() : 0;
}

Result<RepliesOptions> replies_options(const CommandContext& context) {
  const auto& arguments = context.arguments;
  const auto& config = context.config;
  RepliesOptions options;
  MUSTER_TRY(set_replies_output(context, options));
  options.resume = arguments.has("--resume");
  options.restart = arguments.has("--restart");
  MUSTER_TRY(set_reply_options(arguments, options));
  // The same command gives the same replies.
  if (!arguments.has("--seed")) options.sampling.seed = 0;
  options.input = input_options(config, arguments.values("--prompts"));
  options.input.takes_messages = true;
  options.skip_bad = config.is_on(SettingId::SkipBad).value_or(false);
  MUSTER_TRY(TextReader::open(options.input));
  MUSTER_TRY(check_standard_output(options));
  auto found = MUSTER_TRY(decoder_devices(context));
  options.devices = std::move(found.devices);
  const auto named = MUSTER_TRY(named_precision(arguments));
  MUSTER_TRY(check_decoder_numbers(named, config, options.devices.front()));
  options.memory.free_bytes = found.free_bytes;
  options.kv_cache_dtype = kv_cache_dtype_of(config);
  options.has_prefix_cache = config.is_on(SettingId::PrefixCache).value_or(true);
  options.drafted_tokens_most = drafted_tokens_most(config);
  options.worker_program = MUSTER_TRY(find_worker_program(config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(config)).path;
  return options;
}

Status settle_for_replies(const CommandContext& context,
                          const std::function<void(const std::string&)>& on_notice,
                          const std::function<void()>& while_measuring, RepliesOptions& options) {
  auto choice = MUSTER_TRY(precision_for(context, options, on_notice, while_measuring));
  if (const auto why = precision_sentence(choice); !why.empty()) on_notice(why);
  options.precision = choice.precision;
  options.precision_reason = std::move(choice.reason);
  options.memory.other_bytes = bytes_beside_cache(options.source, options.precision,
                                                  DecoderPlace::of(options.devices.front()));
  return Done{};
}

}  // namespace muster
