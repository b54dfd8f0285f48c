#include "worker/pinning.h"

#include <pthread.h>
#include <sched.h>

namespace muster {

void pin_to(std::span<const std::uint32_t> cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto cpu : cpus) CPU_SET(cpu, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

}  // namespace muster
