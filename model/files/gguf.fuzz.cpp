#include <plait/actors/error.hpp>
#include <plait/model/families/family.hpp>
#include <plait/model/files/gguf.hpp>

#include <cstddef>
#include <cstdint>

namespace {

/// Calls every reader on every entry: each must answer or throw a plait::error.
void read_everything(plait::gguf_file const& file)
{
    auto const attempt = [](auto const& read) {
        try {
            read();
        } catch (plait::error const&) {
            return;
        }
    };
    for (plait::gguf_entry const& entry : file.metadata()) {
        attempt([&] { file.u32(entry.key); });
        attempt([&] { file.u64(entry.key); });
        attempt([&] { file.f32(entry.key); });
        attempt([&] { file.boolean(entry.key); });
        attempt([&] { file.string(entry.key); });
        attempt([&] { file.strings(entry.key); });
        attempt([&] { file.i32s(entry.key); });
        attempt([&] { file.f32s(entry.key); });
    }
    unsigned volatile sink = 0;
    for (plait::stored_tensor const& tensor : file.tensors()) {
        attempt([&] { file.format(tensor); });
        sink = sink + std::to_integer<unsigned>(file.data(tensor).front());
        sink = sink + std::to_integer<unsigned>(file.data(tensor).back());
    }
    attempt([&] { plait::to_string(plait::describe(file).spec); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    try {
        read_everything(plait::gguf_file::parse(std::as_bytes(std::span(data, size))));
    } catch (plait::error const&) {
        return 0;
    }
    return 0;
}
