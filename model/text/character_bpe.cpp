#include <plait/model/text/character_bpe.hpp>

#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <utility>

namespace plait {

character_bpe::character_bpe(table source)
    : table_(std::move(source))
    , joiner_(std::span<bpe::ranked_merge const>(table_.merges))
{
    table_.merges = {};
    ascii_.fill(-1);
    for (auto const& [c, id] : table_.characters) {
        if (c < ascii_.size()) ascii_[c] = id;
    }
}

std::int32_t character_bpe::find(char32_t c, bool last) const noexcept
{
    if (last && !table_.end_of_word.empty()) {
        auto const found = table_.last.find(c);
        return found == table_.last.end() ? -1 : found->second;
    }
    if (c < ascii_.size()) return ascii_[c];
    auto const found = table_.characters.find(c);
    return found == table_.characters.end() ? -1 : found->second;
}

bool character_bpe::append_bytes(std::string_view character, std::vector<std::int32_t>& out) const
{
    auto const token = [&](char c) { return table_.bytes[static_cast<unsigned char>(c)]; };
    if (std::any_of(character.begin(), character.end(), [&](char c) { return token(c) < 0; })) return false;
    for (char const c : character)
        out.push_back(token(c));
    return true;
}

void character_bpe::append_unknown(bool after_unknown, std::vector<std::int32_t>& out) const
{
    if (table_.unknown >= 0 && !(after_unknown && table_.fuse_unknown)) out.push_back(table_.unknown);
}

void character_bpe::encode(std::string_view piece, std::vector<std::int32_t>& out, bpe::scratch& memory) const
{
    std::vector<std::int32_t>& symbols = memory.characters();
    symbols.clear();
    bool after_unknown = false;
    for (std::size_t i = 0; i < piece.size();) {
        auto const unit = first_utf8(piece.substr(i));
        auto const character = piece.substr(i, unit.length);
        i += unit.length;
        auto const id = find(unit.value, i == piece.size());
        if (id >= 0) {
            symbols.push_back(id);
            after_unknown = false;
        } else if (table_.spell_after) {
            symbols.push_back(bare(unit.value));
        } else if (append_bytes(character, symbols)) {
            after_unknown = false;
        } else {
            append_unknown(after_unknown, symbols);
            after_unknown = true;
        }
    }
    std::size_t const start = out.size();
    joiner_.join(symbols, out, memory);
    if (!table_.spell_after || std::none_of(out.begin() + static_cast<std::ptrdiff_t>(start), out.end(),
                                            [](std::int32_t id) { return id < 0; })) {
        return;
    }
    symbols.assign(out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    out.resize(start);
    std::string character;
    after_unknown = false;
    for (auto const id : symbols) {
        if (id >= 0) {
            out.push_back(id);
            after_unknown = false;
            continue;
        }
        character.clear();
        append_utf8(character, static_cast<char32_t>(-2 - id));
        if (append_bytes(character, out)) {
            after_unknown = false;
        } else {
            append_unknown(after_unknown, out);
            after_unknown = true;
        }
    }
}

} // namespace plait
