#include <plait/model/text/model_builder.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace plait {
namespace {

constexpr std::string_view mark = "\u2581";
// Every prefix of a token is looked up while a SentencePiece model is built, and compared while a lattice is.
constexpr std::size_t longest_piece = 1024;

[[noreturn]] void bad(std::string const& field, std::string const& what)
{
    throw error(errc::bad_file, field + ": " + what);
}

std::string item(std::string const& field, std::size_t index)
{
    return field + "[" + std::to_string(index) + "]";
}

class builder {
public:
    builder(tokenizer_description const& source, std::vector<token_type> const& types, token_index const& index,
            std::array<std::int32_t, 256> const& bytes)
        : source_(source)
        , types_(types)
        , index_(index)
        , bytes_(bytes)
    {
    }

    token_model make(bpe_model const& model) const
    {
        auto const merges = resolve(model.merges);
        if (model.from == bpe_model::symbols::bytes) return {bpe(bytes_, merges), false};
        character_bpe::table table;
        table.end_of_word = model.end_of_word;
        table.unknown = unknown();
        table.fuse_unknown = model.fuse_unknown;
        if (model.byte_fallback) {
            table.bytes = bytes_;
        } else {
            table.bytes.fill(-1);
        }
        table.merges.reserve(merges.size());
        for (std::size_t i = 0; i < merges.size(); ++i)
            table.merges.push_back({merges[i], static_cast<std::uint32_t>(i)});
        list_characters(table);
        bool const words = marks_begin_words(table);
        return {character_bpe(std::move(table)), words};
    }

    token_model make(sentencepiece_bpe_model const& model) const
    {
        check(model.scores);
        character_bpe::table table;
        table.unknown = unknown();
        table.fuse_unknown = true;
        table.spell_after = true;
        if (model.byte_fallback) {
            table.bytes = bytes_;
        } else {
            table.bytes.fill(-1);
        }
        list_characters(table);

        // Tokens of the same score are of the same rank: then the leftmost joins first.
        std::vector<float> order;
        order.reserve(model.scores.size());
        for (std::size_t i = 0; i < model.scores.size(); ++i) {
            if (is_text(i)) order.push_back(model.scores[i]);
        }
        std::sort(order.begin(), order.end(), std::greater<>());
        order.erase(std::unique(order.begin(), order.end()), order.end());
        for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
            if (!is_text(i)) continue;
            auto const place = std::lower_bound(order.begin(), order.end(), model.scores[i], std::greater<>());
            list_splits(i, static_cast<std::uint32_t>(place - order.begin()), table.merges);
        }
        bool const words = marks_begin_words(table);
        return {character_bpe(std::move(table)), words};
    }

    token_model make(unigram_model const& model) const
    {
        check(model.scores);
        double least = std::numeric_limits<double>::max();
        bool any = false;
        std::vector<unigram::token> tokens;
        tokens.reserve(source_.tokens.size());
        for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
            if (types_[i] != token_type::normal || source_.tokens[i].empty()) continue;
            least = std::min(least, model.scores[i]);
            any = true;
        }
        if (!any) bad(source_.fields.tokens, "no piece of text");
        for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
            if (!is_text(i)) continue;
            auto const& text = source_.tokens[i];
            double score = model.scores[i];
            // More than any sequence of others, which are logarithms of probabilities; sentencepiece's own value too.
            if (types_[i] == token_type::user_defined && model.bonus) score = -0.1;
            check_length(i);
            tokens.push_back({text, static_cast<std::int32_t>(i), score});
        }
        unigram::settings how{
            .least = least, .unknown = unknown(), .bytes = bytes_, .single_precision = model.single_precision};
        if (!model.byte_fallback) how.bytes.fill(-1);
        return {unigram(tokens, how), false};
    }

