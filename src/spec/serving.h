#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

/// A model of a running server, by the number it got when it was asked for. Never given twice.
using ModelId = std::uint32_t;

/// Which queue a text waits in: interactive texts go before bulk ones.
enum class Lane : std::uint8_t { Interactive, Bulk };
inline constexpr std::size_t kLaneCount = 2;

/// What a model does with a text.
enum class ModelTask : std::uint8_t {
  Embed,   // a vector: [dim]
  Rerank,  // the scores of a pair, before their activation: [labels]
};

/// What a request asks for, as the strategy `task_type` tells requests apart.
enum class RequestType : std::uint8_t { Query, Document, Rerank };
inline constexpr std::size_t kRequestTypeCount = 3;

/// "query", "document", "rerank".
std::string_view request_type_name(RequestType type);

}  // namespace muster
