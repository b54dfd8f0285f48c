// A point is measured by the command that a person would type for it, so a sweep measures what
// `muster bench embed` measures, and refuses what it refuses. The command is kept in the result and
// can be tried alone.
#include "sweep/point_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using K = SweepKey;
using Json = nlohmann::ordered_json;

struct FlagOfKey {
  K key;
  std::string_view flag;
};

// Keys whose value is the flag's as it stands.
constexpr std::array kFlags{
    FlagOfKey{K::ApiKeyFile, "--api-key-file"},
    FlagOfKey{K::Tokenizer, "--tokenizer"},
    FlagOfKey{K::DatasetName, "--input"},
    FlagOfKey{K::TextColumn, "--field"},
    FlagOfKey{K::SequenceLength, "--prompt-words"},
    FlagOfKey{K::MaxNewTokens, "--output-tokens"},
    FlagOfKey{K::Clients, "--clients"},
    FlagOfKey{K::Rate, "--rate"},
    FlagOfKey{K::Arrivals, "--arrivals"},
    FlagOfKey{K::Trials, "--trials"},
    FlagOfKey{K::Cooldown, "--cooldown"},
    FlagOfKey{K::WarmUp, "--warm-up"},
    FlagOfKey{K::Timeout, "--timeout"},
    FlagOfKey{K::Seed, "--seed"},
    FlagOfKey{K::Slo, "--slo"},
};

// Where a flag's value is made of a key's.
constexpr std::array kMadeFlags{
    FlagOfKey{K::DeviceIds, "--devices"},        FlagOfKey{K::TorchDtype, "--precision"},
    FlagOfKey{K::BatchSize, "--batch"},          FlagOfKey{K::NumSamples, "--requests"},
    FlagOfKey{K::Truncation, "--auto-truncate"},
};

bool generates(std::string_view task) { return task == "generate" || task == "completions"; }

void add_number(Json& body, const SweepPoint& point, K key, const char* name) {
  if (point.has(key)) body[name] = Json::parse(point.at(key));
}

// What a body says beyond the flags. Without a temperature of its own a run is greedy, so that it
// can be repeated; sampling alone means the temperature of 1 that models are trained for, and what
// is sampled follows from the seed.
std::string extra_body(const SweepPoint& point) {
  Json body = Json::object();
  add_number(body, point, K::Temperature, "temperature");
  if (point.at(K::DoSample) == "true" && !point.has(K::Temperature)) body["temperature"] = 1;
  if (body.contains("temperature") && body["temperature"] > 0) {
    add_number(body, point, K::Seed, "seed");
  }
  add_number(body, point, K::TopP, "top_p");
  add_number(body, point, K::TopK, "top_k");
  add_number(body, point, K::MinP, "min_p");
  add_number(body, point, K::RepetitionPenalty, "repetition_penalty");
  const auto& least = point.at(K::MinNewTokens);
  if (!least.empty() && least != "0" && least != point.at(K::MaxNewTokens)) {
    add_number(body, point, K::MinNewTokens, "min_tokens");
  }
  if (point.has(K::ReasoningEffort)) body["reasoning_effort"] = point.at(K::ReasoningEffort);
  if (point.has(K::EnableThinking)) {
    body["chat_template_kwargs"] = {{"enable_thinking", point.at(K::EnableThinking) == "true"}};
  }
  return body.empty() ? std::string() : body.dump();
}

void add_load(const SweepPoint& point, std::string_view task, std::vector<std::string>& words) {
  const auto load = load_of(point, task);
  words.push_back(fmt::format("--requests={}", load.requests));
  if (!generates(task)) {
    words.push_back(fmt::format("--batch={}", load.texts_per_request));
  } else if (!point.has(K::Rate)) {
    words.push_back(fmt::format("--clients={}", point.at(K::BatchSize)));
  }
}

}  // namespace

std::vector<std::string> point_words(const SweepPoint& point, std::string_view task) {
  const bool is_remote = point.at(K::BackendType) == "openai";
  std::vector<std::string> words{"bench", task == "completions" ? "generate" : std::string(task),
                                 is_remote ? point.at(K::Url) : point.at(K::Model)};
  if (task == "completions") words.emplace_back("--completions");
  if (is_remote && point.has(K::Model)) words.push_back("--model=" + point.at(K::Model));
  if (!is_remote) {
    words.push_back("--devices=" + point.at(K::DeviceIds));
    words.push_back("--precision=" + point.at(K::TorchDtype));
  }
  if (point.has(K::Truncation) && !generates(task)) {
    words.emplace_back(point.at(K::Truncation) == "true" ? "--auto-truncate"
                                                         : "--no-auto-truncate");
  }
  add_load(point, task, words);
  for (const auto& [key, flag] : kFlags) {
    if (point.has(key)) words.push_back(fmt::format("{}={}", flag, point.at(key)));
  }
  if (!generates(task)) return words;
  const auto& least = point.at(K::MinNewTokens);
  if (!least.empty() && least == point.at(K::MaxNewTokens)) words.emplace_back("--ignore-eos");
  if (const auto body = extra_body(point); !body.empty()) words.push_back("--extra-body=" + body);
  return words;
}

std::optional<SweepKey> key_of_flag(std::string_view flag) {
  for (const auto& one : kFlags) {
    if (one.flag == flag) return one.key;
  }
  for (const auto& one : kMadeFlags) {
    if (one.flag == flag) return one.key;
  }
  return std::nullopt;
}

}  // namespace muster
