// What a file does not say itself is looked up here, before any server is started: a wrong name, an
// empty data set or a missing column ends the command within milliseconds. The model's files enter
// a point's identity by name and size, which is quick and tells a changed model in practice.
#include "cli/sweep/sweep_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/build_info.h"
#include "base/hash.h"
#include "cli/bench_options.h"
#include "cli/bench_subject.h"
#include "cli/places.h"
#include "jobs/decoder_source.h"
#include "modelfile/model_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

Error at_place(const SweepConfig& config, SweepKey key, const Error& error) {
  return {error.kind, fmt::format("{}: {}", config.place_of(key), error.message)};
}

// "1_Pooling/config.json:190,config.json:612,…" of a folder, "FILE:SIZE" of a file. What is hidden
// in a folder (".git", a downloader's notes) is no part of the model.
std::string files_text(const fs::path& source) {
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) {
    return fmt::format("{}:{}", source.filename().string(), fs::file_size(source, ignored));
  }
  std::vector<std::string> files;
  std::error_code fault;
  fs::recursive_directory_iterator entry(source, fault);
  for (; entry != fs::recursive_directory_iterator(); entry.increment(fault)) {
    if (entry->path().filename().string().starts_with('.')) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(ignored)) {
      files.push_back(fmt::format("{}:{}", entry->path().lexically_relative(source).string(),
                                  entry->file_size(ignored)));
    }
  }
  std::ranges::sort(files);
  return fmt::format("{}", fmt::join(files, ","));
}

struct FoundSource {
  fs::path path;
  std::string task;
};

Result<FoundSource> find_source(const std::string& model) {
  if (names_decoder(model)) {
    return FoundSource{.path = MUSTER_TRY(find_decoder_source(model)), .task = "generate"};
  }
  FoundSource found{.path = MUSTER_TRY(find_model(model)), .task = "embed"};
  if (MUSTER_TRY(read_model_folder(found.path)).rerank) found.task = "rerank";
  return found;
}

bool suits(const std::string& asked, const std::string& does) {
  return asked == does || (asked == "completions" && does == "generate");
}

// Every model of a sweep does the same, since their points stand in one table.
Status find_models(const SweepConfig& config, SweepFacts& facts) {
  for (const auto& model : config.at(SweepKey::Model).texts) {
    const auto found = find_source(model);
    if (!found) return at_place(config, SweepKey::Model, found.error());
    facts.models[model] = files_text(found->path);
    if (facts.task.empty()) facts.task = found->task;
    if (suits(facts.task, found->task)) continue;
    const auto key = config.is_given(SweepKey::Task) ? SweepKey::Task : SweepKey::Model;
    return invalid_error(fmt::format("{}: the task is {}, and {} is a model to {}",
                                     config.place_of(key), facts.task, model, found->task));
  }
  return Done{};
}

// Each point reads it anew, so it must not be a pipe.
Status check_data_set(const SweepConfig& config, const std::string& file) {
  std::error_code ignored;
  const bool is_file =
      file != "-" && (!fs::exists(file, ignored) || fs::is_regular_file(file, ignored));
  if (is_file) return Done{};
  return invalid_error(fmt::format("{} must be a file, which each point reads: \"{}\"",
                                   config.place_of(SweepKey::DatasetName), file));
}

Status find_texts(const Config& settings, const SweepConfig& config, SweepFacts& facts) {
  const auto file = config.text(SweepKey::DatasetName);
  if (!file) return Done{};
  MUSTER_TRY(check_data_set(config, *file));
  BenchPlan plan{.task = BenchTask::Embed, .subject = {}};
  plan.inputs = {*file};
  // As `measure` takes it.
  plan.field = config.text(SweepKey::TextColumn)
                   .value_or(settings.text(SettingId::Field).value_or(plan.field));
  plan.is_field_asked_for = config.is_given(SweepKey::TextColumn);
  const auto texts = read_bench_texts(plan);
  if (!texts) {
    // A name without a file is most likely one of a hub's data sets.
    const bool is_missing = texts.error().kind == ErrorKind::NotFound;
    auto error = at_place(config, SweepKey::DatasetName, texts.error());
    if (is_missing) error.message += "; data sets are files here (.txt, .jsonl, .csv)";
    return error;
  }
  Hash128 hash;
  for (const auto& text : *texts) {
    hash.update(fmt::format("{}:", text.size()));
    hash.update(text);
    facts.longest_text = std::max<std::uint64_t>(facts.longest_text, text.size());
  }
  facts.texts_hash = hash.hex();
  facts.text_count = texts->size();
  return Done{};
}

// What a server of a point is told that its command does not say.
std::string settings_text(const Config& settings) {
  auto words = own_server_settings(settings);
  std::erase_if(words, [](const std::string& word) {
    return word.starts_with("--devices=") || word.starts_with("--precision=");
  });
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

Result<std::string> task_of_model(const std::string& model) {
  return MUSTER_TRY(find_source(model)).task;
}

Result<SweepFacts> find_sweep_facts(const Config& settings, const SweepConfig& config) {
  SweepFacts facts{.task = config.text(SweepKey::Task).value_or("")};
  if (config.is_remote()) {
    if (facts.task.empty()) facts.task = "generate";  // what most servers of this API do
  } else {
    MUSTER_TRY(find_models(config, facts));
    facts.settings = settings_text(settings);
    facts.build = build_name();
    // Where there is none, the first point says so.
    if (const auto torch = find_torch_root(settings)) facts.torch = torch_version(torch->path);
  }
  MUSTER_TRY(config.check_task(facts.task));
  MUSTER_TRY(find_texts(settings, config, facts));
  return facts;
}

Status check_sweep_facts(const Config& settings, const SweepConfig& config,
                         const SweepFacts& facts) {
  SweepFacts now{.task = facts.task};
  if (!config.is_remote()) MUSTER_TRY(find_models(config, now));
  MUSTER_TRY(find_texts(settings, config, now));
  const auto changed = [&config](SweepKey key) {
    return invalid_error(
        fmt::format("{}: its files have changed since the run began", config.place_of(key)));
  };
  if (now.models != facts.models) return changed(SweepKey::Model);
  if (now.texts_hash != facts.texts_hash) return changed(SweepKey::DatasetName);
  return Done{};
}

}  // namespace muster
