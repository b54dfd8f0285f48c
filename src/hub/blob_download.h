#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/hub_caller.h"
#include "hub/hub_listing.h"
#include "hub/snapshot_folder.h"

namespace muster {

/// One file on its way into the cache.
struct BlobRequest {
  const std::string& model;     // "org/name"
  const std::string& revision;  // as it was asked for
  const std::string& commit;
  const HubFile& file;
  const SnapshotFolder& folder;
};

/// Makes the blob of a file whole: goes on with what an earlier run left, compares all of it with
/// the hash that the hub states, and only then gives it its name. Whoever calls holds its lock.
///
/// on_size: told how much of it is here, with each piece and when it begins anew. The value: the
/// bytes that came over the network.
///
/// Errors: Corrupt, naming the file, when its bytes are not those that the hub states; what had
/// come is removed then. Otherwise it stays for the next run: Cancelled; those of HubCaller;
/// ResourceExhausted (disk full).
Result<std::uint64_t> download_blob(const BlobRequest& request, HubCaller& caller,
                                    const PullEvents& events,
                                    const std::function<void(std::uint64_t)>& on_size);

/// "bytes 5-9/10" as what it says; false when it is not that form. The total may be `*`.
/// Source: RFC 9110, section 14.4. Threads: pure.
bool is_content_range(std::string_view text, std::uint64_t from, std::uint64_t size);

}  // namespace muster
