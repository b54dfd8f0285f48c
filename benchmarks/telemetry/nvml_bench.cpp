// nvml_bench SECONDS HZ [LIBRARY]   what watching NVIDIA's GPUs costs, and how fresh their figures
// are
//
// Visits every GPU as the sampler does (10 Hz, 1 Hz, each 10 s) for SECONDS in one thread, then
// reads the energy counter and the instant power of the first GPU every 0.2 ms. Prints one JSON
// object: the last readings of each device, calls and their percentiles by function, the CPU share
// of a core for each GPU, and the refresh periods.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/cpu_time.h"
#include "hw/device_sources.h"
#include "hw/inventory.h"

namespace {

using muster::Duration;
using muster::TimePoint;
using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

constexpr int kSlowSeconds = 10;
constexpr auto kRefreshTime = std::chrono::seconds(5);
constexpr auto kRefreshPause = std::chrono::microseconds(200);

int fail(std::string_view message) {
  std::fprintf(stderr, "nvml_bench: %.*s\n", static_cast<int>(message.size()), message.data());
  return 2;
}

// Every call with its time.
class TimedCalls final : public muster::CallWatch {
 public:
  void enter(const char* /*function*/, TimePoint /*at*/) override {}
  void leave(const char* function, std::int32_t code, Duration took) override {
    auto& calls = calls_[function];
    calls.microseconds.push_back(std::chrono::duration<double, std::micro>(took).count());
    if (code != 0) ++calls.codes[std::to_string(code)];
  }
  void forget() { calls_.clear(); }

  Json table() const {
    Json table = Json::array();
    for (const auto& [function, calls] : calls_) {
      auto sorted = calls.microseconds;
      std::sort(sorted.begin(), sorted.end());
      const auto percentile = [&](double share) {
        return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
      };
      double sum = 0;
      for (const auto one : sorted) sum += one;
      table.push_back({{"function", function},
                       {"calls", sorted.size()},
                       {"p50_us", percentile(0.5)},
                       {"p99_us", percentile(0.99)},
                       {"max_us", sorted.back()},
                       {"total_ms", sum / 1e3},
                       {"codes", calls.codes}});
    }
    return table;
  }

