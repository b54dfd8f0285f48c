// A Llama of random numbers with all that a chat needs. Rows of the head that stand for bytes
// other than printable ASCII are zero: the largest of the others is above zero, so these are never
// the best.

#include "integration/tiny_decoder.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "modelfile/gguf_writer.h"

namespace muster {
namespace {

constexpr std::uint64_t kWidth = 64;
constexpr std::uint64_t kFeedForward = 128;
constexpr std::uint64_t kKeyValueWidth = 32;  // two heads of the four
constexpr std::uint32_t kLayers = 2;

std::string utf8_of(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

bool is_printable(unsigned byte) { return byte >= ' ' && byte <= '~'; }

// GPT-2's letters for bytes (bytes_to_unicode of openai/gpt-2, src/encoder.py): those that print
// stand for themselves, and the others, in order, for U+0100 and behind.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    tokens.push_back(utf8_of(prints ? byte : next++));
  }
  return tokens;
}

/// Tensors in the order of the file, and their bytes.
class Tensors {
 public:
  void add(const std::string& name, std::vector<std::uint64_t> shape, std::vector<float> values) {
    entries_.push_back({name, std::move(shape), bytes_.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    bytes_.resize((bytes_.size() + 31) / 32 * 32);
  }

  /// `columns` inputs and `rows` outputs, uniform with a variance of 1/columns.
  void add_random(const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    add(name, {columns, rows}, random(columns, rows));
  }

  std::vector<float> random(std::uint64_t columns, std::uint64_t rows) {
    const float most = std::sqrt(3.0F / static_cast<float>(columns));
    std::vector<float> values(columns * rows);
    for (auto& value : values) {
      value = most * (static_cast<float>(generator_() >> 8) / static_cast<float>(1 << 23) - 1.0F);
    }
    return values;
  }

  std::size_t count() const { return entries_.size(); }

  std::string file(GgufWriter& writer) const {
    for (const auto& [name, shape, offset] : entries_) writer.tensor(name, shape, 0, offset);
    return writer.data(0) + bytes_;
  }

 private:
  struct Entry {
    std::string name;
    std::vector<std::uint64_t> shape;  // ggml's order
    std::uint64_t offset;
  };
  std::vector<Entry> entries_;
  std::string bytes_;
  std::mt19937 generator_{1};
};

void add_layer(Tensors& tensors, const std::string& name) {
  const std::vector<float> ones(kWidth, 1.0F);
  tensors.add(name + "attn_norm.weight", {kWidth}, ones);
  tensors.add_random(name + "attn_q.weight", kWidth, kWidth);
  tensors.add_random(name + "attn_k.weight", kWidth, kKeyValueWidth);
  tensors.add_random(name + "attn_v.weight", kWidth, kKeyValueWidth);
  tensors.add_random(name + "attn_output.weight", kWidth, kWidth);
  tensors.add(name + "ffn_norm.weight", {kWidth}, ones);
  tensors.add_random(name + "ffn_gate.weight", kWidth, kFeedForward);
  tensors.add_random(name + "ffn_up.weight", kWidth, kFeedForward);
  tensors.add_random(name + "ffn_down.weight", kFeedForward, kWidth);
}

}  // namespace

Status write_tiny_decoder(const std::filesystem::path& path) {
  auto tokens = byte_tokens();
  std::vector<std::int32_t> types(tokens.size(), 1);
  tokens.insert(tokens.end(), {"th", "<|im_start|>", "<|im_end|>"});
  types.insert(types.end(), {1, 3, 3});
  const auto end = static_cast<std::uint32_t>(tokens.size() - 1);

  Tensors tensors;
  tensors.add_random("token_embd.weight", kWidth, tokens.size());
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    add_layer(tensors, "blk." + std::to_string(layer) + ".");
  }
  tensors.add("output_norm.weight", {kWidth}, std::vector<float>(kWidth, 1.0F));
  auto head = tensors.random(kWidth, tokens.size());
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (is_printable(static_cast<unsigned>(row))) continue;
    std::fill_n(head.begin() + static_cast<std::ptrdiff_t>(row * kWidth), kWidth, 0.0F);
  }
  tensors.add("output.weight", {kWidth, tokens.size()}, std::move(head));

  GgufWriter writer;
  writer.header(tensors.count(), 16)
      .key("general.architecture", "llama")
      .key("llama.block_count", kLayers)
      .key("llama.embedding_length", std::uint32_t{kWidth})
      .key("llama.feed_forward_length", std::uint32_t{kFeedForward})
      .key("llama.attention.head_count", 4U)
      .key("llama.attention.head_count_kv", 2U)
      .key("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .key("llama.context_length", 1024U)
      .key("tokenizer.ggml.model", "gpt2")
      .key("tokenizer.ggml.pre", "smollm")
      .key("tokenizer.ggml.tokens", tokens)
      .key("tokenizer.ggml.token_type", types)
      .key("tokenizer.ggml.merges", std::vector<std::string>{"t h"})
      .key("tokenizer.ggml.bos_token_id", end - 1)
      .key("tokenizer.ggml.eos_token_id", end)
      .key("tokenizer.chat_template",
           "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
           "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt "
           "%}{{ '<|im_start|>assistant\n' }}{% endif %}");
  return write_file_atomically(path, tensors.file(writer));
}

}  // namespace muster
