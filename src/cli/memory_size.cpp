#include "cli/memory_size.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <string>
#include <system_error>

namespace muster {

// Units are binary, as docker's are: 1g is 1024^3 bytes. A size that does not fit into 64 bits is
// refused before it is shifted.
Result<std::uint64_t> parse_memory_size(std::string_view flag, std::string_view text) {
  const auto wrong = [&] {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} is a size such as 512m or 1g: \"{}\"", flag, text)};
  };
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || value == 0) return wrong();
  std::string unit(end, text.data() + text.size());
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (unit.empty() || unit == "b") return value;
  constexpr std::string_view kUnits = "kmgt";
  const auto place = kUnits.find(unit.front());
  const auto rest = unit.substr(1);
  if (place == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) {
    return wrong();
  }
  const auto shift = 10 * (place + 1);
  if (value > UINT64_MAX >> shift) return wrong();
  return value << shift;
}

}  // namespace muster