 private:
  struct Calls {
    std::vector<double> microseconds;
    std::map<std::string, int> codes;
  };
  std::map<std::string, Calls> calls_;
};

Json device_json(const muster::DeviceIdentity& identity, const muster::Readings& readings,
                 const std::map<std::string, int>& errors) {
  Json json{{"name", identity.device.name()}, {"model", identity.device.model}};
  if (identity.device.uuid) json["uuid"] = *identity.device.uuid;
  if (identity.device.pci_address) json["pci_address"] = *identity.device.pci_address;
  if (identity.parent) json["parent"] = *identity.parent;
  if (identity.serial) json["serial"] = *identity.serial;
  if (identity.vbios) json["vbios"] = *identity.vbios;
  if (identity.driver_version) json["driver_version"] = *identity.driver_version;
  if (identity.cuda_version) json["cuda_version"] = *identity.cuda_version;
  if (identity.multiprocessor_count) json["multiprocessors"] = *identity.multiprocessor_count;
  if (identity.numa_node) json["numa_node"] = *identity.numa_node;
  if (identity.is_ecc_on) json["ecc"] = *identity.is_ecc_on;
  if (identity.is_mig_on) json["mig"] = *identity.is_mig_on;
  if (identity.is_persistent) json["persistence"] = *identity.is_persistent;
  if (identity.compute_mode) json["compute_mode"] = *identity.compute_mode;
  json["readings"] = Json::object();
  for (const auto& info : muster::reading_table()) {
    const auto value = readings.get(info.reading);
    if (value) json["readings"][std::string(info.name)] = *value;
  }
  json["errors"] = errors;
  return json;
}

struct Watched {
  muster::Readings last;
  std::map<std::string, int> errors;  // by reading and code
  std::uint64_t fast_calls = 0;
  std::uint64_t fast_visits = 0;
};

void visit(muster::DeviceSampler& sampler, int tick, int hz, TimedCalls& calls, Watched& watched) {
  muster::DeviceSample sample;
  sample.at = SteadyClock::now();
  sample.tiers.set(static_cast<std::size_t>(muster::Tier::Fast));
  if (tick % hz == 0) sample.tiers.set(static_cast<std::size_t>(muster::Tier::Medium));
  if (tick % (kSlowSeconds * hz) == 0)
    sample.tiers.set(static_cast<std::size_t>(muster::Tier::Slow));
  sampler.sample(sample.tiers, calls, sample);
  if (sample.tiers.count() == 1) {
    watched.fast_calls += sample.call_count;
    ++watched.fast_visits;
  }
  for (const auto& info : muster::reading_table()) {
    if (const auto value = sample.readings.get(info.reading)) {
      watched.last.set(info.reading, *value);
    }
  }
  for (const auto& error : sample.errors) {
    const auto name = std::string(muster::reading_info(error.reading).name);
    ++watched.errors[name + " " + std::to_string(error.code)];
  }
}

// Times between changes of a value, to within a pause and a call.
template <typename Read>
Json refresh_periods(Read read) {
  std::vector<double> periods;
  std::optional<TimePoint> last_change;
  auto last = read();
  const auto end = SteadyClock::now() + kRefreshTime;
  std::uint64_t reads = 0;
  for (auto now = SteadyClock::now(); last && now < end; now = SteadyClock::now()) {
    std::this_thread::sleep_for(kRefreshPause);
    ++reads;
    const auto value = read();
    if (!value || *value == *last) continue;
    if (last_change) periods.push_back(muster::seconds(now - *last_change) * 1e3);
    last_change = now;
    last = value;
  }
  if (periods.empty()) return {{"reads", reads}, {"changes", 0}};
  std::sort(periods.begin(), periods.end());
  return {{"reads", reads},
          {"changes", periods.size() + 1},
          {"p10_ms", periods[periods.size() / 10]},
          {"median_ms", periods[periods.size() / 2]},
          {"p90_ms", periods[periods.size() * 9 / 10]}};
}

int run(int duration_s, int hz, const std::vector<std::string>& libraries) {
  TimedCalls calls;
  const auto begin = SteadyClock::now();
  muster::NvmlOptions options;
  options.libraries = libraries;
  auto source = muster::open_nvml(options, calls);
  if (!source) return fail(source.error().message);
  const double open_s = muster::seconds(SteadyClock::now() - begin);
  const auto open_calls = calls.table();
  calls.forget();

  auto& samplers = source->samplers;
  std::vector<Watched> watched(samplers.size());
  const auto start = SteadyClock::now();
  const double cpu_start = muster::process_cpu_seconds();
  for (int tick = 0; tick < duration_s * hz; ++tick) {
    std::this_thread::sleep_until(start + tick * Duration(std::chrono::seconds(1)) / hz);
    for (std::size_t i = 0; i < samplers.size(); ++i) {
      visit(*samplers[i], tick, hz, calls, watched[i]);
    }
  }
  const double wall_s = muster::seconds(SteadyClock::now() - start);
  const double cpu_s = muster::process_cpu_seconds() - cpu_start;

  Json json{{"open_seconds", open_s}, {"seconds", wall_s}, {"cpu_seconds", cpu_s}};
  json["devices"] = Json::array();
  std::size_t gpus = 0;
  for (std::size_t i = 0; i < samplers.size(); ++i) {
    const auto& identity = samplers[i]->identity();
    gpus += identity.parent ? 0 : 1;
    auto device = device_json(identity, watched[i].last, watched[i].errors);
    device["fast_calls_per_visit"] =
        static_cast<double>(watched[i].fast_calls) /
        static_cast<double>(std::max<std::uint64_t>(watched[i].fast_visits, 1));
    json["devices"].push_back(std::move(device));
  }
  json["core_percent_per_gpu"] = 100 * cpu_s / wall_s / static_cast<double>(gpus);
  json["calls"] = calls.table();
  json["open_calls"] = open_calls;
  calls.forget();
  json["energy_refresh"] = refresh_periods([&] { return samplers[0]->energy_joules(calls); });
  json["energy_calls"] = calls.table();
  json["power_refresh"] = refresh_periods([&] {
    muster::DeviceSample sample;
    sample.at = SteadyClock::now();
    samplers[0]->sample(muster::TierSet().set(static_cast<std::size_t>(muster::Tier::Fast)), calls,
                        sample);
    return sample.readings.get(muster::Reading::GpuPowerInstant);
  });
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, int max) {
    const std::string_view text = argc > index ? argv[index] : "";
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_good = error == std::errc() && end == text.data() + text.size();
    return is_good && value >= 1 && value <= max ? value : 0;
  };
  const int duration_s = number(1, 3600);
  const int hz = number(2, 100);
  if (duration_s == 0 || hz == 0 || argc > 4) {
    return fail(
        "seconds (1 to 3600), visits a second (1 to 100), maybe a library: nvml_bench 60 10");
  }
  const auto libraries =
      argc == 4 ? std::vector<std::string>{argv[3]} : muster::NvmlOptions().libraries;
  return run(duration_s, hz, libraries);
}
