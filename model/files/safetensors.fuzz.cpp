#include <plait/actors/error.hpp>
#include <plait/model/files/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    try {
        auto const file = plait::safetensors_file::parse(std::as_bytes(std::span(data, size)));
        std::vector<std::byte> all;
        for (plait::stored_tensor const& tensor : file.tensors()) {
            all.resize(tensor.bytes);
            file.read(tensor, 0, all);
            if (file.find_tensor(tensor.name) != &tensor) __builtin_trap();
        }
        file.fingerprint();
        for (plait::stored_tensor const& tensor : file.tensors())
            file.format(tensor);
    } catch (plait::error const&) {
        return 0;
    }
    return 0;
}
