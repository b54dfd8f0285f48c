#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "scheduler/admission.h"
#include "serving/flight_table.h"
#include "serving/inference_service.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// A text of a call that has no row yet.
struct CallMiss {
  std::uint32_t position = 0;
  CacheKey key{};  // of no meaning for a pair
};

/// A call that is not answered yet.
struct Call {
  CallId id = 0;
  ModelId model = 0;
  Lane lane = Lane::Bulk;
  FlowId flow = 0;  // whose share of the lane it takes: its caller's
  RequestType type = RequestType::Document;
  bool may_truncate = true;
  TruncationSide side = TruncationSide::Right;
  std::string prompt;          // text of the prompt
  AdmissionRequest admission;  // what it was let in with
  TimePoint begun_at;
  Duration limit{};  // from `begun_at`
  TimePoint deadline = TimePoint::max();

  // Texts, or ids as they are; one that is sent to the fleet leaves an empty place.
  std::vector<std::string> texts;
  std::vector<std::vector<std::uint32_t>> ids;
  /// Of pairs: one for all texts, or one for each; a text that is encoded aside shares its own.
  std::vector<std::shared_ptr<Tokenizer::FirstOfPairs>> queries;
  std::vector<CallMiss> misses;     // in the order of the texts
  std::size_t next_miss = 0;        // the first not yet sent
  std::uint64_t unsent_tokens = 0;  // the estimate of those
  std::shared_ptr<void> aside;      // the first not yet sent, encoded on another thread: while held
  std::vector<ItemKey> items;       // of the flights it waits for
  std::size_t missing_count = 0;
  std::uint64_t token_count = 0;
  std::uint64_t cached_token_count = 0;
  std::uint32_t cached_count = 0;

  std::uint32_t row_size = 0;  // values of a row
  std::vector<float> rows;     // [texts, row_size]; empty as long as it may be refused
  bool has_scores_raw = false;
  bool has_special_tokens = true;  // these three as in TokenizeCall
  bool wants_pieces = false;
  bool skips_special_tokens = true;
  std::vector<TokenizedText> tokenized;
  // One of the three.
  std::function<void(std::variant<EmbedAnswer, CallError>)> on_embedded;
  std::function<void(std::variant<RerankAnswer, CallError>)> on_reranked;
  std::function<void(std::variant<TokenizeAnswer, CallError>)> on_tokenized;

  /// Not before one is found in the cache or the call is let in: a refusal costs no memory.
  void take_memory_of_rows() { rows.resize(admission.text_count * row_size); }

  bool is_of_pairs() const { return !queries.empty(); }

  /// What a text is paired with; nullptr where there are no pairs.
  const std::shared_ptr<Tokenizer::FirstOfPairs>& query_of(std::uint32_t position) const {
    static const std::shared_ptr<Tokenizer::FirstOfPairs> none;
    if (queries.empty()) return none;
    return queries[queries.size() == 1 ? 0 : position];
  }

  /// The place of one text's row, whose memory has been taken.
  std::span<float> row_of(std::uint32_t position) {
    return std::span(rows).subspan(std::size_t{position} * row_size, row_size);
  }
};

/// The calls that are not answered yet, and when each must be.
///
/// Pure. Threads: owned by one loop.
class CallTable {
 public:
  /// A call that is not in the table yet: what is answered at once need not be. Its number is
  /// higher than all before.
  std::unique_ptr<Call> make();

  /// Puts one of `make` into the table.
  Call& add(std::unique_ptr<Call> call);

  /// nullptr when it has been answered or cancelled. Valid until it is taken.
  Call* find(CallId id) const;

  /// Sets the call's deadline; without it the call never expires.
  void set_deadline(Call& call, TimePoint deadline);

  /// Takes the call out.
  std::unique_ptr<Call> take(CallId id);

  std::optional<TimePoint> next_deadline() const;

  /// A call whose deadline has come.
  std::optional<CallId> find_expired(TimePoint now) const;

  std::size_t count() const { return calls_.size(); }
  std::size_t count_of(ModelId model) const;
  std::vector<CallId> ids() const;

 private:
  std::unordered_map<CallId, std::unique_ptr<Call>> calls_;
  std::multimap<TimePoint, CallId> deadlines_;
  CallId next_id_ = 1;
};

}  // namespace muster
