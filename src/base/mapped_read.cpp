// A read of a page that is gone ends a scope and not the process. The innermost scope of a thread
// is kept where a signal handler may look: in a variable of the thread that is there from its
// start.

#include "base/mapped_read.h"

#include <ucontext.h>

#include <csetjmp>
#include <csignal>

namespace muster {
namespace {

struct Scope {
  const std::byte* begin;
  const std::byte* end;
  Scope* outer;
  sigjmp_buf back;
};

// For the handler, as `handler_before`, which is written once, before the first scope opens.
constinit thread_local Scope* innermost = nullptr;
struct sigaction handler_before {};

// As if this handler were not there.
void pass_on(int number, siginfo_t* info, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0)
    return handler_before.sa_sigaction(number, info, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(number);
  }
  ::sigaction(number, &handler_before, nullptr);
  // A fault comes again when the instruction is tried again; what somebody sent does not.
  if (info->si_code <= 0) ::raise(number);
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (Scope* scope = innermost; scope != nullptr && info->si_code == BUS_ADRERR;
       scope = scope->outer) {
    if (at < scope->begin || at >= scope->end) continue;
    innermost = scope->outer;
    // The mask of before the fault: ThreadSanitizer has its own handler call this one, and blocks
    // all signals meanwhile.
    ::pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    ::siglongjmp(scope->back, 1);
  }
  pass_on(number, info, context);
}

bool put_handler() {
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  // The handler is left by a jump, which gives no mask back.
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  return ::sigaction(SIGBUS, &ours, &handler_before) == 0;
}

}  // namespace

// A function of its own: nothing of its caller is in a register that the jump would set back.
[[gnu::noinline]] bool read_mapped(std::span<const std::byte> mapping,
                                   const std::function<void()>& work) {
  static const bool is_put = put_handler();
  static_cast<void>(is_put);
  Scope scope{.begin = mapping.data(),
              .end = mapping.data() + mapping.size(),
              .outer = innermost,
              .back = {}};
  if (sigsetjmp(scope.back, 0) != 0) return false;
  innermost = &scope;
  work();
  innermost = scope.outer;
  return true;
}

}  // namespace muster
