#pragma once

#include <cstdint>
#include <optional>

#include "fake_nvml/driver.h"
#include "fake_nvml/nvml_abi.h"

namespace muster::fake_nvml {

/// The value of a field and its type.
struct FieldAnswer {
  ValueType type = kUnsignedInt;
  Value value{};
};

/// What a field of nvmlDeviceGetFieldValues is now; nullopt: not supported by this GPU, this
/// driver, or here. scope: a link, or 0xFFFFFFFF for all of them; for power 0 the GPU, 1 the
/// module, 2 the memory.
std::optional<FieldAnswer> field_value(const Visit& visit, std::uint32_t field,
                                       std::uint32_t scope);

/// The part of it that is about NVLink (field_links.cpp).
std::optional<FieldAnswer> link_field_value(const Visit& visit, std::uint32_t field,
                                            std::uint32_t scope);

FieldAnswer unsigned_answer(std::uint64_t value);
FieldAnswer long_answer(std::uint64_t value);
FieldAnswer int_answer(std::int32_t value);

/// The value of the scenario as an unsigned number; nullopt where it leaves it out.
std::optional<FieldAnswer> scripted_answer(const Visit& visit, ValueId id);

}  // namespace muster::fake_nvml
