// The file's tree becomes values by key; whatever has no effect is refused here, with its place.
// Only what needs the model (its task) waits for `check_task`. An override is read as a value of
// YAML and takes the place of what the file says.
#include "sweep/sweep_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sweep/config_tree.h"
#include "sweep/sweep_values.h"

namespace muster {
namespace {

using Kind = ConfigNode::Kind;
using Values = std::array<SweepValues, kSweepKeyCount>;

Error invalid(std::string message) { return invalid_error(std::move(message)); }

// Where values come from: lines of a file, or a word of the command line.
struct Source {
  const std::string& file_name;
  bool is_file = true;

  std::string place(int line, std::string_view path) const {
    if (!is_file) return fmt::format("{}: {}", file_name, path);
    return fmt::format("{}:{}: {}", file_name, line, path);
  }
};

Error unknown_key(const std::string& place, const std::string& path) {
  if (const auto why = refused_sweep_key(path)) return invalid(fmt::format("{}: {}", place, *why));
  const auto nearest = nearest_sweep_path(path);
  return invalid(fmt::format("{} is not known{}", place,
                             nearest ? fmt::format("; did you mean {}?", *nearest) : ""));
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the sections of the table
Status take(const Source& source, const std::string& path, const ConfigNode& node, Values& values) {
  const auto place = source.place(node.line, path);
  if (const auto* row = find_sweep_key(path)) {
    auto& value = values[static_cast<std::size_t>(row->key)];
    if (source.is_file && !value.texts.empty()) {
      return invalid(fmt::format("{} and {} are the same key", value.place, place));
    }
    if (!source.is_file && value.place.starts_with(source.place(0, ""))) {
      return invalid(fmt::format("{} stands twice", place));
    }
    auto texts = MUSTER_TRY(read_sweep_values(*row, node, place));
    value = {.texts = std::move(texts), .place = place};
    return Done{};
  }
  if (!is_sweep_section(path)) return unknown_key(place, path);
  if (node.kind != Kind::Mapping) {
    return invalid(fmt::format("{} has keys of its own below it, and no value", place));
  }
  for (std::size_t i = 0; i < node.values.size(); ++i) {
    MUSTER_TRY(take(source, fmt::format("{}.{}", path, node.keys[i]), node.values[i], values));
  }
  return Done{};
}

Status take_file(const std::string& text, const std::string& file_name, Values& values) {
  const auto root = MUSTER_TRY(parse_config_tree(text, file_name));
  if (root.kind != Kind::Mapping) {
    return invalid(fmt::format(
        "{}: this is no benchmark: it wants backend, scenario and reporter; `muster bench init` "
        "writes one",
        file_name));
  }
  const Source source{file_name};
  for (std::size_t i = 0; i < root.values.size(); ++i) {
    MUSTER_TRY(take(source, root.keys[i], root.values[i], values));
  }
  return Done{};
}

Status take_override(const std::string& word, Values& values) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    return invalid(fmt::format("\"{}\" changes no key: write it as scenario.num_samples=20", word));
  }
  const auto node = MUSTER_TRY(parse_config_tree(word.substr(equals + 1), word));
  const std::string command_line = "command line";
  return take({command_line, false}, word.substr(0, equals), node, values);
}

}  // namespace

Result<SweepConfig> SweepConfig::read(const std::string& text, const std::string& file_name,
                                      std::span<const std::string> overrides) {
  SweepConfig config(file_name);
  MUSTER_TRY(take_file(text, file_name, config.values_));
  for (const auto& word : overrides) MUSTER_TRY(take_override(word, config.values_));
  MUSTER_TRY(config.check_backend());
  MUSTER_TRY(config.check_together());
  MUSTER_TRY(config.check_reasoning());
  MUSTER_TRY(config.check_sampling());
  MUSTER_TRY(config.check_tokens());
  return config;
}

