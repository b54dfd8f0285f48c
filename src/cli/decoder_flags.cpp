// The flags of commands that make replies. Each kind of sampling is a row of one table, by which
// the command line and a conversation's /set read it alike.

#include "cli/decoder_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/random_bits.h"
#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/flag_number.h"
#include "cli/lost_gpus.h"
#include "cli/machine_choice.h"
#include "cli/messages.h"
#include "hw/device_names.h"

namespace muster {
namespace {

constexpr std::uint32_t kTokensMost = 1U << 20U;

struct SamplingNumber {
  std::string_view flag;
  double SamplingOptions::*to;
  NumberRange range;
};
constexpr std::array<SamplingNumber, 6> kNumbers{{
    {"--temperature", &SamplingOptions::temperature, {0, 100, 0.8}},
    {"--top-p", &SamplingOptions::top_p, {0, 1, 0.95}},
    {"--min-p", &SamplingOptions::min_p, {0, 1, 0.05}},
    {"--repetition-penalty", &SamplingOptions::repetition_penalty, {1e-3, 1e3, 1.1}},
    {"--presence-penalty", &SamplingOptions::presence_penalty, {-100, 100, 0.5}},
    {"--frequency-penalty", &SamplingOptions::frequency_penalty, {-100, 100, 0.5}},
}};

// What --top-k is where nothing is named; the number 0 says the same.
constexpr std::string_view kAllTokens = "all";

bool computes_decoders(const Device& device) {
  return device.kind == DeviceKind::Cpu || runs_as_gpu(device.kind);
}

void tell_lost_gpus(const CommandContext& context, const std::string& names,
                    const Inventory& inventory, const std::vector<Device>& chosen) {
  const auto most = context.config.count(SettingId::DeviceCountMost);
  const auto lost = lost_gpus_notice(names, inventory, chosen, most);
  if (lost) say(Tone::Warning, *lost, context.color);
}

}  // namespace

RunFlag template_variables_flag() {
  return {std::string(kTemplateVariablesFlag), "JSON",
          "variables of the chat template, such as '{\"enable_thinking\": false}'"};
}

Result<TemplateVariables> template_variables_of(const Arguments& arguments) {
  const auto json = arguments.value(kTemplateVariablesFlag);
  if (!json) return TemplateVariables();
  auto read = parse_template_variables(*json);
  if (read) return read;
  return Error{read.error().kind,
               fmt::format("{}: {}", kTemplateVariablesFlag, read.error().message)};
}

std::vector<RunFlag> sampling_flags() {
  return {{"--temperature", "T", "0: always the most likely token (default: 0)"},
          {"--top-k", "K", "draw among the K most likely tokens, or all (default: all)"},
          {"--top-p", "P", "among the likeliest whose sum reaches P (default: 1)"},
          {"--min-p", "P", "among those P times as likely as the first (default: 0)"},
          {"--repetition-penalty", "R", "of tokens seen before (default: 1: none)"},
          {"--presence-penalty", "R", "of tokens of the reply (default: 0)"},
          {"--frequency-penalty", "R", "for each time in the reply (default: 0)"},
          {"--seed", "N", "the same seed, the same reply (default: a random one)"}};
}

std::vector<RunFlag> joined(std::vector<RunFlag> flags, const std::vector<RunFlag>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Status set_sampling(std::string_view flag, std::string_view shown, const std::string& value,
                    SamplingOptions& sampling) {
  if (flag == "--top-k") {
    const WholeRange range{0, UINT32_MAX, 40};
    const bool is_all = value == kAllTokens;
    sampling.top_k =
        static_cast<std::uint32_t>(MUSTER_TRY(whole_number_of(shown, is_all ? "0" : value, range)));
    return Done{};
  }
  if (flag == "--seed") {
    sampling.seed = MUSTER_TRY(whole_number_of(shown, value, {.example = 7}));
    return Done{};
  }
  const auto number = std::ranges::find(kNumbers, flag, &SamplingNumber::flag);
  if (number == kNumbers.end()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} is no kind of sampling", flag)};
  }
  sampling.*(number->to) = MUSTER_TRY(number_of(shown, value, number->range));
  return Done{};
}

std::string top_k_text(const SamplingOptions& sampling) {
  return sampling.top_k == 0 ? std::string(kAllTokens) : std::to_string(sampling.top_k);
}

void reset_sampling(std::string_view flag, const SamplingOptions& from, SamplingOptions& to) {
  if (flag == "--top-k") to.top_k = from.top_k;
  if (flag == "--seed") to.seed = from.seed;
  const auto number = std::ranges::find(kNumbers, flag, &SamplingNumber::flag);
  if (number != kNumbers.end()) to.*(number->to) = from.*(number->to);
}

Result<SamplingOptions> sampling_options(const Arguments& arguments) {
  for (const auto* flag : {"--top-k", "--top-p", "--min-p"}) {
    // Without the flag of the temperature whoever names one of these expects a draw.
    if (!arguments.has(flag) || arguments.has("--temperature")) continue;
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{} counts where tokens are drawn: give --temperature as well, such as "
                    "--temperature 0.8",
                    flag)};
  }
  SamplingOptions sampling;
  fill_random(std::as_writable_bytes(std::span(&sampling.seed, 1)));
  for (const auto& flag : sampling_flags()) {
    if (const auto value = arguments.value(flag.name)) {
      MUSTER_TRY(set_sampling(flag.name, flag.name, *value, sampling));
    }
  }
  return sampling;
}

