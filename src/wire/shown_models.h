#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "spec/serving.h"

namespace muster {

/// The models of a worker, written over one of its own arguments, so that `ps` and `muster top` can
/// say what each worker does: /proc/PID/cmdline is that memory of the process.
///
/// Source: proc(5), /proc/PID/cmdline: a process may change its arguments after it has started.
/// Threads: thread-safe.
class ShownModels {
 public:
  /// argument: one of `main`'s, which is written over up to its end; nullptr: there is none.
  explicit ShownModels(char* argument);

  /// model_folder: a folder, a snapshot in a hub cache, or a GGUF file; its name is shown.
  void add(ModelId id, std::string_view model_folder);
  void remove(ModelId id);

 private:
  void write() const MUSTER_REQUIRES(mutex_);

  char* const argument_;
  const std::size_t room_;
  Mutex mutex_;
  std::map<ModelId, std::string> names_ MUSTER_GUARDED_BY(mutex_);
};

/// "all-MiniLM-L6-v2" for "/models/all-MiniLM-L6-v2/" and for
/// "/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/c9745ed1".
std::string shown_model_name(std::string_view model_folder);

}  // namespace muster
