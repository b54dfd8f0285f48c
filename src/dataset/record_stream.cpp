// What the readers of all formats share: how a fault of a record is worded. A message names the
// nearest name there is, since a wrong field is mostly a slip of the pen.

#include "dataset/record_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

constexpr std::size_t kNamesShown = 8;    // a message stays a sentence
constexpr std::size_t kNameSizeMax = 64;  // the edit distance costs size x size

}  // namespace

void set_fault(TextRecord& record, std::string message) {
  record.text.clear();
  record.is_conversation = false;
  record.id.clear();
  record.fields.clear();
  record.fault = Error{ErrorKind::InvalidArgument, std::move(message)};
}

std::string too_long_message(std::uint64_t size_max) {
  return fmt::format("longer than {} bytes", with_thousands(size_max));
}

std::optional<std::string> utf8_fault(std::string_view text) {
  const auto at = invalid_utf8_at(text);
  if (!at) {
    return std::nullopt;
  }
  return fmt::format("invalid UTF-8 at byte {}", *at + 1);
}

std::string missing_name_message(std::string_view kind, std::string_view wanted,
                                 const std::vector<std::string>& present, std::string_view flag) {
  std::vector<std::string> names;
  std::copy_if(present.begin(), present.end(), std::back_inserter(names),
               [](const auto& name) { return !name.empty() && name.size() <= kNameSizeMax; });
  auto message = fmt::format("no {} \"{}\"", kind, wanted);
  if (const auto nearest = nearest_name(wanted, names)) {
    return message + fmt::format("; nearest is \"{}\"; {} names another", *nearest, flag);
  }
  if (names.empty()) {
    return message;
  }
  const bool is_cut = names.size() > kNamesShown;
  names.resize(std::min(names.size(), kNamesShown));
  return message + fmt::format("; there is \"{}\"{}; {} names another", fmt::join(names, "\", \""),
                               is_cut ? ", …" : "", flag);
}

}  // namespace muster
