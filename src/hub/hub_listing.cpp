// A listing comes from outside and its paths become files, so everything is checked before anything
// is used: paths stay below the folder, hold no control characters and come once, hashes have their
// length, sizes and counts have bounds. One bad entry refuses the whole list, since a part of a
// model is of no use.

#include "hub/hub_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

namespace muster {
namespace {

using nlohmann::json;

constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kSha1Digits = 40;

// Source: Hub documentation, "Repository limitations and recommendations": fewer than 100k files.
constexpr std::size_t kFilesMost = 100'000;

// Five times the largest file that the Hub's documentation recommends ("Storage limits": 200 GB).
constexpr std::uint64_t kFileBytesMost = 1'000'000'000'000;

// Of Linux: NAME_MAX, and what of PATH_MAX is left below a cache folder.
constexpr std::size_t kPartSizeMost = 255;
constexpr std::size_t kPathSizeMost = 2048;

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::uint64_t> size_of(const json& object) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

Result<HubFile> read_file_entry(const json& entry) {
  if (!entry.is_object()) return corrupt_error("siblings holds something other than objects");
  HubFile file;
  file.path = text_of(entry, "rfilename");
  if (!is_safe_hub_path(file.path)) {
    return corrupt_error(fmt::format("siblings names a path that is refused: {}",
                                     json(file.path.substr(0, kPartSizeMost))
                                         .dump(-1, ' ', true, json::error_handler_t::replace)));
  }
  const auto lfs = entry.find("lfs");
  const bool is_lfs = lfs != entry.end() && lfs->is_object();
  file.hash_kind = is_lfs ? HashKind::Sha256 : HashKind::GitBlob;
  file.hash = is_lfs ? text_of(*lfs, "sha256") : text_of(entry, "blobId");
  if (!is_hex(file.hash, is_lfs ? kSha256Digits : kSha1Digits)) {
    return corrupt_error(
        fmt::format("{} of {} is missing or no hash", is_lfs ? "lfs.sha256" : "blobId", file.path));
  }
  auto size = is_lfs ? size_of(*lfs) : size_of(entry);
  if (!size) size = size_of(entry);
  if (!size)
    return corrupt_error(fmt::format("size of {} is missing or no whole number", file.path));
  if (*size > kFileBytesMost) {
    return corrupt_error(fmt::format("size of {} is beyond {}: {}", file.path,
                                     human_bytes(kFileBytesMost), human_bytes(*size)));
  }
  file.size = *size;
  return file;
}

}  // namespace

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_safe_hub_path(std::string_view path) {
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  };
  if (path.size() > kPathSizeMost || invalid_utf8_at(path) ||
      std::any_of(path.begin(), path.end(), is_control)) {
    return false;
  }
  const auto parts = split(path, '/');  // of an absolute path the first is empty
  return std::all_of(parts.begin(), parts.end(), [](const auto& part) {
    return !part.empty() && part.size() <= kPartSizeMost && part != "." && part != "..";
  });
}

Result<HubListing> parse_hub_listing(std::string_view text) {
  const auto root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return corrupt_error("no JSON object");
  HubListing listing;
  listing.commit = text_of(root, "sha");
  if (!is_hex(listing.commit, kCommitDigits)) return corrupt_error("sha is missing or no commit");
  const auto siblings = root.find("siblings");
  if (siblings == root.end() || !siblings->is_array()) return corrupt_error("no list siblings");
  if (siblings->size() > kFilesMost) {
    return corrupt_error(fmt::format("siblings has more than {} files: {}",
                                     with_thousands(kFilesMost), with_thousands(siblings->size())));
  }
  std::set<std::string> seen;
  for (const auto& entry : *siblings) {
    auto file = MUSTER_TRY(read_file_entry(entry));
    if (!seen.insert(file.path).second) {
      return corrupt_error(fmt::format("siblings names {} twice", file.path));
    }
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace muster
