#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/hub_access.h"
#include "hub/hub_listing.h"
#include "hub/pull_events.h"

namespace muster {

/// What is asked for.
struct PullOptions {
  std::string model;                       // "org/name"
  std::string revision = "main";           // a branch, a tag or a commit
  std::vector<std::string> patterns = {};  // as choose_files has them
};

/// A file of a plan, and how much of it is here.
struct PlannedFile {
  HubFile file;
  bool is_here = false;
  std::uint64_t bytes_here = 0;  // all of them, or what an earlier run left
};

/// What a pull will do.
struct PullPlan {
  PullOptions options;
  std::string commit;
  std::filesystem::path snapshot;  // where the files will be
  std::vector<PlannedFile> files;  // in the order in which they are fetched
  bool is_done = false;            // all are here, and the revision stands for the commit

  std::uint64_t bytes_all() const;
  std::uint64_t bytes_here() const;
};

/// Asks the hub, with one request, and looks at the cache; writes nothing.
///
/// Errors: InvalidArgument (no hub id, an impossible revision); those of HubCaller::listing,
/// parse_hub_listing and choose_files.
Result<PullPlan> plan_pull(const HubAccess& access, const PullOptions& options,
                           const PullEvents& events);

/// Fetches what is not here and makes the snapshot; the revision stands for it only once every file
/// is there, and keeps standing for an older one that has files which the patterns left out. Two
/// processes that do this at once share the work. The value: the bytes that came over the network.
///
/// Errors: ResourceExhausted before anything is written when the disk has too little room; those of
/// download_blob and of the system.
Result<std::uint64_t> fetch_files(const HubAccess& access, const PullPlan& plan,
                                  const PullEvents& events);

}  // namespace muster
