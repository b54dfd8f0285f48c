#pragma once

#include <cstdint>
#include <unordered_map>

namespace muster {

/// Who a text belongs to, as shares are counted: an API key.
using FlowId = std::uint64_t;

/// Start-time fair queueing: each flow's texts are ranked by the tokens that the flow has asked
/// for, counted from what is being served when it begins, and the lowest rank goes first. Of two
/// flows that always have something waiting each gets half of the tokens, however much one of them
/// asks for, and what one leaves the other has. Alone, a flow's texts keep their order.
///
///   rank   = max(virtual time, finish of the flow's last text)
///   finish = rank + tokens
///   virtual time: the rank of the text that went to a device last, never falling
///
/// Pure. Threads: owned by one loop.
/// Source: Goyal, Vin and Cheng 1996, "Start-time fair queuing: a scheduling algorithm for
/// integrated services packet switching networks", SIGCOMM.
class FairOrder {
 public:
  /// The rank of a text that waits from now on.
  std::uint64_t add(FlowId flow, std::uint64_t tokens);

  /// A text that was given away waits again, with the rank that it had.
  void add_again(FlowId flow, std::uint64_t tokens);

  /// A text goes to a device.
  void on_given(FlowId flow, std::uint64_t tokens, std::uint64_t rank);

  /// A text waits no more and was not computed. Its flow is not charged for it where it is the
  /// flow's last one; behind it others have their ranks already. So whoever removes several begins
  /// with the last.
  void on_removed(FlowId flow, std::uint64_t tokens, std::uint64_t rank);

  /// Of the tokens that wait, those that go before the last of `tokens` more of this flow: all of
  /// its own, and of each other flow at most as many as it has with these.
  std::uint64_t tokens_ahead(FlowId flow, std::uint64_t tokens) const;

 private:
  struct Flow {
    std::uint64_t finish = 0;
    std::uint64_t waiting = 0;  // tokens
  };
  void take(FlowId flow, std::uint64_t tokens);

  std::unordered_map<FlowId, Flow> flows_;  // as many as there are keys; none while nothing waits
  std::uint64_t waiting_ = 0;
  std::uint64_t virtual_time_ = 0;
};

}  // namespace muster
