// A GGUF file gives its splitting by name only, so the patterns have to be known here.
//
// A name stands for a list of patterns that run one after the other. Most names share a handful
// of lists, so rows point at them. The patterns of GPT-2, Llama 3 and Qwen 2 have code of their
// own, which is found by comparing the text of the pattern; the others go to the regex engine.

#include "tokenizer/reading/gguf_pre_tokenizers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "tokenizer/reading/gguf_tokenizer.h"

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
constexpr std::array<std::string_view, 1> kBloom{
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)"};
constexpr std::array<std::string_view, 2> kViking{kBloom[0], kDigit};
constexpr std::array<std::string_view, 5> kDeepseekCoder{
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"};
constexpr std::array<std::string_view, 6> kDeepseekLlm{
    R"([\r\n])",
    R"(\s?[A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-)"
    R"(\x{01BF}\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377})"
    R"(\x{037B}-\x{037D}\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1})"
    R"(\x{03A3}-\x{03F5}\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556}\x{10A0}-)"
    R"(\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-)"
    R"(\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-)"
    R"(\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-)"
    R"(\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-)"
    R"(\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"(\s+$)",
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
    R"(\p{N}+)"};
constexpr std::array<std::string_view, 3> kDeepseek3{
    kThreeDigits, R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
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
