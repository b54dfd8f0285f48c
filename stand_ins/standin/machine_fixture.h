#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "standin/machine.h"

namespace muster::standin {

/// A machine for tests: nothing begins that is not waited for.
class MachineTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kNeverUs = 36'000'000'000;  // ten hours

  void open(std::vector<DeviceSettings> devices) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices[i].name = "standin:" + std::to_string(i);
      devices[i].late_us = kNeverUs;
    }
    auto opened = Machine::open(std::move(devices));
    ASSERT_TRUE(opened) << opened.error().message;
    machine_ = *std::move(opened);
  }

  char* allocate(Place place, std::uint64_t size) {
    const auto memory = machine_->allocate(place, size);
    EXPECT_TRUE(memory) << memory.error().message;
    return memory ? static_cast<char*>(*memory) : nullptr;
  }

  char* allocate_pinned(std::uint64_t size) {
    return static_cast<char*>(*machine_->allocate_pinned(size));
  }

  /// A kernel that fills memory with a byte.
  Status fill(Place place, char* memory, std::size_t size, char value,
              const std::string& name = "fill") {
    return machine_->launch({.place = place,
                             .operation = name,
                             .uses = {{memory, true}},
                             .kind = WorkKind::Kernel,
                             .work = [at = machine_->kernel_address(memory), size, value] {
                               std::memset(at, value, size);
                             }});
  }

  Status copy(Place place, char* to, const char* from, std::size_t size,
              const std::string& name = "copy") {
    return machine_->launch({.place = place,
                             .operation = name,
                             .uses = {{from, false}, {to, true}},
                             .kind = WorkKind::Copy,
                             .work = [to_kernel = machine_->kernel_address(to),
                                      from_kernel = machine_->kernel_address(from),
                                      size] { std::memcpy(to_kernel, from_kernel, size); }});
  }

  static std::string words(const Status& status) { return status ? "" : status.error().message; }

  std::unique_ptr<Machine> machine_;
};

}  // namespace muster::standin
