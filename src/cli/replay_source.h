#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "cli/top_source.h"
#include "spec/telemetry.h"

namespace muster {

/// The moments of a recording, shown as they were: stopped at the first one until it is played or
/// stepped through. Lines are read when they are shown; only the last minute is kept.
class ReplaySource final : public TopSource {
 public:
  /// Errors: NotFound; InvalidArgument (no whole line in it).
  static Result<std::unique_ptr<ReplaySource>> open(const std::filesystem::path& path);

  void go_to_end() { index_ = lines_.size() - 1; }

  /// Errors: Corrupt, with the file and the line at fault.
  Result<std::optional<TopData>> frame() override;
  Duration interval() const override;
  void take(TopRequestKind kind) override;
  std::optional<std::string> signal_refusal() const override;

 private:
  struct Moment {
    std::size_t index = 0;
    TelemetrySnapshot snapshot;
  };

  ReplaySource(std::filesystem::path path, MappedFile file);

  Result<Moment> read_moment(std::size_t index) const;
  Status keep_minute_before_index();
  std::vector<HistoryPoint> history(std::uint32_t device, Reading reading, Duration since) const;
  bool is_at_end() const { return index_ + 1 == lines_.size(); }

  const std::filesystem::path path_;
  const MappedFile file_;
  std::vector<std::string_view> lines_;
  std::deque<Moment> kept_;  // neighbours; the last one is shown
  std::size_t index_ = 0;
  bool is_playing_ = false;
  bool goes_on_ = false;  // the next frame is that of the next line
  std::uint32_t speed_ = 1;
};

}  // namespace muster
