// libFuzzer target: arbitrary bytes as a GGUF file, its vocabulary as a tokenizer, and that through encode and decode.
#include <plait/actors/error.hpp>
#include <plait/model/files/gguf.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/vocabulary.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

using namespace plait;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const input(reinterpret_cast<char const*>(data), size);
    try {
        auto const file = gguf_file::parse(std::as_bytes(std::span(data, size)));
        tokenizer const t(describe(read_vocabulary(file)));
        for (std::string_view const text : {std::string_view("Hello, world  12 <a> \u4f60"), input.substr(0, 100)}) {
            for (bool const parse : {false, true}) {
                auto const ids = t.encode(text, {.add_special = parse, .parse_special = parse});
                for (auto const id : ids) {
                    if (id < 0 || static_cast<std::size_t>(id) >= t.size()) std::abort();
                    if (!parse && t.type(id) == token_type::control) std::abort();
                }
                t.decode(ids);
            }
        }
    } catch (error const&) {
        return 0;
    }
    return 0;
}
