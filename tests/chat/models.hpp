#pragma once

#include <plait/tests/support/tiny_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace plait::test {

/// A tiny model whose greedy answers differ from prompt to prompt and never end by themselves: nothing leads to the
/// tokens that would end them.
inline gguf_writer talkative_model(std::uint32_t context = 256)
{
    tiny_model_options options;
    options.context = context;
    options.tied_output = false;
    auto model = tiny_model(options);
    auto& output = model.at("output.weight").data;
    auto const row = static_cast<std::ptrdiff_t>(options.width * sizeof(float));
    for (auto const id : {tiny_end_of_text, tiny_im_end})
        std::fill_n(output.begin() + id * row, row, std::byte{0});
    return model;
}

} // namespace plait::test
