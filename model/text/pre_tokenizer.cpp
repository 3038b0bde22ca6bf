#include <plait/model/text/pre_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>

namespace plait {
namespace {

// ---- The expressions, as published ----

// OpenAI, GPT-2 (encoder.py), and every tokenizer.json whose ByteLevel has use_regex.
constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view one_digit = R"(\p{N})";
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view gpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view line_end = R"([\r\n])";
constexpr std::string_view space_letters = R"(\s?\p{L}+)";
constexpr std::string_view space_marks = R"(\s?\p{P}+)";
constexpr std::string_view asian = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view three_digits = R"(\p{N}{1,3})";
constexpr std::string_view han_kana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view deepseek_v3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array gpt2_stages{gpt2};
constexpr std::array digits_gpt2_stages{one_digit, gpt2};
constexpr std::array llama3_stages{llama3};
constexpr std::array qwen2_stages{qwen2};
constexpr std::array gpt4o_stages{gpt4o};
constexpr std::array tekken_stages{tekken};
constexpr std::array deepseek_coder_stages{line_end, space_letters, space_marks, asian, one_digit};
constexpr std::array deepseek_v3_stages{three_digits, han_kana, deepseek_v3};

struct rule {
    std::string_view name;
    std::span<std::string_view const> stages;
    bool whole_pieces_first = false;
    bool adds_bos = false;
};

// Sorted by name. "default" is what files from before the field existed are given; those models split as GPT-2 does.
constexpr rule rules[] = {
    {"codeshell", digits_gpt2_stages},
    {"command-r", digits_gpt2_stages},
    {"dbrx", llama3_stages},
    {"deepseek-coder", deepseek_coder_stages},
    {"deepseek-r1-qwen", qwen2_stages},
    {"deepseek-v3", deepseek_v3_stages},
    {"default", gpt2_stages},
    {"exaone", digits_gpt2_stages},
    {"exaone4", gpt2_stages},
    {"falcon3", llama3_stages, true, true},
    {"gpt-2", gpt2_stages},
    {"gpt-4o", gpt4o_stages},
    {"gpt-neox", gpt2_stages},
    {"jais", gpt2_stages},
    {"lfm2", llama3_stages, true, true},
    {"llama-bpe", llama3_stages, true, true},
    {"llama-v3", llama3_stages, true, true},
    {"llama3", llama3_stages, true, true},
    {"llama4", gpt4o_stages},
    {"megrez", qwen2_stages},
    {"minerva-7b", digits_gpt2_stages},
    {"mpt", gpt2_stages},
    {"olmo", gpt2_stages},
    {"phi-2", gpt2_stages},
    {"qwen2", qwen2_stages},
    {"refact", digits_gpt2_stages},
    {"smaug-bpe", llama3_stages},
    {"smollm", digits_gpt2_stages},
    {"stablelm2", qwen2_stages},
    {"starcoder", digits_gpt2_stages},
    {"tekken", tekken_stages, true, true},
};
static_assert(std::is_sorted(std::begin(rules), std::end(rules), [](auto& a, auto& b) { return a.name < b.name; }));

// PCRE2's \s also takes U+180E, which has not been white space since Unicode 6.3; the models' own engines follow
// White_Space. So the escapes are spelt out.
std::string spell_out_white_space(std::string_view pattern)
{
    constexpr std::string_view white_space =
        R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
    std::string out;
    bool in_class = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        char const c = pattern[i];
        if (c != '\\') {
            if (c == '[' && !in_class) {
                in_class = true;
            } else if (c == ']') {
                in_class = false;
            }
            out += c;
            continue;
        }
        char const escaped = pattern[++i];
        if (escaped == 's' && in_class) {
            out += white_space;
        } else if (escaped == 's' || escaped == 'S') {
            out.append(escaped == 's' ? "[" : "[^").append(white_space).append("]");
        } else {
            out.append({'\\', escaped});
        }
    }
    return out;
}

std::string message(int code)
{
    std::array<unsigned char, 256> text{};
    pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<char const*>(text.data());
}

struct free_match {
    void operator()(pcre2_match_data* p) const noexcept { pcre2_match_data_free(p); }
    void operator()(pcre2_match_context* p) const noexcept { pcre2_match_context_free(p); }
};

} // namespace

