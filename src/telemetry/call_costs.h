#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "hw/device_sampler.h"
#include "telemetry/call_page.h"

namespace muster {

/// Watches the driver calls of one slot: notes on the page what is in progress, and counts what is
/// done.
///
/// Threads: `enter` and `leave` by one thread at a time; `add_to` by any.
class CallCosts final : public CallWatch {
 public:
  CallCosts(CallPage& page, std::uint32_t slot) : page_(page), slot_(slot) {}

  void enter(const char* function, TimePoint at) override;
  void leave(const char* function, std::int32_t code, Duration took) override;

  /// Adds the counts to those of other slots.
  void add_to(std::map<std::string, CallCost>& costs) const;

 private:
  struct Count {
    const char* function;
    std::uint32_t number;  // on the page
    std::uint64_t calls = 0;
    Duration took{};
  };
  struct Errors {
    std::size_t count;  // its place in counts_
    std::int32_t code;
    std::uint64_t times = 0;
  };

  CallPage& page_;
  const std::uint32_t slot_;
  mutable Mutex mutex_;
  std::size_t current_ = 0;  // its place in counts_; of the thread that calls
  // By the address of the name, which lives as long as the program; about thirty, those of the fast
  // tier first. Written by the thread that calls, which alone may read it without the mutex.
  std::vector<Count> counts_;
  std::vector<Errors> errors_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
