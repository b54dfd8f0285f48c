// Arbitrary payloads decode to a message or an Error; what decodes encodes to the same bytes again.

#include <algorithm>

#include "wire/telemetry_messages.h"

namespace {

template <typename Decode, typename Encode>
void round_trip(std::span<const std::byte> payload, Decode decode, Encode encode) {
  if (const auto message = decode(payload)) {
    if (!std::ranges::equal(encode(*message), payload)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using muster::TelemetryMessageType;
  if (size == 0) return 0;
  const std::span payload(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const auto encode_one = [](const auto& message) { return muster::encode(message); };
  const auto encode_list = [](const auto& list) { return muster::encode(std::span(list)); };
  switch (static_cast<TelemetryMessageType>(data[0])) {
    case TelemetryMessageType::Watch:
      round_trip(payload, muster::decode_watch, encode_one);
      break;
    case TelemetryMessageType::FindEdges:
      round_trip(payload, muster::decode_find_edges, encode_one);
      break;
    case TelemetryMessageType::Viewer:
      round_trip(payload, muster::decode_viewer, encode_one);
      break;
    case TelemetryMessageType::Machine:
      round_trip(payload, muster::decode_machine, encode_one);
      break;
    case TelemetryMessageType::Samples:
      round_trip(payload, muster::decode_samples, encode_list);
      break;
    case TelemetryMessageType::Events:
      round_trip(payload, muster::decode_events, encode_list);
      break;
    case TelemetryMessageType::Edges:
      round_trip(payload, muster::decode_edges, encode_list);
      break;
    case TelemetryMessageType::Costs:
      // Error codes are sorted when they are written, whatever order they came in.
      (void)muster::decode_costs(payload);
      break;
    case TelemetryMessageType::Refused:  // Failed's payload: messages_fuzz
      break;
  }
  return 0;
}
