// libFuzzer target: arbitrary bytes as a tokenizer.json, and what is accepted through encode and decode.
#include <plait/actors/error.hpp>
#include <plait/model/text/hub_tokenizer.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plait;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const input(reinterpret_cast<char const*>(data), size);
    try {
        tokenizer const t(parse_tokenizer_json(input));
        // Short texts: an expression from outside may take its limit of steps at every place.
        for (std::string_view const text : {std::string_view("Hello, world  12 </s>"), input.substr(0, 24)}) {
            for (bool const parse : {false, true}) {
                for (auto const id : t.encode(text, {.add_special = parse, .parse_special = parse})) {
                    if (id < 0 || static_cast<std::size_t>(id) >= t.size()) std::abort();
                    if (!parse && t.type(id) == token_type::control) std::abort();
                    t.decode({&id, 1});
                }
            }
        }
    } catch (error const&) {
    }
    return 0;
}
