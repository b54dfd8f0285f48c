#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>

namespace muster {

/// The caller's number for one text. Older texts have lower keys.
using ItemKey = std::uint64_t;

/// When a text's turn is.
struct ItemTurn {
  std::uint64_t rank = 0;
  ItemKey key = 0;
  // clang-tidy 14 takes the 0 of a defaulted comparison for a pointer.
  auto operator<=>(const ItemTurn&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// Turns in their order, each once. Most texts come in this order and leave from the front: theirs
/// are in a row, where a text takes no memory of its own and nothing is balanced. Those that come
/// before the last of the row (texts of a flow with less work, texts that a group gave back) are in
/// a tree beside it. The first of all is the first of one of the two.
///
/// Cost: of the row, `add` and `remove_first` are constant, `remove` moves those before or behind;
/// of the tree all are logarithmic.
/// Threads: not thread-safe; owned by one loop.
class TurnOrder {
 public:
  bool empty() const { return row_.empty() && tree_.empty(); }
  std::size_t size() const { return row_.size() + tree_.size(); }

  /// Only while there is one.
  const ItemTurn& first() const { return is_first_in_tree() ? *tree_.begin() : row_.front(); }

  /// turn: one that is not here.
  void add(const ItemTurn& turn) {
    if (row_.empty() || row_.back() < turn) {
      row_.push_back(turn);
    } else {
      tree_.insert(turn);
    }
  }

  /// Only while there is one.
  void remove_first() {
    if (is_first_in_tree()) {
      tree_.erase(tree_.begin());
    } else {
      row_.pop_front();
    }
  }

  /// False: it is not here.
  bool remove(const ItemTurn& turn) {
    if (tree_.erase(turn) > 0) return true;
    const auto found = std::lower_bound(row_.begin(), row_.end(), turn);
    if (found == row_.end() || *found != turn) return false;
    row_.erase(found);
    return true;
  }

  /// Calls `visitor(turn)` for each, in no order.
  template <typename Visitor>
  void visit(const Visitor& visitor) const {
    std::for_each(row_.begin(), row_.end(), visitor);
    std::for_each(tree_.begin(), tree_.end(), visitor);
  }

 private:
  bool is_first_in_tree() const {
    return !tree_.empty() && (row_.empty() || *tree_.begin() < row_.front());
  }

  std::deque<ItemTurn> row_;  // each before the next
  std::set<ItemTurn> tree_;
};

}  // namespace muster
