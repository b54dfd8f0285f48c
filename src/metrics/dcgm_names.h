#pragma once

#include <string>
#include <vector>

#include "metrics/series_labels.h"

namespace muster {

/// The same readings once more under the names, labels and units of dcgm-exporter 4, for dashboards
/// and rules that were made for it; NVIDIA's dashboard 12239 finds all that it asks for.
///
/// What muster does not measure as DCGM defines it is left out. Counters have no `_total` and
/// labels have capitals, as in the original; linters complain of both.
///
/// Source: dcgm-exporter 4, etc/default-counters.csv and internal/pkg/rendermetrics.
std::string dcgm_text(const std::vector<LabelledDevice>& devices);

}  // namespace muster
