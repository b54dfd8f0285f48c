// The command around a run: its flags and its report. Standard output belongs to the vectors when
// they go there, and then the report moves to standard error.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/corpus_command.h"
#include "cli/embed_options.h"
#include "cli/embed_report.h"
#include "cli/embed_server_options.h"
#include "cli/interrupt.h"
#include "cli/messages.h"
#include "cli/server_client.h"
#include "config/foreign_names.h"
#include "jobs/embed.h"
#include "jobs/run_files.h"

namespace muster {
namespace {

constexpr std::size_t kInputsMost = 100'000;  // what a shell's pattern may become

CommandSpec embed_spec() {
  return {
      .name = "embed",
      .summary = "turn the texts of files into vectors, on all devices",
      .usage = "MODEL INPUT... -o OUT",
      .positional_least = 1,  // with --server; `options_of` wants the other
      .positional_most = kInputsMost,
      .groups = {{"Output",
                  {},
                  {{"--out", "OUT",
                    ".npy, .safetensors or .jsonl; an index .jsonl is put beside it; - is standard "
                    "output",
                    "-o"},
                   {"--output-format", "FORMAT",
                    "of standard output: jsonl, or f32 for the bare numbers (default: jsonl)"},
                   {"--resume", "", "go on where an interrupted run stopped; without one, begin"},
                   {"--restart", "",
                    "drop what an interrupted run left, and start from the beginning"},
                   {"--json", "", "the report as a JSON object"},
                   {"--verbose", "", "a longer report: why this precision, where the time went"},
                   {"--quiet", "", "no progress and no report"}}},
                 {"Input",
                  {SettingId::Field, SettingId::IdField, SettingId::Format, SettingId::SkipBad},
                  {{.name = "--keep",
                    .value_name = "FIELDS",
                    .help = "put these fields (a,b) of records into the index, for muster search "
                            "--filter; may be repeated",
                    .may_repeat = true}}},
                 {"Model",
                  {SettingId::Precision, SettingId::MaxLength, SettingId::Pooling,
                   SettingId::Normalize, SettingId::PromptName}},
                 {"Machine",
                  {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
                   SettingId::BatchTokens, SettingId::TorchRoot, SettingId::WorkerProgram,
                   SettingId::CacheDir},
                  {{"--plan", "FILE", "on the devices of a plan that `muster plan` wrote"}}},
                 server_flags(
                     "a running server computes, not this machine: http://HOST:PORT or unix:PATH")},
      .examples =
          "  muster embed all-MiniLM-L6-v2 notes.txt -o notes.npy\n"
          "  muster embed ./my-model corpus.jsonl.zst -o corpus.safetensors \\\n"
          "      --field body --id-field doc_id --devices 2xcpu\n"
          "  muster embed --server http://127.0.0.1:8000 notes.txt -o notes.npy\n"
          "  muster embed all-MiniLM-L6-v2 news.jsonl -o news.npy --keep lang,year\n"
          "  zcat news.gz | muster embed all-MiniLM-L6-v2 - -o - --quiet > vectors.jsonl\n"
          "\n"
          "MODEL is a folder in Hugging Face layout or a name in the local hub cache, which\n"
          "muster pull fills. INPUT is .txt (a text a line), .jsonl, .csv or .tsv,\n"
          "plain, gzip or zstd, or - for standard input. A field of .jsonl may lie in an\n"
          "object: --field doc.text. With --server MODEL is a name that\n"
          "the server gives it, and may be left out where there is only one.\n",
      .words = {WordKind::Model, WordKind::File},
  };
}

// `muster serve` makes devices, batches and precision of the variables of other programs. Here
// flags alone say it, and whoever has set one should know.
void tell_of_names_not_read(const CommandContext& context) {
  constexpr SettingId kConcerned[] = {SettingId::Devices, SettingId::DeviceCountMost,
                                      SettingId::Precision};
  constexpr std::string_view kBatches[] = {"EMBEDDING_BATCH_SIZE", "MAX_BATCH_SIZE"};
  std::vector<std::string> names;
  for (const auto& [name, row] : foreign_names_in(context.sources.environment)) {
    const bool is_setting = row->setting && std::find(std::begin(kConcerned), std::end(kConcerned),
                                                      *row->setting) != std::end(kConcerned);
    if (is_setting ||
        std::find(std::begin(kBatches), std::end(kBatches), name) != std::end(kBatches)) {
      names.push_back(name);
    }
  }
  if (names.empty()) return;
  say(Tone::Notice,
      fmt::format("embed does not read {}, as serve does: say it with --devices, --batch-tokens or "
                  "--precision",
                  fmt::join(names, ", ")),
      context.color);
}

// The one word that is there tells which of the two it is not.
Error one_word_is_missing(const std::string& word) {
  std::error_code ignored;
  const bool is_input = word == "-" || (std::filesystem::exists(word, ignored) &&
                                        !std::filesystem::is_directory(word, ignored));
  const auto what = is_input ? fmt::format("MODEL is missing before the input {}", word)
                             : fmt::format("INPUT is missing behind the model {}", word);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}; usage: muster embed {}", what, embed_spec().usage)};
}

Result<EmbedOptions> options_of(const CommandContext& context) {
  MUSTER_TRY(check_without_server(context.arguments));
  if (context.arguments.has("--server")) return embed_server_options(context);
  if (context.arguments.positionals.size() < 2) {
    return one_word_is_missing(context.arguments.positionals.front());
  }
  return embed_options(context);
}

Status show_report(const CommandContext& context, const EmbedReport& report) {
  if (context.arguments.has("--json")) return context.output.append(report_json(report));
  if (context.arguments.has("--quiet")) return Done{};
  // Standard output is the vectors' where they went there.
  const bool is_stream = report.index.empty();
  const auto text =
      describe_report(report, context.terminal(is_stream ? STDERR_FILENO : STDOUT_FILENO),
                      context.arguments.has("--verbose"));
  if (!is_stream) return context.output.append(text);
  std::fputs(text.c_str(), stderr);
  return Done{};
}

Result<int> run_embed(const CommandContext& context) {
  if (!context.arguments.has("--quiet")) tell_of_names_not_read(context);
  catch_interrupts();
  CorpusBar bar(context, "texts");
  const auto options = MUSTER_TRY(options_of(context));
  const auto report = embed_corpus(options, bar.events(), context.clock, is_interrupted);
  bar.clear();
  if (!report) {
    return ended_early(context, report.error(),
                       {.files = RunFiles(options.out),
                        .inputs = options.input.inputs,
                        .is_stream = options.stream.has_value()});
  }
  MUSTER_TRY(show_report(context, *report));
  return 0;
}

}  // namespace

Command embed_command() { return {embed_spec(), run_embed}; }

}  // namespace muster
