// torch, its CUDA libraries and the worker: what has to be installed beside muster. A worker of
// another build is unfit even if it might work, because the messages between the two are those
// of one build.

#include <fmt/format.h>

#include <algorithm>

#include "doctor/checks.h"

namespace muster {
namespace {

bool has_cuda_device(const DoctorFacts& facts) {
  const auto& devices = facts.snapshot.devices;
  return std::any_of(devices.begin(), devices.end(), [](const DeviceStatus& status) {
    return status.identity.device.kind == DeviceKind::Cuda;
  });
}

Check torch(const DoctorFacts& facts) {
  if (facts.torch) {
    return {.name = "torch",
            .sentence = fmt::format("torch {} at {} ({})", facts.torch->version,
                                    facts.torch->root.string(), facts.torch->how)};
  }
  return {.name = "torch",
          .verdict = Verdict::Unfit,
          .sentence = facts.torch.error().message,
          .advice =
              "pip install torch==2.11.0, and name its folder as torch_root if it is not "
              "found then"};
}

Check cuda_libraries(const DoctorFacts& facts) {
  Check check{.name = "cuda_libraries"};
  if (!has_cuda_device(facts) || !facts.torch) {
    check.verdict = Verdict::NotApplicable;
    check.sentence = "there is no NVIDIA GPU, or no torch";
  } else if (!facts.torch->has_cuda_library) {
    check.verdict = Verdict::Unfit;
    check.sentence =
        fmt::format("torch is made for CPUs alone, and there are GPUs: {}", facts.torch->version);
    check.advice = "install the wheel with CUDA: pip install torch==2.11.0 from PyPI";
  } else if (const auto& missing = facts.torch->missing_libraries; !missing.empty()) {
    check.verdict = Verdict::Unfit;
    check.sentence =
        fmt::format("torch's CUDA part lacks libraries: {}{}", missing.front(),
                    missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : "");
    check.advice =
        "install torch with what it depends on (pip without --no-deps), so that the "
        "folder nvidia lies beside it";
  } else {
    check.sentence = fmt::format("torch has its CUDA part, for CUDA {}",
                                 facts.torch->cuda_version.value_or("of an unknown version"));
  }
  return check;
}

Check worker(const DoctorFacts& facts) {
  Check check{.name = "worker"};
  if (!facts.worker) {
    check.verdict = Verdict::Unfit;
    check.sentence = facts.worker.error().message;
    check.advice = "put muster-worker of this build beside muster, or name it as worker_program";
  } else if (facts.worker->build != facts.build) {
    check.verdict = Verdict::Unfit;
    check.sentence = fmt::format("{} is of another build: it is {}, this is {}",
                                 facts.worker->program.string(), facts.worker->build, facts.build);
    check.advice = "build or install both programs together";
  } else {
    check.sentence =
        fmt::format("{} is of this build: {}", facts.worker->program.string(), facts.build);
  }
  return check;
}

}  // namespace

std::vector<Check> check_programs(const DoctorFacts& facts) {
  return {torch(facts), cuda_libraries(facts), worker(facts)};
}

}  // namespace muster
