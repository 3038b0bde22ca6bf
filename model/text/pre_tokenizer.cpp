#include <plait/model/text/pre_tokenizer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/gpt2_alphabet.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

namespace plait {

// OpenAI, GPT-2 (encoder.py).
constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
std::string_view const gpt2_expression = gpt2;

namespace {

// ---- The expressions, as published ----

constexpr std::string_view one_digit = R"(\p{N})";
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr std::string_view gpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view bailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view seed_coder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view bloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view line_end = R"([\r\n])";
constexpr std::string_view space_letters = R"(\s?\p{L}+)";
constexpr std::string_view space_marks = R"(\s?\p{P}+)";
constexpr std::string_view asian = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view three_digits = R"(\p{N}{1,3})";
constexpr std::string_view han_kana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view deepseek_v3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek LLM lists the letters that have case.
constexpr std::string_view deepseek_letters =
    R"(\s?)"
    R"([A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF}\x{01C4}-\x{0293})"
    R"(\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377}\x{037B}-\x{037D}\x{037F}\x{0386}\x{0388}-\x{038A})"
    R"(\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5}\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
    R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})"
    R"(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B})"
    R"(\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view deepseek_marks =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view spaces_at_end = R"(\s+$)";
constexpr std::string_view falcon_marks = R"([\p{P}$+<=>^`|~]+)";
constexpr std::string_view any_number = R"(\p{N}+)";
constexpr std::string_view ascii_three_digits = "[0-9][0-9][0-9]";

constexpr std::array gpt2_stages{gpt2};
constexpr std::array digits_gpt2_stages{one_digit, gpt2};
constexpr std::array llama3_stages{llama3};
constexpr std::array qwen2_stages{qwen2};
constexpr std::array qwen35_stages{qwen35};
constexpr std::array gpt4o_stages{gpt4o};
constexpr std::array tekken_stages{tekken};
constexpr std::array bailing_stages{bailing};
constexpr std::array seed_coder_stages{seed_coder};
constexpr std::array bloom_stages{bloom};
constexpr std::array viking_stages{bloom, one_digit};
constexpr std::array deepseek_coder_stages{line_end, space_letters, space_marks, asian, one_digit};
constexpr std::array deepseek_llm_stages{line_end, deepseek_letters, deepseek_marks, spaces_at_end, asian, one_digit};
constexpr std::array deepseek_v3_stages{three_digits, han_kana, deepseek_v3};
constexpr std::array falcon_stages{falcon_marks, gpt2, any_number, ascii_three_digits};

struct rule {
    std::string_view name;
    std::span<std::string_view const> stages;
    bool whole_pieces_first = false;
    bool adds_bos = false;
    std::size_t spelled_from = SIZE_MAX; // Falcon's last two stages see the byte alphabet
};

// Sorted by name. "default" is what files from before the field existed are given; those models split as GPT-2 does.
constexpr rule rules[] = {
    {"a.x-4.0", gpt2_stages},
    {"bailingmoe", bailing_stages},
    {"bloom", bloom_stages},
    {"chatglm-bpe", llama3_stages},
    {"codeshell", digits_gpt2_stages},
    {"command-r", digits_gpt2_stages},
    {"dbrx", llama3_stages},
    {"deepseek-coder", deepseek_coder_stages},
    {"deepseek-llm", deepseek_llm_stages},
    {"deepseek-r1-qwen", qwen2_stages},
    {"deepseek-v3", deepseek_v3_stages},
    {"default", gpt2_stages},
    {"exaone", digits_gpt2_stages},
    {"exaone4", gpt2_stages},
    {"falcon", falcon_stages, false, false, 2},
    {"falcon-h1", llama3_stages, true, true},
    {"falcon3", llama3_stages, true, true},
    {"gigachat", gpt2_stages},
    {"glm4", llama3_stages, true},
    {"glm5", llama3_stages, true},
    {"gpt-2", gpt2_stages},
    {"gpt-4o", gpt4o_stages},
    {"gpt-neox", gpt2_stages},
    {"gpt3-finnish", bloom_stages},
    {"granite-docling", gpt2_stages},
    {"grok-2", qwen2_stages},
    {"hunyuan", qwen2_stages},
    {"hunyuan-dense", deepseek_v3_stages},
    {"jais", gpt2_stages},
    {"kanana2", gpt4o_stages},
    {"kormo", qwen2_stages},
    {"lfm2", llama3_stages, true, true},
    {"llama-bpe", llama3_stages, true, true},
    {"llama-v3", llama3_stages, true, true},
    {"llama3", llama3_stages, true, true},
    {"llama4", gpt4o_stages},
    {"megrez", qwen2_stages},
    {"mellum", gpt2_stages},
    {"midm-2.0", llama3_stages, true, true},
    {"minerva-7b", digits_gpt2_stages},
    {"minimax-m2", gpt4o_stages},
    {"modern-bert", gpt2_stages},
    {"mpt", gpt2_stages},
    {"olmo", gpt2_stages},
    {"phi-2", gpt2_stages},
    {"pixtral", llama3_stages, true, true},
    {"poro-chat", bloom_stages},
    {"qwen2", qwen2_stages},
    {"qwen35", qwen35_stages},
    {"refact", digits_gpt2_stages},
    {"seed-coder", seed_coder_stages},
    {"smaug-bpe", llama3_stages},
    {"smollm", digits_gpt2_stages},
    {"solar-open", qwen2_stages},
    {"stablelm2", qwen2_stages},
    {"starcoder", digits_gpt2_stages},
    {"tekken", tekken_stages, true, true},
    {"trillion", gpt2_stages},
    {"viking", viking_stages},
};
static_assert(std::is_sorted(std::begin(rules), std::end(rules), [](auto& a, auto& b) { return a.name < b.name; }));

