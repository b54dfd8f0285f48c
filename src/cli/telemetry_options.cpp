// Places that the collector reads are checked before it starts, so that a slip in a flag is an
// error about that flag and not a machine without devices. The same options serve every command
// that watches devices, so a simulated machine looks the same to all of them.

#include "cli/telemetry_options.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster {
namespace {

namespace fs = std::filesystem;

Status check_folder(const fs::path& folder, std::string_view setting) {
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return Done{};
  return Error{ErrorKind::NotFound,
               fmt::format("{}: no such folder: {}", setting, folder.string())};
}

Status check_file(const fs::path& file, std::string_view setting) {
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) return Done{};
  return Error{ErrorKind::NotFound, fmt::format("{}: no such file: {}", setting, file.string())};
}

Status check_machine(const std::string& machine) {
  if (machine.starts_with("sim:")) return Done{};
  return check_file(machine, "--machine, which is no sim:… either");
}

}  // namespace

FlagGroup watched_machine_flags() {
  return {
      "Where to look",
      {SettingId::NvmlPath, SettingId::SysfsRoot},
      {{"--machine", "TEXT", "a simulated machine instead: sim:8xH100-80G, or a machine file"}}};
}

Result<CollectorOptions> collector_options(const Config& config) {
  CollectorOptions options;
  if (const auto library = config.text(SettingId::NvmlPath)) {
    // A name without a slash is for the loader's own search.
    if (library->find('/') != std::string::npos) MUSTER_TRY(check_file(*library, "--nvml-path"));
    options.nvml_libraries = {*library};
  }
  options.root = config.text(SettingId::SysfsRoot).value_or("/");
  MUSTER_TRY(check_folder(options.root, "--sysfs-root"));
  return options;
}

Result<CollectorOptions> collector_options(const CommandContext& context) {
  auto options = MUSTER_TRY(collector_options(context.config));
  if (const auto machine = context.arguments.value("--machine")) {
    MUSTER_TRY(check_machine(*machine));
    options.simulated = *machine;
  }
  return options;
}

}  // namespace muster
