// sched_setattr has no wrapper in glibc, so its structure is written down here. A kernel that
// refuses the request leaves the thread with its usual slice, which costs latency and nothing else.

#include "base/thread_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace muster {
namespace {

constexpr std::uint64_t kShortestNs = 100'000;  // the kernel gives no shorter one
constexpr std::uint64_t kResetOnFork = 1;

/// The first version of the kernel's `struct sched_attr`, which glibc has no name for and whose
/// header cannot be included beside <sched.h>.
/// Source: Linux, include/uapi/linux/sched/types.h.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // of the usual policy: the slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(Attributes) == 48);

}  // namespace

bool ask_for_short_slices() {
  constexpr int kThisThread = 0;
  Attributes attributes;
  if (::syscall(SYS_sched_getattr, kThisThread, &attributes, sizeof attributes, 0) != 0) {
    return false;
  }
  if (attributes.policy != SCHED_OTHER || attributes.nice < 0) return false;
  attributes = {.flags = kResetOnFork, .nice = attributes.nice, .runtime_ns = kShortestNs};
  return ::syscall(SYS_sched_setattr, kThisThread, &attributes, 0) == 0;
}

}  // namespace muster
