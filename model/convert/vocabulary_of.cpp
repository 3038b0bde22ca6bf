#include <plait/model/convert/vocabulary_of.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/pre_tokenizer.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace plait {
namespace {

[[noreturn]] void refuse(std::string const& source, std::string const& what, errc code = errc::unsupported)
{
    throw error(code, source + ": tokenizer: " + what);
}

bool same(std::vector<cut::step> const& a, std::vector<cut::step> const& b)
{
    return std::ranges::equal(a, b, [](cut::step const& x, cut::step const& y) {
        auto const* left = std::get_if<cut::regex>(&x);
        auto const* right = std::get_if<cut::regex>(&y);
        return left != nullptr && right != nullptr && left->pattern == right->pattern && left->how == right->how &&
               left->invert == right->invert && left->spelled == right->spelled;
    });
}

/// Of the rules that cut like this, the one by which most files call it.
std::string rule_of(std::vector<cut::step> const& cuts, bool whole_pieces_first, std::string const& source)
{
    constexpr std::array<std::string_view, 5> usual{"gpt-2", "llama-bpe", "qwen2", "smollm", "gpt-4o"};
    auto names = pre_tokenizer_rules();
    names.insert(names.begin(), usual.begin(), usual.end());
    for (auto const name : names) {
        auto const rule = find_pre_tokenizer_rule(name);
        if (rule.whole_pieces_first == whole_pieces_first && same(rule.cuts, cuts)) return std::string(name);
    }
    refuse(source, "it cuts text by a rule that tokenizer.ggml.pre has no name for");
}

/// True for `id` alone, false for nothing.
bool adds(std::vector<std::int64_t> const& ids, std::optional<std::int64_t> id, char const* where,
          std::string const& source)
{
    if (ids.empty()) return false;
    if (ids.size() > 1 || ids.front() != id) refuse(source, std::string("it puts other tokens ") + where + " a text");
    return true;
}

} // namespace

vocabulary vocabulary_of(tokenizer_description const& from, std::int64_t tokens, std::string const& source)
{
    auto const* const model = std::get_if<bpe_model>(&from.model);
    if (model == nullptr || model->from != bpe_model::symbols::bytes || !model->end_of_word.empty())
        refuse(source, "only byte-level BPE is written as GGUF");
    for (auto const& step : from.normalizer)
        if (auto const* form = std::get_if<normal::form>(&step); form == nullptr || *form != normal::form::nfc)
            refuse(source, "it rewrites text before it cuts it");
    for (auto const& token : from.added)
        if (token.single_word || token.strip_left || token.strip_right)
            refuse(source, "an added token takes note of what is beside it");
    if (static_cast<std::int64_t>(from.tokens.size()) > tokens)
        refuse(source, std::to_string(from.tokens.size()) + " tokens, but the embedding has " + std::to_string(tokens),
               errc::bad_file);

    vocabulary out;
    out.model = "gpt2";
    out.pre = rule_of(from.cuts, model->whole_pieces_first, source);
    out.tokens = from.tokens;
    out.types.reserve(static_cast<std::size_t>(tokens));
    for (auto const type : from.types)
        out.types.push_back(static_cast<std::int32_t>(type));
    for (std::size_t i = 0; i < static_cast<std::size_t>(tokens); ++i) {
        bool const more = i == out.tokens.size();
        if (!more && !out.tokens[i].empty()) continue;
        // As llama.cpp's converter names them.
        auto name = "[PAD" + std::to_string(i) + "]";
        if (more) {
            out.tokens.push_back(std::move(name));
            out.types.push_back(0);
        } else {
            out.tokens[i] = std::move(name);
        }
        out.types[i] = static_cast<std::int32_t>(token_type::unused);
    }
    out.merges.reserve(model->merges.size());
    for (auto const& [left, right] : model->merges) {
        if (left.find(' ') != left.npos || right.find(' ') != right.npos) refuse(source, "a merge has a space");
        out.merges.emplace_back(left).append(" ").append(right);
    }
    out.bos = from.bos;
    out.eos = from.eos;
    out.unknown = from.unknown;
    out.add_bos = adds(from.before, from.bos, "before", source);
    out.add_eos = adds(from.after, from.eos, "after", source);
    for (auto const end : from.ends) {
        if (end == from.eos || end == out.end_of_turn) continue;
        if (!out.end_of_turn)
            out.end_of_turn = end;
        else if (!out.end_of_message)
            out.end_of_message = end;
        else
            refuse(source, "more than three tokens end an answer");
    }
    return out;
}

void set_vocabulary(gguf_metadata& keys, vocabulary const& what)
{
    std::string const prefix = "tokenizer.ggml.";
    keys.set(prefix + "model", what.model);
    keys.set(prefix + "pre", what.pre);
    keys.set(prefix + "tokens", what.tokens);
    keys.set(prefix + "token_type", what.types);
    keys.set(prefix + "merges", what.merges);
    auto const id = [&](char const* key, std::optional<std::int64_t> const& value) {
        if (value) keys.set(prefix + key, static_cast<std::uint32_t>(*value));
    };
    id("bos_token_id", what.bos);
    id("eos_token_id", what.eos);
    id("eot_token_id", what.end_of_turn);
    id("eom_token_id", what.end_of_message);
    id("unknown_token_id", what.unknown);
    if (what.add_bos) keys.set(prefix + "add_bos_token", *what.add_bos);
    if (what.add_eos) keys.set(prefix + "add_eos_token", *what.add_eos);
}

} // namespace plait
