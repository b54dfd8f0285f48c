#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/embed_options.h"
#include "dataset/output_record.h"
#include "dataset/text_reader.h"
#include "dataset/vector_file.h"
#include "dataset/vector_writer.h"
#include "jobs/output_lock.h"
#include "jobs/query.h"
#include "jobs/run_output.h"
#include "jobs/search.h"
#include "modelfile/model_folder.h"
#include "spec/pooling.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

constexpr std::size_t kQueriesMost = 1000;
constexpr std::size_t kTopMost = 10'000;
constexpr std::size_t kTopDefault = 5;

// sentence-transformers' name for the prompt of questions.
constexpr std::string_view kQueryPrompt = "query";

CommandSpec search_spec() {
  return {
      .name = "search",
      .summary = "find the texts that are nearest to a question",
      .usage = "OUT QUERY...",
      .positional_least = 2,
      .positional_most = 1 + kQueriesMost,
      .groups = {{"Output",
                  {},
                  {{"--top", "N", "hits for each question (default: 5)"},
                   {"--json", "", "a JSON object a line for each question"}}},
                 {"Model",
                  {SettingId::PromptName},
                  {{"--model", "MODEL", "instead of the one that made OUT"}}},
                 {"Machine",
                  {SettingId::Devices, SettingId::DeviceCountMost, SettingId::CoresPerDevice,
                   SettingId::TorchRoot, SettingId::WorkerProgram, SettingId::CacheDir}}},
      .examples =
          "  muster search notes.npy \"where did we leave the keys?\"\n"
          "  muster search notes.npy --top 3 --json \"first question\" \"second one\"\n"
          "  muster search notes.npy - < questions.txt\n"
          "\n"
          "Each QUERY is a question of its own, so quote it; - takes a question from each\n"
          "line of standard input. OUT is a file that muster embed wrote, with the\n"
          ".index.jsonl and the .run.json beside it, which must be its own. The search is\n"
          "exact (cosine). The questions run on the first device named.\n",
  };
}

Result<std::size_t> top_count(const Arguments& arguments) {
  const auto text = arguments.value("--top");
  if (!text) return kTopDefault;
  std::size_t count = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), count);
  if (code != std::errc{} || end != text->data() + text->size() || count == 0 || count > kTopMost) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--top must be a whole number from 1 to {}: \"{}\"", kTopMost, *text)};
  }
  return count;
}

// The record of OUT, once the files beside it are seen to be its own; nullopt for vectors that
// muster did not write, whose model has to be named.
Result<std::optional<OutputRecord>> own_record(const CommandContext& context,
                                               const VectorFile& vectors) {
  const std::filesystem::path out = context.arguments.positionals.front();
  const auto path = record_path_of(out);
  const auto record = read_output_record(path);
  if (record) {
    MUSTER_TRY(check_output(*record, out));
    if (record->row_count != vectors.row_count() || record->dim != vectors.dim()) {
      return Error{ErrorKind::Corrupt, fmt::format("{}: [{} x {}], and {} says [{} x {}]",
                                                   out.string(), vectors.row_count(), vectors.dim(),
                                                   path.string(), record->row_count, record->dim)};
    }
    return std::optional(*record);
  }
  if (record.error().kind != ErrorKind::NotFound) return record.error();
  if (has_names_of_earlier_version(out)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} is missing: the files beside {} have the names of an earlier "
                             "version, which does not tell whose they are: run muster embed again",
                             path.string(), out.string())};
  }
  if (context.arguments.has("--model")) return std::optional<OutputRecord>();
  return Error{ErrorKind::NotFound,
               fmt::format("{} would say which model made these vectors, and it is missing: name "
                           "the model with --model",
                           path.string())};
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
  MUSTER_TRY(fill_machine_options(context.config, context.clock,
                                  context.config.text(SettingId::Devices).value_or("auto"),
                                  options));
  options.devices.resize(1);
  return options;
}

// "notes.txt" is more likely what somebody wants to search than a name of vectors.
Status check_name(const std::filesystem::path& out) {
  std::error_code ignored;
  if (vector_format_of(out) || !std::filesystem::exists(out, ignored)) return Done{};
  auto vectors = out;
  vectors.replace_extension(".npy");
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{0} holds no vectors (.npy, .safetensors or .jsonl): make them with "
                           "`muster embed MODEL {0} -o {1}`, then search {1}",
                           out.string(), vectors.string())};
}

