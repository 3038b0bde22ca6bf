#include <plait/model/text/unigram.hpp>

#include <plait/model/text/utf8.hpp>

#include <algorithm>
#include <utility>

namespace plait {

unigram::unigram(std::vector<token> const& tokens, settings how)
    : how_(how)
    , has_bytes_(std::none_of(how.bytes.begin(), how.bytes.end(), [](auto id) { return id < 0; }))
{
    ids_.reserve(tokens.size());
    scores_.reserve(tokens.size());
    for (auto const& t : tokens) {
        auto const node = trie_.add(t.text);
        token_.resize(trie_.size(), -1);
        token_[node] = static_cast<std::int32_t>(ids_.size());
        ids_.push_back(t.id);
        scores_.push_back(t.score);
    }
    token_.resize(trie_.size(), -1);
    for (std::size_t b = 0; b < first_.size(); ++b)
        first_[b] = trie_.child(0, static_cast<char>(b));
}

void unigram::encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const
{
    constexpr double unknown_penalty = 10;
    auto& nodes = memory.nodes_;
    nodes.assign(piece.size() + 1, {0, none, -1});
    double const unknown_score = how_.single_precision ? static_cast<double>(static_cast<float>(how_.least) - 10.0f)
                                                       : how_.least - unknown_penalty;
    auto const offer = [&](std::size_t end, double score, std::int32_t token, std::size_t begin) {
        auto& node = nodes[end];
        if (how_.single_precision) score = static_cast<double>(static_cast<float>(score));
        if (node.token != none && score <= node.score) return;
        node = {score, token, static_cast<std::int32_t>(begin)};
    };
    for (std::size_t begin = 0; begin < piece.size();) {
        double const before = nodes[begin].score;
        std::size_t const length = first_utf8(piece.substr(begin)).length;
        bool single = false;
        auto node = first_[static_cast<unsigned char>(piece[begin])];
        for (std::size_t end = begin + 1; node != byte_trie::none; ++end) {
            ++memory.steps_;
            if (auto const token = token_[node]; token >= 0) {
                offer(end, scores_[static_cast<std::size_t>(token)] + before, token, begin);
                single = single || end == begin + length;
            }
            if (end == piece.size()) break;
            node = trie_.child(node, piece[end]);
        }
        if (!single) offer(begin + length, unknown_score + before, unknown_character, begin);
        begin += length;
    }

    auto& path = memory.path_;
    path.clear();
    for (auto end = static_cast<std::int32_t>(piece.size()); end > 0;) {
        auto const& node = nodes[static_cast<std::size_t>(end)];
        path.emplace_back(end, node.token);
        end = node.begin;
    }
    std::size_t begin = 0;
    bool after_unknown = false;
    for (std::size_t i = path.size(); i-- > 0;) {
        auto const [end, token] = path[i];
        if (token >= 0) {
            out.push_back(ids_[static_cast<std::size_t>(token)]);
        } else if (has_bytes_) {
            for (char const c : piece.substr(begin, static_cast<std::size_t>(end) - begin))
                out.push_back(how_.bytes[static_cast<unsigned char>(c)]);
        } else if (!after_unknown && how_.unknown >= 0) {
            out.push_back(how_.unknown);
        }
        after_unknown = token < 0;
        begin = static_cast<std::size_t>(end);
    }
}

} // namespace plait
