// Arbitrary text is read as records without harm.

#include <string_view>

#include "doctor/kernel_log.h"
#include "doctor/system_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& xid : muster::parse_kernel_log(text)) {
    (void)muster::is_same_pci_place(xid.pci_address, text);
  }
  (void)muster::count_cpu_list(text);
  (void)muster::module_version(text);
  return 0;
}
