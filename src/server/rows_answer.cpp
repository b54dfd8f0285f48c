// The answer to a call for vectors, a few rows at a time.

#include "server/rows_answer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "server/base64.h"
#include "server/float_text.h"
#include "server/quantized_row.h"

namespace muster {
namespace {

// Each row cut to `dim` values and scaled to length 1. A row of zeros stays one.
std::vector<float> scaled_rows(const std::vector<float>& rows, std::size_t row_size,
                               std::size_t dim) {
  std::vector<float> scaled;
  scaled.reserve(rows.size() / row_size * dim);
  for (std::size_t start = 0; start < rows.size(); start += row_size) {
    double square_sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      square_sum += static_cast<double>(rows[start + i]) * rows[start + i];
    }
    const double scale = square_sum > 0 ? 1 / std::sqrt(square_sum) : 1;
    for (std::size_t i = 0; i < dim; ++i) {
      scaled.push_back(static_cast<float>(rows[start + i] * scale));
    }
  }
  return scaled;
}

// The most bytes that a row takes, about.
std::size_t row_bytes(EmbeddingFormat format, std::size_t dim) {
  constexpr std::size_t kFloatBytes = 16;   // with the comma
  constexpr std::size_t kNumberBytes = 5;   // "-128,"
  constexpr std::size_t kValuesOfByte = 8;  // of a binary form
  switch (format) {
    case EmbeddingFormat::Float:
      return dim * kFloatBytes;
    case EmbeddingFormat::Base64:
      return base64_size(dim * sizeof(float));
    case EmbeddingFormat::Raw:
      return dim * sizeof(float);
    case EmbeddingFormat::Int8:
    case EmbeddingFormat::Uint8:
      return dim * kNumberBytes;
    case EmbeddingFormat::Binary:
    case EmbeddingFormat::Ubinary:
      return dim / kValuesOfByte * kNumberBytes + kNumberBytes;
  }
  return 0;
}

void append_values(std::span<const float> row, EmbeddingFormat format, std::string& body) {
  if (format == EmbeddingFormat::Base64) {
    body += '"';
    append_base64(row, body);
    body += '"';
    return;
  }
  body += '[';
  format == EmbeddingFormat::Float ? append_floats(row, body) : append_quantized(row, format, body);
  body += ']';
}

}  // namespace

void append_quoted(std::string_view text, std::string& body) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    body.append(1, '"').append(text).append(1, '"');
  } else {
    body += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

void fit_rows(EmbedAnswer& answer, const RowFit& fit) {
  const bool is_cut = fit.dimensions && *fit.dimensions < answer.dim;
  if (!is_cut && (!fit.is_normalized || answer.is_normalized)) return;
  const std::uint32_t dim = is_cut ? *fit.dimensions : answer.dim;
  answer.rows = scaled_rows(answer.rows, answer.dim, dim);
  answer.dim = dim;
}

RowsAnswer::RowsAnswer(std::vector<float> rows, std::size_t dim, std::vector<RowSection> sections)
    : rows_(std::move(rows)), dim_(dim), sections_(std::move(sections)) {
  begin();
}

void RowsAnswer::begin() {
  const std::size_t count = rows_.size() / dim_;
  response_.status = 200;
  response_.content_type = "application/json";
  if (sections_.front().format == EmbeddingFormat::Raw) {
    response_.content_type = "application/octet-stream";
    response_.headers.emplace_back("X-Embedding-Dim", std::to_string(dim_));
    response_.headers.emplace_back("X-Embedding-Count", std::to_string(count));
  }
  constexpr std::size_t kFrame = 64;  // of an item, with its index
  std::size_t size = 0;
  for (const RowSection& section : sections_) {
    size += section.before.size() + section.after.size();
    size += count * (row_bytes(section.format, dim_) + (section.is_items ? kFrame : 4));
  }
  response_.body.reserve(size);
}

bool RowsAnswer::write(std::size_t value_count) {
  const std::size_t count = rows_.size() / dim_;
  std::size_t row_count = std::max<std::size_t>(1, value_count / dim_);
  for (; next_section_ < sections_.size(); ++next_section_, next_row_ = 0) {
    if (row_count == 0) return false;
    const RowSection& section = sections_[next_section_];
    if (next_row_ == 0) response_.body += section.before;
    for (; row_count > 0 && next_row_ < count; --row_count) append_row(section, next_row_++);
    if (next_row_ < count) return false;
    response_.body += section.after;
  }
  return true;
}

void RowsAnswer::append_row(const RowSection& section, std::size_t index) {
  const auto row = std::span(rows_).subspan(index * dim_, dim_);
  std::string& body = response_.body;
  if (section.format == EmbeddingFormat::Raw) {
    body.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
    return;
  }
  if (index != 0) body += ',';
  if (!section.is_items) return append_values(row, section.format, body);
  body += R"({"object":"embedding","index":)";
  body += std::to_string(index);
  body += R"(,"embedding":)";
  append_values(row, section.format, body);
  body += '}';
}

}  // namespace muster