using piece = std::string_view;
using range = split_regex::range;

// A part of a text, and whether it is a match.
struct part {
    std::size_t begin, end;
    bool match;
};

// The parts of a text of `size` bytes, by the matches in it.
void list_parts(std::size_t size, std::vector<range> const& matches, bool invert, std::vector<part>& out)
{
    out.clear();
    std::size_t at = 0;
    for (auto const& m : matches) {
        if (m.begin > at) out.push_back({at, m.begin, invert});
        out.push_back({m.begin, m.end, !invert});
        at = m.end;
    }
    if (at < size) out.push_back({at, size, invert});
}

// Joins and drops parts as `how` says, in place.
void arrange(std::vector<part>& parts, cut::behaviour how)
{
    std::size_t kept = 0;
    switch (how) {
    case cut::behaviour::isolated:
        return;
    case cut::behaviour::removed:
        std::erase_if(parts, [](part const& p) { return p.match; });
        return;
    case cut::behaviour::contiguous:
        for (auto const& p : parts) {
            if (kept > 0 && parts[kept - 1].match == p.match) {
                parts[kept - 1].end = p.end;
            } else {
                parts[kept++] = p;
            }
        }
        break;
    case cut::behaviour::merged_previous: {
        bool previous = false;
        for (auto const& p : parts) {
            if (p.match && !previous && kept > 0) {
                parts[kept - 1].end = p.end;
            } else {
                parts[kept++] = p;
            }
            previous = p.match;
        }
        break;
    }
    case cut::behaviour::merged_next: {
        bool next = false;
        std::size_t first = parts.size(); // parts are kept at the end of the list
        for (std::size_t i = parts.size(); i-- > 0;) {
            auto const p = parts[i];
            if (p.match && !next && first < parts.size()) {
                parts[first].begin = p.begin;
            } else {
                parts[--first] = p;
            }
            next = p.match;
        }
        parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(first));
        return;
    }
    }
    parts.resize(kept);
}

} // namespace

pre_tokenizer_rule find_pre_tokenizer_rule(std::string_view name)
{
    auto const found = std::lower_bound(std::begin(rules), std::end(rules), name,
                                        [](rule const& r, std::string_view wanted) { return r.name < wanted; });
    if (found == std::end(rules) || found->name != name) {
        throw error(errc::unsupported, "tokenizer.ggml.pre: " + quote(name));
    }
    pre_tokenizer_rule out{found->name, {}, found->whole_pieces_first, found->adds_bos};
    out.cuts.reserve(found->stages.size());
    for (std::size_t i = 0; i < found->stages.size(); ++i)
        out.cuts.emplace_back(
            cut::regex{.pattern = std::string(found->stages[i]), .spelled = i >= found->spelled_from});
    return out;
}

std::vector<std::string_view> pre_tokenizer_rules()
{
    std::vector<std::string_view> out;
    out.reserve(std::size(rules));
    for (auto const& r : rules)
        out.push_back(r.name);
    return out;
}

