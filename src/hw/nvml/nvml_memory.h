#pragma once

#include "hw/nvml/nvml_visit.h"

namespace muster {

/// Memory of a GPU or a slice, by the second version of the call where there is one.
class NvmlMemoryReader {
 public:
  void read(NvmlVisit& visit, NvmlDevice device);

 private:
  NvmlOffer newer_ = NvmlOffer::Unknown;
  NvmlOffer older_ = NvmlOffer::Unknown;
};

}  // namespace muster