Result<std::uint32_t> reply_tokens(const std::string& flag, const std::string& value) {
  return static_cast<std::uint32_t>(
      MUSTER_TRY(whole_number_of(flag, value, {1, kTokensMost, 512})));
}

Result<std::uint32_t> reply_tokens_of(const Arguments& arguments, std::uint32_t otherwise) {
  const auto value = arguments.value("--max-tokens");
  return value ? reply_tokens("--max-tokens", *value) : Result<std::uint32_t>(otherwise);
}

KvCacheDtype kv_cache_dtype_of(const Config& config) {
  const auto name = config.text(SettingId::KvCacheDtype).value_or("");
  return parse_kv_cache_dtype(name).value_or(KvCacheDtype::Auto);
}

std::uint32_t drafted_tokens_most(const Config& config) {
  return config.count(SettingId::SpeculativeTokens).value_or(0);
}

Result<DecoderDevices> decoder_devices(const CommandContext& context) {
  const auto names = context.config.text(SettingId::Devices).value_or("auto");
  // By itself it takes CPUs, whatever else there is.
  const bool was_named = names != "auto";
  auto machine =
      MUSTER_TRY(find_machine(context.config, context.clock, was_named && may_name_gpus(names)));
  DecoderDevices found;
  found.devices = MUSTER_TRY(chosen_devices(context.config, names, machine.inventory));
  for (const auto& device : found.devices) {
    if (!computes_decoders(device)) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("decoders are computed on CPUs and NVIDIA GPUs, and --devices {} "
                               "names {}: use --devices cpu",
                               names, device.name())};
    }
    if (device.kind == found.devices.front().kind) continue;
    return Error{ErrorKind::Unsupported,
                 fmt::format("replies of one file have the bits of one kind of device, and "
                             "--devices {} names {} and {}: name either",
                             names, found.devices.front().name(), device.name())};
  }
  tell_lost_gpus(context, names, machine.inventory, found.devices);
  found.free_bytes = UINT64_MAX;
  for (const auto& place : machine_of(std::move(machine), found.devices, "here").devices) {
    found.free_bytes = std::min(found.free_bytes, place.free_bytes);
  }
  return found;
}

// One device, a CPU with all its cores: the tokens of one reply follow each other and cannot be
// shared out.
Result<Device> decoder_device(const CommandContext& context) {
  const auto names = context.config.text(SettingId::Devices).value_or("auto");
  // By itself it takes a CPU, whatever else there is.
  const bool was_named = names != "auto";
  const auto machine =
      MUSTER_TRY(find_machine(context.config, context.clock, was_named && may_name_gpus(names)));
  const auto devices = MUSTER_TRY(chosen_devices(context.config, names, machine.inventory));
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const Device& device) {
    return was_named ? computes_decoders(device) : device.kind == DeviceKind::Cpu;
  });
  if (was_named && devices.size() > 1) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("a reply is computed on one device, and --devices {} names {}: name "
                             "one, such as cpu:0; it uses all of its cores",
                             names, devices.size())};
  }
  if (found == devices.end()) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("decoders are computed on CPUs and NVIDIA GPUs, and --devices {} names "
                    "none: use --devices cpu",
                    names)};
  }
  tell_lost_gpus(context, names, machine.inventory, {*found});
  return *found;
}

}  // namespace muster