std::optional<std::string> SweepConfig::text(SweepKey key) const {
  if (is_given(key)) return at(key).texts.front();
  const auto usual = sweep_key(key).usual;
  return usual.empty() ? std::nullopt : std::optional<std::string>(usual);
}

std::string SweepConfig::place_of(SweepKey key) const {
  if (is_given(key)) return at(key).place;
  return fmt::format("{}: {}", file_name_, sweep_key(key).path);
}

Error SweepConfig::wrong(SweepKey key, std::string_view what) const {
  return invalid(fmt::format("{} {}", place_of(key), what));
}

// A backend that is not named is told by the address of a server.
Status SweepConfig::check_backend() {
  auto& type = values_[static_cast<std::size_t>(SweepKey::BackendType)];
  if (type.texts.empty()) {
    type = {.texts = {is_given(SweepKey::Url) ? "openai" : "muster"},
            .place = place_of(SweepKey::BackendType)};
  }
  const char letter = is_remote() ? 'o' : 'm';
  for (const auto& row : sweep_keys()) {
    if (!is_given(row.key) || row.backends.find(letter) != std::string_view::npos) continue;
    return wrong(row.key, is_remote()
                              ? "is the server's own affair: it runs already"
                              : "is of a server that runs already, with backend.type openai");
  }
  if (!is_remote() && !is_given(SweepKey::Model)) {
    return wrong(SweepKey::Model,
                 "is missing: the model to measure, a folder, a hub id or a GGUF file");
  }
  if (!is_remote()) return Done{};
  const auto url = text(SweepKey::Url).value_or("");
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return wrong(SweepKey::Url, is_given(SweepKey::Url)
                                    ? "must be an address as http://127.0.0.1:8000/v1"
                                    : "is missing: the server's address, as "
                                      "http://127.0.0.1:8000/v1");
  }
  return Done{};
}

Status SweepConfig::check_together() const {
  using K = SweepKey;
  struct Pair {
    K key;
    K wanted;
    bool is_wanted;  // else it must not be there
    std::string_view why;
  };
  constexpr std::array kPairs{
      Pair{K::TextColumn, K::DatasetName, true,
           "names a column of scenario.dataset_name, which is "
           "not given"},
      Pair{K::SequenceLength, K::DatasetName, false,
           "is the length of made texts, and scenario.dataset_name has its own"},
      Pair{K::Arrivals, K::Rate, true, "counts with scenario.rate"},
      Pair{K::Clients, K::Rate, false, "and scenario.rate are two kinds of load"},
      Pair{K::CarbonIntensity, K::CarbonSource, true,
           "wants metrics.carbon_intensity_source beside it: who says so"},
      Pair{K::CarbonSource, K::CarbonIntensity, true,
           "wants metrics.carbon_intensity_g_per_kwh beside it"},
  };
  for (const auto& pair : kPairs) {
    if (is_given(pair.key) && is_given(pair.wanted) != pair.is_wanted) {
      return wrong(pair.key, pair.why);
    }
  }
  if (is_given(K::Cooldown) && text(K::Trials) == "1") {
    return wrong(K::Cooldown, "is between the trials of a point, and scenario.trials is 1");
  }
  if (is_given(K::MetricsOutputDir) && text(K::MetricsEnabled) == "false") {
    return wrong(K::MetricsOutputDir, "counts with metrics.enabled: true");
  }
  const bool names_devices = is_given(K::DeviceIds) || is_given(K::Device);
  if (is_given(K::MetricsOutputDir) && is_remote() && !names_devices) {
    return wrong(K::MetricsOutputDir, "wants backend.device_ids: the devices here to watch");
  }
  if (!text(K::OutputFile)->ends_with(".csv")) {
    return wrong(K::OutputFile, fmt::format("must end in .csv: \"{}\"", *text(K::OutputFile)));
  }
  return Done{};
}

