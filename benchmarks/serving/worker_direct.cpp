// muster-worker fed without a parent: the same texts in the same batches, over the same socket, and
// nothing else. What a server adds to this is its own cost.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "coordinator/worker_process.h"
#include "jobs/model_opening.h"
#include "wire/messages.h"

namespace muster {
namespace {

constexpr const char* kUsage =
    "usage: worker_direct --worker PROGRAM --torch-root DIR --model DIR --texts FILE\n"
    "                     --cores LIST[;LIST...] [--precision P] [--batch TEXTS] [--rate "
    "PER_SECOND]\n"
    "                     [--seconds S]\n\n"
    "One worker for each LIST of cores (\"0;1\" is two workers of one core). Without --rate each "
    "has\n"
    "two batches a core at all times; with it batches come at equal distances. Prints one JSON "
    "object; lag is\nfrom the time due to the send.\n";

struct Arguments {
  std::map<std::string, std::string> values;

  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
  double number(const std::string& name, double otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : std::stod(found->second);
  }
};

struct Running {
  std::unique_ptr<WorkerProcess> process;
  std::size_t lane_count = 0;
  std::size_t in_flight = 0;
};

/// Batches out, rows in, and what each took.
class Feeder {
 public:
  Feeder(std::vector<Batch> batches, std::vector<Running> workers)
      : batches_(std::move(batches)), workers_(std::move(workers)) {}

  Status run_full(Duration time);
  Status run_rate(Duration time, double rate);
  void print() const;

 private:
  Status send(Running& worker, TimePoint due);
  Status wait(Duration timeout);
  Status on_rows(Running& worker, std::uint64_t id, std::span<const std::byte> payload);

  std::vector<Batch> batches_;
  std::vector<Running> workers_;
  std::map<std::uint64_t, TimePoint> due_;
  std::vector<double> latencies_, lags_;
  std::uint64_t next_ = 0, text_count_ = 0, token_count_ = 0;
  double elapsed_ = 0, engine_seconds_ = 0;
  const SteadyClock clock_;
};

Status Feeder::send(Running& worker, TimePoint due) {
  const auto& batch = batches_[next_ % batches_.size()];
  due_[++next_] = due;
  ++worker.in_flight;
  return worker.process->channel().send(static_cast<std::uint8_t>(MessageType::Batch), next_,
                                        encode(batch));
}

Status Feeder::on_rows(Running& worker, std::uint64_t id, std::span<const std::byte> payload) {
  latencies_.push_back(seconds(clock_.now() - due_.at(id)));
  due_.erase(id);
  --worker.in_flight;
  const auto& batch = batches_[(id - 1) % batches_.size()];
  text_count_ += batch.lengths.size();
  token_count_ += batch.ids.size();
  engine_seconds_ += static_cast<double>(MUSTER_TRY(decode_rows(payload)).engine_ns) * 1e-9;
  return Done{};
}

Status Feeder::wait(Duration timeout) {
  std::vector<pollfd> waits;
  for (const auto& worker : workers_) {
    waits.push_back({worker.process->channel().fd(), POLLIN, 0});
  }
  const auto left = std::max(timeout, Duration{0});
  const timespec limit{left / std::chrono::seconds(1), (left % std::chrono::seconds(1)).count()};
  ::ppoll(waits.data(), waits.size(), &limit, nullptr);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (waits[i].revents == 0) continue;
    auto& worker = workers_[i];
    const auto is_open = MUSTER_TRY(worker.process->channel().read_available(
        [&](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
          if (static_cast<MessageType>(header.type) != MessageType::Rows) {
            const auto failed = decode_failed(payload);
            return failed ? failed->error : failed.error();
          }
          return on_rows(worker, header.id, payload);
        }));
    if (!is_open) return Error{ErrorKind::Unavailable, "a worker ended"};
  }
  return Done{};
}

Status Feeder::run_full(Duration time) {
  const auto begin = clock_.now();
  while (clock_.now() - begin < time) {
    for (auto& worker : workers_) {
      while (worker.in_flight < 2 * worker.lane_count) MUSTER_TRY(send(worker, clock_.now()));
    }
    MUSTER_TRY(wait(std::chrono::seconds(1)));
  }
  elapsed_ = seconds(clock_.now() - begin);
  return Done{};
}

Status Feeder::run_rate(Duration time, double rate) {
  const auto begin = clock_.now();
  const auto gap = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1 / rate));
  for (auto due = begin; due - begin < time || !due_.empty();) {
    const bool is_over = due - begin >= time;
    MUSTER_TRY(wait(is_over ? Duration(std::chrono::seconds(1)) : due - clock_.now()));
    if (is_over || clock_.now() < due) continue;
    auto least = std::min_element(
        workers_.begin(), workers_.end(),
        [](const Running& left, const Running& right) { return left.in_flight < right.in_flight; });
    lags_.push_back(seconds(clock_.now() - due));
    MUSTER_TRY(send(*least, due));
    due += gap;
  }
  elapsed_ = seconds(clock_.now() - begin);
  return Done{};
}

