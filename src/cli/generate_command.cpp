// muster generate: one prompt, its reply as it comes; many prompts are in generate_prompts.cpp.
// Each piece of text is flushed when it comes, since a person reads along; with --json the reply is
// held back and printed once, as part of one object. A reader that has left ends the computation.
// Without --seed one is drawn and shown, so that any reply can be made again.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/decoder_choice.h"
#include "cli/decoder_flags.h"
#include "cli/find_machine.h"
#include "cli/generate_prompts.h"
#include "cli/generate_report.h"
#include "cli/interrupt.h"
#include "cli/messages.h"
#include "cli/places.h"
#include "cli/replies_options.h"
#include "jobs/generate.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

CommandSpec generate_spec() {
  return {
      .name = "generate",
      .summary = "continue a prompt, or a file of them, with a decoder",
      .usage = "MODEL -p TEXT | MODEL --prompts FILE -o OUT",
      .positional_least = 1,
      .positional_most = 1,
      .groups =
          {{"Prompt",
            {},
            {{"--prompt", "TEXT", "what to answer or to continue; - reads standard input", "-p"},
             {"--system", "TEXT", "what the chat template puts before it"},
             template_variables_flag(),
             {"--raw", "", "continue the text as it is, without the chat template"}}},
           {"Many prompts",
            {SettingId::Field, SettingId::IdField, SettingId::Format, SettingId::SkipBad},
            {{.name = "--prompts",
              .value_name = "FILE",
              .help = "a prompt a line (.txt), or records of .jsonl, .csv or .tsv; plain, "
                      "gzip or zstd; - is standard input; may be repeated",
              .may_repeat = true},
             {"--out", "OUT",
              ".jsonl: a line for each prompt, in their order; - is standard output", "-o"},
             {"--resume", "", "go on where an interrupted run stopped; without one, begin"},
             {"--restart", "", "drop what an interrupted run left, and start from the beginning"}}},
           {"Reply",
            {},
            joined(
                {{"--max-tokens", "N", "tokens of the reply at most (default: 512)"},
                 {"--stop", "TEXT", "ends the reply before this text; may be repeated", "", true},
                 {"--ignore-eos", "", "go on behind tokens that end a reply"}},
                sampling_flags())},
           {"Output",
            {},
            {{"--json", "", "one JSON object in place of the text, or of the report"},
             {"--quiet", "", "the reply alone; of many no progress and no report"}}},
           {"Machine",
            {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
             SettingId::PrefixCache, SettingId::SpeculativeTokens, SettingId::KvCacheDtype,
             SettingId::TorchRoot, SettingId::WorkerProgram, SettingId::CacheDir},
            {{"--precision", "P",
              "auto (measures; GPU: bf16), own (file's bits), bf16, fp32, int8"}}}},
      .examples =
          "  muster generate SmolLM2-135M-Instruct.Q4_1.gguf -p \"Why is the sky blue?\"\n"
          "  muster generate MODEL -p \"Once upon a time\" --raw --max-tokens 100\n"
          "  muster generate MODEL -p \"A haiku\" --temperature 0.8 --top-p 0.95 --seed 7\n"
          "  muster generate MODEL --prompts questions.txt -o replies.jsonl --devices 2xcpu\n"
          "\n"
          "MODEL is a GGUF file, a folder in Hugging Face's layout or a name in the local hub\n"
          "cache. The reply streams to standard output, its speed and memory go to standard\n"
          "error. It runs on one CPU device, with all of its cores, or on the GPU that\n"
          "--devices names.\n"
          "\n"
          "With --prompts all CPU devices work, or the GPUs that are named. A record of\n"
          ".jsonl has its prompt in --field, or a conversation in \"messages\". A reply\n"
          "depends on its prompt, its place in the input and --seed alone (0 unless given).\n",
  };
}

// As much as a chat template may write; no context is so long.
constexpr std::size_t kPromptBytesMost = std::size_t{16} << 20U;

// All of standard input, without the end of its last line.
Result<std::string> prompt_of_stdin() {
  std::string text;
  std::array<char, 16 * 1024> piece{};
  while (std::cin) {
    std::cin.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() <= kPromptBytesMost) continue;
    return Error{ErrorKind::InvalidArgument,
                 "-p - takes the prompt from standard input: more than 16 MiB came"};
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 "-p - takes the prompt from standard input: no text came"};
  }
  return text;
}

// A sentence for people.
void say(const CommandContext& context, const std::string& sentence) {
  if (!context.arguments.has("--quiet")) muster::say(Tone::Notice, sentence, context.color);
}

// All but the precision, which may have to be measured.
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
  MUSTER_TRY(set_reply_options(arguments, options));
  options.device = MUSTER_TRY(decoder_device(context));
  const auto named = MUSTER_TRY(named_precision(arguments));
  MUSTER_TRY(check_decoder_numbers(named, context.config, options.device));
  options.kv_cache_dtype = kv_cache_dtype_of(context.config);
  options.has_prefix_cache = context.config.is_on(SettingId::PrefixCache).value_or(true);
  options.drafted_tokens_most = drafted_tokens_most(context.config);
  options.worker_program = MUSTER_TRY(find_worker_program(context.config)).path;
  options.torch_root = MUSTER_TRY(find_torch_root(context.config)).path;
  return options;
}

Status settle_for_reply(const CommandContext& context, GenerateOptions& options) {
  auto choice =
      MUSTER_TRY(chosen_precision(context,
                                  {.source = options.source,
                                   .device = options.device,
                                   .memory_bytes = available_memory(context.config),
                                   .worker_program = options.worker_program,
                                   .torch_root = options.torch_root},
                                  [&](const std::string& sentence) { say(context, sentence); }));
  options.precision = choice.precision;
  options.precision_reason = std::move(choice.reason);
  return Done{};
}

Result<int> run_generate(const CommandContext& context) {
  MUSTER_TRY(check_prompt_flags(context));
  if (has_many_prompts(context.arguments)) return run_generate_prompts(context);
  auto options = MUSTER_TRY(generate_options(context));
  const bool wants_json = context.arguments.has("--json");
  const bool is_quiet = context.arguments.has("--quiet");
  // A reply is text from outside: a person's terminal does nothing that it says.
  const bool is_read_by_person = ::isatty(STDOUT_FILENO) != 0;
  // Not before a prompt has been read from standard input, which nothing else would end.
  catch_interrupts();
  if (const auto settled = settle_for_reply(context, options); !settled) {
    return ended_before_reply(context, settled.error());
  }
  std::string reply;
  GenerateEvents events;
  events.on_text = [&](std::string_view text) -> Status {
    if (wants_json) {
      reply += text;
      return Done{};
    }
    if (is_read_by_person) {
      MUSTER_TRY(context.output.append(printable_lines(text)));
    } else {
      MUSTER_TRY(context.output.append(text));
    }
    return context.output.flush();
  };
  events.on_notice = [&](const std::string& sentence) { say(context, sentence); };
  const auto report = MUSTER_TRY(generate_text(options, events, context.clock, [&] {
    return interrupt_signal() != 0 || context.output.is_reader_gone();
  }));
  MUSTER_TRY(
      context.output.append(wants_json ? generate_report_json(options, report, reply) : "\n"));
  MUSTER_TRY(context.output.flush());
  if (!is_quiet && !wants_json) {
    fmt::print(stderr, "{}",
               generate_report_text(options, report, context.terminal(STDERR_FILENO).width));
  }
  return report.end == GenerateEnd::Interrupted ? 128 + interrupt_signal() : 0;
}

}  // namespace

Command generate_command() { return {generate_spec(), run_generate}; }

}  // namespace muster