class pre_tokenizer::regex {
public:
    regex(std::string_view pattern, engine how)
        : options_(PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (how == engine::interpreted ? PCRE2_NO_JIT : 0))
    {
        std::string const spelt = spell_out_white_space(pattern);
        int code = 0;
        PCRE2_SIZE offset = 0;
        code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelt.data()), spelt.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &offset, nullptr);
        if (code_ == nullptr) {
            throw error(errc::unsupported, "pre-tokenizer expression " + spelt + ": " + message(code));
        }
        // Where the system forbids writable code this fails, and matching falls back to the interpreter by itself.
        if (how == engine::compiled) pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
    }
    regex(regex const&) = delete;
    regex& operator=(regex const&) = delete;
    ~regex() { pcre2_code_free(code_); }

    void split(std::string_view text, std::vector<std::string_view>& pieces, pcre2_match_data* data,
               pcre2_match_context* context) const
    {
        auto const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        std::size_t at = 0;
        while (at < text.size()) {
            int found = pcre2_match(code_, subject, text.size(), at, options_, data, context);
            if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
                found = pcre2_match(code_, subject, text.size(), at, options_ | PCRE2_NO_JIT, data, context);
            }
            if (found == PCRE2_ERROR_NOMATCH) break;
            if (found < 0) throw error(errc::invalid_argument, "text: pre-tokenizer: " + message(found));
            PCRE2_SIZE const* const range = pcre2_get_ovector_pointer(data);
            if (range[0] > at) pieces.push_back(text.substr(at, range[0] - at));
            pieces.push_back(text.substr(range[0], range[1] - range[0]));
            at = range[1];
        }
        if (at < text.size()) pieces.push_back(text.substr(at));
    }

private:
    std::uint32_t options_;
    pcre2_code* code_;
};

pre_tokenizer::pre_tokenizer(std::string_view name, engine how)
{
    auto const found = std::lower_bound(std::begin(rules), std::end(rules), name,
                                        [](rule const& r, std::string_view wanted) { return r.name < wanted; });
    if (found == std::end(rules) || found->name != name) {
        throw error(errc::unsupported, "tokenizer.ggml.pre: " + quote(name));
    }
    for (auto const pattern : found->stages)
        stages_.push_back(std::make_unique<regex const>(pattern, how));
    whole_pieces_first_ = found->whole_pieces_first;
    adds_bos_ = found->adds_bos;
}

pre_tokenizer::pre_tokenizer(pre_tokenizer&&) noexcept = default;
pre_tokenizer& pre_tokenizer::operator=(pre_tokenizer&&) noexcept = default;
pre_tokenizer::~pre_tokenizer() = default;

void pre_tokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const
{
    if (text.empty()) return;
    std::unique_ptr<pcre2_match_data, free_match> const data(pcre2_match_data_create(1, nullptr));
    std::unique_ptr<pcre2_match_context, free_match> const context(pcre2_match_context_create(nullptr));
    if (!data || !context) throw std::bad_alloc();
    // Every expression takes a bounded number of steps a character; PCRE2's own default is what short texts get.
    auto const limit = std::clamp<std::size_t>(16 * text.size(), 10'000'000, UINT32_MAX);
    pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(limit));

    std::vector<std::string_view> from{text}, to;
    for (auto const& stage : stages_) {
        to.clear();
        for (auto const piece : from)
            stage->split(piece, to, data.get(), context.get());
        from.swap(to);
    }
    pieces.insert(pieces.end(), from.begin(), from.end());
}

std::vector<std::string_view> pre_tokenizer::names()
{
    std::vector<std::string_view> out;
    for (auto const& r : rules)
        out.push_back(r.name);
    return out;
}

} // namespace plait
