// Arbitrary payloads decode to a message or an Error; what decodes encodes to the same bytes again.

#include <algorithm>

#include "wire/messages.h"

namespace {

template <typename Decode>
void round_trip(std::span<const std::byte> payload, Decode decode) {
  if (const auto message = decode(payload)) {
    const auto again = muster::encode(*message);
    // Booleans are the one field that is read more liberally than it is written.
    if (again.size() != payload.size() || !decode(again)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span payload(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (static_cast<muster::MessageType>(data[0])) {
    case muster::MessageType::Hello:
      round_trip(payload, muster::decode_hello);
      break;
    case muster::MessageType::Probe:
      round_trip(payload, muster::decode_probe);
      break;
    case muster::MessageType::Verdict:
      round_trip(payload, muster::decode_verdict);
      break;
    case muster::MessageType::Load:
      round_trip(payload, muster::decode_load);
      break;
    case muster::MessageType::Ready:
      round_trip(payload, muster::decode_ready);
      break;
    case muster::MessageType::Batch:
      round_trip(payload, muster::decode_batch);
      break;
    case muster::MessageType::Rows:
      (void)muster::decode_rows(payload);
      break;
    case muster::MessageType::Failed:
      round_trip(payload, muster::decode_failed);
      break;
    case muster::MessageType::ComputeTest:
      round_trip(payload, muster::decode_compute_test);
      break;
    case muster::MessageType::ComputeResult:
      round_trip(payload, muster::decode_compute_result);
      break;
    case muster::MessageType::Unload:
      round_trip(payload, muster::decode_unload);
      break;
    case muster::MessageType::LoadFailed:
      round_trip(payload, muster::decode_load_failed);
      break;
    case muster::MessageType::Expect:  // without a payload
    case muster::MessageType::Cancel:
    case muster::MessageType::LoadDecoder:  // generation_messages_fuzz has these
    case muster::MessageType::DecoderReady:
    case muster::MessageType::Generate:
    case muster::MessageType::Tokens:
    case muster::MessageType::Finished:
    case muster::MessageType::StepBegun:
    case muster::MessageType::CacheUse:
    case muster::MessageType::ProbeDecoder:
    case muster::MessageType::DecoderVerdict:
      break;
  }
  return 0;
}
