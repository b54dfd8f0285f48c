#pragma once

#include <cstdint>
#include <filesystem>

#include "base/clock.h"

namespace muster {

/// Runs as the steady clock does, and can be set ahead.
class SetClock final : public Clock {
 public:
  TimePoint now() const override { return steady_.now() + ahead; }
  Duration ahead{0};

 private:
  SteadyClock steady_;
};

/// Writes a decoder's folder without weights, for workers that only count
/// (stand_ins/counting_worker). Its tokens are single bytes, and the next one is the last one plus
/// one: after "x" come "y", "z", the two bytes of "é", the digits "0" to "8", and then the token
/// that ends a reply. Its chat template joins the contents of all messages.
///
///   ids: 0 <end> | 1-26 a-z | 27, 28 the bytes of é | 29-38 0-9, of which 9 ends a reply | 39
///   space | 40 "?"
///
/// length_max: tokens of a prompt and its reply, as the folder has it; a worker has its own.
void write_counting_decoder(const std::filesystem::path& folder, std::uint32_t length_max = 128);

/// The program of those workers, in this build tree.
std::filesystem::path counting_worker();

}  // namespace muster