double percentile_ms(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))] * 1e3;
}

void Feeder::print() const {
  fmt::print(
      "{{\"seconds\": {}, \"batches\": {}, \"texts_per_second\": {}, \"tokens_per_second\": {}, "
      "\"p50_ms\": {}, \"p99_ms\": {}, \"max_ms\": {}, \"lag_p50_ms\": {}, \"engine_ms\": {}}}\n",
      elapsed_, latencies_.size(), static_cast<double>(text_count_) / elapsed_,
      static_cast<double>(token_count_) / elapsed_, percentile_ms(latencies_, 0.5),
      percentile_ms(latencies_, 0.99), percentile_ms(latencies_, 1), percentile_ms(lags_, 0.5),
      engine_seconds_ * 1e3 / static_cast<double>(latencies_.size()));
}

Result<Running> start_worker(const Arguments& arguments, const OpenedModel& model,
                             const std::string& cores) {
  Load load{.model = model_request(model), .precision = Precision::Fp32, .cpus = {}};
  if (arguments.text("--precision") == "bf16") load.precision = Precision::Bf16;
  for (const auto& core : split(cores, ',')) {
    load.cpus.push_back(static_cast<std::uint32_t>(std::stoul(core)));
  }
  Device device;
  device.cpus = load.cpus;
  Running running;
  running.lane_count = load.cpus.size();
  running.process = MUSTER_TRY(WorkerProcess::start({.program = arguments.text("--worker"),
                                                     .torch_root = arguments.text("--torch-root"),
                                                     .device = device}));
  bool is_ready = false;
  while (!is_ready) {
    pollfd waiting{running.process->channel().fd(), POLLIN, 0};
    ::poll(&waiting, 1, -1);
    const auto is_open = MUSTER_TRY(running.process->channel().read_available(
        [&](const FrameHeader& header, std::span<const std::byte>) -> Status {
          const auto type = static_cast<MessageType>(header.type);
          is_ready = type == MessageType::Ready;
          if (is_ready) return Done{};
          if (type != MessageType::Hello) {
            return Error{ErrorKind::Corrupt, "the worker could not load the model"};
          }
          return running.process->channel().send(static_cast<std::uint8_t>(MessageType::Load), 0,
                                                 encode(load));
        }));
    if (!is_open) return Error{ErrorKind::Unavailable, "a worker ended"};
  }
  return running;
}

Result<std::vector<Batch>> read_batches(const Arguments& arguments, OpenedModel& model) {
  std::ifstream file(arguments.text("--texts"));
  const auto size = static_cast<std::size_t>(arguments.number("--batch", 32));
  std::vector<Batch> batches;
  std::vector<TokenId> ids;
  for (std::string line; std::getline(file, line);) {
    if (batches.empty() || batches.back().lengths.size() == size) batches.emplace_back();
    model.text_encoder->encode(line, ids);
    batches.back().lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    batches.back().ids.insert(batches.back().ids.end(), ids.begin(), ids.end());
  }
  if (batches.empty()) return Error{ErrorKind::NotFound, "no texts: " + arguments.text("--texts")};
  return batches;
}

Status run(const Arguments& arguments) {
  const ModelChoice choice{.model = arguments.text("--model")};
  auto model = MUSTER_TRY(find_and_read(choice));
  MUSTER_TRY(open_texts(choice, model));
  auto batches = MUSTER_TRY(read_batches(arguments, model));
  std::vector<Running> workers;
  for (const auto& cores : split(arguments.text("--cores", "0"), ';')) {
    workers.push_back(MUSTER_TRY(start_worker(arguments, model, cores)));
  }
  const auto time = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(arguments.number("--seconds", 10)));
  Feeder feeder(std::move(batches), std::move(workers));
  const auto rate = arguments.number("--rate", 0);
  MUSTER_TRY(rate > 0 ? feeder.run_rate(time, rate) : feeder.run_full(time));
  feeder.print();
  return Done{};
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  muster::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) arguments.values[argv[i]] = argv[i + 1];
  if (argc < 2 || argc % 2 == 0) {
    fmt::print(stderr, "{}", muster::kUsage);
    return 2;
  }
  if (const auto done = muster::run(arguments); !done) {
    fmt::print(stderr, "worker_direct: {}\n", done.error().message);
    return muster::exit_code(done.error().kind);
  }
  return 0;
}
