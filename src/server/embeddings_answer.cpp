// The answer to a call for vectors, a few rows at a time.

#include "server/embeddings_answer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "server/api_error.h"
#include "server/float_text.h"

namespace muster {
namespace {

// Each row cut to `dim` values and scaled to length 1 again. A row of zeros stays one.
std::vector<float> cut_rows(const std::vector<float>& rows, std::size_t row_size, std::size_t dim) {
  std::vector<float> cut;
  cut.reserve(rows.size() / row_size * dim);
  for (std::size_t start = 0; start < rows.size(); start += row_size) {
    double square_sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      square_sum += static_cast<double>(rows[start + i]) * rows[start + i];
    }
    const double scale = square_sum > 0 ? 1 / std::sqrt(square_sum) : 1;
    for (std::size_t i = 0; i < dim; ++i) {
      cut.push_back(static_cast<float>(rows[start + i] * scale));
    }
  }
  return cut;
}

// As JSON; most names have nothing to escape.
void append_quoted(std::string_view name, std::string& body) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(name.begin(), name.end(), is_plain)) {
    body.append(1, '"').append(name).append(1, '"');
  } else {
    body += nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace

EmbeddingsAnswer::EmbeddingsAnswer(EmbedAnswer answer, EmbeddingFormat format,
                                   std::optional<std::uint32_t> dimensions)
    : model_(std::move(answer.model)),
      rows_(std::move(answer.rows)),
      dim_(answer.dim),
      format_(format),
      token_count_(answer.token_count) {
  if (dim_ == 0 || !are_finite(rows_)) {
    rows_.clear();
    response_ = error_response(api_error(500, "The model gave a vector that is not finite."));
    return;
  }
  if (dimensions && *dimensions < dim_) {
    rows_ = cut_rows(rows_, dim_, *dimensions);
    dim_ = *dimensions;
  }
  begin();
}

void EmbeddingsAnswer::begin() {
  const std::size_t count = rows_.size() / dim_;
  response_.status = 200;
  if (format_ == EmbeddingFormat::Raw) {
    response_.content_type = "application/octet-stream";
    response_.body.reserve(rows_.size() * sizeof(float));
    response_.headers.emplace_back("X-Embedding-Dim", std::to_string(dim_));
    response_.headers.emplace_back("X-Embedding-Count", std::to_string(count));
    return;
  }
  constexpr std::size_t kFrame = 64;       // of an item, with its index
  constexpr std::size_t kFloatBytes = 16;  // the most that a number takes, with its comma
  const bool is_base64 = format_ == EmbeddingFormat::Base64;
  const std::size_t row_size = is_base64 ? base64_size(dim_ * sizeof(float)) : dim_ * kFloatBytes;
  response_.content_type = "application/json";
  response_.body.reserve(count * (row_size + kFrame) + model_.size() * 6 + 256);
  response_.body += R"({"object":"list","data":[)";
}

bool EmbeddingsAnswer::write(std::size_t value_count) {
  if (response_.status != 200) return true;
  const std::size_t count = rows_.size() / dim_;
  const std::size_t row_count = std::max<std::size_t>(1, value_count / dim_);
  for (std::size_t i = 0; i < row_count && next_row_ < count; ++i) append_row(next_row_++);
  if (next_row_ < count) return false;
  end();
  return true;
}

void EmbeddingsAnswer::append_row(std::size_t index) {
  const auto row = std::span(rows_).subspan(index * dim_, dim_);
  std::string& body = response_.body;
  if (format_ == EmbeddingFormat::Raw) {
    body.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
    return;
  }
  const bool is_base64 = format_ == EmbeddingFormat::Base64;
  if (index != 0) body += ',';
  body += R"({"object":"embedding","index":)";
  body += std::to_string(index);
  body += R"(,"embedding":)";
  body += is_base64 ? '"' : '[';
  is_base64 ? append_base64(row, body) : append_floats(row, body);
  body += is_base64 ? "\"}" : "]}";
}

void EmbeddingsAnswer::end() {
  if (format_ == EmbeddingFormat::Raw) return;
  std::string& body = response_.body;
  body += R"(],"model":)";
  append_quoted(model_, body);
  const std::string tokens = std::to_string(token_count_);
  body += R"(,"usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" + tokens + "}}";
}

}  // namespace muster
