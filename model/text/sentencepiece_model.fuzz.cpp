// libFuzzer target: arbitrary bytes as a SentencePiece model, and what is accepted through encode and decode.
#include <plait/actors/error.hpp>
#include <plait/model/text/sentencepiece_model.hpp>
#include <plait/model/text/tokenizer.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plait;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const input(reinterpret_cast<char const*>(data), size);
    try {
        tokenizer const t(describe(sentencepiece_model::parse(input, "model"), "model"));
        for (std::string_view const text : {std::string_view("Hello, world  12 </s> \u4f60"), input.substr(0, 200)}) {
            auto const ids = t.encode(text);
            for (auto const id : ids) {
                if (id < 0 || static_cast<std::size_t>(id) >= t.size()) std::abort();
                if (t.type(id) == token_type::control) std::abort();
            }
            t.decode(ids);
        }
    } catch (error const&) {
    }
    return 0;
}
