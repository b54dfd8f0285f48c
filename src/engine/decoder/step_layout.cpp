// Lays the sequences of a step out one behind the other, in the host's memory.

#include "engine/decoder/step_layout.h"

#include <algorithm>
#include <cstddef>

#include "engine/ops/decoder_kernels.h"
#include "spec/gpu_decoder_memory.h"

namespace muster::engine {
namespace {

std::int32_t slot_of(const StepSequence& sequence, std::size_t position) {
  const auto block = sequence.blocks[position / kKvBlockTokens];
  return static_cast<std::int32_t>(block * kKvBlockTokens + position % kKvBlockTokens);
}

std::int32_t narrow(std::size_t value) { return static_cast<std::int32_t>(value); }

/// One token of a step.
struct Place {
  const StepSequence* sequence = nullptr;  // none: padding
  std::size_t token = 0;

  std::size_t position() const { return sequence->position + token; }
};

std::vector<Place> places_of(std::span<const StepSequence> sequences, std::int64_t row_count) {
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(row_count));
  for (const auto& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.tokens.size(); ++i) places.push_back({&sequence, i});
  }
  places.resize(static_cast<std::size_t>(row_count));
  return places;
}

std::vector<std::int32_t> rows_with_logits(std::span<const StepSequence> sequences) {
  std::vector<std::int32_t> rows;
  std::size_t end = 0;
  for (const auto& sequence : sequences) {
    end += sequence.tokens.size();
    for (auto row = end - sequence.logit_count; row < end; ++row) rows.push_back(narrow(row));
  }
  return rows;
}

/// The lists of a group to which sequences are added.
struct GroupLists {
  std::vector<std::int32_t> query_offsets{0};
  std::vector<std::int32_t> key_offsets{0};
  std::vector<std::int32_t> key_slots;
  std::int64_t longest_query = 1;
  std::int64_t longest_key = 1;

  /// Of a sequence whose key slots have been added.
  void end_sequence(std::size_t token_count) {
    const auto keys = static_cast<std::int64_t>(key_slots.size()) - key_offsets.back();
    longest_query = std::max(longest_query, static_cast<std::int64_t>(token_count));
    longest_key = std::max(longest_key, keys);
    query_offsets.push_back(query_offsets.back() + narrow(token_count));
    key_offsets.push_back(narrow(key_slots.size()));
  }
};

std::vector<GroupLists> groups_of(std::span<const StepSequence> sequences, std::int64_t row_count,
                                  std::int32_t spare, std::uint64_t keys_most) {
  std::vector<GroupLists> groups(1);
  const auto group_for = [&](std::size_t key_count) -> GroupLists& {
    const auto there = groups.back().key_slots.size();
    if (there > 0 && there + key_count > keys_most) groups.emplace_back();
    return groups.back();
  };
  std::int64_t row = 0;
  for (const auto& sequence : sequences) {
    const auto key_count = sequence.position + sequence.tokens.size();
    auto& group = group_for(key_count);
    for (std::size_t position = 0; position < key_count; ++position) {
      group.key_slots.push_back(slot_of(sequence, position));
    }
    group.end_sequence(sequence.tokens.size());
    row += static_cast<std::int64_t>(sequence.tokens.size());
  }
  for (; row < row_count; ++row) {
    auto& group = group_for(1);
    group.key_slots.push_back(spare);
    group.end_sequence(1);
  }
  for (auto& group : groups) group.key_slots.resize(gathered_keys(group.key_slots.size()), spare);
  return groups;
}

}  // namespace

template <typename Value>
StepLayout::List StepLayout::add(std::int64_t count, Value&& value) {
  const List list{static_cast<std::int64_t>(numbers_.size()), count};
  for (std::int64_t i = 0; i < count; ++i) numbers_.push_back(value(static_cast<std::size_t>(i)));
  return list;
}

StepLayout::StepLayout(std::span<const StepSequence> sequences, const StepRows& rows,
                       std::uint32_t spare_slot, std::uint64_t keys_most) {
  const auto places = places_of(sequences, rows.tokens);
  const auto spare = static_cast<std::int32_t>(spare_slot);
  ids_ = add(rows.tokens, [&](std::size_t row) {
    const auto& place = places[row];
    return place.sequence == nullptr ? 0 : narrow(place.sequence->tokens[place.token]);
  });
  positions_ = add(rows.tokens, [&](std::size_t row) {
    return places[row].sequence == nullptr ? 0 : narrow(places[row].position());
  });
  slots_ = add(rows.tokens, [&](std::size_t row) {
    const auto& place = places[row];
    return place.sequence == nullptr ? spare : slot_of(*place.sequence, place.position());
  });
  const auto wanted = rows_with_logits(sequences);
  logit_rows_ = add(rows.logits, [&](std::size_t i) { return i < wanted.size() ? wanted[i] : 0; });

  const auto add_all = [&](const std::vector<std::int32_t>& values) {
    return add(static_cast<std::int64_t>(values.size()), [&](std::size_t i) { return values[i]; });
  };
  std::int64_t first_row = 0;
  for (const auto& lists : groups_of(sequences, rows.tokens, spare, keys_most)) {
    const std::int64_t row_count = lists.query_offsets.back();
    groups_.push_back({.first_row = first_row,
                       .row_count = row_count,
                       .query_offsets = add_all(lists.query_offsets),
                       .key_offsets = add_all(lists.key_offsets),
                       .key_slots = add_all(lists.key_slots),
                       .longest_query = lists.longest_query,
                       .longest_key = lists.longest_key});
    first_row += row_count;
  }
}

}  // namespace muster::engine
