// A name becomes part of a path of the HTTP interface and of log lines, which is where the rules
// come from: no control bytes, no part that a client would resolve as `.` or `..`, and no word that
// is a route itself.

#include "serving/model_name.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace muster {
namespace {

Error unfit(std::string_view why) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("a model's name {}; NAME=MODEL, or the field name, gives another", why)};
}

// C0 and DEL; the bytes of longer characters are all above.
bool is_control(char c) {
  constexpr unsigned char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == kDelete;
}

}  // namespace

Status check_model_name(std::string_view name) {
  constexpr std::size_t kNameMost = 256;
  if (name.empty() || name.size() > kNameMost) return unfit("has 1 to 256 bytes");
  if (invalid_utf8_at(name)) return unfit("is UTF-8");
  if (std::any_of(name.begin(), name.end(), is_control)) return unfit("has no control bytes");
  for (const auto& part : split(name, '/')) {
    if (part.find_first_not_of('.') == std::string_view::npos) {
      return unfit("has no part that is empty or nothing but dots");
    }
  }
  if (name == "load" || name == "unload") {
    return unfit(fmt::format("cannot be {}, which is a route of the server", name));
  }
  return Done{};
}

}  // namespace muster
