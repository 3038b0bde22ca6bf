#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plait {

/// A set of byte strings as a tree; node 0 is the root. Children of a node form a list, so memory is 16 bytes a node
/// whatever the alphabet.
class byte_trie {
public:
    using index = std::uint32_t;
    static constexpr index none = ~index{0};

    byte_trie()
        : nodes_(1)
    {
    }

    /// Adds `word` and returns the node where it ends.
    index add(std::string_view word)
    {
        index node = 0;
        for (char const c : word) {
            index next = child(node, c);
            if (next == none) {
                next = static_cast<index>(nodes_.size());
                nodes_.push_back({none, nodes_[node].first, node, c});
                nodes_[node].first = next;
            }
            node = next;
        }
        return node;
    }

    /// The node one byte further down, or `none`.
    index child(index node, char byte) const noexcept
    {
        index next = nodes_[node].first;
        while (next != none && nodes_[next].byte != byte)
            next = nodes_[next].sibling;
        return next;
    }

    index parent(index node) const noexcept { return nodes_[node].parent; }
    char byte(index node) const noexcept { return nodes_[node].byte; }
    std::size_t size() const noexcept { return nodes_.size(); }

private:
    struct node {
        index first = none;
        index sibling = none;
        index parent = none;
        char byte = 0;
    };
    std::vector<node> nodes_;
};

} // namespace plait
