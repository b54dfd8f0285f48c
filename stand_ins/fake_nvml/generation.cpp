#include "fake_nvml/driver.h"

namespace muster::fake_nvml {

// The one file that differs between the libraries.
const std::uint32_t kLibraryGeneration = FAKENVML_GENERATION;

}  // namespace muster::fake_nvml
