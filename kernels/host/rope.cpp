#include <plait/actors/error.hpp>
#include <plait/kernels/host/rope.hpp>

#include <cmath>

namespace plait::host {

rope_table::rope_table(std::span<double const> inverse_frequencies, std::int64_t positions, double magnitude)
{
    if (positions < 0) throw error(errc::invalid_argument, "rope_table: positions is negative");
    dims_ = static_cast<std::int32_t>(2 * inverse_frequencies.size());
    append(inverse_frequencies, positions, magnitude);
}

void rope_table::append(std::span<double const> inverse_frequencies, std::int64_t positions, double magnitude)
{
    if (2 * inverse_frequencies.size() != static_cast<std::size_t>(dims_))
        throw error(errc::invalid_argument, "rope_table: as many frequencies as the first rows have are wanted");
    positions_ += static_cast<std::int32_t>(positions);
    auto count = inverse_frequencies.size() * static_cast<std::size_t>(positions);
    cos_.reserve(cos_.size() + count);
    sin_.reserve(sin_.size() + count);
    for (std::int64_t p = 0; p < positions; ++p)
        for (double frequency : inverse_frequencies) {
            double angle = static_cast<double>(p) * frequency;
            cos_.push_back(static_cast<float>(std::cos(angle) * magnitude));
            sin_.push_back(static_cast<float>(std::sin(angle) * magnitude));
        }
}

rope_view rope_table::view() const noexcept
{
    return {dims_, positions_, cos_.data(), sin_.data()};
}

std::vector<double> rope_frequencies(std::int64_t dims, double base)
{
    if (dims < 0 || dims % 2 != 0) throw error(errc::invalid_argument, "rope_frequencies: dims is not an even count");
    if (!(base > 0)) throw error(errc::invalid_argument, "rope_frequencies: base is not positive");
    std::vector<double> frequencies;
    frequencies.reserve(static_cast<std::size_t>(dims / 2));
    for (std::int64_t i = 0; i < dims / 2; ++i)
        frequencies.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims)));
    return frequencies;
}

} // namespace plait::host
