#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster {

/// What an answer to a canary means for a device.
enum class CanaryOutcome : std::uint8_t {
  Right,
  Wrong,
  Restart,  // two devices disagree and nobody knows who is right: both start again and answer again
};

struct CanaryVerdict {
  std::size_t device = 0;
  CanaryOutcome outcome = CanaryOutcome::Right;
};

/// The right rows of one model's canary, by engine class: devices of one class give the same bits,
/// so one bit of difference is a lie.
///
/// A row that an earlier run kept is right. Without one the first answer of a class is held to be
/// right, and is sure once another device has given it too. If the second device disagrees, both
/// are started again and asked again; the row that two devices gave is right. If each stays with
/// its own, the row with more votes is, and of two with as many the one that came first.
///
/// Pure. Threads: owned by the coordinator's loop.
class CanaryBook {
 public:
  explicit CanaryBook(std::map<std::string, std::vector<float>> kept);

  /// The answer of a device, and what follows: for it and for those whose verdict waited for it.
  /// Empty: the verdict waits for another device's answer.
  std::vector<CanaryVerdict> judge(std::size_t device, const std::string& engine_class,
                                   std::vector<float> row, TimePoint now);

  /// Disputes whose other side did not answer again in a minute are decided without it.
  std::vector<CanaryVerdict> on_time(TimePoint now);
  std::optional<TimePoint> deadline() const;

  /// What is held to be right and was answered at least twice: a single answer is nothing to judge
  /// later runs by.
  std::map<std::string, std::vector<float>> rows() const;

 private:
  struct Vote {
    std::size_t device = 0;
    std::vector<float> row;
  };
  struct Class {
    std::vector<float> row;          // held to be right; empty: none
    std::uint32_t answer_count = 0;  // that gave it, up to 2; 0: the devices never agreed
    bool is_sure = false;            // kept, or given by two devices
    std::size_t first_device = 0;    // who gave it
    std::vector<Vote> votes;         // of a dispute, in the order they came
    std::set<std::size_t> parties;   // the two who disagreed
    std::map<std::size_t, std::vector<float>> waiting;  // newest answers without a verdict
    TimePoint disputed_until{};
  };

  static std::vector<CanaryVerdict> decide(Class& entry);
  static std::vector<CanaryVerdict> vote(Class& entry, std::size_t device, std::vector<float> row);

  std::map<std::string, Class> classes_;
};

}  // namespace muster
