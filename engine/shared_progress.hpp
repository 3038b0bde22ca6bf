#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace plait {

/// A function for each of `parts` that load side by side: called with how much of its part is done, 0 … 1, it has
/// `report`, which may be empty, hear how much of all is. On one executor.
inline std::vector<std::function<void(double)>> share_progress(std::size_t parts,
                                                               std::function<void(double)> const& report)
{
    if (!report) return std::vector<std::function<void(double)>>(parts);
    auto done = std::make_shared<std::vector<double>>(parts, 0.0);
    std::vector<std::function<void(double)>> out;
    out.reserve(parts);
    for (std::size_t i = 0; i < parts; ++i)
        out.emplace_back([done, report, i](double part) {
            (*done)[i] = part;
            report(std::accumulate(done->begin(), done->end(), 0.0) / static_cast<double>(done->size()));
        });
    return out;
}

} // namespace plait
