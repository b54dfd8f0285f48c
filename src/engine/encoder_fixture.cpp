#include "engine/encoder_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "modelfile/model_folder.h"

namespace muster::engine {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::vector<T> values_of(const std::vector<std::byte>& file,
                         const SafetensorsHeader::Entry& entry) {
  std::vector<T> values(entry.size / sizeof(T));
  std::memcpy(values.data(), file.data() + entry.begin, entry.size);
  return values;
}

}  // namespace

EncoderFixture::EncoderFixture(const std::string& name, DeviceKind device) {
  const char* testdata = std::getenv("MUSTER_TESTDATA");  // of a program that was sent elsewhere
  const auto folder = (testdata != nullptr ? fs::path(testdata)
                                           : fs::path(MUSTER_SOURCE_DIR) / "src/engine/testdata") /
                      name;
  options.model_folder = name == "minilm" ? minilm_folder() : folder;
  const auto model = read_model_folder(options.model_folder);
  MUSTER_CHECK(model.has_value());
  options.encoder = model->encoder;
  options.rerank = model->rerank;
  options.device = device;

  const auto bytes = read_file(folder / "expected.safetensors");
  MUSTER_CHECK(bytes.has_value());
  const auto view = std::as_bytes(std::span(*bytes));
  file_.assign(view.begin(), view.end());
  const auto header = parse_safetensors_header(file_, file_.size());
  MUSTER_CHECK(header.has_value());
  header_ = *header;
  ids_ = values_of<std::uint32_t>(file_, header_.tensors.at("ids"));
  lengths_ = values_of<std::uint32_t>(file_, header_.tensors.at("lengths"));
  if (options.rerank) {
    first_segments_ = values_of<std::uint32_t>(file_, header_.tensors.at("first_segments"));
  }
}

std::vector<float> EncoderFixture::expected(const std::string& name) const {
  return values_of<float>(file_, header_.tensors.at(name));
}

DeviceKind gpu_under_test() {
  const char* named = std::getenv("GPU_TEST_DEVICE");
  const bool is_standin = named != nullptr && device_kind_name(DeviceKind::Standin) == named;
  return is_standin ? DeviceKind::Standin : DeviceKind::Cuda;
}

fs::path minilm_folder() {
  const char* named = std::getenv("MUSTER_MINILM");
  const auto folder = named != nullptr
                          ? fs::path(named)
                          : fs::path(MUSTER_SOURCE_DIR) / ".deps/models/all-MiniLM-L6-v2";
  std::error_code ignored;
  return fs::exists(folder / "model.safetensors", ignored) ? folder : fs::path();
}

float max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  MUSTER_CHECK(a.size() == b.size());
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;  // fails every comparison
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace muster::engine
