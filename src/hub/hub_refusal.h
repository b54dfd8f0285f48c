#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "hub/hub_access.h"
#include "hub/transfer.h"

namespace muster {

/// What was asked of a hub, for the sentence that tells of its refusal.
struct HubQuestion {
  std::string_view model;     // "org/name"
  std::string_view revision;  // "main"
  std::string_view file;      // empty: the list of files
};

/// The error for an answer that is no success, or for none: one sentence with what to do.
///
/// Threads: reads the cache's names for the nearest one.
/// Source: huggingface_hub 2.x, utils/_http.py, `hf_raise_for_status` (X-Error-Code).
Error hub_refusal(const HubAccess& access, const HubQuestion& question, const TransferEnd& end);

}  // namespace muster
