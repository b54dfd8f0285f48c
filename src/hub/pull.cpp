// A pull is a plan, which only reads, and a fetch, which carries it out: what is shown beforehand
// is what will be done. Files are fetched one by one under locks, so two processes share the work
// instead of doing it twice, and after each lock the cache is looked at again. The revision is
// written last. With patterns it does not replace a fuller snapshot, or files that were found by
// the model's name would vanish.

#include "hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hub/blob_download.h"
#include "hub/file_choice.h"
#include "hub/file_lock.h"
#include "hub/hub_caller.h"
#include "hub/snapshot_folder.h"
#include "modelfile/hub_cache.h"

namespace muster {
namespace {

constexpr std::size_t kShownDigits = 7;  // as git shows a commit

// "https://huggingface.co/org/name/tree/main" is what a browser shows of org/name.
std::string id_in_url(const HubAccess& access, const std::string& model) {
  for (const auto& start : {access.endpoint + "/", std::string("https://huggingface.co/"),
                            std::string("https://hf.co/"), std::string("hf://")}) {
    if (!model.starts_with(start)) continue;
    const auto parts = split(model.substr(start.size()), '/');
    auto id = parts.size() < 2 ? parts.front() : parts[0] + "/" + parts[1];
    if (is_hub_id(id)) return id;
  }
  return {};
}

Status check_options(const HubAccess& access, const PullOptions& options) {
  if (!is_hub_id(options.model)) {
    const auto id = id_in_url(access, options.model);
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("\"{}\" is no model's name on a hub; {}", options.model,
                    id.empty() ? "the form is ORG/NAME" : fmt::format("did you mean {}?", id))};
  }
  // It becomes a path below refs/.
  if (!is_safe_hub_path(options.revision)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--revision: \"{}\" is no branch, tag or commit", options.revision)};
  }
  return Done{};
}

Status check_room(const HubAccess& access, const PullPlan& plan) {
  const auto needed = plan.bytes_all() - plan.bytes_here();
  const auto free = MUSTER_TRY(free_bytes(access.cache));
  if (needed <= free) return Done{};
  return Error{ErrorKind::ResourceExhausted,
               fmt::format("{}: the disk has too little room for {}: {} to fetch, {} free",
                           access.cache.string(), plan.options.model, human_bytes(needed),
                           human_bytes(free))};
}

// The sum over files for the progress.
class Books {
 public:
  Books(const PullPlan& plan, const PullEvents& events) : events_(events) {
    now_.bytes_all = plan.bytes_all();
    now_.files_all = plan.files.size();
  }

  void begin(const std::string& file) { now_.file = file; }
  void show(std::uint64_t size) {
    now_.bytes_done = done_ + size;
    events_.on_progress(now_);
  }
  void end(std::uint64_t size) {
    done_ += size;
    ++now_.files_done;
    show(0);
  }

 private:
  const PullEvents& events_;
  PullProgress now_;
  std::uint64_t done_ = 0;  // bytes of the files that are whole
};

// Makes one file of the snapshot. The value: the bytes that came over the network.
Result<std::uint64_t> fetch_file(const PullPlan& plan, const HubFile& file,
                                 const SnapshotFolder& folder, HubCaller& caller,
                                 const PullEvents& events, Books& books) {
  if (folder.has_file(file)) return std::uint64_t{0};
  const auto lock = MUSTER_TRY(FileLock::take(folder.lock(file), file.path, events));
  std::uint64_t received = 0;
  if (!folder.has_blob(file)) {  // another process may have made it meanwhile
    received =
        MUSTER_TRY(download_blob({.model = plan.options.model,
                                  .revision = plan.options.revision,
                                  .commit = plan.commit,
                                  .file = file,
                                  .folder = folder},
                                 caller, events, [&](std::uint64_t size) { books.show(size); }));
  }
  MUSTER_TRY(folder.link(file));
  return received;
}

}  // namespace

std::uint64_t PullPlan::bytes_all() const {
  std::uint64_t sum = 0;  // at most 1e5 files of 1e12 bytes: it fits
  for (const auto& planned : files) sum += planned.file.size;
  return sum;
}

std::uint64_t PullPlan::bytes_here() const {
  std::uint64_t sum = 0;
  for (const auto& planned : files) sum += planned.bytes_here;
  return sum;
}

Result<PullPlan> plan_pull(const HubAccess& access, const PullOptions& options,
                           const PullEvents& events) {
  MUSTER_TRY(check_options(access, options));
  auto caller = MUSTER_TRY(HubCaller::open(access, events));
  const auto text = MUSTER_TRY(caller.listing(options.model, options.revision));
  const auto listing = parse_hub_listing(text);
  if (!listing) {
    return Error{listing.error().kind,
                 fmt::format("{} answers for {} with no list of files that can be used: {}",
                             access.endpoint, options.model, listing.error().message)};
  }
  if (is_hex(options.revision, kCommitDigits) && listing->commit != options.revision) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{} answers with commit {} where {} was asked for", access.endpoint,
                             listing->commit, options.revision)};
  }
  const SnapshotFolder folder(access.cache, options.model, listing->commit);
  PullPlan plan{.options = options,
                .commit = listing->commit,
                .snapshot = folder.path(),
                .files = {},
                .is_done = folder.has_reference(options.revision)};
  auto chosen = MUSTER_TRY(choose_files(options.model, *listing, options.patterns));
  for (auto& file : chosen) {
    const bool is_here = folder.has_file(file);
    const bool is_whole = is_here || folder.has_blob(file);
    const auto bytes = is_whole ? file.size : std::min(file.size, folder.growing_size(file));
    plan.is_done = plan.is_done && is_here;
    plan.files.push_back({.file = std::move(file), .is_here = is_here, .bytes_here = bytes});
  }
  return plan;
}

Result<std::uint64_t> fetch_files(const HubAccess& access, const PullPlan& plan,
                                  const PullEvents& events) {
  MUSTER_TRY(check_room(access, plan));
  const SnapshotFolder folder(access.cache, plan.options.model, plan.commit);
  MUSTER_TRY(folder.make_folders());
  auto caller = MUSTER_TRY(HubCaller::open(access, events));
  Books books(plan, events);
  std::uint64_t received = 0;
  for (const auto& planned : plan.files) {
    books.begin(planned.file.path);
    received += MUSTER_TRY(fetch_file(plan, planned.file, folder, caller, events, books));
    books.end(planned.file.size);
    if (events.is_cancelled()) return Error{ErrorKind::Cancelled, "interrupted"};
  }
  const auto older =
      plan.options.patterns.empty() ? std::nullopt : folder.fuller_commit(plan.options.revision);
  if (older) {
    events.on_notice(
        fmt::format("{} has moved on to {}, and {} here has files that were not asked "
                    "for now: the name {} still finds that one; a pull without --file "
                    "moves it",
                    plan.options.revision, plan.commit.substr(0, kShownDigits),
                    older->substr(0, kShownDigits), plan.options.model));
  } else {
    MUSTER_TRY(folder.write_reference(plan.options.revision));
  }
  return received;
}

}  // namespace muster
