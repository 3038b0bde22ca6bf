// libFuzzer target: arbitrary bytes through encode, decode, text_stream and stop_matcher.
// The first byte picks the rule and the options, the second how many bytes of the rest are stop strings.
#include <plait/model/text/text_stream.hpp>
#include <plait/model/text/tokenizer.hpp>
#include <plait/model/text/utf8.hpp>
#include <plait/tests/support/vocabulary.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace plait;

namespace {

std::vector<std::unique_ptr<tokenizer>> make_tokenizers()
{
    std::vector<std::unique_ptr<tokenizer>> out;
    for (auto const* pre :
         {"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "tekken", "deepseek-coder", "deepseek-v3"}) {
        auto v = test::small_vocabulary();
        v.pre = pre;
        out.push_back(std::make_unique<tokenizer>(v));
    }
    return out;
}

void require(bool condition)
{
    if (!condition) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    static auto const tokenizers = make_tokenizers();
    if (size < 2) return 0;
    auto const& t = *tokenizers[data[0] % tokenizers.size()];
    encode_options const options{.add_special = false, .parse_special = (data[0] & 0x80) != 0};
    std::string_view text(reinterpret_cast<char const*>(data) + 2, size - 2);
    std::string stop(text.substr(0, data[1] % 8));
    text.remove_prefix(stop.size());

    auto const ids = t.encode(text, options);
    auto const whole = replace_invalid_utf8(text);
    require(t.decode(ids) == whole);
    require(ids == t.encode(whole, options));

    std::vector<std::string> stops;
    if (!stop.empty() && is_utf8(stop)) stops.push_back(stop);
    text_stream stream(t, {.stops = stops, .skip_special = false});
    std::string shown;
    std::size_t tokens = 0;
    for (auto const id : ids) {
        auto const update = stream.push(id);
        require(is_utf8(update.text));
        shown += update.text;
        tokens += update.tokens;
        require(tokens <= ids.size());
    }
    auto const rest = stream.flush();
    shown += rest.text;
    tokens += rest.tokens;
    auto const found = stops.empty() ? std::string::npos : whole.find(stops[0]);
    require(shown == whole.substr(0, found));
    require(stream.stopped().has_value() == (found != std::string::npos));
    require(stream.stopped() || tokens == ids.size());
    return 0;
}
