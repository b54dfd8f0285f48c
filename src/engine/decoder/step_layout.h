#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoder/decoder_model.h"

namespace muster::engine {

/// The rows of a step that products take: at least as many as there are tokens or logits.
struct StepRows {
  std::int64_t tokens = 0;
  std::int64_t logits = 0;
};

/// The numbers of one step for a device, as lists of one array, so that they travel in one copy.
///
/// The new tokens of all sequences stand one behind the other. A product wants one of a few row
/// counts, so rows of padding follow: each is a sequence by itself, of token 0 at position 0, whose
/// key and value go to a spare slot of the cache. So every row is defined, and no real one sees it.
///
/// What sequences see is gathered a group of whole sequences at a time, so that a step of many
/// sequences over one long prefix has no more keys at once than one of few.
///
/// A slot is one position of the cache: block x 16 + place.
///
/// Threads: immutable.
class StepLayout {
 public:
  /// rows: as many logits rows as tokens that want them, or more; those of padding repeat row 0.
  /// keys_most: of a group, unless one sequence has more.
  StepLayout(std::span<const StepSequence> sequences, const StepRows& rows,
             std::uint32_t spare_slot, std::uint64_t keys_most);

  /// Where a list stands in `numbers`.
  struct List {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };

  /// Sequences whose keys are gathered at once. Their rows stand one behind the other.
  struct Group {
    std::int64_t first_row = 0;
    std::int64_t row_count = 0;
    List query_offsets;  // [sequences + 1], from 0; those of padding too
    List key_offsets;    // [sequences + 1], from 0
    List key_slots;      // [keys]: all that the sequences see, and behind them the spare slot up to
                         // as many as are gathered (spec/gpu_decoder_memory.h)
    std::int64_t longest_query = 1;
    std::int64_t longest_key = 1;
  };

  const std::vector<std::int32_t>& numbers() const { return numbers_; }
  List ids() const { return ids_; }              // [rows]
  List positions() const { return positions_; }  // [rows]
  List slots() const { return slots_; }          // [rows]: of a token's own key and value
  List logit_rows() const { return logit_rows_; }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  /// Appends `value(i)` for every i below count.
  template <typename Value>
  List add(std::int64_t count, Value&& value);

  std::vector<std::int32_t> numbers_;
  List ids_, positions_, slots_, logit_rows_;
  std::vector<Group> groups_;
};

}  // namespace muster::engine
