#pragma once

namespace muster {

/// A member of an IdleList.
class IdleLink {
 public:
  IdleLink() = default;
  IdleLink(const IdleLink&) = delete;
  IdleLink& operator=(const IdleLink&) = delete;

 private:
  friend class IdleList;
  IdleLink* before_ = this;
  IdleLink* after_ = this;
};

/// Those that do nothing, the longest idle first. It owns none and allocates nothing, because a
/// connection enters and leaves it with every request.
///
/// Owner: a member outlives its being in the list. Threads: owned by one loop.
class IdleList {
 public:
  /// At the end, wherever it was before.
  void add(IdleLink& link) {
    remove(link);
    link.before_ = ends_.before_;
    link.after_ = &ends_;
    ends_.before_->after_ = &link;
    ends_.before_ = &link;
  }

  /// One that is in no list stays so.
  static void remove(IdleLink& link) {
    link.before_->after_ = link.after_;
    link.after_->before_ = link.before_;
    link.before_ = link.after_ = &link;
  }

  /// nullptr: nobody is idle.
  IdleLink* longest() { return ends_.after_ == &ends_ ? nullptr : ends_.after_; }

 private:
  IdleLink ends_;
};

}  // namespace muster
