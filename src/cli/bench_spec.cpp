// The flags and the help text of `muster bench`, apart from what reads them. The groups follow the
// questions of a person who measures: what load, what is sent, to whom, what must hold, what is
// compared, where the result goes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "cli/bench_options.h"

namespace muster {
namespace {

struct VerbUsage {
  std::string_view verb;
  std::string_view usage;
  std::string_view paragraph;  // how the one about it begins, behind the examples of `bench`
};
constexpr std::string_view kOfModels = "A MODEL";
constexpr std::string_view kOfFiles = "`init`";
constexpr std::string_view kOfReports = "`report`";
constexpr std::string_view kOfAll = "The exit code";
constexpr std::array kVerbUsages{VerbUsage{"embed", "MODEL-or-URL", kOfModels},
                                 VerbUsage{"rerank", "MODEL-or-URL", kOfModels},
                                 VerbUsage{"generate", "MODEL-or-URL", kOfModels},
                                 VerbUsage{"http", "URL", {}},
                                 VerbUsage{"run", "FILE [KEY=VALUE...]", kOfFiles},
                                 VerbUsage{"init", "[MODEL]", kOfFiles},
                                 VerbUsage{"diff", "A B", {}},
                                 VerbUsage{"report", "RESULT...", kOfReports},
                                 VerbUsage{"selftest", "[PART...]", {}}};

// A server is started here for a model alone, and only what is sent has fields.
bool setting_counts(SettingId id, std::string_view verb) {
  if (id == SettingId::Field) return bench_flag_counts("--input", verb);
  return bench_flag_counts("--model", verb);
}

// Of lines and paragraphs those about the verb.
std::string verb_examples(std::string_view examples, const VerbUsage& about) {
  const auto command = fmt::format("  muster bench {}", about.verb);
  std::string commands;
  std::string paragraphs;
  bool is_kept = false;
  bool is_begin = false;
  for (const auto& line : split(examples, '\n')) {
    if (line.starts_with("  ")) {
      if (line.starts_with(command)) commands += line + "\n";
      continue;
    }
    if (line.empty()) {
      is_begin = true;
      continue;
    }
    if (std::exchange(is_begin, false)) {
      const bool is_about = !about.paragraph.empty() && line.starts_with(about.paragraph);
      is_kept = is_about || line.starts_with(kOfAll);
      if (is_kept) paragraphs += "\n";
    }
    if (is_kept) paragraphs += line + "\n";
  }
  return commands + paragraphs + "\n`muster bench --help` has all that bench does.\n";
}

}  // namespace

// Long because it is a table, and a table is read best in one piece.
CommandSpec bench_spec() {
  return {
      .name = "bench",
      .summary = "measure a server, with intervals; compare two results",
      .usage =
          "embed|rerank|generate MODEL-or-URL | http URL | run FILE [KEY=VALUE...] | "
          "init [MODEL] | diff A B | report RESULT... | selftest [PART...]",
      .positional_least = 1,
      .positional_most = 64,
      .groups =
          {{"The load",
            {},
            {{"--clients", "N[,N...]",
              "closed loop: each client waits for its answer (default: 1)"},
             {"--rate", "R[,R...]", "open loop: requests a second; 10..200 rises during the run"},
             {"--arrivals", "LAW", "of --rate: poisson (default) or constant"},
             {"--trace", "FILE", "open loop: seconds from the start, one request a line"},
             {"--connections", "N", "open loop: at most so many at once (default: 4096)"},
             {"--duration", "TIME", "of sending (default: 10s)"},
             {"--requests", "N", "end after so many"},
             {"--timeout", "TIME", "for an answer (default: 60s)"},
             {"--warm-up", "auto|none|TIME", "what is not counted (default: auto, until steady)"},
             {"--trials", "N", "of each load, in random order (default: 1)"},
             {"--cooldown", "TIME", "between trials, where there are several (default: 1s)"},
             {"--seed", "N", "of everything random (default: 1)"}}},
           {"What is sent",
            {SettingId::Field},
            {{.name = "--input",
              .value_name = "FILE",
              .help = "texts (.txt, .jsonl, .csv); with http a body a line",
              .may_repeat = true},
             {"--prompt-words", "LENGTH", "generated texts (default: lognormal:64:0.5)"},
             {"--batch", "N", "texts a request, 1 by default; rerank: documents, 8 by default"},
             {"--output-tokens", "LENGTH", "generate: max_tokens (default: 64)"},
             {"--ignore-eos", "", "generate: exactly so many, where the server can"},
             {"--completions", "", "generate: /v1/completions instead of chat"},
             {"--tokenizer", "MODEL", "generate: counts tokens instead of the server"},
             {"--extra-body", "JSON", "more members of each request: {\"top_p\": 0.9}"}}},
           {"The server",
            {SettingId::Devices, SettingId::Precision, SettingId::AutoTruncate},
            {{"--model", "NAME",
              "the name it has there (default: the first it lists for the task)"},
             {"--api-key-file", "FILE", "holds the key that it asks for (default: MUSTER_API_KEY)"},
             {"--ca-file", "FILE", "who signed its certificate (PEM)"},
             {"--client-cert", "FILE", "the certificate to show it (PEM)"},
             {"--client-key", "FILE", "its private key (PEM)"}}},
           {"Objectives",
            {},
            {{"--slo", "LIST", "\"ttft_p99<500ms,tpot_p50<50ms,error_rate<1%\""},
             {"--find-peak", "", "the highest rate that keeps them"}}},
           {"The points of a file",
            {},
            {{"--resume", "", "run: only the points that are missing or invalid"},
             {"--restart", "", "run: drop the results that are there, and measure all points"},
             {"--allow-missing", "", "run: also where devices are missing, on those there are"}}},
           {"Comparison and self-test",
            {},
            {{"--confidence", "PERCENT", "diff, report: of all verdicts together (default: 99)"},
             {"--tolerance", "PERCENT", "diff, report: smaller differences are none (default: 0)"},
             {"--full", "", "selftest: as many runs as the project's promises"}}},
           {"Output",
            {},
            {{"--out", "FILE",
              "the result with all samples; init: the file; report: the page (report.html)", "-o"},
             {"--title", "TEXT", "report: its title (default: the names of the results)"},
             {"--json", "", "the result on standard output"}}}},
      .examples =
          "  muster bench embed MODEL --clients 1,8,32 --trials 5 -o before.json\n"
          "  muster bench generate http://127.0.0.1:8001 --rate 4 --duration 60s\n"
          "  muster bench generate SmolLM2-135M-Instruct.Q4_1.gguf --devices 2xcpu\n"
          "  muster bench embed http://127.0.0.1:8000 --slo \"latency_p99<50ms\" --find-peak\n"
          "  muster bench init MODEL -o bench.yaml\n"
          "  muster bench run bench.yaml scenario.num_samples=64 --restart\n"
          "  muster bench diff before.json after.json\n"
          "  muster bench report before.json after.json -o report.html\n"
          "  muster bench selftest\n"
          "\n"
          "A MODEL is served here, on a free port, and the server is ended afterwards. A\n"
          "LENGTH is a number or lognormal:MEDIAN:SIGMA. Latency counts from the time at\n"
          "which a request was meant to be sent. For a model that generates --precision is\n"
          "also own (the file's own bits), and not fp16.\n"
          "\n"
          "`init` writes a FILE with a comment for each key. `run` measures every combination\n"
          "of the lists in it and keeps each point as it is finished: a CSV for all, a result\n"
          "for each. KEY=VALUE takes the place of what FILE says.\n"
          "\n"
          "`report` makes one page of results, of folders of points and of recordings (.jsonl),\n"
          "with plots, for any browser. It needs no network and is at most 500 KB.\n"
          "\n"
          "The exit code is 22 when the run, or a point, cannot be trusted, mostly because\n"
          "this program itself was too late, 23 when B is worse, 24 when an objective is\n"
          "missed, 25 when one is not known, as requests were too few. docs/bench.md\n"
          "explains the figures, docs/formats/bench-run.md the FILE.\n",
      .verbs = {{"embed", "vectors of texts: a model or a URL", WordKind::Model},
                {"rerank", "documents ranked for a query: a model or a URL", WordKind::Model},
                {"generate", "streamed replies: a model or a URL", WordKind::Model},
                {"http", "any URL"},
                {"run", "every point of a file: batch sizes, precisions, devices", WordKind::File},
                {"init", "write such a file for this machine", WordKind::Model},
                {"diff", "compare two results", WordKind::File},
                {"report", "a page with plots of one result or several", WordKind::File},
                {"selftest", "try the instrument itself"}},
      .of_verb = bench_verb_spec,
  };
}

CommandSpec bench_verb_spec(std::string_view verb) {
  auto spec = bench_spec();
  const auto* const about = std::ranges::find(kVerbUsages, verb, &VerbUsage::verb);
  const auto named = std::ranges::find(spec.verbs, verb, &Verb::name);
  if (about == kVerbUsages.end() || named == spec.verbs.end()) return spec;
  spec.name = fmt::format("bench {}", verb);
  spec.summary = named->help;
  spec.usage = about->usage;
  spec.examples = verb_examples(spec.examples, *about);
  for (auto& group : spec.groups) {
    std::erase_if(group.flags,
                  [&](const RunFlag& flag) { return !bench_flag_counts(flag.name, verb); });
    std::erase_if(group.settings, [&](SettingId id) { return !setting_counts(id, verb); });
  }
  std::erase_if(spec.groups, [](const FlagGroup& group) {
    return group.flags.empty() && group.settings.empty();
  });
  spec.verbs.clear();
  spec.of_verb = nullptr;
  return spec;
}

}  // namespace muster
