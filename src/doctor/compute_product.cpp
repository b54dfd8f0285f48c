// The idea of the test: the worker multiplies matrices whose entries follow from a seed, and
// returns C x for a few vectors x ("images"). What those must be is computed here from the seed
// in O(n^2), so a product of O(n^3) is checked without sending it. A wrong row goes unseen with
// a chance of at most 1 in 4096 an image.
// Source: Freivalds 1977, "Probabilistic Machines Can Use Less Running Time".

#include "doctor/compute_product.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "coordinator/worker_process.h"
#include "spec/test_product.h"
#include "wire/messages.h"

namespace muster {
namespace {

constexpr std::uint64_t kSeed = 20260611;  // the same entries each time: a fault can be repeated

// What C x must be, worked out once for all devices of a size.
class ExpectedImages {
 public:
  const std::vector<double>& of(const TestProduct& product) {
    auto& images = known_[{product.size, product.precision}];
    for (std::uint32_t image = 0; images.size() < std::size_t{product.size} * kCount; ++image) {
      const auto next = expected_image(product, image);
      images.insert(images.end(), next.begin(), next.end());
    }
    return images;
  }

 private:
  static constexpr auto kCount = TestProduct::kImageCount;
  std::map<std::pair<std::uint32_t, Precision>, std::vector<double>> known_;
};

// Rows of C, of all lanes, that an image shows to be wrong.
std::uint64_t count_wrong_rows(const ComputeMeasure& measure, const std::vector<double>& expected,
                               std::uint32_t size) {
  std::uint64_t wrong = 0;
  for (std::size_t lane = 0; lane < measure.lane_count; ++lane) {
    const auto* images = measure.images.data() + lane * expected.size();
    for (std::size_t row = 0; row < size; ++row) {
      bool is_right = true;
      for (std::size_t at = row; at < expected.size(); at += size) {
        is_right &= images[at] == expected[at];
      }
      wrong += is_right ? 0 : 1;
    }
  }
  return wrong;
}

// One worker in the middle of its test.
class Tester {
 public:
  Tester(const Device& device, const ComputeTestOptions& options, ExpectedImages& expected,
         TimePoint now)
      : options_(options), expected_(expected), deadline_(now + options.limit) {
    outcome_.device = device;
    options.on_start(device.name());
    auto process = WorkerProcess::start(
        {.program = options.worker_program, .torch_root = options.torch_root, .device = device});
    if (process) {
      process_ = *std::move(process);
    } else {
      outcome_.error = process.error();
    }
  }

  bool is_running() const { return process_ != nullptr; }
  TimePoint deadline() const { return deadline_; }
  ComputeOutcome take() { return std::move(outcome_); }

  std::array<pollfd, 2> waits() const {
    auto& channel = process_->channel();
    const auto events = static_cast<short>(channel.wants_write() ? POLLIN | POLLOUT : POLLIN);
    return {pollfd{channel.fd(), events, 0}, pollfd{process_->stderr_fd(), POLLIN, 0}};
  }

  void step(short socket_events, TimePoint now) {
    if (process_->stderr_fd() >= 0) process_->read_stderr([](const std::string&) {});
    if ((socket_events & POLLOUT) != 0) (void)process_->channel().flush();
    if ((socket_events & (POLLIN | POLLHUP | POLLERR)) != 0) read_frames();
    if (is_running() && now >= deadline_) {
      process_->kill();
      finish(
          Error{ErrorKind::DeadlineExceeded,
                fmt::format("the worker gave no answer within {:.0f} s", seconds(options_.limit))});
    }
  }

 private:
  void read_frames() {
    const auto more = process_->channel().read_available(
        [this](const FrameHeader& header, std::span<const std::byte> payload) {
          return on_frame(header, payload);
        });
    if (is_done_) {
      process_.reset();
    } else if (!more && more.error().kind != ErrorKind::Unavailable) {
      finish(more.error());
    } else if (!more || !*more) {
      on_death();
    }
  }

  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
    switch (static_cast<MessageType>(header.type)) {
      case MessageType::Hello:
        return on_hello(MUSTER_TRY(decode_hello(payload)));
      case MessageType::ComputeResult:
        is_done_ = true;
        return on_result(MUSTER_TRY(decode_compute_result(payload)));
      case MessageType::Failed:
        return MUSTER_TRY(decode_failed(payload)).error;
      default:
        return Error{ErrorKind::Corrupt,
                     fmt::format("the worker sent an unknown message: type {}", header.type)};
    }
  }

