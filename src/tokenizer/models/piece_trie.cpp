// Building the double array: nodes are filled depth first, and each looks for a base from which
// all its children fall on free units. Free units form a linked list, so full parts of the array
// are never looked at. The number of tries is bounded. Then a block is added, which trades a
// little memory for a build in linear time.

#include "tokenizer/models/piece_trie.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace muster {
namespace {

constexpr std::size_t kBlockSize = 256;

// How many free places are tried for the children of a node before a block is added. One child fits
// anywhere; the nodes with many come first, while much is free.
constexpr int kPlacesTriedMax = 512;

}  // namespace

class PieceTrie::Builder {
 public:
  explicit Builder(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
    std::sort(pieces_.begin(), pieces_.end());
    add_block();
    take(0);  // the root
  }

  /// False if the trie grows too large.
  bool build() {
    std::vector<Node> open = {{0, 0, pieces_.size(), 0}};
    while (!open.empty() && units_.size() <= kUnitCountMax) {
      const Node node = open.back();
      open.pop_back();
      add_children(node, open);
    }
    return units_.size() <= kUnitCountMax;
  }

  std::vector<Unit> units() && { return std::move(units_); }

 private:
  /// The pieces [begin, end) share their first `depth` bytes, which lead to `unit`.
  struct Node {
    std::uint32_t unit = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
  };

  /// A list of the free units through all of them; the list's ends are kNone.
  struct Links {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    bool is_free = true;
  };

  unsigned char byte_at(std::size_t piece, std::size_t depth) const {
    return static_cast<unsigned char>(pieces_[piece].first[depth]);
  }

  void add_children(Node node, std::vector<Node>& open) {
    if (node.begin < node.end && pieces_[node.begin].first.size() == node.depth) {
      units_[node.unit].id = node.depth > 0 ? pieces_[node.begin].second : kNone;
      ++node.begin;
    }
    groups_.clear();
    for (std::size_t i = node.begin; i < node.end; ++i) {
      if (groups_.empty() || byte_at(i, node.depth) != groups_.back().byte) {
        groups_.push_back({byte_at(i, node.depth), i});
      }
    }
    if (groups_.empty()) {
      return;
    }
    const std::uint32_t base = find_base();
    units_[node.unit].base = base;
    for (std::size_t i = groups_.size(); i > 0; --i) {
      const Group& group = groups_[i - 1];
      const std::uint32_t child = base ^ group.byte;
      take(child);
      units_[child].parent = node.unit;
      const std::size_t end = i < groups_.size() ? groups_[i].begin : node.end;
      open.push_back({child, group.begin, end, node.depth + 1});
    }
  }

  /// A base from which all groups lead to free units.
  std::uint32_t find_base() {
    int tried = 0;
    for (std::uint32_t place = first_free_; place != kNone && tried < kPlacesTriedMax;
         place = links_[place].next, ++tried) {
      const std::uint32_t base = place ^ groups_.front().byte;
      const bool fits = std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
        return links_[base ^ group.byte].is_free;
      });
      if (fits) {
        return base;
      }
    }
    return add_block();
  }

  /// The first unit of a block of free ones.
  std::uint32_t add_block() {
    const auto begin = static_cast<std::uint32_t>(units_.size());
    units_.resize(units_.size() + kBlockSize);
    links_.resize(units_.size());
    for (std::uint32_t unit = begin; unit < units_.size(); ++unit) {
      links_[unit].previous = last_free_;
      (last_free_ == kNone ? first_free_ : links_[last_free_].next) = unit;
      last_free_ = unit;
    }
    return begin;
  }

  void take(std::uint32_t unit) {
    Links& links = links_[unit];
    (links.previous == kNone ? first_free_ : links_[links.previous].next) = links.next;
    (links.next == kNone ? last_free_ : links_[links.next].previous) = links.previous;
    links.is_free = false;
  }

  struct Group {
    unsigned char byte;
    std::size_t begin;  // the first piece that goes on with it
  };

  std::vector<Piece> pieces_;
  std::vector<Unit> units_;
  std::vector<Links> links_;
  std::vector<Group> groups_;
  std::uint32_t first_free_ = kNone;
  std::uint32_t last_free_ = kNone;
};

Result<PieceTrie> PieceTrie::make(std::vector<Piece> pieces) {
  for (const auto& [text, id] : pieces) {
    if (text.size() > kPieceSizeMax) {
      return Error{ErrorKind::Unsupported,
                   "tokenizer.json: a piece of the vocabulary has more than 1024 bytes: " +
                       std::string(text.substr(0, 32)) + "..."};
    }
  }
  Builder builder(std::move(pieces));
  if (!builder.build()) {
    return Error{ErrorKind::Unsupported, "tokenizer.json: the vocabulary is too large for a trie"};
  }
  return PieceTrie(std::move(builder).units());
}

}  // namespace muster
