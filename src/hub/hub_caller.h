#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/hub_access.h"
#include "hub/hub_refusal.h"
#include "hub/pull_events.h"
#include "hub/transfer.h"

namespace muster {

/// Counts the attempts at one thing and waits between them.
///
/// Threads: as HubCaller.
class RetryBook {
 public:
  /// What failed is no success of its own; more bytes came than ever before.
  void note_gain() { attempts_ = 0; }

 private:
  friend class HubCaller;
  int attempts_ = 0;  // in a row, without a gain
  int attempts_all_ = 0;
};

/// Asks a hub, and asks again where that can help: a connection that broke, 408, 429 and 5xx.
///
/// Threads: not thread-safe; one thread makes and uses it.
class HubCaller {
 public:
  /// access, events: must outlive it. Errors: those of Transfer::open.
  static Result<HubCaller> open(const HubAccess& access, const PullEvents& events);

  /// The body of `GET /api/models/MODEL/revision/REVISION?blobs=true`. A hub that cannot be reached
  /// is told at once: nothing says yet that it ever could.
  ///
  /// Errors: those of hub_refusal; Corrupt when it is larger than any list of files; Cancelled.
  Result<std::string> listing(std::string_view model, std::string_view revision);

  /// One attempt at a file's bytes from `from` on.
  Result<TransferEnd> file_once(std::string_view model, std::string_view commit,
                                std::string_view path, std::uint64_t from,
                                const TransferTake& take);

  /// After an attempt that did not bring everything: waits, longer each time, or as long as the
  /// answer asks for.
  ///
  /// Errors: hub_refusal's where trying again cannot help or has been tried enough; Cancelled.
  Status wait_to_retry(const HubQuestion& question, const TransferEnd& end, RetryBook& book);

 private:
  HubCaller(const HubAccess& access, const PullEvents& events, std::unique_ptr<Transfer> transfer)
      : access_(access), events_(events), transfer_(std::move(transfer)) {}

  const HubAccess& access_;
  const PullEvents& events_;
  std::unique_ptr<Transfer> transfer_;
};

/// Percent-encodes what is not unreserved; slashes stay if `keeps_slashes`. Source: RFC 3986, 2.3.
std::string encode_url_part(std::string_view text, bool keeps_slashes);

}  // namespace muster
