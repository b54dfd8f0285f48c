// A worker says what it does in the place where people and tools look for it anyway: its command
// line. The memory of an argument is written over, never beyond the size that it had when the
// process started, as the next argument or the environment begins right behind it.

#include "wire/shown_models.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace muster {

ShownModels::ShownModels(char* argument)
    : argument_(argument), room_(argument == nullptr ? 0 : std::strlen(argument)) {}

void ShownModels::add(ModelId id, std::string_view model_folder) {
  const MutexLock lock(mutex_);
  names_[id] = shown_model_name(model_folder);
  write();
}

void ShownModels::remove(ModelId id) {
  const MutexLock lock(mutex_);
  names_.erase(id);
  write();
}

// What has no room is cut; zero bytes end the argument, as they do each of a command line.
void ShownModels::write() const {
  std::string text;
  for (const auto& [id, name] : names_) text += (text.empty() ? "" : ",") + name;
  if (room_ == 0) return;
  const auto size = std::min(text.size(), room_);
  std::copy_n(text.begin(), size, argument_);
  std::fill_n(argument_ + size, room_ - size, '\0');
}

// A snapshot in a hub cache ends in a commit, which says nothing to people: the repository's name
// is two folders up.
std::string shown_model_name(std::string_view model_folder) {
  constexpr std::string_view kHubPrefix = "models--";
  auto path = std::filesystem::path(model_folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // it ended in a slash
  if (path.parent_path().filename() != "snapshots") return path.filename().string();
  const auto repository = path.parent_path().parent_path().filename().string();
  if (!repository.starts_with(kHubPrefix)) return path.filename().string();
  return repository.substr(repository.rfind("--") + 2);
}

}  // namespace muster
