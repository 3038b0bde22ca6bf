#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// `model.safetensors.index.json`: which shard each tensor lies in.
struct safetensors_index {
    std::vector<std::string> shards;                            ///< names of files in the index's own folder, ascending
    std::map<std::string, std::uint32_t, std::less<>> shard_of; ///< by the tensor's name; into `shards`

    /// Errors: errc::not_found, errc::io, errc::bad_file where the file is not JSON or has more than 100 MB, has no
    /// `weight_map` of strings or an empty one, more than a million tensors or 4096 shards, or names a shard that is
    /// not plainly a file called *.safetensors: a path, for example, could leave the folder.
    static safetensors_index open(std::filesystem::path const& path);
    static safetensors_index parse(std::string_view text, std::string const& source = "index");
};

} // namespace plait
