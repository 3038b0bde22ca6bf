#include <plait/model/convert/vocabulary_of.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/convert/merge_scores.hpp>
#include <plait/model/convert/same_ids.hpp>
#include <plait/model/text/charsmap.hpp>
#include <plait/model/text/pre_tokenizer.hpp>
#include <plait/model/text/split_regex.hpp>

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

constexpr std::string_view mark = "\u2581";

/// Scores of tokens that no text becomes by joining, as llama.cpp's converter writes them.
constexpr float added_score = -1000, padding_score = -10000;

/// Makes a vocabulary of a description.
class writer {
public:
    writer(tokenizer_description from, std::size_t tokens, std::string const& source)
        : from_(std::move(from))
        , tokens_(tokens)
        , source_(source)
    {
    }

    vocabulary run(std::string_view architecture)
    {
        if (from_.tokens.size() > tokens_)
            refuse(source_,
                   std::to_string(from_.tokens.size()) + " tokens, but the embedding has " + std::to_string(tokens_),
                   errc::bad_file);
        out_.architecture = architecture;
        std::visit([this](auto const& model) { write(model); }, from_.model);
        list_tokens();
        name_special();
        return std::move(out_);
    }

private:
    void write(bpe_model const& model)
    {
        if (!model.end_of_word.empty()) refuse(source_, "it marks the ends of words");
        if (model.from == bpe_model::symbols::bytes)
            byte_level(model);
        else
            characters(model);
    }

    void byte_level(bpe_model const& model)
    {
        for (auto const& step : from_.normalizer)
            if (auto const* form = std::get_if<normal::form>(&step); form == nullptr || *form != normal::form::nfc)
                refuse(source_, "it rewrites text before it cuts it");
        out_.model = "gpt2";
        out_.pre = rule_of(from_.cuts, model.whole_pieces_first, source_);
        out_.merges.reserve(model.merges.size());
        for (auto const& [left, right] : model.merges) {
            if (left.find(' ') != left.npos || right.find(' ') != right.npos) refuse(source_, "a merge has a space");
            out_.merges.emplace_back(left).append(" ").append(right);
        }
    }

    /// As tokenizer.json describes SentencePiece's.
    void characters(bpe_model const& model)
    {
        if (model.whole_pieces_first) refuse(source_, "a piece that is a token is that token, whatever the merges say");
        name_llama(model.byte_fallback);
        bool const spaces = read_normalizer();
        read_cuts(spaces);
        for (std::size_t i = 0; i < from_.tokens.size(); ++i) {
            // A run of spaces that is listed as added: merges make it of spaces, and only text with the mark itself
            // would be cut at it.
            auto& type = from_.types[i];
            if (type == token_type::user_defined && from_.tokens[i].find(mark) != std::string::npos)
                type = token_type::normal;
        }
        out_.scores = merge_scores(from_, model, source_);
    }

    bool is_text(std::int32_t id) const
    {
        return from_.types[static_cast<std::size_t>(id)] == token_type::user_defined;
    }

    void name_llama(bool byte_fallback)
    {
        out_.model = "llama";
        out_.pre = "default"; // says nothing here, but every converter writes it
        if (!byte_fallback && std::ranges::find(from_.types, token_type::byte) != from_.types.end())
            refuse(source_, "it has bytes that it does not write unknown characters with");
    }

    /// Whether spaces become marks. At first one may be put in front.
    bool read_normalizer()
    {
        auto at = from_.normalizer.begin();
        auto const end = from_.normalizer.end();
        if (at == end) return false;
        auto const* const front = std::get_if<normal::prepend>(&*at);
        bool const prepends = front != nullptr && (front->text == mark || front->text == " ");
        if (prepends) ++at;
        auto const* const spaces = at == end ? nullptr : std::get_if<normal::replace>(&*at);
        if (spaces == nullptr || spaces->is_regex || spaces->pattern != " " || spaces->with != mark || ++at != end)
            refuse(source_, "it rewrites text before it cuts it");
        out_.add_space_prefix = prepends;
        return true;
    }

