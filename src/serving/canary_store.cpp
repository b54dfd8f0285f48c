// The answers of canaries, kept across restarts so that later runs have something to compare with.
// A file that is missing or damaged is as good as none: the rows are learned anew. JSON has no form
// for every float, hence the bits as whole numbers. Writing is atomic, so a crash leaves the old
// rows or the new ones.

#include "serving/canary_store.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace muster {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t kFileMax = 16 << 20;

std::filesystem::path canary_path(const std::filesystem::path& cache_folder,
                                  const std::string& name) {
  return cache_folder / "canaries" / (name + ".json");
}

}  // namespace

// Values are kept as the 32 bits of each float: a canary is compared bit for bit.
CanaryRows read_canary_rows(const std::filesystem::path& cache_folder, const std::string& name) {
  const auto text = read_file(canary_path(cache_folder, name), kFileMax);
  if (!text) return {};
  const auto content = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) return {};
  CanaryRows rows;
  for (const auto& [engine_class, values] : content.items()) {
    if (!values.is_array()) return {};
    auto& row = rows[engine_class];
    for (const auto& value : values) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() > UINT32_MAX) return {};
      row.push_back(std::bit_cast<float>(value.get<std::uint32_t>()));
    }
  }
  return rows;
}

Status write_canary_rows(const std::filesystem::path& cache_folder, const std::string& name,
                         const CanaryRows& rows) {
  const auto path = canary_path(cache_folder, name);
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  if (failure) return system_error(path.parent_path().string(), "create", failure.value());
  json content = json::object();
  for (const auto& [engine_class, row] : rows) {
    auto& values = content[engine_class] = json::array();
    for (const auto value : row) values.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return write_file_atomically(path, content.dump() + "\n");
}

}  // namespace muster
