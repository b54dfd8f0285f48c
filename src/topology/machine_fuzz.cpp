#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "topology/links.h"
#include "topology/machine_builder.h"
#include "topology/machine_json.h"
#include "topology/machine_text.h"

namespace {

// A machine is whole: every index leads somewhere, and the links are as many as they must be.
void check(const muster::Machine& machine) {
  MUSTER_CHECK(!machine.devices.empty());
  MUSTER_CHECK(machine.devices.size() <= muster::kMachineDevicesMax);
  for (const auto& device : machine.devices) {
    MUSTER_CHECK(device.device_class < machine.classes.size());
    MUSTER_CHECK(device.node < machine.nodes.size());
  }
  for (const auto& node : machine.nodes) {
    MUSTER_CHECK(node.first_device + node.device_count <= machine.devices.size());
    MUSTER_CHECK(node.links < machine.node_links.size());
    MUSTER_CHECK(machine.node_links[node.links].device_count == node.device_count);
  }
}

}  // namespace

// Any bytes as a machine file, as a machine on the command line and as a printed matrix: an error,
// or a whole machine; a file that was read is written so that it reads back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto machine = muster::parse_machine(text)) check(*machine);
  if (const auto matrix = muster::parse_link_matrix(text)) {
    MUSTER_CHECK(matrix->labels.size() == std::size_t{matrix->device_count} * matrix->device_count);
  }
  const auto machine = muster::parse_machine_json("m.json", text);
  if (!machine) {
    MUSTER_CHECK(!machine.error().message.empty());
    return 0;
  }
  check(*machine);
  const auto again = muster::parse_machine_json("m.json", muster::machine_json(*machine));
  MUSTER_CHECK(again.has_value());
  MUSTER_CHECK(again->devices.size() == machine->devices.size());
  return 0;
}
