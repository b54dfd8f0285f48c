#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::engine {

/// The ids of the `count` largest of finite logits, the largest first, of equals the smaller id;
/// of all of them where there are no more.
///
/// Cost: for few of many, a pass over the logits that finds the largest of each block.
std::vector<std::uint32_t> likeliest(std::span<const float> logits, std::size_t count);

}  // namespace muster::engine
