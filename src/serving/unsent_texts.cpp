// Start-time fair queueing over callers for texts that are not tokenised yet, so their cost is
// counted in bytes. A caller's rank moves on as its texts are sent; one that begins to wait starts
// at the virtual time of now, so idle time earns no credit. The order holds one entry for each
// waiting caller. Source: Goyal, Vin & Cheng 1996, "Start-time fair queuing".

#include "serving/unsent_texts.h"

#include <algorithm>

namespace muster {

void UnsentTexts::add(CallId call, FlowId flow, std::uint64_t texts, std::uint64_t tokens) {
  auto& own = waiting(flow);
  own.calls.push_back(call);
  own.tokens += tokens;
  texts_ += texts;
  tokens_ += tokens;
}

void UnsentTexts::add_first(CallId call, FlowId flow) { waiting(flow).calls.push_front(call); }

/// The flow, which gets a call now.
UnsentTexts::Flow& UnsentTexts::waiting(FlowId flow) {
  auto& own = flows_[flow];
  if (own.calls.empty()) {
    own.rank = std::max(virtual_time_, own.rank);
    turns_.insert({own.rank, flow});
  }
  return own;
}

std::optional<CallId> UnsentTexts::first() const {
  if (turns_.empty()) return std::nullopt;
  return flows_.at(turns_.begin()->second).calls.front();
}

void UnsentTexts::drop_first() {
  auto& own = flows_.at(turns_.begin()->second);
  own.calls.pop_front();
  if (own.calls.empty()) turns_.erase(turns_.begin());
  forget_if_empty();
}

// The entry is taken out before the rank changes: the set is ordered by the rank.
void UnsentTexts::charge(FlowId flow, std::uint64_t bytes) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  auto& own = found->second;
  virtual_time_ = std::max(virtual_time_, own.rank);
  const bool has_turn = turns_.erase({own.rank, flow}) > 0;
  own.rank += bytes;
  if (has_turn) turns_.insert({own.rank, flow});
}

void UnsentTexts::subtract(FlowId flow, std::uint64_t texts, std::uint64_t tokens) {
  flows_.at(flow).tokens -= tokens;
  texts_ -= texts;
  tokens_ -= tokens;
  forget_if_empty();
}

// While nothing waits all keys are alike.
void UnsentTexts::forget_if_empty() {
  if (texts_ != 0 || !turns_.empty()) return;
  flows_.clear();
  virtual_time_ = 0;
}

// Of another caller no more goes first than the caller's own work, since both take turns.
std::uint64_t UnsentTexts::tokens_ahead(FlowId flow, std::uint64_t tokens) const {
  const auto found = flows_.find(flow);
  const auto own = found == flows_.end() ? 0 : found->second.tokens;
  auto sum = own;
  for (const auto& [id, other] : flows_) {
    if (id != flow) sum += std::min(other.tokens, own + tokens);
  }
  return sum;
}

}  // namespace muster
