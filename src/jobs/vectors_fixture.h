#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "dataset/vector_file.h"

namespace muster {

/// Tests only: rows in memory in the place of a file.
class FakeVectors final : public VectorFile {
 public:
  /// values: [rows, dim].
  FakeVectors(std::vector<float> values, std::uint32_t dim)
      : values_(std::move(values)), dim_(dim) {}

  std::uint64_t row_count() const override { return values_.size() / dim_; }
  std::uint32_t dim() const override { return dim_; }
  std::span<const float> row(std::uint64_t row) const override {
    return std::span(values_).subspan(row * dim_, dim_);
  }
  Status read_rows(const std::function<void()>& work) const override {
    work();
    return Done{};
  }

 private:
  std::vector<float> values_;
  std::uint32_t dim_;
};

}  // namespace muster
