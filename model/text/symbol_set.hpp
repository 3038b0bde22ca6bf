#pragma once

#include <plait/model/text/byte_trie.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace plait {

/// A set of texts, asked for the longest that a text begins with.
class symbol_set {
public:
    void add(std::string_view symbol)
    {
        if (symbol.empty()) return;
        auto const node = trie_.add(symbol);
        ends_.resize(trie_.size());
        ends_[node] = true;
        longest_ = std::max(longest_, symbol.size());
    }

    /// The length of the longest member.
    std::size_t longest() const noexcept { return longest_; }

    /// The length of the longest member at the start of `text`, or 0.
    std::size_t match(std::string_view text) const noexcept
    {
        std::size_t found = 0;
        auto node = byte_trie::index{0};
        for (std::size_t i = 0; i < text.size(); ++i) {
            node = trie_.child(node, text[i]);
            if (node == byte_trie::none) break;
            if (ends_[node]) found = i + 1;
        }
        return found;
    }

private:
    byte_trie trie_;
    std::vector<bool> ends_ = std::vector<bool>(1);
    std::size_t longest_ = 0;
};

} // namespace plait
