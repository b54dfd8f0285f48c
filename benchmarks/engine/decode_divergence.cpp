// How far the next tokens of each precision are from fp32's, in the mean over all positions of
// texts, in nats (engine/sampling/divergence.h). As JSON; a precision that the model does not have
// is left out.
//
//   decode_divergence MODEL IDS     IDS: a file with a text a line, as ids with spaces between them

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "wire/generation_messages.h"
#include "worker/decoder_probe.h"

namespace {

// Ids that the lines have, and how many each.
void read_texts(const char* path, muster::ProbeDecoder& probe) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::uint32_t count = 0;
    for (std::uint32_t id = 0; words >> id; ++count) probe.ids.push_back(id);
    if (count > 0) probe.lengths.push_back(count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: decode_divergence MODEL IDS\n");
    return 2;
  }
  using muster::DecoderPrecision;
  muster::ProbeDecoder probe;
  probe.source = argv[1];
  probe.precisions = {DecoderPrecision::Fp32, DecoderPrecision::Bf16, DecoderPrecision::Own,
                      DecoderPrecision::Int8};
  probe.measures_divergence = true;
  read_texts(argv[2], probe);
  if (probe.ids.empty()) {
    fmt::print(stderr, "{}: no ids\n", argv[2]);
    return 1;
  }
  const auto verdict = muster::measure_decoder(probe, muster::DeviceKind::Cpu);
  if (!verdict) {
    fmt::print(stderr, "{}\n", verdict.error().message);
    return 1;
  }
  fmt::print("{{\"positions\": {}", probe.ids.size());
  for (const auto& measure : verdict->measures) {
    fmt::print(", \"{}\": {:.9f}", muster::decoder_precision_name(measure.precision),
               measure.divergence.value_or(0));
  }
  fmt::print("}}\n");
  return 0;
}