    void read_cuts(bool spaces_are_marks)
    {
        for (auto const& step : from_.cuts) {
            // Where there are no spaces any more.
            auto const* const regex = std::get_if<cut::regex>(&step);
            if (regex != nullptr && spaces_are_marks && regex->pattern == escape_regex(" ") && !regex->invert) continue;
            auto const* const metaspace = std::get_if<cut::metaspace>(&step);
            if (metaspace == nullptr || spaces_are_marks || metaspace->mark != mark || out_.add_space_prefix)
                refuse(source_, "it cuts text by a rule that SentencePiece does not have");
            if (metaspace->split) refuse_tokens_across_marks();
            out_.add_space_prefix = metaspace->when != cut::metaspace::prefix::never;
            if (metaspace->when == cut::metaspace::prefix::first) out_.space_prefix = "first";
            if (metaspace->when == cut::metaspace::prefix::always) out_.space_prefix = "always";
        }
        if (!out_.add_space_prefix) refuse(source_, "it leaves spaces as they are");
    }

    /// Where text is cut at marks no token may have one inside, or it is never made.
    void refuse_tokens_across_marks() const
    {
        for (std::size_t i = 0; i < from_.tokens.size(); ++i)
            if (from_.types[i] == token_type::normal && from_.tokens[i].find(mark, 1) != std::string::npos)
                refuse(source_, "it cuts text at spaces, but a token has some inside");
    }

    void write(sentencepiece_bpe_model const& model)
    {
        name_llama(model.byte_fallback);
        auto const& how = sentencepiece_rules();
        if (how.map != nullptr || how.remove_extra_spaces || !how.escape_spaces)
            refuse(source_, "it rewrites text before it cuts it");
        out_.add_space_prefix = how.add_prefix;
        out_.normalized_symbols = std::ranges::any_of(
            from_.added, [this](added_token const& token) { return is_text(token.id) && token.normalized; });
        out_.scores = model.scores;
    }

    void write(unigram_model const& model)
    {
        auto const& how = sentencepiece_rules();
        if (model.byte_fallback) refuse(source_, "a unigram model that writes unknown characters with bytes");
        if (std::ranges::find(from_.types, token_type::user_defined) != from_.types.end())
            refuse(source_, "a unigram model with symbols of its own");
        if (!how.escape_spaces) refuse(source_, "it leaves spaces as they are");
        out_.model = "t5";
        out_.pre = "default";
        if (how.map != nullptr) out_.charsmap = how.map->blob();
        out_.add_space_prefix = how.add_prefix;
        out_.remove_extra_spaces = how.remove_extra_spaces;
        out_.single_precision = model.single_precision;
        out_.scores.reserve(tokens_);
        for (double const score : model.scores)
            out_.scores.push_back(static_cast<float>(score));
    }

    /// Of a SentencePiece model, whose symbols are found in the text as it was: spaces in them are spaces again.
    normal::sentencepiece const& sentencepiece_rules()
    {
        auto const* const how =
            from_.normalizer.size() == 1 ? std::get_if<normal::sentencepiece>(&from_.normalizer.front()) : nullptr;
        if (how == nullptr || !from_.cuts.empty())
            refuse(source_, "it cuts or rewrites text as SentencePiece does not");
        if (how->prefix_at_end) refuse(source_, "it puts a space at the end of a text");
        for (auto const& token : from_.added) {
            if (!is_text(token.id)) continue;
            auto& text = from_.tokens[static_cast<std::size_t>(token.id)];
            for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at))
                text.replace(at, mark.size(), " ");
        }
        return *how;
    }

    void list_tokens()
    {
        out_.tokens = from_.tokens;
        out_.tokens.resize(tokens_);
        out_.types.reserve(tokens_);
        for (auto const type : from_.types)
            out_.types.push_back(static_cast<std::int32_t>(type));
        out_.types.resize(tokens_);
        if (!out_.scores.empty()) {
            out_.scores.resize(tokens_);
            for (auto const& token : from_.added)
                if (from_.types[static_cast<std::size_t>(token.id)] != token_type::normal)
                    out_.scores[static_cast<std::size_t>(token.id)] = added_score;
        }
        for (std::size_t i = 0; i < tokens_; ++i) {
            if (!out_.tokens[i].empty()) continue;
            // As llama.cpp's converter names them.
            out_.tokens[i] = "[PAD" + std::to_string(i) + "]";
            out_.types[i] = static_cast<std::int32_t>(token_type::unused);
            if (!out_.scores.empty()) out_.scores[i] = padding_score;
        }
    }

    void name_special()
    {
        out_.bos = from_.bos;
        out_.eos = from_.eos;
        out_.unknown = from_.unknown;
        out_.add_bos = adds(from_.before, from_.bos, out_.before);
        out_.add_eos = adds(from_.after, from_.eos, out_.after);
        for (auto const end : from_.ends) {
            if (end == from_.eos || end == out_.end_of_turn || end == out_.end_of_message) continue;
            if (!out_.end_of_turn)
                out_.end_of_turn = end;
            else if (!out_.end_of_message)
                out_.end_of_message = end;
            else
                refuse(source_, "more than three tokens end an answer");
        }
    }

    /// Whether `ids`, which are put before or after a text, are `id` alone; if they are others they go to `listed`.
    static bool adds(std::vector<std::int64_t> const& ids, std::optional<std::int64_t> id,
                     std::optional<std::vector<std::int32_t>>& listed)
    {
        if (ids.empty()) return false;
        if (ids.size() == 1 && ids.front() == id) return true;
        listed.emplace(ids.begin(), ids.end());
        return false;
    }

    tokenizer_description from_;
    std::size_t tokens_;
    std::string const& source_;
    vocabulary out_;
};

