#include "cli/run_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace muster {
namespace {

constexpr std::uint64_t kFileSizeMax = 1 << 20;

// A field of the wanted type, or Corrupt.
template <typename T>
Result<T> field(const nlohmann::json& json, const char* name, const std::filesystem::path& path) {
  const auto found = json.find(name);
  const T* value = found == json.end() ? nullptr : found->get_ptr<const T*>();
  if (value == nullptr) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: the field is missing or of another type: {}",
                                                 path.string(), name)};
  }
  return *value;
}

}  // namespace

Result<RunRecord> read_run_record(const std::filesystem::path& out) {
  auto path = out;
  path.replace_extension(".run.json");
  const auto text = read_file(path, kFileSizeMax);
  if (!text && text.error().kind == ErrorKind::NotFound) {
    return Error{ErrorKind::NotFound,
                 fmt::format("{} would say which model made these vectors, and it is missing: name "
                             "the model with --model",
                             path.string())};
  }
  const auto json = nlohmann::json::parse(MUSTER_TRY(Result<std::string>(text)), nullptr, false);
  if (!json.is_object()) {
    return Error{ErrorKind::Corrupt, fmt::format("{}: not a JSON object", path.string())};
  }
  RunRecord record;
  record.model = MUSTER_TRY(field<std::string>(json, "model", path));
  record.precision = MUSTER_TRY(field<std::string>(json, "precision", path));
  record.pooling = MUSTER_TRY(field<std::string>(json, "pooling", path));
  record.normalize = MUSTER_TRY(field<bool>(json, "normalize", path));
  const auto length_max = MUSTER_TRY(field<std::uint64_t>(json, "length_max", path));
  record.length_max = static_cast<std::uint32_t>(length_max);
  return record;
}

}  // namespace muster
