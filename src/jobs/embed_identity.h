#pragma once

#include <optional>

#include "dataset/run_journal.h"
#include "jobs/embed.h"
#include "jobs/embed_backend.h"
#include "spec/precision.h"

namespace muster {

/// Everything that can change a byte of a run's output. The first entries are those that a user
/// sets by name.
RunIdentity embed_identity(const EmbedOptions& options, const EmbedModel& model);

/// The precision that a run was computed in; nullopt: the identity names none that is known.
std::optional<Precision> embed_precision_in(const RunIdentity& identity);

/// The part of it that is known before any device is: without the equality class, and without the
/// precision where none was asked for.
RunIdentity identity_as_asked(const EmbedOptions& options, const RunIdentity& identity);

/// The same for a run that goes on: where that one was begun by an earlier version, it has an entry
/// of how bad records were treated, which nobody asks for any more.
RunIdentity identity_as_begun(RunIdentity identity, const RunIdentity& then);

/// Whether each line of OUT is an object with what the record is called and keeps, and not its bare
/// numbers: .jsonl, where ids or fields were asked for.
bool writes_objects(const EmbedOptions& options);

}  // namespace muster
