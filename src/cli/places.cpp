// Where torch, the worker and the cache are. Each is looked for in one fixed order and comes with
// the words that say how it was found, because "which torch is this?" is the first question when
// something is wrong. A folder that a person has named is taken or refused; nothing else is tried
// in its place.

#include "cli/places.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/child_process.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/ask_program.h"

#ifndef MUSTER_BUILD_TORCH_ROOT
#define MUSTER_BUILD_TORCH_ROOT ""
#endif

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTorchVersion = "2.11.";  // the one whose C++ interface we link against
constexpr std::uint64_t kVersionFileSizeMax = 1 << 16;
constexpr auto kPythonTime = std::chrono::seconds(10);  // a cold start from a network drive

// "__version__ = '2.11.0+cpu'" at the start of a line of torch/version.py; `__all__` names it too.
std::string version_in(const std::string& version_py) {
  const auto line = ("\n" + version_py).find("\n__version__");
  const auto open = version_py.find_first_of("'\"", line);
  const auto close = open == std::string::npos ? open : version_py.find_first_of("'\"", open + 1);
  if (line == std::string::npos || close == std::string::npos) return "unknown";
  return version_py.substr(open + 1, close - open - 1);
}

// The folder that `import torch` would read. Finding it imports nothing, so it takes milliseconds.
Result<fs::path> torch_of_python() {
  const auto answer = MUSTER_TRY(ask_program(
      {"python3", "-c",
       "import importlib.util as u;print(u.find_spec('torch').submodule_search_locations[0])"},
      kPythonTime));
  const auto line = trim(answer);
  if (line.empty()) return Error{ErrorKind::NotFound, "python3 on the PATH has no torch"};
  return check_torch_root(fs::path(line));
}

}  // namespace

// A wheel's own folder, or the site-packages folder that it is in.
Result<fs::path> check_torch_root(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& root : {folder, folder / "torch"}) {
    if (!fs::exists(root / "lib" / "libtorch_cpu.so", ignored)) continue;
    const auto text = MUSTER_TRY(read_file(root / "version.py", kVersionFileSizeMax));
    const auto version = version_in(text);
    if (!version.starts_with(kTorchVersion)) {
      return Error{ErrorKind::Unsupported,
                   fmt::format("{}: muster needs torch 2.11, this is {}", root.string(), version)};
    }
    return root;
  }
  return Error{
      ErrorKind::NotFound,
      fmt::format("{}: no torch wheel here: lib/libtorch_cpu.so is missing", folder.string())};
}

Result<FoundPlace> find_torch_root(const Config& config) {
  const auto& given = config.at(SettingId::TorchRoot);
  if (given.value) return FoundPlace{MUSTER_TRY(check_torch_root(*given.value)), given.place};

  if (const std::string_view built(MUSTER_BUILD_TORCH_ROOT); !built.empty()) {
    if (auto root = check_torch_root(built)) return FoundPlace{*std::move(root), "this build"};
  }
  auto root = torch_of_python();
  if (root) return FoundPlace{*std::move(root), "python3 on the PATH"};
  return Error{
      ErrorKind::Unavailable,
      fmt::format("no torch 2.11 was found: install it (pip install torch==2.11.0) or name "
                  "its folder with --torch-root or MUSTER_TORCH_ROOT: {}",
                  root.error().message)};
}

std::string torch_version(const fs::path& root) {
  const auto text = read_file(root / "version.py", kVersionFileSizeMax);
  return text ? version_in(*text) : std::string();
}

// Beside this program: the two are of one build and speak one protocol.
Result<FoundPlace> find_worker_program(const Config& config) {
  const auto& given = config.at(SettingId::WorkerProgram);
  FoundPlace found;
  if (given.value) {
    found = {*given.value, given.place};
  } else {
    found = {program_beside("muster-worker"), "beside muster"};
  }
  std::error_code ignored;
  if (!fs::exists(found.path, ignored)) {
    return Error{ErrorKind::NotFound,
                 fmt::format("the worker program is missing: {}", found.path.string())};
  }
  if (!fs::is_regular_file(found.path, ignored) || access(found.path.c_str(), X_OK) != 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the worker program cannot be run: {}", found.path.string())};
  }
  return found;
}

Result<FoundPlace> find_cache_folder(const Config& config) {
  const auto& given = config.at(SettingId::CacheDir);
  if (given.value) return FoundPlace{*given.value, given.place};
  // The specification says: not absolute means not set.
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg == '/') return FoundPlace{fs::path(xdg) / "muster", "XDG_CACHE_HOME"};
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return FoundPlace{fs::path(home) / ".cache/muster", "HOME"};
  // As a shell's ~ does where nothing is set: a program started with an empty environment still
  // runs.
  const passwd* user = getpwuid(getuid());
  if (user != nullptr && user->pw_dir != nullptr && *user->pw_dir == '/') {
    return FoundPlace{fs::path(user->pw_dir) / ".cache/muster", "home of the user"};
  }
  return Error{ErrorKind::Unavailable,
               "no folder for caches: set --cache-dir, XDG_CACHE_HOME or HOME"};
}

}  // namespace muster
