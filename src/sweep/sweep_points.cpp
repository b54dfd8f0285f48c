// From the file to its points. A point's identity is a hash of every setting as it counts, those of
// muster.yaml and the environment too, the texts, the model's files, the build that serves it and
// the hardware: a point of yesterday is today's only if nothing that is measured has changed, also
// where the changed key is swept by neither file, or the table was made on another machine.
#include "sweep/sweep_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "bench/load/api_requests.h"
#include "bench/statistics/random_stream.h"

namespace muster {
namespace {

using K = SweepKey;

constexpr std::uint64_t kPointsMost = 10'000;
constexpr std::uint64_t kMadeTexts = 100;  // where neither data set nor number is given
constexpr std::size_t kIdSize = 16;

Error wrong(const SweepConfig& config, SweepKey key, std::string_view what) {
  return {ErrorKind::InvalidArgument, fmt::format("{} {}", config.place_of(key), what)};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "0,1" of cuda is "cuda:0,cuda:1"; names stay as they are.
std::string device_names(const std::string& ids, const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& piece : split(ids, ',')) {
    const std::string id(trim(piece));  // of "0, 1", one text
    names.push_back(is_number(id) ? fmt::format("{}:{}", kind, id) : id);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

// The kind alone means all devices of it. A server that runs already may be anywhere.
std::vector<std::string> device_lists(const SweepConfig& config) {
  const auto kind = config.text(K::Device);
  std::vector<std::string> lists;
  for (const auto& ids : config.at(K::DeviceIds).texts) {
    lists.push_back(device_names(ids, kind.value_or("cuda")));
  }
  if (lists.empty() && kind) lists.push_back(*kind);
  if (lists.empty() && !config.is_remote()) lists.emplace_back("auto");
  return lists;
}

bool applies(const SweepKeyRow& row, const SweepConfig& config, const std::string& task) {
  return row.backends.find(config.is_remote() ? 'o' : 'm') != std::string_view::npos &&
         row.tasks.find(task.front()) != std::string_view::npos;
}

// The values of each key, one for a key that is not swept; empty text: it has none.
using Axes = std::array<std::vector<std::string>, kSweepKeyCount>;

Axes axes_of(const SweepConfig& config, const SweepFacts& facts) {
  Axes axes;
  for (const auto& row : sweep_keys()) {
    auto& axis = axes[static_cast<std::size_t>(row.key)];
    if (row.key == K::DeviceIds) {
      axis = device_lists(config);
    } else if (config.is_given(row.key)) {
      axis = config.at(row.key).texts;
    } else if (applies(row, config, facts.task) && !row.usual.empty()) {
      axis = {std::string(row.usual)};
    }
    if (axis.empty()) axis = {std::string()};
  }
  axes[static_cast<std::size_t>(K::Task)] = {facts.task};
  if (!facts.served_model.empty()) {
    axes[static_cast<std::size_t>(K::Model)] = {facts.served_model};
  }
  return axes;
}

// In bytes, about; of the longest texts that the sweep makes.
std::uint64_t longest_made_text(const SweepConfig& config) {
  std::uint64_t most = 0;
  for (const auto& text : config.at(K::SequenceLength).texts) {
    const auto words = parse_length_law("sequence_length", text);
    if (words) most = std::max(most, made_text_bytes(*words));
  }
  return most;
}

Result<std::uint64_t> sample_count(const SweepConfig& config, const SweepFacts& facts) {
  const auto given = config.text(K::NumSamples);
  std::uint64_t count = 0;
  if (given) std::from_chars(given->data(), given->data() + given->size(), count);
  if (!config.is_given(K::DatasetName)) {
    if (!given) count = kMadeTexts;
    const auto bytes = longest_made_text(config);
    if (count <= kMadeTextsMost && count * bytes > kMadeBytesMost) {
      return wrong(config, K::SequenceLength,
                   fmt::format("makes {} texts of about {}, {} together, and beyond {} they begin "
                               "again, which a cache answers: name a file by "
                               "scenario.dataset_name",
                               count, human_bytes(bytes), human_bytes(count * bytes),
                               human_bytes(kMadeBytesMost)));
    }
    if (count <= kMadeTextsMost) return count;
    return wrong(
        config, K::NumSamples,
        fmt::format("asks for {} made texts, and beyond {} they begin again, which a cache "
                    "answers: name a file by scenario.dataset_name",
                    count, kMadeTextsMost));
  }
  if (facts.text_count == 0) {
    return wrong(config, K::DatasetName,
                 fmt::format("has no text: {}", *config.text(K::DatasetName)));
  }
  if (!given) return facts.text_count;
  if (count > facts.text_count) {
    return wrong(config, K::NumSamples,
                 fmt::format("asks for {} texts, and {} has {}", count,
                             *config.text(K::DatasetName), facts.text_count));
  }
  return count;
}

// A request that cannot be filled would measure the same texts again and again.
Status check_batch(const SweepConfig& config, const SweepPoint& point, const std::string& task) {
  const auto taken = point.count(K::BatchSize) + (task == "rerank" ? 1 : 0);
  const auto samples = point.count(K::NumSamples);
  if (taken <= samples) return Done{};
  return wrong(config, K::BatchSize,
               fmt::format("wants {} texts at once, and there {} {}", taken,
                           samples == 1 ? "is" : "are", samples));
}

// More would be told in the result than were ever under way.
Status check_clients(const SweepConfig& config, const SweepPoint& point, const std::string& task) {
  const auto clients = point.count(K::Clients);
  const auto requests = load_of(point, task).requests;
  if (clients <= requests) return Done{};
  return wrong(config, K::Clients,
               fmt::format("asks for {} requests at once, and there {} {}, of {} texts each",
                           clients, requests == 1 ? "is" : "are", requests,
                           point.count(K::BatchSize) + (task == "rerank" ? 1 : 0)));
}

std::string value_of(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? std::string() : found->second;
}

std::string identity_of(const SweepPoint& point, const SweepFacts& facts) {
  nlohmann::ordered_json json;
  for (const auto& row : sweep_keys()) {
    if (!row.column.empty()) json[std::string(row.path)] = point.at(row.key);
  }
  json["texts"] = facts.texts_hash;
  json["model files"] = value_of(facts.models, point.at(K::Model));
  json["server settings"] = facts.settings;
  json["build"] = facts.build;
  json["torch"] = facts.torch;
  json["machine"] = value_of(facts.machines, point.named_devices);
  const auto text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return hash_hex(text).substr(0, kIdSize);
}

std::string label_of(const SweepPoint& point, const Axes& axes) {
  std::string label;
  for (const auto& row : sweep_keys()) {
    if (axes[static_cast<std::size_t>(row.key)].size() < 2) continue;
    const bool is_list = row.kind == SweepValueKind::Devices;
    label += fmt::format("{}{}={}{}{}", label.empty() ? "" : " ", row.column, is_list ? "[" : "",
                         point.at(row.key), is_list ? "]" : "");
  }
  return label;
}

// The next combination, the last key changing fastest; false after the last one.
bool to_next(const Axes& axes, std::array<std::size_t, kSweepKeyCount>& at) {
  for (std::size_t key = kSweepKeyCount; key-- > 0;) {
    if (++at[key] < axes[key].size()) return true;
    at[key] = 0;
  }
  return false;
}

void shuffle(std::vector<SweepPoint>& points, std::uint64_t seed) {
  RandomStream random(seed);
  for (std::size_t left = points.size(); left > 1; --left) {
    std::swap(points[left - 1], points[random.below(left)]);
  }
}

}  // namespace

std::uint64_t SweepPoint::count(SweepKey key) const {
  std::uint64_t value = 0;
  const auto& text = at(key);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<NamedDevices> named_devices(const SweepConfig& config) {
  std::vector<NamedDevices> named;
  const auto key = config.is_given(K::DeviceIds) ? K::DeviceIds : K::Device;
  for (auto& list : device_lists(config)) named.push_back({std::move(list), config.place_of(key)});
  return named;
}

PointLoad load_of(const SweepPoint& point, std::string_view task) {
  const auto samples = point.count(SweepKey::NumSamples);
  if (task == "generate" || task == "completions") return {.requests = samples};
  const auto batch = std::max<std::uint64_t>(1, point.count(SweepKey::BatchSize));
  const auto taken = batch + (task == "rerank" ? 1 : 0);
  return {.requests = (samples + taken - 1) / taken, .texts_per_request = batch};
}

Result<std::vector<SweepPoint>> sweep_points(const SweepConfig& config, const SweepFacts& facts) {
  auto axes = axes_of(config, facts);
  const auto samples = MUSTER_TRY(sample_count(config, facts));
  axes[static_cast<std::size_t>(K::NumSamples)] = {std::to_string(samples)};
  std::uint64_t count = 1;
  for (const auto& axis : axes) {
    count *= axis.size();  // of at most 1,000 values each, and it ends at the first above
    if (count > kPointsMost) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("the sweep has more than {} points", kPointsMost)};
    }
  }
  std::vector<SweepPoint> points;
  std::set<std::string> ids;
  std::array<std::size_t, kSweepKeyCount> at{};
  std::size_t number = 0;
  do {
    SweepPoint point;
    for (std::size_t key = 0; key < kSweepKeyCount; ++key) point.values[key] = axes[key][at[key]];
    point.label = label_of(point, axes);
    point.number = number++;
    MUSTER_TRY(check_batch(config, point, facts.task));
    MUSTER_TRY(check_clients(config, point, facts.task));
    point.named_devices = point.at(K::DeviceIds);
    const auto devices = facts.devices.find(point.named_devices);
    if (devices != facts.devices.end()) point.at(K::DeviceIds) = devices->second;
    const bool has_none = devices != facts.devices.end() && devices->second.empty();
    point.id = identity_of(point, facts);
    if (!has_none && ids.insert(point.id).second) points.push_back(std::move(point));
  } while (to_next(axes, at));
  std::uint64_t seed = 0;
  const auto text = config.text(K::Seed).value_or("1");
  std::from_chars(text.data(), text.data() + text.size(), seed);
  shuffle(points, seed);
  return points;
}

}  // namespace muster