// The words of the command line, or the lines of standard input for "-".
Result<std::vector<std::string>> questions(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const auto& word : words) {
    if (word != "-") {
      all.push_back(word);
      continue;
    }
    const auto reader =
        MUSTER_TRY(TextReader::open({.inputs = {word}, .format = TextFormat::Lines}));
    TextRecord record;
    while (MUSTER_TRY(reader->next(record))) {
      if (record.fault) return *record.fault;
      all.push_back(std::move(record.text));
      if (all.size() > kQueriesMost) {
        return Error{ErrorKind::InvalidArgument,
                     fmt::format("standard input has more than {} questions", kQueriesMost)};
      }
    }
  }
  return all;
}

Result<std::unique_ptr<VectorFile>> open_vectors(const std::filesystem::path& out) {
  MUSTER_TRY(check_name(out));
  auto vectors = VectorFile::open(out);
  auto part = out;
  part += ".part";
  if (!vectors && vectors.error().kind == ErrorKind::NotFound && std::filesystem::exists(part)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} is not finished: go on with muster embed --resume", out.string())};
  }
  return vectors;
}

// Vectors whose record vouches for them, if there is one.
struct OwnVectors {
  std::unique_ptr<VectorFile> vectors;
  std::optional<OutputRecord> record;
};

Result<OwnVectors> open_own_vectors(const CommandContext& context,
                                    const std::filesystem::path& out) {
  OwnVectors own;
  own.vectors = MUSTER_TRY(open_vectors(out));
  own.record = MUSTER_TRY(own_record(context, *own.vectors));
  return own;
}

using Hits = std::vector<SearchHit>;
using Entries = std::map<std::uint64_t, IndexEntry>;  // by row

// The index lines of all hits, in one pass over the file.
Result<Entries> entries_of(const std::filesystem::path& out, const std::vector<Hits>& hits) {
  std::vector<std::uint64_t> rows;
  for (const auto& of_query : hits) {
    for (const auto& hit : of_query) rows.push_back(hit.row);
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  if (rows.empty()) return Entries();
  auto found = MUSTER_TRY(read_index_entries(index_path_of(out), rows));
  Entries entries;
  for (auto& entry : found) {
    const auto row = entry.row;
    if (row) entries.emplace(*row, std::move(entry));
  }
  return entries;
}

std::string describe(const std::string& query, const Hits& hits, const Entries& entries,
                     std::size_t width) {
  Table table({{"score", Align::Right}, {"id", Align::Left, true}, {"text", Align::Left, true}});
  for (const auto& hit : hits) {
    const auto& entry = entries.at(hit.row);
    table.add_row({fmt::format("{:.4f}", hit.score),
                   entry.id.empty() ? fmt::format("row {}", hit.row) : entry.id, entry.text});
  }
  return query + "\n" + table.render(width) + "\n";
}

std::string hits_json(const std::string& query, const Hits& hits, const Entries& entries) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& hit : hits) {
    const auto& entry = entries.at(hit.row);
    nlohmann::ordered_json one{{"row", hit.row}, {"score", hit.score}};
    if (!entry.id.empty()) one["id"] = entry.id;
    one["input"] = entry.input;
    one["line"] = entry.line;
    one["text"] = entry.text;
    list.push_back(std::move(one));
  }
  const nlohmann::ordered_json json{{"query", query}, {"hits", std::move(list)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<int> run_search(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  const std::filesystem::path out = words.front();
  const auto queries = MUSTER_TRY(questions({words.begin() + 1, words.end()}));
  if (queries.empty()) return 0;  // of nothing on standard input
  const auto count = MUSTER_TRY(top_count(context.arguments));
  const auto own = open_own_vectors(context, out);
  if (!own) {
    // What is missing, or belongs to two runs at once, may be on its way.
    MUSTER_TRY(OutputLock::check_free(RunFiles(out).lock, out));
    return own.error();
  }
  const auto options = MUSTER_TRY(query_options(context, own->record));

  EmbedEvents events;
  events.on_progress = [](const EmbedProgress&) {};
  events.on_notice = [](const std::string& sentence) {
    fmt::print(stderr, "muster: {}\n", sentence);
  };
  const auto embedded = MUSTER_TRY(embed_texts(options, queries, events, context.clock));
  std::vector<Hits> hits;
  for (const auto& query : embedded) {
    hits.push_back(MUSTER_TRY(search_vectors(*own->vectors, query, count)));
  }
  const auto entries = MUSTER_TRY(entries_of(out, hits));
  const bool wants_json = context.arguments.has("--json");
  const auto width = printed_width(STDOUT_FILENO);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    MUSTER_TRY(context.output.append(wants_json ? hits_json(queries[i], hits[i], entries)
                                                : describe(queries[i], hits[i], entries, width)));
  }
  return 0;
}

}  // namespace

Command search_command() { return {search_spec(), run_search}; }

}  // namespace muster
