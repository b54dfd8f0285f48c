#pragma once

#include <cstdint>
#include <vector>

#include "modelfile/gguf_file.h"

namespace muster {

/// Fills `stop_ids` with the stated ones and those known by their text, and makes control tokens of
/// the ends that are none by their type.
void find_reply_ends(const std::vector<std::uint32_t>& stated, GgufTokens& tokens);

}  // namespace muster