// What reasoning is called differs from server to server: it is asked for by the server's name.
Status SweepConfig::check_reasoning() const {
  const bool has_params = is_given(SweepKey::ReasoningEffort) || is_given(SweepKey::EnableThinking);
  const bool is_on = text(SweepKey::Reasoning) == "true";
  if (is_on && !is_remote()) {
    return wrong(SweepKey::Reasoning,
                 "must be false: it is of a server that runs already, with backend.type openai");
  }
  if (is_on && !has_params) {
    return wrong(SweepKey::Reasoning,
                 "wants the name that the server knows in scenario.reasoning_params: "
                 "reasoning_effort or enable_thinking");
  }
  if (!is_on && has_params) {
    const auto key =
        is_given(SweepKey::ReasoningEffort) ? SweepKey::ReasoningEffort : SweepKey::EnableThinking;
    return wrong(key, "counts with scenario.reasoning: true");
  }
  return Done{};
}

// What narrows the choice of a token chooses nothing where the likeliest is taken anyway.
Status SweepConfig::check_sampling() const {
  const auto temperature = text(SweepKey::Temperature);
  if (text(SweepKey::DoSample) == "false" && temperature && *temperature != "0") {
    return wrong(SweepKey::DoSample, "is false, and a temperature above 0 samples");
  }
  if (text(SweepKey::DoSample) == "true" && temperature && *temperature == "0") {
    return wrong(SweepKey::DoSample, "is true, and a temperature of 0 samples nothing");
  }
  const bool samples = text(SweepKey::DoSample) == "true" || temperature.value_or("0") != "0";
  if (samples) return Done{};
  using Wide = std::pair<SweepKey, std::string_view>;
  for (const auto& [key, wide] :
       {Wide(SweepKey::TopP, "1"), Wide(SweepKey::TopK, "0"), Wide(SweepKey::MinP, "0")}) {
    if (!is_given(key) || text(key) == wide) continue;
    return wrong(key, "counts with do_sample: true or a temperature above 0");
  }
  return Done{};
}

// Servers know an exact number of tokens (ignore_eos); vLLM's also know the least one.
Status SweepConfig::check_tokens() const {
  const auto least = text(SweepKey::MinNewTokens);
  if (!least || *least == "0") return Done{};
  auto most = at(SweepKey::MaxNewTokens).texts;
  if (most.empty()) most = {*text(SweepKey::MaxNewTokens)};
  for (const auto& one : most) {
    if (std::stoull(*least) > std::stoull(one)) {
      return wrong(SweepKey::MinNewTokens,
                   fmt::format("is above max_new_tokens: {} and {}", *least, one));
    }
    if (!is_remote() && *least != one) {
      return wrong(SweepKey::MinNewTokens,
                   fmt::format("must be 0 or as many as max_new_tokens, {}: muster serve knows an "
                               "exact number, and no least one",
                               one));
    }
  }
  return Done{};
}

Status SweepConfig::check_task(std::string_view task) const {
  const char letter = task.front();  // as the table has it
  for (const auto& row : sweep_keys()) {
    if (!is_given(row.key) || row.tasks.find(letter) != std::string_view::npos) continue;
    if (row.key == SweepKey::Truncation && text(row.key) == "false") continue;  // nothing is cut
    if (row.key == SweepKey::Reasoning && text(row.key) == "false") continue;   // nor thought
    return wrong(row.key, row.key == SweepKey::Truncation
                              ? "must be false: the prompts of a decoder are never cut"
                              : fmt::format("means nothing for the task {}", task));
  }
  const bool generates = letter == 'g' || letter == 'c';
  const auto& batches = at(SweepKey::BatchSize).texts;
  const bool is_alone = batches.empty() || batches == std::vector<std::string>{"1"};
  if (generates && is_given(SweepKey::Rate) && !is_alone) {
    return wrong(SweepKey::BatchSize,
                 "is how many prompts are asked at once, and scenario.rate says when they come");
  }
  return Done{};
}

}  // namespace muster
