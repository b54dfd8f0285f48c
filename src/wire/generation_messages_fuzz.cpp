// Arbitrary payloads decode to a message or an Error; what decodes encodes to the same bytes again.

#include <algorithm>

#include "wire/generation_messages.h"
#include "wire/messages.h"

namespace {

template <typename Decode>
void round_trip(std::span<const std::byte> payload, Decode decode) {
  if (const auto message = decode(payload)) {
    const auto again = muster::encode(*message);
    if (!std::equal(again.begin(), again.end(), payload.begin(), payload.end())) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span payload(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (static_cast<muster::MessageType>(data[0])) {
    case muster::MessageType::LoadDecoder:
      round_trip(payload, muster::decode_load_decoder);
      break;
    case muster::MessageType::DecoderReady:
      round_trip(payload, muster::decode_decoder_ready);
      break;
    case muster::MessageType::Generate:
      round_trip(payload, muster::decode_generate);
      break;
    case muster::MessageType::Tokens:
      round_trip(payload, muster::decode_tokens);
      break;
    case muster::MessageType::Finished:
      round_trip(payload, muster::decode_finished);
      break;
    case muster::MessageType::StepBegun:
      round_trip(payload, muster::decode_step_begun);
      break;
    case muster::MessageType::CacheUse:
      round_trip(payload, muster::decode_cache_use);
      break;
    case muster::MessageType::ProbeDecoder:
      round_trip(payload, muster::decode_probe_decoder);
      break;
    case muster::MessageType::DecoderVerdict:
      round_trip(payload, muster::decode_decoder_verdict);
      break;
    default:  // messages_fuzz has the others
      break;
  }
  return 0;
}