  // The test is sent only to a worker of this very build; any other could read the message
  // wrongly.
  Status on_hello(const Hello& hello) {
    if (hello.protocol != Hello::kProtocol || hello.build != options_.build) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("the worker is of another build: it is {}, this is {}", hello.build,
                               options_.build)};
    }
    const auto& device = outcome_.device;
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.time_per_precision);
    return process_->channel().send(
        static_cast<std::uint8_t>(MessageType::ComputeTest), 0,
        encode(ComputeTest{.device = device.kind,
                           .cpus = device.cpus,
                           .size = product_size(device),
                           .seed = kSeed,
                           .time_ms = static_cast<std::uint32_t>(time.count())}));
  }

  Status on_result(const ComputeResult& result) {
    const auto size = product_size(outcome_.device);
    for (const auto& measure : result.measures) {
      const auto& expected =
          expected_.of({.size = size, .seed = kSeed, .precision = measure.precision});
      if (measure.lane_count == 0 ||
          measure.images.size() != expected.size() * measure.lane_count ||
          !(measure.round_seconds > 0)) {
        return Error{ErrorKind::Corrupt, "the worker's result is not of the test it was given"};
      }
      // n^2 sums of n products: 2 n^3 operations a lane.
      const double work = 2.0 * size * size * size * measure.lane_count;
      const bool has_busy = measure.busy_seconds > 0;
      outcome_.speeds.push_back(
          {.precision = measure.precision,
           .flops_per_second = work / measure.round_seconds,
           .busy_share = has_busy ? std::min(1.0, measure.busy_seconds / measure.round_seconds) : 1,
           .rounds = measure.rounds,
           .wrong_row_count = count_wrong_rows(measure, expected, size)});
    }
    return Done{};
  }

  // The exit of a process stuck in the kernel may never come, so it is waited for a second at
  // most.
  void on_death() {
    process_->close();
    process_->kill_if_alive();
    const auto death = process_->reap(std::chrono::seconds(1));
    process_->read_stderr([](const std::string&) {});
    const auto words = last_line(process_->stderr_tail());
    finish(Error{ErrorKind::Unavailable,
                 fmt::format("the worker ended with {}{}{}",
                             death ? death->reason : "no end: it is stuck in the kernel",
                             words.empty() ? "" : "; it last said: ", words)});
  }

  void finish(Error error) {
    outcome_.error = std::move(error);
    outcome_.speeds.clear();
    process_.reset();
  }

  const ComputeTestOptions& options_;
  ExpectedImages& expected_;
  TimePoint deadline_;
  ComputeOutcome outcome_;
  std::unique_ptr<WorkerProcess> process_;
  bool is_done_ = false;
};

// Steps whoever has something to say, until all are done.
void run_all(std::vector<Tester>& testers, const ComputeTestOptions& options, const Clock& clock) {
  constexpr Duration kTick = std::chrono::milliseconds(250);
  for (;;) {
    std::vector<pollfd> waits;
    std::vector<Tester*> waiting;
    auto deadline = TimePoint::max();
    for (auto& tester : testers) {
      if (!tester.is_running()) continue;
      waiting.push_back(&tester);
      deadline = std::min(deadline, tester.deadline());
      for (const auto& wait : tester.waits()) waits.push_back(wait);
    }
    if (waiting.empty()) return;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(kTick, deadline - clock.now()));
    const auto timeout = std::max<std::int64_t>(0, left.count());
    (void)::poll(waits.data(), waits.size(), static_cast<int>(timeout));
    options.on_tick();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      waiting[i]->step(waits[2 * i].revents, clock.now());
    }
  }
}

}  // namespace

std::uint32_t product_size(const Device& device) {
  constexpr std::uint32_t kCpuSize = 1024;
  constexpr std::uint32_t kSmallSize = 2048;
  constexpr std::uint64_t kRoomForLarge = 4'000'000'000;  // A, B and C of the largest: 0.8 GB
  const bool is_cpu = device.kind == DeviceKind::Cpu || device.kind == DeviceKind::Standin;
  if (is_cpu) return kCpuSize;  // a stand-in's products are a CPU's
  const auto free = device.memory_free_bytes.value_or(0);
  return free >= kRoomForLarge ? TestProduct::kSizeMax : kSmallSize;
}

// GPUs first and alone: their workers need the cores that the CPU devices would compute on.
std::vector<ComputeOutcome> test_devices(const std::vector<Device>& devices,
                                         const ComputeTestOptions& options, const Clock& clock) {
  ExpectedImages expected;
  std::vector<ComputeOutcome> outcomes(devices.size());
  for (const bool is_cpu_turn : {false, true}) {
    std::vector<std::size_t> places;
    std::vector<Tester> testers;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if ((devices[i].kind == DeviceKind::Cpu) != is_cpu_turn) continue;
      places.push_back(i);
      testers.emplace_back(devices[i], options, expected, clock.now());
    }
    run_all(testers, options, clock);
    for (std::size_t i = 0; i < places.size(); ++i) outcomes[places[i]] = testers[i].take();
  }
  return outcomes;
}

}  // namespace muster
