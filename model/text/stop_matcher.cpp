#include <plait/model/text/stop_matcher.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/utf8.hpp>

#include <algorithm>

namespace plait {

stop_matcher::stop_matcher(std::span<std::string const> stops)
{
    for (std::size_t i = 0; i < stops.size(); ++i) {
        std::string const field = "stop[" + std::to_string(i) + "]: ";
        if (stops[i].empty()) throw error(errc::invalid_argument, field + "empty");
        if (!is_utf8(stops[i])) throw error(errc::invalid_argument, field + "not UTF-8");
        auto const end = trie_.add(stops[i]);
        states_.resize(trie_.size());
        if (states_[end].stop >= 0) continue; // given twice: the first is reported
        states_[end].stop = static_cast<std::int32_t>(i);
        states_[end].length = static_cast<std::uint32_t>(stops[i].size());
    }
    states_.resize(trie_.size());

    // A parent is made before its children, so depths come in one pass; fallbacks need the nodes by depth.
    std::vector<node> by_depth;
    for (node n = 1; n < trie_.size(); ++n) {
        states_[n].depth = states_[trie_.parent(n)].depth + 1;
        by_depth.push_back(n);
    }
    std::sort(by_depth.begin(), by_depth.end(), [&](node a, node b) { return states_[a].depth < states_[b].depth; });
    for (node const n : by_depth) {
        auto& s = states_[n];
        if (s.depth > 1) {
            node suffix = states_[trie_.parent(n)].fallback;
            while (suffix != 0 && trie_.child(suffix, trie_.byte(n)) == byte_trie::none) {
                suffix = states_[suffix].fallback;
            }
            node const next = trie_.child(suffix, trie_.byte(n));
            s.fallback = next == byte_trie::none ? 0 : next;
        }
        // A stop string that ends here itself is longer than any that is its suffix.
        if (s.stop < 0) {
            s.stop = states_[s.fallback].stop;
            s.length = states_[s.fallback].length;
        }
    }
}

void stop_matcher::push(std::string_view text, std::string& out)
{
    if (matched_) return;
    if (trie_.size() == 1) {
        out += text;
        return;
    }
    for (char const c : text) {
        node next = trie_.child(at_, c);
        while (next == byte_trie::none && at_ != 0) {
            at_ = states_[at_].fallback;
            next = trie_.child(at_, c);
        }
        at_ = next == byte_trie::none ? 0 : next;
        held_ += c;
        auto const& s = states_[at_];
        if (s.stop >= 0) {
            matched_ = static_cast<std::size_t>(s.stop);
            out.append(held_, 0, held_.size() - s.length);
            held_.clear();
            return;
        }
        if (held_.size() > s.depth) {
            out.append(held_, 0, held_.size() - s.depth);
            held_.erase(0, held_.size() - s.depth);
        }
    }
}

void stop_matcher::finish(std::string& out)
{
    out += held_;
    held_.clear();
    at_ = 0;
}

} // namespace plait
