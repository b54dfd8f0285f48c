#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::fake_nvml {

/// Every function of NVML that is here.
enum class Function : std::uint8_t {
#define FAKENVML_FUNCTION(name, since) name,
#include "fake_nvml/functions.inc"
#undef FAKENVML_FUNCTION
};

inline constexpr std::array kFunctionNames{
#define FAKENVML_FUNCTION(name, since) std::string_view(#name),
#include "fake_nvml/functions.inc"
#undef FAKENVML_FUNCTION
};
inline constexpr std::size_t kFunctionCount = kFunctionNames.size();

std::optional<Function> find_function(std::string_view name);

}  // namespace muster::fake_nvml
