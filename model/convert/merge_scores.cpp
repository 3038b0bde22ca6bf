#include <plait/model/convert/merge_scores.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>
#include <plait/model/text/utf8.hpp>

#include <cstddef>
#include <string_view>
#include <unordered_map>

namespace plait {
namespace {

[[noreturn]] void refuse(std::string const& source, std::string const& what)
{
    throw error(errc::unsupported, source + ": tokenizer: " + what + ", which no scores of SentencePiece say");
}

/// How many of the two halves into which a token can be cut are characters or tokens themselves.
template<class IsPiece>
std::size_t count_joins(std::string_view text, IsPiece is_piece)
{
    std::size_t out = 0;
    for (std::size_t at = first_utf8(text).length; at < text.size(); at += first_utf8(text.substr(at)).length)
        if (is_piece(text.substr(0, at)) && is_piece(text.substr(at))) ++out;
    return out;
}

} // namespace

std::vector<float> merge_scores(tokenizer_description const& from, bpe_model const& model, std::string const& source)
{
    struct made {
        std::size_t id = 0;
        std::size_t joins = 0; ///< merges that make it
        std::size_t order = 0;
    };
    std::unordered_map<std::string_view, made> tokens;
    for (std::size_t i = 0; i < from.tokens.size(); ++i)
        if (from.types[i] == token_type::normal && !from.tokens[i].empty()) tokens[from.tokens[i]].id = i;

    std::size_t order = 0;
    made const* last = nullptr;
    std::string text;
    for (auto const& [left, right] : model.merges) {
        text.assign(left).append(right);
        auto const found = tokens.find(text);
        if (found == tokens.end()) continue; // it makes a marker, which plain text never becomes
        auto& token = found->second;
        if (token.joins > 0 && last != &token)
            refuse(source, "merges that make " + quote(text) + " stand in several places");
        if (token.joins++ == 0) token.order = order++;
        last = &token;
    }

    std::vector<float> out(from.tokens.size());
    auto const is_piece = [&](std::string_view part) {
        return first_utf8(part).length == part.size() || tokens.contains(part);
    };
    for (std::size_t i = 0; i < from.tokens.size(); ++i) {
        auto const found = tokens.find(from.tokens[i]);
        if (found == tokens.end() || found->second.id != i) continue;
        auto const& token = found->second;
        if (count_joins(found->first, is_piece) > token.joins)
            refuse(source, quote(found->first) + " is made by some merges and not by others");
        out[i] = -static_cast<float>(token.joins > 0 ? token.order : order++);
    }
    return out;
}

} // namespace plait
