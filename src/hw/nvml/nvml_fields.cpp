// Fields in one call, with alternatives for readings that moved from field to field over the
// generations. While it learns, all alternatives are asked for and the first that any field of
// answers is kept; afterwards the batch holds only what is offered. "Not supported" from a field
// that was offered once is no failure, because links that are down answer so for a while.

#include "hw/nvml/nvml_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace muster {
namespace {

template <typename Number>
double number_at(const std::array<unsigned char, 8>& bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof(number));
  return static_cast<double>(number);
}

// NVML_NVLINK_STATE_ACTIVE, and _SLEEP, from which a link wakes by itself.
bool is_link_up(double state) { return state == 1 || state == 2; }

}  // namespace

std::optional<double> nvml_number(const NvmlFieldValue& value) {
  switch (value.type) {
    case NvmlValueType::Double: {
      const auto number = number_at<double>(value.value);
      return std::isfinite(number) ? std::optional(number) : std::nullopt;
    }
    case NvmlValueType::Uint:
      return number_at<std::uint32_t>(value.value);
    case NvmlValueType::Ulong:
    case NvmlValueType::Ulonglong:
      return number_at<std::uint64_t>(value.value);
    case NvmlValueType::Longlong:
      return number_at<std::int64_t>(value.value);
    case NvmlValueType::Int:
      return number_at<std::int32_t>(value.value);
    case NvmlValueType::Ushort:
      return number_at<std::uint16_t>(value.value);
  }
  return std::nullopt;
}

NvmlFields::NvmlFields(const std::vector<NvmlFieldReading>& wanted) {
  for (const auto& reading : wanted) {
    Row row;
    row.reading = reading.reading;
    row.scale = reading.scale;
    row.counts_links_up = reading.counts_links_up;
    for (std::size_t i = 0; i < reading.alternatives.size(); ++i) {
      for (const auto& field : reading.alternatives[i]) {
        row.terms.push_back({field, i, NvmlOffer::Unknown, 0});
      }
    }
    row.is_settled = row.is_absent = row.terms.empty();
    rows_.push_back(std::move(row));
  }
  arrange();
}

// Lays out the batch of what is offered or not yet known.
void NvmlFields::arrange() {
  values_.clear();
  for (auto& row : rows_) {
    for (auto& term : row.terms) {
      term.position = values_.size();
      NvmlFieldValue value{};
      value.field = term.field.id;
      value.scope = term.field.scope;
      values_.push_back(value);
    }
  }
  is_learning_ =
      std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return !row.is_settled; });
}

void NvmlFields::read(NvmlVisit& visit, NvmlDevice device) {
  for (auto& row : rows_) row.value.reset();
  if (values_.empty()) return;
  // A driver that leaves a value as it is has not answered.
  for (auto& value : values_) value.code = kNvmlUnknown;
  const auto code = visit.call(visit.functions().field_values, device,
                               static_cast<int>(values_.size()), values_.data());
  if (code != kNvmlSuccess) {
    fail_all(visit, code);
    return;
  }
  if (is_learning_) {
    for (auto& row : rows_) learn(row);
  }
  for (auto& row : rows_) evaluate(row, visit);
  if (is_learning_) {
    for (auto& row : rows_) {
      std::erase_if(row.terms, [](const Term& term) { return term.offer == NvmlOffer::Absent; });
    }
    arrange();
  }
}

void NvmlFields::fail_all(NvmlVisit& visit, NvmlCode code) {
  const bool is_absent = code == kNvmlNotSupported || code == kNvmlFunctionNotFound;
  for (auto& row : rows_) {
    if (row.is_absent) continue;
    if (is_absent && !row.is_settled) {
      row.terms.clear();
      row.is_settled = row.is_absent = true;
    } else if (row.reading) {
      visit.accept(code, {*row.reading});
    }
  }
  if (is_absent && is_learning_) arrange();
  if (code == kNvmlGpuIsLost) visit.lose(code);
}

// Keeps the first alternative that is offered, once every term before it is known.
void NvmlFields::learn(Row& row) const {
  if (row.is_settled) return;
  std::optional<std::size_t> chosen;
  bool is_known = true;
  for (auto& term : row.terms) {
    const auto code = values_[term.position].code;
    term.offer = offer_after(term.offer, code, true);
    if (chosen) continue;
    if (term.offer == NvmlOffer::Offered) chosen = term.alternative;
    if (term.offer == NvmlOffer::Unknown) is_known = false;
  }
  if (!is_known) return;
  for (auto& term : row.terms) {
    if (!chosen || term.alternative != *chosen) term.offer = NvmlOffer::Absent;
  }
  row.is_absent = !chosen;
  row.is_settled = std::none_of(row.terms.begin(), row.terms.end(),
                                [](const Term& term) { return term.offer == NvmlOffer::Unknown; });
}

void NvmlFields::evaluate(Row& row, NvmlVisit& visit) const {
  double total = 0;
  std::optional<std::size_t> alternative;  // before all is learned, only the first that answers
  NvmlCode failure = kNvmlSuccess;
  for (const auto& term : row.terms) {
    if (term.offer == NvmlOffer::Absent || (alternative && term.alternative != *alternative)) {
      continue;
    }
    const auto& value = values_[term.position];
    // A link that went down may say "not supported" for a while: no failure, and nothing to add.
    if (value.code == kNvmlNotSupported) continue;
    alternative = term.alternative;
    const auto number = value.code == kNvmlSuccess ? nvml_number(value) : std::nullopt;
    if (!number) {
      failure = value.code == kNvmlSuccess ? kNvmlUnknown : value.code;
    } else {
      total += row.counts_links_up ? (is_link_up(*number) ? 1 : 0) : *number * term.field.scale;
    }
  }
  if (failure != kNvmlSuccess) {
    if (row.reading) visit.accept(failure, {*row.reading});
    if (failure == kNvmlGpuIsLost) visit.lose(failure);
  } else if (alternative) {
    row.value = total * row.scale;
    if (row.reading) visit.set(*row.reading, *row.value);
  }
}

}  // namespace muster
