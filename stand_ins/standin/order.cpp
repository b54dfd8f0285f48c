// Happens-before, by vector clocks: exact where threads of the host know the same, and blind, never
// wrong, where one thread of the host only knows by luck what another one has waited for.

#include "standin/order.h"

#include <algorithm>

namespace muster::standin {

bool Past::has(const Moment& moment) const {
  return moment.stream < counts_.size() && counts_[moment.stream] >= moment.count;
}

void Past::add(const Moment& moment) {
  if (moment.stream >= counts_.size()) counts_.resize(moment.stream + 1);
  counts_[moment.stream] = std::max(counts_[moment.stream], moment.count);
}

void Past::add(const Past& other) {
  if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
}

std::optional<MemoryUse> UseHistory::conflict(const MemoryUse& next, const Past& past) const {
  const auto is_before = [&](const MemoryUse& earlier) {
    return earlier.at.stream == next.at.stream || past.has(earlier.at);
  };
  if (write_ && !is_before(*write_)) return write_;
  if (!next.is_write) return std::nullopt;
  const auto found = std::find_if_not(reads_.begin(), reads_.end(), is_before);
  return found == reads_.end() ? std::nullopt : std::optional(*found);
}

void UseHistory::add(const MemoryUse& use) {
  if (use.is_write) {
    write_ = use;
    reads_.clear();
    return;
  }
  const auto same = std::find_if(reads_.begin(), reads_.end(), [&](const MemoryUse& earlier) {
    return earlier.at.stream == use.at.stream;
  });
  if (same == reads_.end()) {
    reads_.push_back(use);
  } else {
    *same = use;
  }
}

bool UseHistory::is_over(const Past& past) const {
  return (!write_ || past.has(write_->at)) &&
         std::all_of(reads_.begin(), reads_.end(),
                     [&](const MemoryUse& use) { return past.has(use.at); });
}

void UseHistory::clear() {
  write_.reset();
  reads_.clear();
}

}  // namespace muster::standin
