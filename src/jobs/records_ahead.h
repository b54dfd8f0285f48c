#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "jobs/record_window.h"

namespace muster {

/// Results of a run that were computed before their turn, in a file beside its output until they
/// are written where they belong: rows_ahead.h, replies_ahead.h. A result belongs to a text and not
/// to a place in the input alone: where the input has changed meanwhile, it is not used.
///
/// Threads: not thread-safe; owned by the loop of the run.
class RecordsAhead {
 public:
  virtual ~RecordsAhead() = default;

  /// Gives a record that was just read the result that an earlier run has computed of it, with what
  /// the output says of its tokens; false where there is none.
  virtual bool take(WindowRecord& record) = 0;

  /// Keeps the results of `waiting`, durably; those of the first `durable_count` records of the
  /// input are where they belong for good. What does not fit is left out, and those that were kept
  /// before stay.
  ///
  /// Errors: those of writing (a full disk: ResourceExhausted).
  virtual Status keep(std::uint64_t durable_count,
                      std::span<const WindowRecord* const> waiting) = 0;

  /// Records of which a resumed run would find a result here.
  virtual std::uint64_t durable_count() const = 0;
};

}  // namespace muster
