// A doubly linked list through the entries' first blocks: constant time for a hit, a put and an
// eviction, and no allocation.

#include "cache/recency_list.h"

namespace muster {

void RecencyList::add_newest(BlockIndex entry) {
  auto& head = pool_.entry(entry);
  head.newer = kNoBlock;
  head.older = newest_;
  if (newest_ != kNoBlock) {
    pool_.entry(newest_).newer = entry;
  } else {
    oldest_ = entry;
  }
  newest_ = entry;
}

void RecencyList::add_oldest(BlockIndex entry) {
  auto& head = pool_.entry(entry);
  head.older = kNoBlock;
  head.newer = oldest_;
  if (oldest_ != kNoBlock) {
    pool_.entry(oldest_).older = entry;
  } else {
    newest_ = entry;
  }
  oldest_ = entry;
}

void RecencyList::remove(BlockIndex entry) {
  const auto& head = pool_.entry(entry);
  if (head.newer != kNoBlock) {
    pool_.entry(head.newer).older = head.older;
  } else {
    newest_ = head.older;
  }
  if (head.older != kNoBlock) {
    pool_.entry(head.older).newer = head.newer;
  } else {
    oldest_ = head.newer;
  }
}

void RecencyList::touch(BlockIndex entry) {
  if (entry != newest_) {
    remove(entry);
    add_newest(entry);
  }
}

}  // namespace muster
