#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// A driver call that has not come back yet.
struct CallInProgress {
  std::string function;
  TimePoint since;
};

/// Memory that a sampler shares with its collector: which driver call each device is in. It can be
/// read when the sampler hangs, and after it has died.
///
/// A slot per device, and one for what is done before devices are known. Devices past the last slot
/// are watched without one. Functions stand on it once, by name, and in a slot by number: two words
/// are written for a call.
///
/// Threads: each slot is written by one thread at a time and read by any; `add_function` may be
/// called by any.
class CallPage {
 public:
  static constexpr std::uint32_t kDevicesMax = 1023;
  static constexpr std::uint32_t kOpening = kDevicesMax;  // the slot of finding the devices
  static constexpr std::uint32_t kFunctionsMax = 256;     // one too many has no name

  /// The collector's side. Errors: those of the system.
  static Result<CallPage> create();
  /// The sampler's side.
  static Result<CallPage> map(UniqueFd fd);

  CallPage(CallPage&& other) noexcept;
  CallPage& operator=(CallPage&& other) noexcept;
  ~CallPage();

  int fd() const { return fd_.get(); }

  /// The number of a function; a new one where it has none yet.
  std::uint32_t add_function(const char* name);

  /// function: its number.
  void enter(std::uint32_t slot, std::uint32_t function, TimePoint at);
  void leave(std::uint32_t slot);

  /// The call in which a slot is now.
  std::optional<CallInProgress> in_progress(std::uint32_t slot) const;

  /// From here on a fatal signal raised by a thread of this process notes the slot in whose call
  /// that thread was. The page must outlive the process's use of signals.
  void note_crashes();

  /// The slot whose call raised the fatal signal; nullopt: none did.
  std::optional<std::uint32_t> crashed_slot() const;

  /// Empties every slot and forgets the functions, before the next sampler.
  void clear();

 private:
  struct Layout;

  CallPage(UniqueFd fd, Layout* layout) : fd_(std::move(fd)), layout_(layout) {}

  UniqueFd fd_;
  Layout* layout_ = nullptr;
  std::unique_ptr<Mutex> adding_ = std::make_unique<Mutex>();  // of functions
};

}  // namespace muster