private:
    // A token that plain text can become.
    bool is_text(std::size_t id) const noexcept
    {
        return (types_[id] == token_type::normal || types_[id] == token_type::user_defined) &&
               !source_.tokens[id].empty();
    }

    // Plain text must never become a control token.
    std::int32_t unknown() const noexcept
    {
        if (!source_.unknown || types_[static_cast<std::size_t>(*source_.unknown)] == token_type::control) return -1;
        return static_cast<std::int32_t>(*source_.unknown);
    }

    void check_length(std::size_t id) const
    {
        if (source_.tokens[id].size() <= longest_piece) return;
        throw error(errc::unsupported, item(source_.fields.tokens, id) + ": a piece of " +
                                           std::to_string(source_.tokens[id].size()) + " bytes");
    }

    template<class Score>
    void check(std::vector<Score> const& scores) const
    {
        if (scores.size() != source_.tokens.size()) {
            bad(source_.fields.scores,
                std::to_string(scores.size()) + " entries for " + std::to_string(source_.tokens.size()) + " tokens");
        }
        for (std::size_t i = 0; i < scores.size(); ++i) {
            if (!std::isfinite(scores[i]) || std::abs(scores[i]) > Score{1e30f}) {
                bad(item(source_.fields.scores, i), "not a finite number");
            }
        }
    }

    std::vector<bpe::merge> resolve(std::vector<std::pair<std::string, std::string>> const& merges) const
    {
        std::vector<bpe::merge> out;
        out.reserve(merges.size());
        std::string product;
        for (std::size_t i = 0; i < merges.size(); ++i) {
            auto const& [left, right] = merges[i];
            // With an empty piece the product would be the other one, and joining would never end.
            if (left.empty() || right.empty()) bad(item(source_.fields.merges, i), "an empty piece");
            product.assign(left).append(right);
            bpe::merge m{};
            auto const look_up = [&](std::string_view piece, std::int32_t& id) {
                id = index_.find(piece);
                if (id < 0) {
                    bad(item(source_.fields.merges, i), quote(piece) + " is not in " + source_.fields.tokens);
                }
            };
            look_up(left, m.left);
            look_up(right, m.right);
            look_up(product, m.product);
            // Plain text must never become a control token.
            if (is_structure(m.left) || is_structure(m.right) || is_structure(m.product)) continue;
            out.push_back(m);
        }
        return out;
    }

    bool is_structure(std::int32_t id) const noexcept
    {
        auto const type = types_[static_cast<std::size_t>(id)];
        return type == token_type::control || type == token_type::unknown;
    }

    void list_characters(character_bpe::table& table) const
    {
        for (std::size_t i = 0; i < source_.tokens.size(); ++i) {
            if (!is_text(i)) continue;
            std::string_view const text = source_.tokens[i];
            auto const first = first_utf8(text);
            auto const id = static_cast<std::int32_t>(i);
            if (first.length == text.size()) table.characters.emplace(first.value, id);
            if (!table.end_of_word.empty() && text.substr(first.length) == table.end_of_word) {
                table.last.emplace(first.value, id);
            }
        }
    }

    // The symbol that the text of a merge's part would be, or -1.
    std::int32_t symbol(std::string_view text) const noexcept
    {
        auto const id = index_.find(text);
        if (id >= 0 && is_text(static_cast<std::size_t>(id))) return id;
        auto const first = first_utf8(text);
        return first.length == text.size() ? character_bpe::bare(first.value) : -1;
    }

    void list_splits(std::size_t id, std::uint32_t rank, std::vector<bpe::ranked_merge>& out) const
    {
        std::string_view const text = source_.tokens[id];
        check_length(id);
        for (std::size_t at = first_utf8(text).length; at < text.size();) {
            auto const left = symbol(text.substr(0, at));
            auto const right = left == -1 ? -1 : symbol(text.substr(at));
            if (right != -1) out.push_back({{left, right, static_cast<std::int32_t>(id)}, rank});
            at += first_utf8(text.substr(at)).length;
        }
    }

    bool marks_begin_words(character_bpe::table const& table) const
    {
        // The mark must have a token, or unknown characters on both sides of it could be one.
        auto const known = index_.find(mark);
        if (known < 0 || !is_text(static_cast<std::size_t>(known)) || !table.end_of_word.empty()) return false;
        std::string character;
        auto const text = [&](std::int32_t symbol) -> std::string_view {
            if (symbol >= 0) return source_.tokens[static_cast<std::size_t>(symbol)];
            character.clear();
            append_utf8(character, static_cast<char32_t>(-2 - symbol));
            return character;
        };
        return std::none_of(table.merges.begin(), table.merges.end(), [&](bpe::ranked_merge const& m) {
            return text(m.what.right).starts_with(mark) && !text(m.what.left).ends_with(mark);
        });
    }

    tokenizer_description const& source_;
    std::vector<token_type> const& types_;
    token_index const& index_;
    std::array<std::int32_t, 256> const& bytes_;
};

} // namespace

void token_model::encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const
{
    if (auto const* b = std::get_if<bpe>(&algorithm)) {
        b->encode(piece, out, memory.merges);
    } else if (auto const* c = std::get_if<character_bpe>(&algorithm)) {
        c->encode(piece, out, memory.merges);
    } else {
        std::get<unigram>(algorithm).encode(piece, out, memory.lattice);
    }
}

token_model make_token_model(tokenizer_description const& source, std::vector<token_type> const& types,
                             token_index const& index, std::array<std::int32_t, 256> const& bytes)
{
    builder const b(source, types, index, bytes);
    return std::visit([&](auto const& model) { return b.make(model); }, source.model);
}

std::optional<unsigned char> byte_token(std::string_view text) noexcept
{
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
    unsigned value = 0;
    for (char const c : text.substr(3, 2)) {
        if (c >= '0' && c <= '9') {
            value = 16 * value + static_cast<unsigned>(c - '0');
        } else if (c >= 'A' && c <= 'F') {
            value = 16 * value + static_cast<unsigned>(c - 'A' + 10);
        } else if (c >= 'a' && c <= 'f') {
            value = 16 * value + static_cast<unsigned>(c - 'a' + 10);
        } else {
            return std::nullopt;
        }
    }
    return static_cast<unsigned char>(value);
}

} // namespace plait
