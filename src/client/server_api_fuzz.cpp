#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "client/server_access.h"
#include "client/server_api.h"

// Answers of whatever listens where a server was named: what is taken is what was asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  constexpr std::uint32_t kDim = 2;
  if (const auto rows = muster::parse_rows(body, 1, kDim)) {
    MUSTER_CHECK(rows->size() == 1 && rows->front().size() == kDim * sizeof(float));
  }
  if (const auto counts = muster::parse_token_counts(body, 2)) MUSTER_CHECK(counts->size() == 2);
  (void)muster::parse_listed_model(body);
  (void)muster::parse_listed_models(body);
  (void)muster::server_message(body);
  return 0;
}
