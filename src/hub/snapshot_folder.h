#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/hub_listing.h"

namespace muster {

/// A model in the hub's cache, in the layout of huggingface_hub:
///
///   models--org--name/blobs/HASH               the bytes, once each
///   models--org--name/blobs/HASH.incomplete    while they come
///   models--org--name/snapshots/COMMIT/PATH    a relative link to a blob
///   models--org--name/refs/REVISION            the commit, for a branch or tag
///   .locks/models--org--name/HASH.lock
///
/// Threads: immutable. Source: huggingface_hub 2.x, file_download.py.
class SnapshotFolder {
 public:
  SnapshotFolder(const std::filesystem::path& cache, const std::string& model, std::string commit);

  const std::filesystem::path& path() const { return snapshot_; }
  std::filesystem::path blob(const HubFile& file) const { return model_ / "blobs" / file.hash; }
  std::filesystem::path growing_blob(const HubFile& file) const;
  std::filesystem::path lock(const HubFile& file) const { return locks_ / (file.hash + ".lock"); }

  /// Whether the file is there, with the size that the hub states.
  bool has_file(const HubFile& file) const;
  bool has_blob(const HubFile& file) const;

  /// The bytes of it that an earlier run left.
  std::uint64_t growing_size(const HubFile& file) const;

  /// Whether `revision` stands for this commit already.
  bool has_reference(const std::string& revision) const;

  /// The commit that `revision` stands for, where its snapshot has a file that this one lacks: by
  /// the name of the model that file would no longer be found. nullopt for a commit itself.
  std::optional<std::string> fuller_commit(const std::string& revision) const;

  /// Makes the folders for blobs, links and locks. Errors: those of the system.
  Status make_folders() const;

  /// Puts the link for a blob that is there, in the place of whatever stands there.
  Status link(const HubFile& file) const;

  /// Lets `revision` stand for this commit from now on; nothing to do for a commit itself.
  Status write_reference(const std::string& revision) const;

 private:
  std::filesystem::path model_;
  std::filesystem::path locks_;
  std::filesystem::path snapshot_;
  std::string commit_;
};

/// Bytes that may still be written where `path` is, or will be. Errors: those of the system.
Result<std::uint64_t> free_bytes(std::filesystem::path path);

}  // namespace muster
