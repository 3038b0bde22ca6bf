#include <plait/model/files/quantised_source.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/model/files/gguf.hpp>

#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/gguf_writer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace plait;

namespace {

std::vector<float> wave(std::size_t count)
{
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = std::sin(static_cast<float>(i) * 0.7f) * static_cast<float>(1 + i % 11);
    return out;
}

/// What a float type keeps of `values`.
std::vector<float> kept(ggml_type type, std::vector<float> values)
{
    auto const bytes = test::encode(type, values);
    if (type == ggml_type::f32) return values;
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        values[i] = type == ggml_type::f16 ? host::f16_to_f32(half) : host::bf16_to_f32(half);
    }
    return values;
}

struct sample {
    std::vector<std::byte> bytes;
    std::map<std::string, ggml_type> types;

    explicit sample(ggml_type stored, ggml_type to)
    {
        test::gguf_writer file;
        file.add("matrix", {64, 300}, stored, test::encode(stored, wave(64 * 300)));
        file.add("narrow", {48, 2}, stored, test::encode(stored, wave(96)));
        file.add("vector", {64}, ggml_type::f32, test::encode(ggml_type::f32, wave(64)));
        file.add("whole", {32, 2}, ggml_type::q4_0);
        file.add("other", {32, 2}, ggml_type::f32);
        bytes = file.bytes();
        for (char const* name : {"matrix", "narrow", "vector", "whole", "missing"})
            types.emplace(name, to);
    }

    quantised_source open() const { return {std::make_unique<gguf_file>(gguf_file::parse(bytes, "file")), types}; }
};

} // namespace

TEST_CASE("a float matrix that is read as a quantised one has the blocks of ggml's reference")
{
    for (auto const stored : {ggml_type::f32, ggml_type::f16, ggml_type::bf16})
        for (auto const to : {ggml_type::q8_0, ggml_type::q4_1}) {
            sample const file(stored, to);
            auto const source = file.open();
            stored_tensor const& matrix = source.tensor("matrix");
            CHECK(matrix.type == to);
            auto const expected = test::encode(to, kept(stored, wave(64 * 300)));
            REQUIRE(matrix.bytes == expected.size());
            std::vector<std::byte> all(matrix.bytes);
            source.read(matrix, 0, all);
            CHECK(all == expected);
            for (std::size_t offset = 0; offset < all.size(); offset += 1237)
                for (std::size_t length : {std::size_t{1}, std::size_t{34}, std::size_t{5000}}) {
                    length = std::min(length, all.size() - offset);
                    std::vector<std::byte> part(length);
                    source.read(matrix, offset, part);
                    REQUIRE(
                        std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset)));
                }
            test::check_failure([&] { source.read(matrix, 1, all); }, errc::invalid_argument, {"'matrix'"});
        }
}

TEST_CASE("what can't be quantised, or need not be, stays as it is")
{
    sample const file(ggml_type::f32, ggml_type::q8_0);
    auto const source = file.open();
    auto const plain = gguf_file::parse(file.bytes);
    CHECK(source.source() == "file");
    REQUIRE(source.tensors().size() == plain.tensors().size());
    for (char const* name : {"narrow", "vector", "whole", "other"}) {
        CAPTURE(name);
        CHECK(source.tensor(name).type == plain.tensor(name).type);
        std::vector<std::byte> a(source.tensor(name).bytes);
        std::vector<std::byte> b(plain.tensor(name).bytes);
        source.read(source.tensor(name), 0, a);
        plain.read(plain.tensor(name), 0, b);
        CHECK(a == b);
    }
    CHECK(source.find_tensor("missing") == nullptr);
    CHECK_NOTHROW(source.check_unchanged());
}

TEST_CASE("the fingerprint of a quantised model is another one, and follows the type")
{
    sample const eight(ggml_type::f32, ggml_type::q8_0);
    sample const four(ggml_type::f32, ggml_type::q4_1);
    CHECK(eight.open().fingerprint() != gguf_file::parse(eight.bytes).fingerprint());
    CHECK(eight.open().fingerprint() != four.open().fingerprint());
    CHECK(eight.open().fingerprint() == eight.open().fingerprint());
}

TEST_CASE("only types that can be made are taken")
{
    sample const file(ggml_type::f32, ggml_type::q4_0);
    test::check_failure([&] { file.open(); }, errc::invalid_argument, {"quantize: Q4_0"});
}
