#pragma once

#include "base/result.h"
#include "jobs/run_files.h"

namespace muster {

/// Whether everything that a run would replace under its names is of an earlier run. OUT and index
/// are of one if the record beside them speaks of files of their size, or a journal says that all
/// is whole and some have their names; record, journal and what is ahead say it of themselves by
/// how they begin. What another kind of run has made is not this one's to replace.
/// An empty file is nobody's. OUT.part and the part of the index are left to `may_begin`.
///
/// Errors: InvalidArgument, naming the first file that is somebody's own; those of reading it, of
/// a damaged record too.
Status check_none_foreign(const RunFiles& files);

}  // namespace muster
