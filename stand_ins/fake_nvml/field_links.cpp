#include <algorithm>
#include <array>

#include "fake_nvml/fields.h"
#include "fake_nvml/nvlink.h"

namespace muster::fake_nvml {
namespace {

constexpr std::uint32_t kAllLinks = 0xFFFFFFFF;

/// The fields of one kind of error: links 0 to 5, their total, links 6 to 11.
struct ErrorFields {
  std::uint32_t first;
  std::uint32_t total;
  std::uint32_t first_of_rest;
  ValueId id;
};
constexpr std::array kErrorFields{ErrorFields{32, 38, 96, ValueId::NvlinkCrcFlit},
                                  ErrorFields{39, 45, 102, ValueId::NvlinkCrcData},
                                  ErrorFields{46, 52, 108, ValueId::NvlinkReplay},
                                  ErrorFields{53, 59, 114, ValueId::NvlinkRecovery}};

/// All errors of a scenario are link 0's.
std::optional<FieldAnswer> errors_of(const Visit& visit, ValueId id, bool is_counted) {
  const auto count = visit.count(id);
  if (!count) return std::nullopt;
  return long_answer(is_counted ? *count : 0);
}

std::optional<FieldAnswer> classic_errors(const Visit& visit, std::uint32_t field) {
  // Source: nvml.h 13.3: Blackwell counts with fields 206 to 222 instead.
  if (visit.spec().model->architecture >= Architecture::Blackwell) return std::nullopt;
  for (const auto& row : kErrorFields) {
    if (field == row.total) return errors_of(visit, row.id, true);
    std::uint32_t link = kLinksMax;
    if (field >= row.first && field < row.first + 6) link = field - row.first;
    if (field >= row.first_of_rest && field < row.first_of_rest + 6) {
      link = 6 + field - row.first_of_rest;
    }
    if (link == kLinksMax) continue;
    if (link >= visit.spec().nvlink_count) return std::nullopt;
    return errors_of(visit, row.id, link == 0);
  }
  if (field == 160) return long_answer(0);  // corrected data errors of all links
  return std::nullopt;
}

/// Fields that take the link as scope: 161 replays, 162 recoveries, 163 CRC errors.
std::optional<FieldAnswer> scoped_errors(const Visit& visit, std::uint32_t field,
                                         std::uint32_t scope) {
  if (visit.spec().model->architecture >= Architecture::Blackwell) return std::nullopt;
  const bool is_counted = scope == kAllLinks || scope == 0;
  if (field == 161) return errors_of(visit, ValueId::NvlinkReplay, is_counted);
  if (field == 162) return errors_of(visit, ValueId::NvlinkRecovery, is_counted);
  return errors_of(visit, ValueId::NvlinkCrcFlit, is_counted);
}

/// NVLink 5: 206 to 212 errors, 213 to 215 recoveries, 219 and 221 errors before correction.
std::optional<FieldAnswer> newer_errors(const Visit& visit, std::uint32_t field,
                                        std::uint32_t scope) {
  const bool is_counted = scope == kAllLinks || scope == 0;
  if (field == 208) return errors_of(visit, ValueId::NvlinkCrcData, is_counted);
  if (field == 213 || field == 215) return errors_of(visit, ValueId::NvlinkRecovery, is_counted);
  if (field == 219) return errors_of(visit, ValueId::NvlinkCrcFlit, is_counted);
  return long_answer(0);
}

/// Bytes over one link or all of them: what the load has moved, spread evenly over the links.
std::uint64_t link_bytes(const Visit& visit, bool is_sent, std::uint32_t scope) {
  const auto& gpu = visit.spec();
  const double rate = is_sent ? gpu.traffic.nvlink_sent : gpu.traffic.nvlink_received;
  const double bytes = rate * visit.gpu.sensor.load_seconds(visit.now_ns);
  return static_cast<std::uint64_t>(scope == kAllLinks ? bytes : bytes / gpu.nvlink_count);
}

std::optional<FieldAnswer> throughput(const Visit& visit, std::uint32_t field,
                                      std::uint32_t scope) {
  if (visit.spec().model->architecture >= Architecture::Blackwell) {
    if (field == 202) return long_answer(link_bytes(visit, true, scope));
    if (field == 204) return long_answer(link_bytes(visit, false, scope));
    return std::nullopt;
  }
  // 138 and 139 data, 140 and 141 with the protocol's: KiB.
  if (field < 138 || field > 141) return std::nullopt;
  return long_answer(link_bytes(visit, field % 2 == 0, scope) >> 10);
}

}  // namespace

std::optional<FieldAnswer> link_field_value(const Visit& visit, std::uint32_t field,
                                            std::uint32_t scope) {
  const auto& gpu = visit.spec();
  if (field == 91) return unsigned_answer(gpu.nvlink_count);
  if (gpu.nvlink_count == 0) return std::nullopt;
  const bool is_scoped = (field >= 138 && field <= 141) || (field >= 161 && field <= 166) ||
                         (field >= 201 && field <= 222);
  if (is_scoped && scope != kAllLinks && scope >= gpu.nvlink_count) return std::nullopt;
  const auto speed_mbps = static_cast<std::uint64_t>(gpu.model->facts->link_bytes_per_second / 1e6);
  if (field == 90) return unsigned_answer(speed_mbps);
  if (field == 164) {
    if (scope == kAllLinks) return std::nullopt;
    return unsigned_answer(is_link_up(visit, scope) ? speed_mbps : 0);
  }
  if (field == 165 && scope != kAllLinks) return unsigned_answer(is_link_up(visit, scope) ? 1 : 0);
  if (field >= 161 && field <= 163) return scoped_errors(visit, field, scope);
  if ((field >= 138 && field <= 141) || (field >= 201 && field <= 204)) {
    return throughput(visit, field, scope);
  }
  if (field >= 205 && field <= 222) {
    if (gpu.model->architecture < Architecture::Blackwell) return std::nullopt;
    return newer_errors(visit, field, scope);
  }
  return classic_errors(visit, field);
}

}  // namespace muster::fake_nvml
