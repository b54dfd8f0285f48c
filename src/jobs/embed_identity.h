#pragma once

#include <string_view>

#include "base/hash.h"
#include "dataset/run_journal.h"
#include "dataset/text_reader.h"
#include "jobs/embed.h"
#include "jobs/embed_backend.h"

namespace muster {

/// Everything that can change a byte of a run's output. The first entries are those that a user
/// sets by name.
RunIdentity embed_identity(const EmbedOptions& options, const EmbedModel& model);

/// The part of it that is known before any device is: without the equality class, and without the
/// precision where none was asked for.
RunIdentity identity_as_asked(const EmbedOptions& options, const RunIdentity& identity);

/// Adds a record to the hash over all records of a run.
void hash_record(Hash128& hash, std::uint64_t line, std::string_view id, std::string_view text);

}  // namespace muster
