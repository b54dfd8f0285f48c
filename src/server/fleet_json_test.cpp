#include "server/fleet_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

// Whoever waits for a device learns from it whether the device comes by itself.
TEST(FleetJson, TellsWhatWaitsForMemory) {
  GroupStatus device;
  device.name = "cpu:0";
  device.members.resize(1);
  device.models[1].waits_for_memory = true;
  device.models[2].state = ModelState::Failed;
  ServedDecoderStatus decoder;
  decoder.devices.resize(2);
  for (auto& worker : decoder.devices) worker.name = "cpu:0";
  decoder.devices[0].waits_for_memory = true;
  const auto told = device_json(device, {}, {decoder});
  for (const auto* list : {"models", "decoders"}) {
    ASSERT_EQ(told[list].size(), 2U) << list;
    EXPECT_EQ(told[list][0]["waits_for_memory"], true) << list;
    EXPECT_EQ(told[list][1]["waits_for_memory"], false) << list;
  }
}

}  // namespace
}  // namespace muster
