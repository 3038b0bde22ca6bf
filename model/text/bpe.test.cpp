#include <plait/model/text/bpe.hpp>

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace plait;

namespace {

using ids = std::vector<std::int32_t>;

std::array<std::int32_t, 256> all_bytes()
{
    std::array<std::int32_t, 256> bytes{};
    std::iota(bytes.begin(), bytes.end(), 0);
    return bytes;
}

ids encode(bpe const& coder, std::string_view piece)
{
    ids out;
    bpe::scratch memory;
    coder.encode(piece, out, memory);
    return out;
}

/// The definition, in quadratic time: joins the leftmost pair of the best rank until there is none.
ids by_definition(std::array<std::int32_t, 256> const& bytes, std::vector<bpe::merge> const& merges,
                  std::string_view piece)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::int32_t>> ranks;
    for (std::size_t i = 0; i < merges.size(); ++i) {
        ranks.emplace(std::pair(merges[i].left, merges[i].right), std::pair(i, merges[i].product));
    }
    ids symbols;
    for (char const c : piece) {
        auto const id = bytes[static_cast<unsigned char>(c)];
        if (id >= 0) symbols.push_back(id);
    }
    for (;;) {
        auto best = ranks.end();
        std::size_t where = 0;
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
            auto const found = ranks.find({symbols[i], symbols[i + 1]});
            if (found == ranks.end() || (best != ranks.end() && best->second.first <= found->second.first)) continue;
            best = found;
            where = i;
        }
        if (best == ranks.end()) return symbols;
        symbols[where] = best->second.second;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
}

/// Random merges over the letters a to d, in an order in which pieces exist before they are used.
std::vector<bpe::merge> random_merges(std::mt19937& random, std::size_t count)
{
    std::map<std::string, std::int32_t> tokens;
    std::vector<std::string> texts;
    for (char c = 'a'; c <= 'd'; ++c) {
        texts.emplace_back(1, c);
        tokens[texts.back()] = c;
    }
    std::vector<bpe::merge> merges;
    while (merges.size() < count) {
        auto const left = texts[random() % texts.size()];
        auto const right = texts[random() % texts.size()];
        if (left.size() + right.size() > 12) continue;
        auto const [at, fresh] = tokens.emplace(left + right, static_cast<std::int32_t>(256 + tokens.size()));
        if (fresh) texts.push_back(left + right);
        merges.push_back({tokens[left], tokens[right], at->second});
    }
    return merges;
}

} // namespace

TEST_CASE("the earliest merge wins, then the leftmost pair")
{
    std::vector<bpe::merge> const merges{{'b', 'c', 256}, {'a', 'b', 257}, {'a', 'a', 258}};
    bpe const coder(all_bytes(), merges);
    CHECK(encode(coder, "abc") == ids{'a', 256});
    CHECK(encode(coder, "ab") == ids{257});
    CHECK(encode(coder, "aaa") == ids{258, 'a'});
    CHECK(encode(coder, "xyz") == ids{'x', 'y', 'z'});
    CHECK(encode(coder, "").empty());
}

TEST_CASE("of two entries for a pair the first counts")
{
    std::vector<bpe::merge> const merges{{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 258}};
    bpe const coder(all_bytes(), merges);
    CHECK(encode(coder, "abc") == ids{256, 'c'});
}

TEST_CASE("without merges every byte is its own token")
{
    bpe const coder(all_bytes(), {});
    CHECK(encode(coder, "abc") == ids{'a', 'b', 'c'});
    CHECK(encode(coder, std::string(1000, 'x')) == ids(1000, 'x'));
}

TEST_CASE("short and long pieces are encoded as the definition says")
{
    std::mt19937 random(7);
    std::size_t wrong = 0;
    for (int round = 0; round < 400; ++round) {
        auto const merges = random_merges(random, 1 + random() % 60);
        auto bytes = all_bytes();
        if (round % 4 == 0) bytes['d'] = -1; // a byte without a token: its neighbours become adjacent
        bpe const coder(bytes, merges);
        bpe::scratch memory;
        for (std::size_t const length : {1u, 2u, 3u, 7u, 20u, 47u, 48u, 49u, 50u, 90u, 200u}) {
            std::string piece;
            auto const letters = 1 + random() % 4;
            for (std::size_t i = 0; i < length; ++i)
                piece += static_cast<char>('a' + random() % letters);
            ids out;
            coder.encode(piece, out, memory);
            if (out != by_definition(bytes, merges, piece)) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a megabyte of one letter is one piece of work, not a million")
{
    // Doubling merges up to 2^20 letters; a quadratic encoder would never come back.
    std::vector<bpe::merge> merges;
    std::int32_t piece = 'a';
    for (std::int32_t i = 0; i < 20; ++i) {
        merges.push_back({piece, piece, 256 + i});
        piece = 256 + i;
    }
    bpe const coder(all_bytes(), merges);
    CHECK(encode(coder, std::string(std::size_t{1} << 20, 'a')) == ids{275});
    CHECK(encode(coder, std::string((std::size_t{1} << 20) - 1, 'a')).size() == 20);
}
