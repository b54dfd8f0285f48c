#pragma once

#include <optional>
#include <vector>

#include "hw/nvml/nvml_visit.h"

namespace muster {

/// A value to be asked for: NVML_FI_*, and the scope that some of them have.
struct NvmlField {
  std::uint32_t id = 0;
  std::uint32_t scope = 0;
  double scale = 1;  // for alternatives in units of their own
};

/// Where a reading comes from: the first alternative of which the device offers a field. The fields
/// of an alternative are added up; absent ones do not count.
struct NvmlFieldReading {
  std::optional<Reading> reading;  // nullopt: only for `NvmlFields::value`
  double scale = 1;                // from the driver's unit to ours
  std::vector<std::vector<NvmlField>> alternatives;
  bool counts_links_up = false;  // how many of the fields are NVLink states that mean up
};

/// Fields that are read together, by one call of nvmlDeviceGetFieldValues.
///
/// Threads: not thread-safe; owned by one sampler.
class NvmlFields {
 public:
  explicit NvmlFields(const std::vector<NvmlFieldReading>& wanted);

  /// Reads what is offered. The first call asks for everything and learns.
  void read(NvmlVisit& visit, NvmlDevice device);

  /// The value of row `row` of `wanted` in the last read, scaled; nullopt: none.
  std::optional<double> value(std::size_t row) const { return rows_[row].value; }

  /// The device is known not to offer row `row`.
  bool is_absent(std::size_t row) const { return rows_[row].is_absent; }

 private:
  struct Term {
    NvmlField field;
    std::size_t alternative = 0;
    NvmlOffer offer = NvmlOffer::Unknown;
    std::size_t position = 0;  // in values_, when it is asked for
  };
  struct Row {
    std::optional<Reading> reading;
    double scale = 1;
    bool counts_links_up = false;
    std::vector<Term> terms;
    bool is_settled = false;  // nothing left to learn
    bool is_absent = false;
    std::optional<double> value;
  };

  void arrange();
  void learn(Row& row) const;
  void evaluate(Row& row, NvmlVisit& visit) const;
  void fail_all(NvmlVisit& visit, NvmlCode code);

  std::vector<Row> rows_;
  std::vector<NvmlFieldValue> values_;
  bool is_learning_ = true;
};

/// The number in a field's value, by its type; nullopt for a type that is not known and for a
/// double that is no number.
std::optional<double> nvml_number(const NvmlFieldValue& value);

}  // namespace muster
