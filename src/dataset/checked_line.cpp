#include "dataset/checked_line.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace muster {
namespace {

constexpr std::string_view kSumKey = R"(,"sum":")";  // what the checksum covers ends before it
constexpr std::size_t kSumSize = 16;                 // hexadecimal digits of XXH3 with 64 bits

std::string end_of(std::string_view body) {
  return fmt::format("{}{:016x}\"}}", kSumKey, hash64(body));
}

}  // namespace

std::string checked_line(std::string object) {
  object.pop_back();
  return object + end_of(object) + "\n";
}

bool is_checked_line(std::string_view line) {
  const std::size_t tail_size = kSumKey.size() + kSumSize + 2;
  if (line.size() < tail_size) return false;
  const auto body = line.substr(0, line.size() - tail_size);
  return line.substr(body.size()) == end_of(body);
}

}  // namespace muster
