// Whose turn it was, by what was asked for and what was given away; nothing is asked of FairOrder.

#include "simulator/turn_checks.h"

#include <fmt/format.h>

#include <utility>

namespace muster {

TurnChecks::TurnChecks(std::uint64_t cost_most, Violated violated)
    : cost_most_(cost_most), violated_(std::move(violated)) {}

void TurnChecks::on_submitted(StreamId id, FlowId flow, std::uint64_t cost) {
  auto& asked = asked_[flow];
  waiting_[id] = {.flow = flow, .cost = cost, .asked = asked};
  asked += cost;
}

void TurnChecks::on_given(StreamId id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) {
    return violated_(fmt::format("stream {} is given away and does not wait", id));
  }
  const auto given = found->second;
  waiting_.erase(found);
  auto& last = last_given_[given.flow];
  if (id < last) violated_(fmt::format("stream {} is given away behind {}", id, last));
  last = id;
  for (auto& [other, waiting] : waiting_) {
    if (other > id) return;
    if (waiting.flow == given.flow) continue;
    auto& tokens = waiting.overtaken_by[given.flow];
    tokens += given.cost;
    if (tokens <= waiting.asked + cost_most_) continue;
    violated_(fmt::format("stream {} starves: {} tokens of another caller overtook it, and {} may",
                          other, tokens, waiting.asked + cost_most_));
  }
}

std::map<FlowId, std::size_t> TurnChecks::waiting_by_flow() const {
  std::map<FlowId, std::size_t> counts;
  for (const auto& [id, waiting] : waiting_) ++counts[waiting.flow];
  return counts;
}

}  // namespace muster
