// Searches of a server: which corpora there are, who may begin, and what the thread beside the loop
// does for one.

#include "serving/corpus_searches.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "spec/pooling.h"

namespace muster {
namespace {

// What a search took against what was thought: the newest counts for an eighth.
constexpr double kNewestShare = 0.125;

// Of a filter's values with those of a field, which are short mostly: about a millisecond.
constexpr std::uint64_t kPairsOfAStep = 1 << 15;

Status check_model(const SearchedOutput& output, const SearchCorpus& corpus,
                   const std::vector<ServedModelStatus>& models) {
  if (model_of(corpus, models) != nullptr) return Done{};
  const auto& record = *corpus.record();
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (model.hash == record.model_hash && model.task == ModelTask::Embed) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} was made with pooling {}, and {} is served with {}: serve it "
                               "with --pooling {}, or run muster embed again",
                               output.out.string(), record.pooling, model.name,
                               pooling_name(model.pooling), record.pooling)};
    }
    names.push_back(model.name);
  }
  if (names.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} was made by {}, and no model that embeds is served: serve that "
                             "one, too",
                             output.out.string(), record.model)};
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} was made by {} as it was then, which is none of the models served "
                           "({}): serve that one, too, or run muster embed again",
                           output.out.string(), record.model, fmt::join(names, ", "))};
}

CallError gone_stale(const std::string& name) {
  return {.error = {ErrorKind::Unavailable,
                    fmt::format("The index {} was written into since the server started, which has "
                                "to be started again",
                                name)},
          .retry_after = {},
          .field = CallField::Other};
}

}  // namespace

// What the thread works on, and what it leaves for the loop.
struct CorpusSearches::Search {
  SearchCall call;
  const Clock& clock;
  std::shared_ptr<RowFilter> filter = {};
  std::optional<Ranking> ranking = {};
  std::variant<QueryHits, CallError> outcome = {};
  double seconds_taken = 0;

  // True: that was all.
  bool step() {
    const TimePoint begin = clock.now();
    if (begin >= call.deadline) return fail({ErrorKind::DeadlineExceeded, "the deadline is over"});
    const bool is_over = take_step();
    seconds_taken += seconds(clock.now() - begin);
    return is_over;
  }

  bool take_step() {
    const auto& corpus = *call.corpus->corpus;
    if (!corpus.check_unchanged()) {
      outcome = gone_stale(call.corpus->name);
      return true;
    }
    if (!ranking && !is_filter_ready(corpus)) return false;
    if (!ranking) return !begin_ranking(corpus);
    const auto is_over = ranking->step();
    if (!is_over) {
      outcome = gone_stale(call.corpus->name);
      return true;
    }
    if (!*is_over) return false;
    outcome = ranking->take();
    return true;
  }

  bool is_filter_ready(const SearchCorpus& corpus) {
    if (!call.filter) return true;
    if (!filter) {
      filter = std::make_shared<RowFilter>(RowFilter::begin(call.filter, corpus.index().fields()));
    }
    return filter->bind(kPairsOfAStep);
  }

  bool begin_ranking(const SearchCorpus& corpus) {
    auto begun =
        Ranking::begin(corpus.vectors(), std::move(call.queries), call.rank, std::move(filter));
    if (!begun) return !fail(begun.error());
    ranking.emplace(*std::move(begun));
    return true;
  }

  bool fail(Error error) {
    outcome = CallError{.error = std::move(error), .retry_after = {}, .field = CallField::Other};
    return true;
  }
};

const ServedModelStatus* model_of(const SearchCorpus& corpus,
                                  const std::vector<ServedModelStatus>& models) {
  const auto& record = corpus.record();
  const auto found = std::find_if(models.begin(), models.end(), [&](const auto& model) {
    return record && model.task == ModelTask::Embed && model.hash == record->model_hash &&
           pooling_name(model.pooling) == record->pooling;
  });
  return found == models.end() ? nullptr : &*found;
}

