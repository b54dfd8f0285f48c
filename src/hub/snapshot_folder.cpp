// Paths and writes in the layout of huggingface_hub. A reader must never see half of anything:
// blobs get their names when they are whole, links and references are put in place by a rename. A
// reference is written last, so that a model that is found by its name is complete. What is in the
// cache is judged by size alone; content is checked when it comes.

#include "hub/snapshot_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "modelfile/hub_cache.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kReferenceBytesMax = 4096;

std::uint64_t regular_size(const fs::path& path) {
  std::error_code code;
  const auto size = fs::file_size(path, code);
  return code ? 0 : size;
}

bool is_of_size(const fs::path& path, std::uint64_t size) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && regular_size(path) == size;
}

Status make_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  return code ? Status(system_error(path.string(), "make the folder", code.value()))
              : Status(Done{});
}

}  // namespace

SnapshotFolder::SnapshotFolder(const fs::path& cache, const std::string& model, std::string commit)
    : model_(cache / hub_cache_folder_name(model)),
      locks_(cache / ".locks" / hub_cache_folder_name(model)),
      snapshot_(model_ / "snapshots" / commit),
      commit_(std::move(commit)) {}

fs::path SnapshotFolder::growing_blob(const HubFile& file) const {
  return model_ / "blobs" / (file.hash + ".incomplete");
}

bool SnapshotFolder::has_file(const HubFile& file) const {
  return is_of_size(snapshot_ / file.path, file.size);
}

bool SnapshotFolder::has_blob(const HubFile& file) const {
  return is_of_size(blob(file), file.size);
}

std::uint64_t SnapshotFolder::growing_size(const HubFile& file) const {
  return regular_size(growing_blob(file));
}

bool SnapshotFolder::has_reference(const std::string& revision) const {
  if (revision == commit_) return true;
  const auto text = read_file(model_ / "refs" / revision, kReferenceBytesMax);
  return text && *text == commit_;
}

std::optional<std::string> SnapshotFolder::fuller_commit(const std::string& revision) const {
  if (has_reference(revision)) return std::nullopt;
  auto other = read_file(model_ / "refs" / revision, kReferenceBytesMax);
  if (!other || !is_hex(*other, kCommitDigits)) return std::nullopt;
  const auto snapshot = model_ / "snapshots" / *other;
  std::error_code code;
  fs::recursive_directory_iterator entry(snapshot, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    if (!fs::is_regular_file(entry->path(), ignored)) continue;  // a link whose blob is gone, too
    if (!fs::exists(snapshot_ / entry->path().lexically_relative(snapshot), ignored)) {
      return *std::move(other);
    }
  }
  return std::nullopt;
}

Status SnapshotFolder::make_folders() const {
  MUSTER_TRY(make_folder(model_ / "blobs"));
  MUSTER_TRY(make_folder(snapshot_));
  return make_folder(locks_);
}

Status SnapshotFolder::link(const HubFile& file) const {
  const auto place = snapshot_ / file.path;
  MUSTER_TRY(make_folder(place.parent_path()));
  // From the folder of the link: as many steps up as its path is deep, and out of snapshots/COMMIT.
  const auto target = blob(file).lexically_relative(place.parent_path());
  const auto fresh = place.parent_path() / fmt::format("{}.{}.link", file.hash, ::getpid());
  std::error_code ignored;
  fs::remove(fresh, ignored);  // of a process of this number that was killed here
  if (::symlink(target.c_str(), fresh.c_str()) != 0) {
    return system_error(fresh.string(), "make the link", errno);
  }
  if (::rename(fresh.c_str(), place.c_str()) != 0) {
    const auto number = errno;
    fs::remove(fresh, ignored);
    return system_error(place.string(), "make the link", number);
  }
  return sync_folder(place.parent_path());
}

Status SnapshotFolder::write_reference(const std::string& revision) const {
  if (has_reference(revision)) return Done{};
  const auto place = model_ / "refs" / revision;
  MUSTER_TRY(make_folder(place.parent_path()));
  return write_file_atomically(place, commit_);
}

Result<std::uint64_t> free_bytes(fs::path path) {
  std::error_code code;
  while (!fs::exists(path, code) && path.has_relative_path()) path = path.parent_path();
  const auto space = fs::space(path, code);
  if (code) return system_error(path.string(), "ask for the free space", code.value());
  return space.available;
}

}  // namespace muster
