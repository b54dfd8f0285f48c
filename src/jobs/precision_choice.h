#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/messages.h"

namespace muster {

/// The precision of a run and why.
struct PrecisionChoice {
  Precision precision = Precision::Fp32;
  std::string reason;  // "1.84x fp32 in a measurement, cosine to fp32 0.99998 in the mean, 0.99990
                       // at least"
};

/// Keeps the fastest precision whose cosine to fp32 is at least 0.9995 in the mean and 0.999 for
/// each text, and that is at least 5 % faster than fp32 (below that the measurement's noise
/// decides, and fp32 is exact).
///
/// measures: fp32 first, never empty.
PrecisionChoice choose_precision(const ProbeVerdict& verdict);

/// What a verdict depends on.
struct VerdictKey {
  std::string model_hash;
  std::string processor;     // the device's model name
  std::string engine_class;  // instruction set, torch and engine version
  std::string pooling;       // the vectors compared are the pooled ones
};

/// The measurement of this model on this processor that an earlier run has kept; nullopt when there
/// is none or it cannot be read.
std::optional<ProbeVerdict> read_cached_verdict(const std::filesystem::path& cache_folder,
                                                const VerdictKey& key);

/// Errors: those of writing; a run goes on without the cache.
Status write_cached_verdict(const std::filesystem::path& cache_folder, const VerdictKey& key,
                            const ProbeVerdict& verdict);

/// The 64 shipped texts of many lengths and scripts on which precisions are compared
/// (data/precision_texts.txt).
std::vector<std::string_view> precision_texts();

}  // namespace muster
