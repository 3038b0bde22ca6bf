#include <plait/model/text/added_tokens.hpp>

#include <plait/model/text/unicode.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>

namespace plait {
namespace {

// Where the last character of text[0, end) begins; `end` must not be 0.
std::size_t last_character(std::string_view text, std::size_t end) noexcept
{
    do {
        --end;
    } while (end > 0 && (text[end] & 0xC0) == 0x80);
    return end;
}

bool word_before(std::string_view text, std::size_t end) noexcept
{
    return end > 0 && unicode::is_word(first_utf8(text.substr(last_character(text, end))).value);
}

bool word_after(std::string_view text, std::size_t begin) noexcept
{
    return begin < text.size() && unicode::is_word(first_utf8(text.substr(begin)).value);
}

} // namespace

bool special_places::allow(std::size_t begin, std::size_t end) const noexcept
{
    if (anywhere_) return true;
    auto const at = std::partition_point(parts_.begin(), parts_.end(), [&](byte_range r) { return r.end < end; });
    return at != parts_.end() && at->begin <= begin;
}

added_tokens::added_tokens(std::vector<added_token> const& tokens, std::vector<bool> const& special)
{
    tokens_.reserve(tokens.size());
    for (auto const& t : tokens) {
        if (t.text.empty()) continue;
        first_[static_cast<unsigned char>(t.text.front())] = true;
        auto const node = trie_.add(t.text);
        at_node_.resize(trie_.size(), -1);
        at_node_[node] = static_cast<std::int32_t>(tokens_.size());
        tokens_.push_back({t.id, special[static_cast<std::size_t>(t.id)], t.single_word, t.strip_left, t.strip_right});
    }
    at_node_.resize(trie_.size(), -1);
}

std::optional<added_tokens::match> added_tokens::find(std::string_view text, std::size_t from,
                                                      special_places const& special) const
{
    for (std::size_t i = from; i < text.size(); ++i) {
        if (!first_[static_cast<unsigned char>(text[i])]) continue;
        entry const* longest = nullptr;
        std::size_t end = i;
        auto node = byte_trie::index{0};
        for (std::size_t j = i; j < text.size(); ++j) {
            node = trie_.child(node, text[j]);
            if (node == byte_trie::none) break;
            auto const at = at_node_[node];
            if (at < 0 || (tokens_[static_cast<std::size_t>(at)].special && !special.allow(i, j + 1))) continue;
            longest = &tokens_[static_cast<std::size_t>(at)];
            end = j + 1;
        }
        if (longest == nullptr) continue;
        if (longest->single_word && (word_before(text, i) || word_after(text, end))) {
            i = end - 1; // as a match that is thrown away, it is not searched for others
            continue;
        }
        std::size_t begin = i;
        while (longest->strip_left && begin > from) {
            auto const last = last_character(text, begin);
            if (last < from || !unicode::is_white_space(first_utf8(text.substr(last)).value)) break;
            begin = last;
        }
        while (longest->strip_right && end < text.size()) {
            auto const next = first_utf8(text.substr(end));
            if (!unicode::is_white_space(next.value)) break;
            end += next.length;
        }
        return match{begin, end, longest->id};
    }
    return std::nullopt;
}

} // namespace plait