/// What of an added token's place matters is not in a file; a reader may know it of the architecture.
void compare_added(tokenizer_description const& from, tokenizer_description const& back, std::string const& source)
{
    for (auto const& token : from.added) {
        auto const found = std::ranges::find(back.added, token.id, &added_token::id);
        bool const here = found != back.added.end();
        if (token.single_word || token.strip_left || token.strip_right != (here && found->strip_right))
            refuse(source, "an added token takes note of what is beside it");
    }
}

} // namespace

vocabulary vocabulary_of(tokenizer_description const& from, std::int64_t tokens, std::string_view architecture,
                         std::string const& source)
{
    auto out = writer(from, static_cast<std::size_t>(tokens), source).run(architecture);
    auto const back = describe(out);
    compare_added(from, back, source);
    if (out.model != "gpt2") prove_same_ids(from, back, source); // tokens, merges and rule are as they were
    return out;
}

void set_vocabulary(gguf_metadata& keys, vocabulary const& what)
{
    std::string const prefix = "tokenizer.ggml.";
    keys.set(prefix + "model", what.model);
    keys.set(prefix + "pre", what.pre);
    keys.set(prefix + "tokens", what.tokens);
    if (!what.scores.empty()) keys.set(prefix + "scores", what.scores);
    keys.set(prefix + "token_type", what.types);
    if (!what.merges.empty()) keys.set(prefix + "merges", what.merges);
    auto const id = [&](char const* key, std::optional<std::int64_t> const& value) {
        if (value) keys.set(prefix + key, static_cast<std::uint32_t>(*value));
    };
    id("bos_token_id", what.bos);
    id("eos_token_id", what.eos);
    id("eot_token_id", what.end_of_turn);
    id("eom_token_id", what.end_of_message);
    id("unknown_token_id", what.unknown);
    auto const flag = [&](char const* key, std::optional<bool> const& value) {
        if (value) keys.set(prefix + key, *value);
    };
    flag("add_bos_token", what.add_bos);
    flag("add_eos_token", what.add_eos);
    flag("add_space_prefix", what.add_space_prefix);
    flag("remove_extra_whitespaces", what.remove_extra_spaces);
    if (!what.charsmap.empty()) keys.set(prefix + "precompiled_charsmap", std::as_bytes(std::span(what.charsmap)));
    std::string const own = "tokenizer.plait.";
    if (what.before) keys.set(own + "before", *what.before);
    if (what.after) keys.set(own + "after", *what.after);
    if (!what.space_prefix.empty()) keys.set(own + "space_prefix", what.space_prefix);
    if (what.single_precision) keys.set(own + "single_precision", true);
    if (what.normalized_symbols) keys.set(own + "normalized_symbols", true);
}

} // namespace plait
