#include <algorithm>
#include <array>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {
namespace {

constexpr unsigned kLocationDeviceMemory = 2;  // NVML_MEMORY_LOCATION_DEVICE_MEMORY
constexpr unsigned kLocationCount = 8;

/// ECC errors of a kind (0 corrected, 1 uncorrected) and a counter (0 volatile, 1 aggregate).
std::optional<std::uint64_t> ecc_count(const Visit& visit, unsigned kind, unsigned counter) {
  if (!visit.spec().is_ecc_on.value_or(false)) return std::nullopt;
  static constexpr std::array kIds{ValueId::EccCorrectedVolatile, ValueId::EccCorrectedAggregate,
                                   ValueId::EccUncorrectedVolatile,
                                   ValueId::EccUncorrectedAggregate};
  return visit.count(kIds[kind * 2 + counter]);
}

/// Pages retired for a cause: 0 several single-bit errors, 1 a double-bit error.
int get_retired(Function function, DeviceHandle device, unsigned cause, unsigned* count,
                std::uint64_t* addresses, std::uint64_t* times_us) {
  return answer_gpu(function, device, [&](const Visit& visit) -> int {
    if (count == nullptr || cause > 1) return kInvalidArgument;
    if (visit.spec().model->has_row_remapper) return kNotSupported;
    const auto pages =
        visit.count(cause == 0 ? ValueId::RetiredSingleBit : ValueId::RetiredDoubleBit);
    if (!pages) return kNotSupported;
    const unsigned room = *count;
    *count = static_cast<unsigned>(*pages);
    if (*pages > room) return kInsufficientSize;
    for (unsigned i = 0; i < *count && addresses != nullptr; ++i) {
      addresses[i] = std::uint64_t{i + 1} << 16;  // a page of 64 KiB each
      if (times_us != nullptr) times_us[i] = 0;
    }
    return kSuccess;
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlDeviceGetEccMode(DeviceHandle device, unsigned* current,
                                         unsigned* pending) {
  return answer_gpu(Function::nvmlDeviceGetEccMode, device, [&](const Visit& visit) -> int {
    if (current == nullptr || pending == nullptr) return kInvalidArgument;
    if (!visit.spec().is_ecc_on) return kNotSupported;
    *current = *visit.spec().is_ecc_on;
    *pending = *current;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetTotalEccErrors(DeviceHandle device, unsigned kind,
                                                unsigned counter, std::uint64_t* count) {
  return answer_gpu(Function::nvmlDeviceGetTotalEccErrors, device, [&](const Visit& visit) -> int {
    if (count == nullptr || kind > 1 || counter > 1) return kInvalidArgument;
    const auto found = ecc_count(visit, kind, counter);
    if (!found) return kNotSupported;
    *count = *found;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetMemoryErrorCounter(DeviceHandle device, unsigned kind,
                                                    unsigned counter, unsigned location,
                                                    std::uint64_t* count) {
  return answer_gpu(
      Function::nvmlDeviceGetMemoryErrorCounter, device, [&](const Visit& visit) -> int {
        if (count == nullptr || kind > 1 || counter > 1 || location >= kLocationCount) {
          return kInvalidArgument;
        }
        const auto found = ecc_count(visit, kind, counter);
        if (!found) return kNotSupported;
        *count = location == kLocationDeviceMemory ? *found : 0;
        return kSuccess;
      });
}

FAKENVML_EXPORT int nvmlDeviceGetRemappedRows(DeviceHandle device, unsigned* correctable,
                                              unsigned* uncorrectable, unsigned* is_pending,
                                              unsigned* has_failed) {
  return answer_gpu(Function::nvmlDeviceGetRemappedRows, device, [&](const Visit& visit) -> int {
    const std::array outs{correctable, uncorrectable, is_pending, has_failed};
    if (std::find(outs.begin(), outs.end(), nullptr) != outs.end()) return kInvalidArgument;
    if (!visit.spec().model->has_row_remapper) return kNotSupported;
    static constexpr std::array kIds{ValueId::RemappedCorrectable, ValueId::RemappedUncorrectable,
                                     ValueId::RemapPending, ValueId::RemapFailed};
    for (std::size_t i = 0; i < outs.size(); ++i) {
      const auto count = visit.count(kIds[i]);
      if (!count) return kNotSupported;
      *outs[i] = static_cast<unsigned>(*count);
    }
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetRetiredPages(DeviceHandle device, unsigned cause, unsigned* count,
                                              std::uint64_t* addresses) {
  return get_retired(Function::nvmlDeviceGetRetiredPages, device, cause, count, addresses, nullptr);
}

FAKENVML_EXPORT int nvmlDeviceGetRetiredPages_v2(DeviceHandle device, unsigned cause,
                                                 unsigned* count, std::uint64_t* addresses,
                                                 std::uint64_t* times_us) {
  return get_retired(Function::nvmlDeviceGetRetiredPages_v2, device, cause, count, addresses,
                     times_us);
}

FAKENVML_EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(DeviceHandle device,
                                                           unsigned* is_pending) {
  return answer_gpu(Function::nvmlDeviceGetRetiredPagesPendingStatus, device,
                    [&](const Visit& visit) -> int {
                      if (is_pending == nullptr) return kInvalidArgument;
                      const auto count = visit.count(ValueId::RetiredPending);
                      if (visit.spec().model->has_row_remapper || !count) return kNotSupported;
                      *is_pending = *count > 0;
                      return kSuccess;
                    });
}

}  // namespace muster::fake_nvml
