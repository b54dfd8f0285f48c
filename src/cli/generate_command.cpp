// muster generate: one prompt, its reply as it comes. Each piece of text is flushed when it comes,
// since a person reads along; with --json the reply is held back and printed once, as part of one
// object. A reader that has left ends the computation. Without --seed one is drawn and shown, so
// that any reply can be made again.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/random_bits.h"
#include "cli/command.h"
#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/flag_number.h"
#include "cli/interrupt.h"
#include "cli/places.h"
#include "hw/device_names.h"
#include "jobs/decoder_source.h"
#include "jobs/generate.h"

namespace muster {
namespace {

constexpr std::uint32_t kTokensMost = 1U << 20U;

CommandSpec generate_spec() {
  return {
      .name = "generate",
      .summary = "continue a prompt with a decoder, token by token",
      .usage = "MODEL -p TEXT",
      .positional_least = 1,
      .positional_most = 1,
      .groups = {{"Prompt",
                  {},
                  {{"--prompt", "TEXT", "what to answer or to continue; - reads standard input",
                    "-p"},
                   {"--system", "TEXT", "what the chat template puts before it"},
                   {"--raw", "", "continue the text as it is, without the chat template"}}},
                 {"Reply",
                  {},
                  {{"--max-tokens", "N", "tokens of the reply at most (default: 512)"},
                   {"--stop", "TEXT", "ends the reply before this text; may be repeated", "", true},
                   {"--ignore-eos", "", "go on behind tokens that end a reply"},
                   {"--temperature", "T", "0: always the most likely token (default: 0)"},
                   {"--top-k", "K", "draw among the K most likely tokens (default: all)"},
                   {"--top-p", "P", "among the likeliest whose sum reaches P (default: 1)"},
                   {"--min-p", "P", "among those P times as likely as the first (default: 0)"},
                   {"--repetition-penalty", "R", "of tokens seen before (default: 1: none)"},
                   {"--presence-penalty", "R", "of tokens of the reply (default: 0)"},
                   {"--frequency-penalty", "R", "for each time in the reply (default: 0)"},
                   {"--seed", "N", "the same seed, the same reply (default: a random one)"}}},
                 {"Output",
                  {},
                  {{"--json", "", "one JSON object in place of the text"},
                   {"--quiet", "", "the reply alone"}}},
                 {"Machine",
                  {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
                   SettingId::TorchRoot, SettingId::WorkerProgram},
                  {{"--precision", "P", "own, bf16 or fp32 (default: own: the file's bits)"}}}},
      .examples =
          "  muster generate SmolLM2-135M-Instruct.Q4_1.gguf -p \"Why is the sky blue?\"\n"
          "  muster generate MODEL -p \"Once upon a time\" --raw --max-tokens 100\n"
          "  muster generate MODEL -p \"A haiku\" --temperature 0.8 --top-p 0.95 --seed 7\n"
          "\n"
          "MODEL is a GGUF file, a folder in Hugging Face's layout or a name in the local hub\n"
          "cache. The reply streams to standard output, its speed and memory go to standard\n"
          "error. It runs on one CPU device, with all of its cores.\n",
  };
}

Status set_whole(const Arguments& arguments, const char* flag, const WholeRange& range,
                 std::uint32_t& to) {
  if (const auto text = arguments.value(flag)) {
    to = static_cast<std::uint32_t>(MUSTER_TRY(whole_number_of(flag, *text, range)));
  }
  return Done{};
}

Status set_number(const Arguments& arguments, const char* flag, const NumberRange& range,
                  double& to) {
  if (const auto text = arguments.value(flag)) to = MUSTER_TRY(number_of(flag, *text, range));
  return Done{};
}

Result<SamplingOptions> sampling_options(const Arguments& arguments) {
  SamplingOptions sampling;
  MUSTER_TRY(set_number(arguments, "--temperature", {0, 100, 0.8}, sampling.temperature));
  for (const auto* flag : {"--top-k", "--top-p", "--min-p"}) {
    // Without the flag of the temperature whoever names one of these expects a draw.
    if (!arguments.has(flag) || arguments.has("--temperature")) continue;
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("{} counts where tokens are drawn: give --temperature as well, such as "
                    "--temperature 0.8",
                    flag)};
  }
  MUSTER_TRY(set_whole(arguments, "--top-k", {0, UINT32_MAX, 40}, sampling.top_k));
  MUSTER_TRY(set_number(arguments, "--top-p", {0, 1, 0.95}, sampling.top_p));
  MUSTER_TRY(set_number(arguments, "--min-p", {0, 1, 0.05}, sampling.min_p));
  MUSTER_TRY(
      set_number(arguments, "--repetition-penalty", {1e-3, 1e3, 1.1}, sampling.repetition_penalty));
  MUSTER_TRY(
      set_number(arguments, "--presence-penalty", {-100, 100, 0.5}, sampling.presence_penalty));
  MUSTER_TRY(
      set_number(arguments, "--frequency-penalty", {-100, 100, 0.5}, sampling.frequency_penalty));
  if (const auto seed = arguments.value("--seed")) {
    sampling.seed = MUSTER_TRY(whole_number_of("--seed", *seed, {.example = 7}));
  } else {
    fill_random(std::as_writable_bytes(std::span(&sampling.seed, 1)));
  }
  return sampling;
}

// One device with all its cores: the tokens of one reply follow each other and cannot be shared
// out.
Result<Device> one_device(const CommandContext& context) {
  const auto names = context.config.text(SettingId::Devices).value_or("auto");
  // By itself it takes a CPU, whatever else there is.
  const bool was_named = names != "auto";
  const auto machine =
      MUSTER_TRY(find_machine(context.config, context.clock, was_named && may_name_gpus(names)));
  const auto devices = MUSTER_TRY(chosen_devices(context.config, names, machine.inventory));
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](const Device& device) {
    return device.kind == DeviceKind::Cpu;
  });
  if (was_named && devices.size() > 1) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("a reply is computed on one device, and --devices {} names {}: name "
                             "one, such as cpu:0; it uses all of its cores",
                             names, devices.size())};
  }
  if (cpu == devices.end()) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("decoders are computed on CPUs only, and --devices {} names none: use "
                             "--devices cpu",
                             names)};
  }
  return *cpu;
}

