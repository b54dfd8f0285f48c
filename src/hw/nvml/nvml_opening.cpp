// Opens all GPUs at once, each in a thread, with a limit that follows the slowest one that
// answered: drivers may serialise the calls, so a fixed limit would be too short for many GPUs or
// too long for one. A call that hangs cannot be cancelled; its thread is left behind and joined
// when the source goes. The watch belongs to one thread, so calls are recorded and reported by it
// afterwards.

#include "hw/nvml/nvml_opening.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>

namespace muster {
namespace {

constexpr Duration kLimitAlone = std::chrono::seconds(10);
constexpr Duration kLimitLeast = std::chrono::milliseconds(500);
constexpr int kSlowestTimes = 4;

// Keeps the calls of a thread until the watch's own thread can be told of them.
class RecordedCalls final : public CallWatch {
 public:
  void enter(const char* /*function*/, TimePoint /*at*/) override {}
  void leave(const char* function, std::int32_t code, Duration took) override {
    calls_.push_back({function, code, took});
  }
  void tell(CallWatch& watch) const {
    for (const auto& call : calls_) {
      watch.enter(call.function, TimePoint());  // it is over
      watch.leave(call.function, call.code, call.took);
    }
  }

 private:
  struct Call {
    const char* function;
    std::int32_t code;
    Duration took;
  };
  std::vector<Call> calls_;
};

struct Answer {
  OpenedNvmlGpu opened;
  RecordedCalls calls;
};

// What the threads share with the one that waits for them; the last of them lets it go.
struct Answers {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Answer>> of_gpu;  // by NVML index; nullptr: none yet
};

std::unique_ptr<Answer> open_gpu(const std::shared_ptr<const NvmlLibrary>& library, unsigned index,
                                 const std::filesystem::path& root) {
  auto answer = std::make_unique<Answer>();
  NvmlCaller call(answer->calls);
  auto& opened = answer->opened;
  opened.gpu = read_nvml_gpu(*library, call, index, root);
  if (opened.gpu.handle == nullptr) return answer;
  opened.parts = read_gpu_parts(library, opened.gpu, call);
  opened.link_ends =
      read_link_ends(library->functions(), opened.gpu.handle, opened.parts.link_count, call);
  opened.slices = list_nvml_slices(library, opened.gpu, call);
  return answer;
}

OpenedNvmlGpu without_answer(unsigned index) {
  OpenedNvmlGpu opened;
  opened.gpu.open_code = kNvmlTimeout;
  opened.gpu.identity.device.kind = DeviceKind::Cuda;
  opened.gpu.identity.driver_index = index;
  return opened;
}

void wait_for(Answers& answers) {
  std::unique_lock lock(answers.mutex);
  const auto begin = std::chrono::steady_clock::now();
  auto limit = kLimitAlone;
  std::ptrdiff_t known = 0;
  for (;;) {
    const auto missing = std::count_if(answers.of_gpu.begin(), answers.of_gpu.end(),
                                       [](const auto& answer) { return answer == nullptr; });
    if (missing == 0) return;
    const auto answered = std::ssize(answers.of_gpu) - missing;
    const Duration now = std::chrono::steady_clock::now() - begin;
    if (answered > known) limit = std::max(kLimitLeast, now * kSlowestTimes);
    known = answered;
    if (now >= limit) return;
    answers.changed.wait_for(lock, limit - now);
  }
}

// One that tells no address, as a lost one, stays where the driver counts it: at the end it would
// give its number to another GPU, and a user's "cuda:0" would mean that one.
void sort_by_bus(std::vector<OpenedNvmlGpu>& gpus) {
  std::vector<std::size_t> places;
  std::vector<OpenedNvmlGpu> placed;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!gpus[i].gpu.identity.device.pci_address) continue;
    places.push_back(i);
    placed.push_back(std::move(gpus[i]));
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const OpenedNvmlGpu& a, const OpenedNvmlGpu& b) {
                     return is_before_on_bus(a.gpu, b.gpu);
                   });
  for (std::size_t i = 0; i < places.size(); ++i) gpus[places[i]] = std::move(placed[i]);
}

}  // namespace

OpenedNvmlGpus open_nvml_gpus(const std::shared_ptr<const NvmlLibrary>& library, unsigned count,
                              const std::filesystem::path& root, CallWatch& watch) {
  const auto answers = std::make_shared<Answers>();
  answers->of_gpu.resize(count);
  auto threads = std::make_shared<std::vector<std::jthread>>();
  for (unsigned index = 0; index < count; ++index) {
    threads->emplace_back([library, index, root, answers] {
      auto answer = open_gpu(library, index, root);
      const std::lock_guard lock(answers->mutex);
      answers->of_gpu[index] = std::move(answer);
      answers->changed.notify_all();
    });
  }
  wait_for(*answers);

  OpenedNvmlGpus opened;
  bool is_waiting = false;
  const std::lock_guard lock(answers->mutex);
  for (unsigned index = 0; index < count; ++index) {
    auto& answer = answers->of_gpu[index];
    if (answer != nullptr) {
      answer->calls.tell(watch);
      opened.gpus.push_back(std::move(answer->opened));
    } else {
      is_waiting = true;
      opened.gpus.push_back(without_answer(index));
    }
  }
  if (is_waiting) opened.waiting = threads;
  sort_by_bus(opened.gpus);
  for (std::uint32_t i = 0; i < opened.gpus.size(); ++i) {
    opened.gpus[i].gpu.identity.device.index = i;
  }
  return opened;
}

}  // namespace muster
