// An id from outside goes into log lines and headers, so only characters that are safe in both are
// taken; any other id is silently replaced, since a bad id is no reason to refuse a request. Random
// bits are drawn for sixteen requests with one system call and kept by the thread.

#include "server/request_id.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "base/random_bits.h"

namespace muster {
namespace {

constexpr std::size_t kSizeMost = 128;

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

using Bits = std::array<std::byte, 16>;

// Of a request, out of the sixteen that the kernel was asked for at once.
Bits random_bits() {
  thread_local std::array<Bits, 16> drawn;
  thread_local std::size_t left = 0;
  if (left == 0) {
    fill_random(std::as_writable_bytes(std::span(drawn)));
    left = drawn.size();
  }
  return drawn[--left];
}

// Both digits of a byte.
constexpr std::array<std::array<char, 2>, 256> make_hex_pairs() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::array<char, 2>, 256> pairs{};
  for (std::size_t byte = 0; byte < pairs.size(); ++byte) {
    pairs[byte] = {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return pairs;
}
constexpr auto kHexPairs = make_hex_pairs();

std::string hex_of(const Bits& bits) {
  std::string text(2 * bits.size(), '0');
  for (std::size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(text.data() + 2 * i, kHexPairs[std::to_integer<std::size_t>(bits[i])].data(), 2);
  }
  return text;
}

}  // namespace

std::string request_id_for(std::optional<std::string_view> given) {
  if (given && !given->empty() && given->size() <= kSizeMost &&
      std::all_of(given->begin(), given->end(), is_allowed)) {
    return std::string(*given);
  }
  return hex_of(random_bits());
}

}  // namespace muster
