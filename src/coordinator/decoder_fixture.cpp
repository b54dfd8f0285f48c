#include "coordinator/decoder_fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace muster {

void write_counting_decoder(const std::filesystem::path& folder, std::uint32_t length_max) {
  using Json = nlohmann::json;
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << Json{
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"bos_token_id", 0},
      {"eos_token_id", 38},
      {"head_dim", 8},
      {"hidden_act", "silu"},
      {"hidden_size", 32},
      {"intermediate_size", 48},
      {"max_position_embeddings", length_max},
      {"num_attention_heads", 4},
      {"num_hidden_layers", 2},
      {"num_key_value_heads", 2},
      {"rms_norm_eps", 1e-6},
      {"rope_theta", 10000.0},
      {"tie_word_embeddings", true},
      {"vocab_size", 48}}.dump();
  Json vocab{{"<end>", 0}, {"Ã", 27}, {"©", 28}, {"Ġ", 39}, {"?", 40}};
  for (int i = 0; i < 26; ++i) vocab[std::string(1, static_cast<char>('a' + i))] = 1 + i;
  for (int i = 0; i < 10; ++i) vocab[std::string(1, static_cast<char>('0' + i))] = 29 + i;
  const Json bytes{{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", true}};
  const Json tokenizer{{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens",
                        {{{"id", 0},
                          {"content", "<end>"},
                          {"single_word", false},
                          {"lstrip", false},
                          {"rstrip", false},
                          {"normalized", false},
                          {"special", true}}}},
                       {"normalizer", nullptr},
                       {"pre_tokenizer", bytes},
                       {"post_processor", nullptr},
                       {"decoder", bytes},
                       {"model",
                        {{"type", "BPE"},
                         {"dropout", nullptr},
                         {"unk_token", nullptr},
                         {"continuing_subword_prefix", nullptr},
                         {"end_of_word_suffix", nullptr},
                         {"fuse_unk", false},
                         {"byte_fallback", false},
                         {"ignore_merges", false},
                         {"vocab", vocab},
                         {"merges", Json::array()}}}};
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  std::ofstream(folder / "tokenizer_config.json")
      << Json{{"chat_template",
               "{% for message in messages %}{% if message.content == 'no' %}"
               "{{ raise_exception('not this') }}{% endif %}{{ message.content }}{% endfor %}"}}
             .dump();
}

std::filesystem::path counting_worker() {
  return std::filesystem::path(MUSTER_BINARY_DIR) / "bin/counting_worker";
}

}  // namespace muster
