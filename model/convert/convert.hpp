#pragma once

#include <plait/model/files/ggml_type.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace plait {

struct convert_options {
    /// Of the matrices; none: what they have. Vectors are F32. A matrix whose rows are not made of whole blocks of a
    /// block type becomes F16.
    std::optional<ggml_type> type;
    std::optional<std::string> name; ///< `general.name`
};

struct converted {
    std::int64_t tensors = 0;
    std::uint64_t bytes = 0; ///< of their data
};

/// Writes the model `in`, whatever its format (see open_model), as a GGUF file. A few MiB of it are in memory at a
/// time. The file is read back, and has to describe the same computation, before it gets its name. `report` hears the
/// part that is done. Errors: as open_model, describe and gguf_writer; errc::unsupported where the type asked for can't
/// be made, or GGUF can't say what the model is; errc::invalid_argument where `out` is among the files of `in`.
converted convert(std::filesystem::path const& in, std::filesystem::path const& out,
                  convert_options const& options = {}, std::function<void(double)> const& report = {});

} // namespace plait
