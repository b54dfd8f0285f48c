// `muster search`: questions are embedded as their texts were, and compared with every vector. The
// vectors' record says which model, precision, pooling and length made them, and questions are
// embedded by the same; a model whose files have changed since is refused, because its vectors
// would be compared with those of another space. Questions run on one device: they are few, and
// starting more workers would take longer than computing them.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/embed_options.h"
#include "cli/messages.h"
#include "cli/search_options.h"
#include "cli/search_view.h"
#include "jobs/query.h"
#include "jobs/ranking.h"
#include "jobs/search_corpus.h"
#include "modelfile/model_folder.h"
#include "spec/pooling.h"
#include "terminal/terminal_info.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr std::size_t kWordsMost = 1001;  // OUT and a thousand questions

// sentence-transformers' name for the prompt of questions.
constexpr std::string_view kQueryPrompt = "query";

CommandSpec search_spec() {
  auto groups = search_flag_groups();
  groups.push_back({"Model",
                    {SettingId::PromptName},
                    {{"--model", "MODEL", "instead of the one that made OUT"}}});
  groups.push_back({"Machine",
                    {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
                     SettingId::TorchRoot, SettingId::WorkerProgram, SettingId::CacheDir}});
  return {
      .name = "search",
      .summary = "find the texts that are nearest to a question",
      .usage = "OUT \"QUESTION\"...",
      .positional_least = 1,
      .positional_most = kWordsMost,
      .groups = std::move(groups),
      .examples =
          "  muster search notes.npy \"where did we leave the keys?\"\n"
          "  muster search notes.npy --top 3 --json \"first question\" \"second one\"\n"
          "  muster search notes.npy - < questions.txt\n"
          "  muster search news.npy \"floods\" --filter 'lang in (de, fr) and year >= 2020'\n"
          "  muster search news.npy \"floods\" --mmr --min-score 0.3\n"
          "\n"
          "Each word behind OUT is a question of its own, so put one of several words in\n"
          "quotes; - takes a question from each line of standard input. OUT is a file that\n"
          "muster embed wrote, with the .index.jsonl and the .run.json beside it, which\n"
          "must be its own. The search is exact (cosine). The questions run on the first\n"
          "device named. --filter asks about the fields that muster embed --keep put into\n"
          "the index: = != < <= > >= ~ (holds), in (a, b), and, or, not; a field alone is\n"
          "true of what has it. docs/search.md has the whole of it.\n",
      .words = {WordKind::File, WordKind::Text},
  };
}

// The folder may hold another model by now, whose questions would find other texts than they mean.
Status check_model(const OutputRecord& record, const std::filesystem::path& folder) {
  if (record.model_hash.empty()) return Done{};
  const auto hash = MUSTER_TRY(model_hash(folder));
  if (hash == record.model_hash) return Done{};
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} is not the model any more that made these vectors: run muster embed "
                           "again, or name the right one with --model",
                           folder.string())};
}

// Everything as it was for OUT, so that question and texts are made alike; except the prompt, which
// models give to questions under a name of its own.
Result<EmbedOptions> query_options(const CommandContext& context,
                                   const std::optional<OutputRecord>& record) {
  const auto model = context.arguments.value("--model");
  EmbedOptions options;
  if (record) {
    options.model = record->model;
    options.precision = parse_precision(record->precision);
    options.pooling = parse_pooling(record->pooling);
    options.normalize = record->normalize;
    options.length_max = record->length_max;
  }
  if (model) options.model = *model;
  const auto path = MUSTER_TRY(find_model(options.model));
  const auto folder = MUSTER_TRY(read_model_folder(path));
  if (record && !model) MUSTER_TRY(check_model(*record, path));
  options.prompt_name = context.config.text(SettingId::PromptName);
  const auto& prompts = folder.sentence.prompts;
  if (!options.prompt_name && std::any_of(prompts.begin(), prompts.end(), [](const auto& prompt) {
        return prompt.name == kQueryPrompt;
      })) {
    options.prompt_name = kQueryPrompt;
  }
  MUSTER_TRY(fill_machine_options(context, context.config.text(SettingId::Devices).value_or("auto"),
                                  /*device_most=*/1, options));
  return options;
}

// The index lines of all hits.
Result<HitEntries> entries_of(const IndexFile& index,
                              const std::vector<std::vector<SearchHit>>& hits) {
  HitEntries entries;
  for (const auto& of_query : hits) {
    for (const auto& hit : of_query) {
      if (!entries.contains(hit.row)) entries.emplace(hit.row, MUSTER_TRY(index.entry(hit.row)));
    }
  }
  return entries;
}

Result<int> run_search(const CommandContext& context) {
  const auto options = MUSTER_TRY(search_options(context));
  if (options.queries.empty()) return 0;  // of nothing on standard input
  const auto corpus = MUSTER_TRY(SearchCorpus::open(options.out, context.arguments.has("--model")));
  std::shared_ptr<const RowFilter> filter;
  if (!options.filter.empty()) filter = MUSTER_TRY(corpus->filter(options.filter));
  const auto embedding = MUSTER_TRY(query_options(context, corpus->record()));

  CorpusEvents events;
  events.on_progress = [](const CorpusProgress&) {};
  events.on_notice = [&](const std::string& sentence) {
    say(Tone::Notice, sentence, context.color);
  };
  auto embedded = MUSTER_TRY(embed_texts(embedding, options.queries, events, context.clock));
  auto ranking = MUSTER_TRY(
      Ranking::begin(corpus->vectors(), std::move(embedded), options.rank, std::move(filter)));
  for (bool is_over = false; !is_over;) is_over = MUSTER_TRY(ranking.step());
  const auto hits = ranking.take();
  const auto entries = MUSTER_TRY(entries_of(corpus->index(), hits));
  const bool wants_json = context.arguments.has("--json");
  const auto terminal = context.terminal(STDOUT_FILENO);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const auto& query = options.queries[i];
    MUSTER_TRY(context.output.append(wants_json
                                         ? hits_json(query, hits[i], entries)
                                         : describe_hits(query, hits[i], entries, terminal)));
  }
  return 0;
}

}  // namespace

Command search_command() { return {search_spec(), run_search}; }

}  // namespace muster
