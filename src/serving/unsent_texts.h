#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "scheduler/fair_order.h"
#include "serving/flight_table.h"

namespace muster {

/// The calls of one lane that have texts to tokenise and send, and how much those are. The keys
/// take turns as they do behind it (scheduler/fair_order.h), here by bytes, which is what
/// tokenising costs: whoever has tokenised the least goes first, a key's own calls in their order.
///
/// Pure. Threads: owned by one loop.
class UnsentTexts {
 public:
  /// A call that was let in, of so many texts and tokens, as estimated.
  void add(CallId call, FlowId flow, std::uint64_t texts, std::uint64_t tokens);

  /// A call that was dropped has a text to send again: the next of its key.
  void add_first(CallId call, FlowId flow);

  /// The call whose turn it is; it may have ended since. nullopt: none waits.
  std::optional<CallId> first() const;

  /// That one has nothing to send, or not now.
  void drop_first();

  /// A text of this key was tokenised.
  void charge(FlowId flow, std::uint64_t bytes);

  /// So much is sent, or its call has ended.
  void subtract(FlowId flow, std::uint64_t texts, std::uint64_t tokens);

  std::uint64_t text_count() const { return texts_; }
  std::uint64_t token_count() const { return tokens_; }

  /// As FairOrder::tokens_ahead.
  std::uint64_t tokens_ahead(FlowId flow, std::uint64_t tokens) const;

 private:
  struct Flow {
    std::deque<CallId> calls;
    std::uint64_t rank = 0;  // of its next text: bytes of it before, from when it began
    std::uint64_t tokens = 0;
  };
  Flow& waiting(FlowId flow);
  void forget_if_empty();

  std::unordered_map<FlowId, Flow> flows_;  // as many as there are keys; none while nothing waits
  std::set<std::pair<std::uint64_t, FlowId>> turns_;  // by rank: those with calls
  std::uint64_t virtual_time_ = 0;                    // the rank of the last text
  std::uint64_t texts_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace muster