// All of standard input, without the end of its last line.
Result<std::string> prompt_of_stdin() {
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "-p - takes the prompt from standard input: no text came"};
  }
  return text;
}

Result<GenerateOptions> generate_options(const CommandContext& context) {
  const auto& arguments = context.arguments;
  GenerateOptions options;
  const auto prompt = arguments.value("--prompt");
  if (!prompt) {
    return Error{ErrorKind::InvalidArgument,
                 "what should be answered? Give a prompt with -p, such as -p \"Why is the sky "
                 "blue?\""};
  }
  options.prompt = *prompt == "-" ? MUSTER_TRY(prompt_of_stdin()) : *prompt;
  options.system = arguments.value("--system");
  options.is_raw = arguments.has("--raw");
  if (options.is_raw && options.system) {
    return Error{ErrorKind::InvalidArgument, "--raw has no place for --system"};
  }
  MUSTER_TRY(set_whole(arguments, "--max-tokens", {1, kTokensMost, 512}, options.token_limit));
  options.stops = arguments.values("--stop");
  options.ignores_stop_ids = arguments.has("--ignore-eos");
  options.sampling = MUSTER_TRY(sampling_options(arguments));
  const auto precision = arguments.value("--precision").value_or("own");
  const auto known = parse_decoder_precision(precision);
  if (!known) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--precision must be own, bf16 or fp32: \"{}\"", precision)};
  }
  options.precision = *known;
  options.source = MUSTER_TRY(find_decoder_source(arguments.positionals.front()));
  options.device = MUSTER_TRY(one_device(context));
  options.worker_program = MUSTER_TRY(find_worker_program(context.config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(context.config)).path;
  return options;
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

// The time of the prompt stands apart, because it grows with the prompt and not with the reply.
std::string describe(const GenerateOptions& options, const GenerateReport& report) {
  std::string text =
      fmt::format("{} tokens after {} of prompt", report.reply_tokens, report.prompt_tokens);
  if (const auto rate = report.tokens_per_second()) text += fmt::format(": {:.1f} tokens/s", *rate);
  text += fmt::format("; first token after {:.2f} s, {:.2f} s of it for the prompt",
                      report.first_token_seconds, report.prefill_seconds);
  text += fmt::format("\n{}, {} threads, precision {}, {}: weights {}, keys and values {}",
                      options.device.name(), report.thread_count,
                      decoder_precision_name(options.precision), report.decoder_class,
                      megabytes(report.weights_bytes), megabytes(report.cache_bytes));
  if (report.worker_bytes) text += fmt::format(", worker {}", megabytes(*report.worker_bytes));
  if (options.sampling.temperature > 0) text += fmt::format("; seed {}", options.sampling.seed);
  return text + "\n";
}

std::string report_json(const GenerateOptions& options, const GenerateReport& report,
                        const std::string& reply) {
  nlohmann::ordered_json json{{"text", reply},
                              {"finish_reason", generate_end_name(report.end)},
                              {"prompt_tokens", report.prompt_tokens},
                              {"completion_tokens", report.reply_tokens},
                              {"seed", options.sampling.seed},
                              {"precision", decoder_precision_name(options.precision)},
                              {"decoder_class", report.decoder_class},
                              {"device", options.device.name()},
                              {"threads", report.thread_count},
                              {"first_token_seconds", report.first_token_seconds},
                              {"prefill_seconds", report.prefill_seconds},
                              {"decode_seconds", report.decode_seconds},
                              {"weights_bytes", report.weights_bytes},
                              {"cache_bytes", report.cache_bytes},
                              {"restarts", report.restart_count}};
  if (report.worker_bytes) json["worker_bytes"] = *report.worker_bytes;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<int> run_generate(const CommandContext& context) {
  const auto options = MUSTER_TRY(generate_options(context));
  const bool wants_json = context.arguments.has("--json");
  const bool is_quiet = context.arguments.has("--quiet");
  catch_interrupts();
  std::string reply;
  GenerateEvents events;
  events.on_text = [&](std::string_view text) -> Status {
    if (wants_json) {
      reply += text;
      return Done{};
    }
    MUSTER_TRY(context.output.append(text));
    return context.output.flush();
  };
  events.on_notice = [is_quiet](const std::string& sentence) {
    if (!is_quiet) fmt::print(stderr, "muster: {}\n", sentence);
  };
  const auto report = MUSTER_TRY(generate_text(options, events, context.clock, [&] {
    return interrupt_signal() != 0 || context.output.is_reader_gone();
  }));
  MUSTER_TRY(context.output.append(wants_json ? report_json(options, report, reply) : "\n"));
  MUSTER_TRY(context.output.flush());
  if (!is_quiet && !wants_json) fmt::print(stderr, "{}", describe(options, report));
  return report.end == GenerateEnd::Interrupted ? 128 + interrupt_signal() : 0;
}

}  // namespace

Command generate_command() { return {generate_spec(), run_generate}; }

}  // namespace muster
