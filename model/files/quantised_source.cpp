#include <plait/model/files/quantised_source.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/quantise_weights.hpp>
#include <plait/model/files/fingerprint.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace plait {
namespace {

bool is_float(ggml_type type) noexcept
{
    return type == ggml_type::f32 || type == ggml_type::f16 || type == ggml_type::bf16;
}

/// `count` values of a float type.
void widen(ggml_type from, std::byte const* stored, std::size_t count, float* out)
{
    if (from == ggml_type::f32) {
        std::memcpy(out, stored, count * sizeof(float));
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::uint16_t half = 0;
        std::memcpy(&half, stored + i * sizeof half, sizeof half);
        out[i] = from == ggml_type::f16 ? host::f16_to_f32(half) : host::bf16_to_f32(half);
    }
}

} // namespace

quantised_source::quantised_source(std::unique_ptr<tensor_source> stored, std::map<std::string, ggml_type> const& types)
    : stored_(std::move(stored))
    , tensors_(stored_->tensors().begin(), stored_->tensors().end())
{
    for (auto const& [name, type] : types) {
        auto const format = computable(type);
        if (!format || !host::can_quantise_to(*format))
            throw error(errc::invalid_argument,
                        "quantize: " + std::string(layout(type).name) + "; Q8_0 and Q4_1 can be made");
        auto const* found = stored_->find_tensor(name);
        if (found == nullptr || !found->foreign_type.empty() || !is_float(found->type)) continue;
        auto const& how = layout(type);
        if (found->rank < 2 || found->cols() % how.block != 0) continue;
        auto& tensor = tensors_[static_cast<std::size_t>(found - stored_->tensors().data())];
        tensor.type = type;
        tensor.bytes = static_cast<std::uint64_t>(found->cols() * found->rows()) / how.block * how.bytes;
    }
}

stored_tensor const* quantised_source::find_tensor(std::string_view name) const noexcept
{
    auto const* found = stored_->find_tensor(name);
    return found == nullptr ? nullptr : &tensors_[static_cast<std::size_t>(found - stored_->tensors().data())];
}

void quantised_source::read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const
{
    check_range(tensor, offset, out.size());
    auto const& from = stored_->tensor(tensor.name);
    if (from.type == tensor.type)
        stored_->read(from, offset, out);
    else
        quantise(from, tensor.type, offset, out);
}

/// Makes the blocks that `out` touches, some thousand at a time.
void quantised_source::quantise(stored_tensor const& from, ggml_type to, std::uint64_t offset,
                                std::span<std::byte> out) const
{
    constexpr std::uint64_t at_once = 4096;
    auto const& how = layout(to);
    std::uint64_t const value = layout(from.type).bytes;
    std::vector<std::byte> stored;
    std::vector<float> values;
    std::vector<std::byte> blocks;
    while (!out.empty()) {
        std::uint64_t const first = offset / how.bytes;
        std::uint64_t const end = (offset + out.size() + how.bytes - 1) / how.bytes;
        std::uint64_t const count = std::min(at_once, end - first);
        auto const floats = static_cast<std::size_t>(count * how.block);
        stored.resize(floats * value);
        values.resize(floats);
        blocks.resize(static_cast<std::size_t>(count * how.bytes));
        stored_->read(from, first * how.block * value, stored);
        widen(from.type, stored.data(), floats, values.data());
        host::quantise_weights(*computable(to), static_cast<std::int64_t>(floats), values.data(), blocks.data());
        auto const wanted = std::span(blocks).subspan(static_cast<std::size_t>(offset - first * how.bytes));
        std::size_t const length = std::min(wanted.size(), out.size());
        std::copy_n(wanted.begin(), length, out.begin());
        offset += length;
        out = out.subspan(length);
    }
}

std::uint64_t quantised_source::fingerprint() const
{
    std::uint64_t hash = stored_->fingerprint();
    for (stored_tensor const& tensor : tensors_) {
        auto const type = static_cast<std::uint32_t>(tensor.type);
        hash = mix(hash, std::as_bytes(std::span(&type, 1)));
    }
    return hash;
}

} // namespace plait
