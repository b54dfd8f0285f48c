#pragma once

#include <cstdint>

namespace muster {

/// Whose fault it is when a worker that lives answers that it cannot compute a batch, or answers a
/// row that is not finite. An error that names the texts (a token that the model does not have) is
/// theirs at once.
///
/// Out of memory is nobody's fault: others may hold the memory. Several texts get smaller batches
/// (token_budget.h), and one text beside other batches is tried again with the device to itself.
/// Where it finds no memory even then, the canary is asked. If that finds none either, the device
/// gets no work until it does (memory_wait.h), and the text waits again; else the text is tried as
/// in 2 and 3, but counts against no device.
///
/// For all else, in this order:
///
/// 1. The device gets no more work, and its canary is asked: a text that is known to be right. If
///    that fails too, is not finite, or does not come, the device is at fault: its worker ends, and
///    its texts go back without a strike. A CUDA error that sticks is found so, after one batch,
///    and also on a machine with one device.
/// 2. If the canary is right, the batch runs once more as it is, on another device where there is
///    one, and the device works on. If the other device can, the first was at fault: at once where
///    its row was not finite (it would have been a wrong vector), else the third time.
/// 3. If the other device cannot either, the texts run one by one; the one that fails alone gets
///    its own error, the others their vectors, on the word of two devices, or of one that has done
///    other texts since it was started. A row that is not finite twice is told without that: it is
///    known whose row it is.
/// 4. Three batches in a row with nothing served between them are the device's fault, whatever its
///    canary says: it fails at everything that is not the canary.
/// 5. A text that three workers failed at counts as suspected from then on, also where the devices
///    were at fault, so that a text which breaks devices for good does not go round for ever.
///
/// A device at fault is quarantined and started again; it works again when its canary is right.
/// After three such ends without a hundred batches between, a job gives it up, and a server's
/// restarts have a back-off (restart_policy.h).
///
/// Here is what is counted of one device. Pure. Threads: owned by the coordinator's loop.
class DeviceBlame {
 public:
  static constexpr std::uint32_t kTextFaultsMost = 3;

  /// A batch failed, and the canary was right or there is none; true: the device is at fault.
  bool on_failed();

  /// Another device did what this one could not; true: this one is at fault.
  bool on_outdone(bool was_not_finite);

  void on_served() {
    failed_count_ = 0;
    has_served_ = true;
  }

  /// Whether a text that fails here alone is to blame. struck_here: this device has failed at it
  /// before, no other has.
  bool may_blame_text(bool struck_here) const { return !struck_here || has_served_; }

  /// A new worker.
  void forget() { *this = {}; }

 private:
  std::uint32_t failed_count_ = 0;   // in a row
  std::uint32_t outdone_count_ = 0;  // of this worker
  bool has_served_ = false;          // likewise
};

}  // namespace muster
