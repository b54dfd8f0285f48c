#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "fake_nvml/json_fields.h"
#include "fake_nvml/scenario.h"

namespace muster::fake_nvml {

/// A number, or an object with "points", "steps" or "square" (docs/formats/fake-nvml.md).
Result<Curve> read_curve(const Field& field, double min, double max);

/// The members "from" and "until".
Result<Span> read_span(const Field& field);

/// "NOT_SUPPORTED" or 3.
Result<int> read_code(const Field& field);

/// The GPUs of one entry of "gpus": `first` is the index of the first of them, `total` how many the
/// scenario has. Fills everything but UUIDs' uniqueness and NVLink peers.
Result<std::vector<FakeGpu>> read_gpus(const Field& field, std::uint32_t first, std::uint32_t total,
                                       Scenario& scenario);

/// How many GPUs an entry of "gpus" stands for.
Result<std::uint32_t> read_gpu_count(const Field& field);

/// A GPU of a model with all that a scenario does not say.
FakeGpu default_gpu(const Model& model, std::uint32_t index, std::uint32_t total);

/// The longest delay of a call or a field: a minute, beyond which it is a call that hangs.
inline constexpr double kDelayMaxUs = 60e6;

/// Time-bound parts of a GPU: throttle, processes, events, lost, hang, crash, errors, delays.
Status read_happenings(const Field& field, FakeGpu& gpu);

/// "hang", "crash" and "errors" of a GPU, or of the whole scenario when `gpus` is empty.
Status read_faults(const Field& field, const std::vector<std::uint32_t>& gpus, Scenario& scenario);

/// "mig": a list of slices.
Result<std::vector<MigSlice>> read_mig(const Field& field, const FakeGpu& gpu);

}  // namespace muster::fake_nvml
