#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace muster {

/// Tokens of a context that messages leave to the reply.
struct ReplyRoom {
  std::uint32_t least = 0;   // a message that leaves less is refused
  std::uint32_t wanted = 0;  // old messages make room for so many
};

/// least: 64, or all that may be replied, or half of the context, whichever is less. wanted: a
/// whole reply, but a quarter of the context at most; with less, each reply of a long conversation
/// would end as soon as it begins. Threads: pure.
ReplyRoom reply_room(std::uint32_t reply_tokens_most, std::uint32_t context_tokens);

/// The fewest of `pair_count` pairs, the oldest ones, that have to be left out so that `fits` says
/// yes; nullopt where it says no even without all of them. `fits` is given how many are left out,
/// says yes from some number on, and is asked about O(log) numbers. Threads: pure but for `fits`.
std::optional<std::size_t> pairs_left_out(std::size_t pair_count,
                                          const std::function<bool(std::size_t)>& fits);

}  // namespace muster
