#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <plait/model/chat/answer_parser.hpp>

// The first two bytes choose the style and the length of pieces, the rest is the answer: its parts must not depend on
// the pieces.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    if (size < 2) return 0;
    plait::answer_style style;
    style.thoughts = static_cast<plait::answer_style::reasoning>(data[0] % 4);
    style.tools = static_cast<plait::answer_style::calls>(data[0] / 4 % 9);
    std::string_view const text(reinterpret_cast<char const*>(data) + 2, size - 2);
    auto const parse = [&](std::size_t step) {
        plait::answer_parser parser(style, data[1] >= 128);
        plait::answer_parts all;
        for (std::size_t at = 0; at < text.size(); at += step)
            all += parser.push(text.substr(at, step));
        all += parser.finish();
        return all;
    };
    if (!(parse(std::max<std::size_t>(size, 1)) == parse(1 + data[1] % 16))) std::abort();
    return 0;
}
