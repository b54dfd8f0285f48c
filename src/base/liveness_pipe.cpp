// A thread without CLONE_FILES, which pthreads cannot make: clone(2) gives it a copy of the
// descriptors, and it closes all but one. ThreadSanitizer replaces clone by one that crashes with a
// thread, so there is none under it, and the pipe ends with the process.

#include "base/liveness_pipe.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MUSTER_HAS_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MUSTER_HAS_THREAD_SANITIZER 1
#endif

namespace muster {
#if MUSTER_HAS_THREAD_SANITIZER

bool keep_liveness_pipe(UniqueFd write_end) {
  (void)write_end.release();
  return false;
}

#else
namespace {

constexpr int kDescriptorsMost = 256;  // a program that has just started has a few

struct Kept {
  int fd = -1;
  std::atomic<bool> is_alone{false};
  alignas(64) std::array<char, 16384> stack{};
};

[[gnu::no_sanitize_address]] int keep(void* argument) {
  auto& kept = *static_cast<Kept*>(argument);
  ::prctl(PR_SET_NAME, "liveness");
  for (int fd = 0; fd < kDescriptorsMost; ++fd) {
    if (fd != kept.fd) ::close(fd);
  }
  kept.is_alone = true;
  for (;;) ::pause();
}

}  // namespace

// It blocks all signals, so that handlers run in threads that are made for it.
bool keep_liveness_pipe(UniqueFd write_end) {
  static Kept kept;
  kept.fd = write_end.get();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  constexpr int kThread = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  const int thread = ::clone(&keep, kept.stack.data() + kept.stack.size(), kThread, &kept);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread < 0) {
    (void)write_end.release();
    return false;
  }
  while (!kept.is_alone) ::sched_yield();
  return true;
}

#endif
}  // namespace muster