pre_tokenizer::pre_tokenizer(std::vector<cut::step> const& steps, engine how)
{
    stages_.reserve(steps.size());
    for (auto const& step : steps) {
        if (auto const* r = std::get_if<cut::regex>(&step)) {
            stages_.emplace_back(regex_stage{split_regex(r->pattern, how), *r});
        } else if (auto const* m = std::get_if<cut::metaspace>(&step)) {
            stages_.emplace_back(*m);
        } else {
            stages_.emplace_back(cut::prefix_space{});
        }
    }
}

// One call of split: what a stage reads and what it leaves.
struct pre_tokenizer::work {
    split_regex::workspace regexes;
    texts& rewritten;
    char const* start; // of the whole text, where it stands at the beginning of all
    std::vector<piece> from, to;
    std::vector<range> matches;
    std::vector<part> parts;
    std::string spelled;
};

void pre_tokenizer::run(regex_stage const& stage, work& w) const
{
    for (auto const text : w.from) {
        w.matches.clear();
        if (stage.how.spelled) {
            w.spelled.clear();
            append_gpt2_spelling(text, w.spelled);
            stage.expression.find_all(w.spelled, w.matches, w.regexes);
            // Every character of the spelling is one byte of the text.
            std::size_t spelled_at = 0, at = 0;
            auto const place = [&](std::size_t& end) {
                for (; spelled_at < end; ++spelled_at)
                    at += (w.spelled[spelled_at] & 0xC0) != 0x80 ? 1 : 0;
                end = at;
            };
            for (auto& m : w.matches) {
                place(m.begin);
                place(m.end);
            }
        } else {
            stage.expression.find_all(text, w.matches, w.regexes);
        }
        list_parts(text.size(), w.matches, stage.how.invert, w.parts);
        arrange(w.parts, stage.how.how);
        for (auto const& p : w.parts)
            w.to.push_back(text.substr(p.begin, p.end - p.begin));
    }
}

void pre_tokenizer::run(cut::metaspace const& stage, work& w) const
{
    std::size_t room = 0;
    for (auto const text : w.from) {
        auto const spaces = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
        room += text.size() + (spaces + 1) * stage.mark.size();
    }
    auto& out = w.rewritten.emplace_back();
    out.reserve(room); // so views into it stay
    for (auto const text : w.from) {
        std::size_t begin = out.size();
        bool const wanted = stage.when == cut::metaspace::prefix::always ||
                            (stage.when == cut::metaspace::prefix::first && text.data() == w.start);
        if (wanted && !text.starts_with(' ') && !text.starts_with(stage.mark)) out += stage.mark;
        for (std::size_t i = 0; i < text.size();) {
            bool const space = text[i] == ' ';
            bool const mark = space || text.substr(i).starts_with(stage.mark);
            if (mark && stage.split && out.size() > begin) {
                w.to.push_back(std::string_view(out).substr(begin));
                begin = out.size();
            }
            if (space) {
                out += stage.mark;
                ++i;
            } else {
                auto const length = mark ? stage.mark.size() : 1;
                out += text.substr(i, length);
                i += length;
            }
        }
        if (out.size() > begin) w.to.push_back(std::string_view(out).substr(begin));
    }
}

void pre_tokenizer::run(cut::prefix_space const&, work& w) const
{
    std::size_t room = 0;
    for (auto const text : w.from)
        room += text.size() + 1;
    auto& out = w.rewritten.emplace_back();
    out.reserve(room);
    for (auto const text : w.from) {
        std::size_t const begin = out.size();
        if (!text.starts_with(' ')) out += ' ';
        out += text;
        w.to.push_back(std::string_view(out).substr(begin));
    }
}

void pre_tokenizer::split(std::string_view text, std::vector<std::string_view>& pieces, texts& rewritten,
                          bool first) const
{
    if (text.empty()) return;
    if (stages_.empty()) {
        pieces.push_back(text);
        return;
    }
    work w{.regexes = split_regex::workspace(text.size()),
           .rewritten = rewritten,
           .start = first ? text.data() : nullptr,
           .from = {text},
           .to = {},
           .matches = {},
           .parts = {},
           .spelled = {}};
    for (auto const& stage : stages_) {
        w.to.clear();
        std::visit([&](auto const& s) { run(s, w); }, stage);
        w.from.swap(w.to);
    }
    pieces.insert(pieces.end(), w.from.begin(), w.from.end());
}

} // namespace plait
