#include "tokenizer/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "tokenizer/gguf_tokenizer.h"

// A name stands for a list of patterns that split the text one after the other, each match and each
// gap becoming a word. Most names share a handful of lists.

namespace muster {
namespace {

using Patterns = std::span<const std::string_view>;

constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";

constexpr std::array<std::string_view, 1> kGpt2{kGpt2Pattern};
constexpr std::array<std::string_view, 1> kLlama3{kLlama3Pattern};
constexpr std::array<std::string_view, 1> kQwen2{kQwen2Pattern};
constexpr std::array<std::string_view, 2> kStarcoder{kDigit, kGpt2Pattern};
constexpr std::array<std::string_view, 3> kFalcon{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern,
                                                  "[0-9][0-9][0-9]"};
constexpr std::array<std::string_view, 4> kDefault{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern,
                                                   R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr std::array<std::string_view, 1> kBloom{R"( ?[^(\s|.,!?…。，、।۔،)]+)"};
constexpr std::array<std::string_view, 2> kViking{kBloom[0], kDigit};
constexpr std::array<std::string_view, 5> kDeepseekCoder{
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-퟿]+)", kDigit};
constexpr std::array<std::string_view, 6> kDeepseekLlm{
    R"([\r\n])",
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)",
    R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
    R"(\s+$)",
    R"([一-龥ࠀ-一가-퟿]+)",
    R"(\p{N}+)"};
constexpr std::array<std::string_view, 3> kDeepseek3{
    kThreeDigits, R"([一-龥぀-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kTekken{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kGpt4o{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kQwen35{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kSeedCoder{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 2> kMinicpm5{
    kThreeDigits,
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

struct Row {
  std::string_view name;
  Patterns patterns;
  bool ignores_merges = false;
  bool adds_bos = false;
};
// By name.
constexpr auto kRows = std::to_array<Row>({
    {"a.x-4.0", kGpt2},
    {"bloom", kBloom},
    {"chatglm-bpe", kLlama3},
    {"codeshell", kStarcoder},
    {"command-r", kStarcoder},
    {"dbrx", kLlama3},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-r1-qwen", kQwen2},
    {"deepseek-v3", kDeepseek3},
    {"default", kDefault},
    {"exaone", kStarcoder},
    {"exaone4", kGpt2},
    {"falcon", kFalcon},
    {"falcon-h1", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"gigachat", kGpt2},
    {"glm4", kLlama3, true},
    {"glm5", kLlama3, true},
    {"gpt-2", kGpt2},
    {"gpt-4o", kGpt4o},
    {"gpt3-finnish", kBloom},
    {"granite-docling", kGpt2},
    {"grok-2", kQwen2},
    {"hunyuan", kQwen2},
    {"hunyuan-dense", kDeepseek3},
    {"jais", kGpt2},
    {"joyai-llm", kDeepseek3},
    {"kanana2", kGpt4o},
    {"kormo", kQwen2},
    {"lfm2", kLlama3, true, true},
    {"llama-bpe", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama4", kGpt4o},
    {"megrez", kQwen2},
    {"mellum", kGpt2},
    {"mellum2", kStarcoder},
    {"midm-2.0", kLlama3, true, true},
    {"minerva-7b", kStarcoder},
    {"minicpm5", kMinicpm5, true},
    {"minimax-m2", kGpt4o},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"phi-2", kGpt2},
    {"pixtral", kLlama3, true, true},
    {"poro-chat", kBloom},
    {"qwen2", kQwen2},
    {"qwen35", kQwen35},
    {"refact", kStarcoder},
    {"seed-coder", kSeedCoder},
    {"smaug-bpe", kLlama3},
    {"smollm", kStarcoder},
    {"solar-open", kQwen2},
    {"stablelm2", kQwen2},
    {"starcoder", kStarcoder},
    {"talkie", kGpt4o},
    {"tekken", kTekken, true, true},
    {"trillion", kGpt2},
    {"viking", kViking},
});

Result<std::unique_ptr<const PreTokenizer>> make_step(std::string_view pattern) {
  if (const auto known = known_pattern(pattern)) return make_known_pre_tokenizer(*known);
  if (pattern == kDigit) return make_digits_pre_tokenizer(/*individual_digits=*/true);
  auto regex = MUSTER_TRY(Regex::compile(pattern));
  return make_split_pre_tokenizer(std::move(regex), {});
}

}  // namespace

Result<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name) {
  if (name.empty()) name = "default";
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& each) { return each.name == name; });
  if (row == kRows.end()) {
    const auto names = known_gguf_pre_tokenizers();
    const std::vector<std::string> words(names.begin(), names.end());
    const auto nearest = nearest_name(name, words);
    return Error{ErrorKind::Unsupported,
                 "tokenizer.ggml.pre is not known: \"" + std::string(name.substr(0, 60)) + "\"" +
                     (nearest ? "; the nearest is " + *nearest : std::string())};
  }
  std::vector<std::unique_ptr<const PreTokenizer>> steps;
  for (const auto pattern : row->patterns) steps.push_back(MUSTER_TRY(make_step(pattern)));
  GgufPreTokenizer found;
  found.steps =
      steps.size() == 1 ? std::move(steps.front()) : make_pre_tokenizer_sequence(std::move(steps));
  found.ignores_merges = row->ignores_merges;
  found.adds_bos = row->adds_bos;
  return found;
}

std::vector<std::string_view> known_gguf_pre_tokenizers() {
  std::vector<std::string_view> names;
  for (const auto& row : kRows) names.push_back(row.name);
  return names;
}

}  // namespace muster
