#pragma once

#include <plait/model/files/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// Another source, some of whose float tensors look as if they had been stored quantised: reading them quantises what
/// is read, block by block, as host::quantise_weights does. So whatever loads or divides weights sees blocks, and only
/// those it reads are made. Tensors that are no float matrices, or whose rows are not made of whole blocks, stay.
class quantised_source final : public tensor_source {
public:
    /// The type that each tensor named in `types` is to have: Q8_0 or Q4_1. Errors: errc::invalid_argument for another
    /// type.
    quantised_source(std::unique_ptr<tensor_source> stored, std::map<std::string, ggml_type> const& types);

    std::string const& source() const noexcept override { return stored_->source(); }
    std::span<stored_tensor const> tensors() const noexcept override { return tensors_; }
    stored_tensor const* find_tensor(std::string_view name) const noexcept override;
    void read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const override;
    void check_unchanged() const override { stored_->check_unchanged(); }
    std::uint64_t fingerprint() const override;

private:
    void quantise(stored_tensor const& from, ggml_type to, std::uint64_t offset, std::span<std::byte> out) const;

    std::unique_ptr<tensor_source> stored_;
    std::vector<stored_tensor> tensors_; // in the order of stored_'s
};

} // namespace plait
