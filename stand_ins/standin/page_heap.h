#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace muster::standin {

/// The unit in which memory is handed out and protected. Source: x86-64 and arm64 Linux with pages
/// of 4 KiB; where pages are larger, PageStore refuses.
inline constexpr std::size_t kPageSize = 4096;

/// `size` in whole pages, at least one.
std::size_t whole_pages(std::size_t size);

/// Which pages of a range of addresses are taken: first fit. A page that nobody has lies behind
/// every block, so that what runs over its end does not meet another block.
///
/// Threads: not thread-safe; its owner's.
class PageHeap {
 public:
  /// Shapes: size in bytes, whole pages.
  explicit PageHeap(std::size_t size);

  /// Where the new block begins, at a page; nullopt where no gap is long enough.
  std::optional<std::size_t> take(std::size_t size);

  /// The block that begins there, which was taken.
  void give_back(std::size_t begin);

  /// The taken block that `place` lies in: where it begins and its whole pages; nullopt outside of
  /// all.
  struct Extent {
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  std::optional<Extent> block_at(std::size_t place) const;

 private:
  std::map<std::size_t, std::size_t> free_;   // begin and size of each gap
  std::map<std::size_t, std::size_t> taken_;  // of each block, without the page behind it
};

}  // namespace muster::standin
