#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jobs/field_filter.h"
#include "jobs/ranking.h"
#include "jobs/search_corpus.h"
#include "serving/inference_service.h"
#include "serving/step_thread.h"

namespace muster {

/// What a server searches under one name.
struct ServedCorpus {
  std::string name;
  std::unique_ptr<const SearchCorpus> corpus;
};

/// The hits of each query.
using QueryHits = std::vector<std::vector<SearchHit>>;

/// A search in one corpus; its queries are embedded already.
struct SearchCall {
  const ServedCorpus* corpus = nullptr;
  std::vector<std::vector<float>> queries = {};
  RankOptions rank = {};
  std::shared_ptr<const FieldFilter> filter = {};  // nullptr: none
  TimePoint deadline = {};
  Duration queue_budget = {};  // refused when what is before it is predicted to take longer
};

struct CorpusSearchStatus {
  double backlog_seconds = 0;  // predicted, of the searches that run and wait
  std::uint64_t search_count = 0;
  std::uint64_t refused_count = 0;
  double search_seconds = 0;  // that their steps have taken
};

/// The corpora of a server, and the searches in them, on one thread beside the loop.
///
/// Threads: belongs to the loop's.
class CorpusSearches {
 public:
  /// Reads every output once, checks it against its record and the models that are served, and
  /// measures how fast it is searched. Blocks for as long as that takes.
  ///
  /// Errors: those of SearchCorpus::open; InvalidArgument where no served model is the one that
  /// made an output, in one sentence.
  static Result<std::unique_ptr<CorpusSearches>> open(const std::vector<SearchedOutput>& outputs,
                                                      const std::vector<ServedModelStatus>& models,
                                                      EventLoop& loop, const Clock& clock);

  const std::vector<ServedCorpus>& corpora() const { return corpora_; }

  /// Of this name; the only one for the empty name. Errors: NotFound, naming the nearest;
  /// InvalidArgument for the empty name where there are several.
  Result<const ServedCorpus*> find(std::string_view name) const;

  /// `on_done` is called once on the loop, perhaps before this returns; never after `cancel`.
  StepThread::TaskId search(SearchCall call,
                            std::function<void(std::variant<QueryHits, CallError>)> on_done);
  void cancel(StepThread::TaskId id);

  /// For what else takes long with hits: reading their texts.
  StepThread& thread() { return thread_; }

  CorpusSearchStatus status() const;

 private:
  struct Search;

  CorpusSearches(EventLoop& loop, const Clock& clock) : clock_(clock), thread_(loop) {}

  void measure();
  double& speed_of(const ServedCorpus& corpus) {
    return seconds_per_query_[static_cast<std::size_t>(&corpus - corpora_.data())];
  }
  void end(StepThread::TaskId id);

  const Clock& clock_;
  std::vector<ServedCorpus> corpora_;
  std::vector<double> seconds_per_query_;           // by corpus, as measured
  std::map<StepThread::TaskId, double> predicted_;  // seconds, of each search that is not done
  CorpusSearchStatus status_;
  StepThread thread_;  // ends before the corpora go
};

/// The served model whose vectors can be compared with those of a corpus: of the same files and
/// pooling. nullptr: none is loaded.
const ServedModelStatus* model_of(const SearchCorpus& corpus,
                                  const std::vector<ServedModelStatus>& models);

}  // namespace muster
