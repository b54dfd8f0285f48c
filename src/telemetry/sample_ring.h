#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster {

/// Memory through which a sampler's samples come to its collector: records in the order in which
/// they were appended. Nobody is woken for them: the collector takes them when somebody asks, and
/// is told that there are some only where it wishes that, or where there will soon be no more room.
///
/// A record is seen when it is whole, so that a sampler which dies leaves none that is torn. What
/// the collector takes is checked: a sampler whose memory is broken must not break it.
///
/// Threads: `append` and `begin_notice` by one thread at a time of the sampler, the others by one
/// thread at a time of the collector; the two sides need no lock.
class SampleRing {
 public:
  /// Several seconds of the samples of 64 GPUs, which are about 0.1 MB/s.
  static constexpr std::uint64_t kCapacity = std::uint64_t{1} << 20;

  /// The collector's side. Errors: those of the system.
  static Result<SampleRing> create();
  /// The sampler's side.
  static Result<SampleRing> map(UniqueFd fd);

  SampleRing(SampleRing&& other) noexcept;
  SampleRing& operator=(SampleRing&& other) noexcept;
  ~SampleRing();

  int fd() const { return fd_.get(); }

  /// False: there is no room, and the record is lost.
  bool append(std::span<const std::byte> record);

  /// Whether the collector must be told now that there are records. It is told once, and again
  /// when it has begun to take them.
  bool begin_notice();

  /// From here on the sampler tells of every record, or only of a ring that is half full.
  void wish_notices(bool is_wished);

  /// Before `take` is called until it gives nothing: records that come from now on are told of.
  void begin_taking();

  /// The oldest record into `record`; false: there is none.
  ///
  /// Errors: Corrupt when what is there is no record; it stays there.
  Result<bool> take(std::vector<std::byte>& record);

  /// Empties it, before the next sampler.
  void clear();

 private:
  struct Layout;

  SampleRing(UniqueFd fd, Layout* layout) : fd_(std::move(fd)), layout_(layout) {}

  UniqueFd fd_;
  Layout* layout_ = nullptr;
};

}  // namespace muster
