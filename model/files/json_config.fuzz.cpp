#include <plait/actors/error.hpp>
#include <plait/model/files/json_config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

/// Calls every reader on every field: each must answer or throw a plait::error.
void read_everything(plait::json_config const& config)
{
    auto const attempt = [](auto const& read) {
        try {
            read();
        } catch (plait::error const&) {
            return;
        }
    };
    for (auto const key : config.keys()) {
        if (!config.has(key)) __builtin_trap();
        attempt([&] { config.integer(key); });
        attempt([&] { config.number(key); });
        attempt([&] { config.boolean(key); });
        attempt([&] { config.string(key); });
        attempt([&] { config.integers(key); });
        attempt([&] { config.numbers(key); });
        attempt([&] { config.booleans(key); });
        attempt([&] { config.strings(key); });
        if (config.is_object(key)) read_everything(config.object(key)); // as deep as the reader allows
        attempt([&] {
            for (auto const& item : config.objects(key))
                read_everything(item);
        });
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    try {
        read_everything(plait::json_config::parse({reinterpret_cast<char const*>(data), size}));
    } catch (plait::error const&) {
        return 0;
    }
    return 0;
}
