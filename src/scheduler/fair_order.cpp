// Start-time fair queueing. A text's rank is the virtual time at which its flow's earlier texts
// end, so flows that wait share the devices by tokens, however many texts each has sent. A flow
// that was idle starts at the present virtual time and gains nothing by its pause. A rank never
// changes afterwards. Source: Goyal, Vin & Cheng 1996, "Start-time fair queuing".

#include "scheduler/fair_order.h"

#include <algorithm>

namespace muster {

std::uint64_t FairOrder::add(FlowId flow, std::uint64_t tokens) {
  auto& own = flows_[flow];
  const auto rank = std::max(virtual_time_, own.finish);
  own.finish = rank + tokens;
  own.waiting += tokens;
  waiting_ += tokens;
  return rank;
}

void FairOrder::add_again(FlowId flow, std::uint64_t tokens) {
  flows_[flow].waiting += tokens;
  waiting_ += tokens;
}

void FairOrder::on_given(FlowId flow, std::uint64_t tokens, std::uint64_t rank) {
  virtual_time_ = std::max(virtual_time_, rank);
  take(flow, tokens);
}

// Only the last text of a flow gives its time back; ranks behind any other one are given out
// already.
void FairOrder::on_removed(FlowId flow, std::uint64_t tokens, std::uint64_t rank) {
  auto& own = flows_[flow];
  if (own.finish == rank + tokens) own.finish = rank;
  take(flow, tokens);
}

// While nothing waits all flows are alike, and what they had is forgotten. The virtual time goes on
// to the last finish, so that nothing that comes later ranks before what came back.
void FairOrder::take(FlowId flow, std::uint64_t tokens) {
  flows_[flow].waiting -= tokens;
  waiting_ -= tokens;
  if (waiting_ != 0) return;
  for (const auto& [id, last] : flows_) virtual_time_ = std::max(virtual_time_, last.finish);
  flows_.clear();
}

std::uint64_t FairOrder::tokens_ahead(FlowId flow, std::uint64_t tokens) const {
  const auto found = flows_.find(flow);
  const auto own = found == flows_.end() ? 0 : found->second.waiting;
  auto sum = own;
  for (const auto& [id, other] : flows_) {
    if (id != flow) sum += std::min(other.waiting, own + tokens);
  }
  return sum;
}

}  // namespace muster
