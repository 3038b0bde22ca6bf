#include <plait/kernels/host/attention_ops.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

TEST_CASE("the size of a page is that of its keys, values and scales")
{
    CHECK(page_bytes(kv_type::f16, 3, 64) == 3 * 2 * 64 * 16 * 2);
    CHECK(page_bytes(kv_type::f32, 1, 128) == 2 * 128 * 16 * 4);
    CHECK(page_bytes(kv_type::q8, 2, 64) == 2 * (2 * 64 * 16 + 2 * 16 * 4));
    for (auto type : {kv_type::f32, kv_type::f16, kv_type::q8})
        for (std::int64_t dims = 1; dims < 70; ++dims) {
            CHECK(page_bytes(type, 1, dims) % 64 == 0);
            CHECK(layout_of(type, dims).values_offset % 64 == 0);
            CHECK(layout_of(type, dims).scales_offset % 64 == 0);
        }
}

TEST_CASE("copying a page copies it in every layer and touches nothing else")
{
    constexpr std::size_t pages = 6;
    std::size_t const sizes[] = {page_bytes(kv_type::f16, 2, 32), page_bytes(kv_type::q8, 1, 32)};
    std::size_t const strides[] = {sizes[0] + 64, sizes[1]};
    for (auto set : available_isas())
        for (unsigned workers : {1u, 2u, 5u}) {
            buffer<std::byte> memory[2];
            for (std::size_t layer = 0; layer < 2; ++layer) {
                memory[layer].resize(pages * strides[layer]);
                for (std::size_t i = 0; i < memory[layer].size(); ++i)
                    memory[layer][i] = static_cast<std::byte>(i / strides[layer] + 10 * layer + 3 * i);
            }
            buffer<std::byte> expected[2] = {memory[0], memory[1]};
            page_copy const copies[] = {{0, 4}, {5, 1}};
            for (std::size_t layer = 0; layer < 2; ++layer)
                for (auto [from, to] : copies)
                    std::memcpy(expected[layer].data() + static_cast<std::size_t>(to) * strides[layer],
                                memory[layer].data() + static_cast<std::size_t>(from) * strides[layer], sizes[layer]);
            paged_kv const layers[] = {{kv_type::f16, 2, 32, memory[0].data(), strides[0]},
                                       {kv_type::q8, 1, 32, memory[1].data(), strides[1]}};
            run_all(attention_ops(set).copy_page, copy_page_args{layers, copies}, workers);
            CHECK(same_bits(memory[0], expected[0]));
            CHECK(same_bits(memory[1], expected[1]));
        }
}