Result<std::unique_ptr<CorpusSearches>> CorpusSearches::open(
    const std::vector<SearchedOutput>& outputs, const std::vector<ServedModelStatus>& models,
    EventLoop& loop, const Clock& clock) {
  std::unique_ptr<CorpusSearches> searches(new CorpusSearches(loop, clock));
  for (const auto& output : outputs) {
    auto corpus = MUSTER_TRY(SearchCorpus::open(output.out, /*may_lack_record=*/false));
    MUSTER_TRY(check_model(output, *corpus, models));
    searches->corpora_.push_back({.name = output.name, .corpus = std::move(corpus)});
  }
  searches->measure();
  return searches;
}

// One step of a search in each, of a query that is one of its rows, so that the first clients are
// not let in blindly. The pages are in memory: they were read for their hash.
void CorpusSearches::measure() {
  for (const auto& [name, corpus] : corpora_) {
    const auto& vectors = corpus->vectors();
    auto& taken = seconds_per_query_.emplace_back(0);
    if (vectors.row_count() == 0) continue;
    std::vector<float> query(vectors.dim());
    const auto is_read = vectors.read_rows([&] {
      const auto row = vectors.row(0);
      std::copy(row.begin(), row.end(), query.begin());
    });
    auto ranking = Ranking::begin(vectors, {std::move(query)}, {});
    if (!is_read || !ranking) continue;  // cut meanwhile, which a search tells; or a row of zeros
    const TimePoint begin = clock_.now();
    if (!ranking->step()) continue;
    const auto step_count = vectors.row_count() * vectors.dim() / Ranking::kProductsOfAStep + 1;
    taken = seconds(clock_.now() - begin) * static_cast<double>(step_count);
  }
}

Result<const ServedCorpus*> CorpusSearches::find(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& corpus : corpora_) {
    if (corpus.name == name) return &corpus;
    names.push_back(corpus.name);
  }
  if (name.empty() && corpora_.size() == 1) return &corpora_.front();
  if (name.empty()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("which index? There are {}", fmt::join(names, ", "))};
  }
  const auto nearest = nearest_name(name, names);
  return Error{ErrorKind::NotFound,
               nearest ? fmt::format("no index {}; did you mean {}?", name, *nearest)
                       : fmt::format("no index {}; there is {}", name, fmt::join(names, ", "))};
}

StepThread::TaskId CorpusSearches::search(
    SearchCall call, std::function<void(std::variant<QueryHits, CallError>)> on_done) {
  const double backlog = status().backlog_seconds;
  if (backlog > seconds(call.queue_budget)) {
    ++status_.refused_count;
    on_done(CallError{
        .error = {ErrorKind::ResourceExhausted,
                  fmt::format("searches wait for {:.1f} s already, which is above the limit of "
                              "{:.1f} s",
                              backlog, seconds(call.queue_budget))},
        .retry_after = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(backlog)),
        .field = CallField::Other});
    return 0;
  }
  const auto& corpus = *call.corpus;
  const auto query_count = static_cast<double>(call.queries.size());
  const auto work = std::make_shared<Search>(Search{.call = std::move(call), .clock = clock_});
  const auto id = std::make_shared<StepThread::TaskId>(0);
  *id = thread_.run([work] { return work->step(); },
                    [this, work, id, &corpus, query_count, on_done = std::move(on_done)] {
                      end(*id);
                      status_.search_seconds += work->seconds_taken;
                      // With a filter most rows are passed over, and the next search may have none.
                      if (std::holds_alternative<QueryHits>(work->outcome) && !work->call.filter) {
                        double& speed = speed_of(corpus);
                        speed += kNewestShare * (work->seconds_taken / query_count - speed);
                      }
                      on_done(std::move(work->outcome));
                    });
  predicted_.emplace(*id, speed_of(corpus) * query_count);
  ++status_.search_count;
  return *id;
}

void CorpusSearches::end(StepThread::TaskId id) { predicted_.erase(id); }

void CorpusSearches::cancel(StepThread::TaskId id) {
  end(id);
  thread_.cancel(id);
}

CorpusSearchStatus CorpusSearches::status() const {
  CorpusSearchStatus status = status_;
  for (const auto& [id, predicted] : predicted_) status.backlog_seconds += predicted;
  return status;
}

}  // namespace muster
