#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace plait::jinja {

/// A stable sort that stays in bounds whatever `less` answers: a template can bring values without a consistent order
/// (a NaN), for which the standard sorts promise nothing. `less` may throw; `items` is then unspecified but valid.
template<class T, class Less>
void merge_sort(std::vector<T>& items, Less less)
{
    std::vector<T> merged;
    for (std::size_t width = 1; width < items.size(); width *= 2) {
        merged.clear();
        merged.reserve(items.size());
        for (std::size_t start = 0; start < items.size(); start += 2 * width) {
            auto left = start;
            auto const middle = std::min(start + width, items.size());
            auto right = middle;
            auto const end = std::min(start + 2 * width, items.size());
            while (left < middle || right < end) {
                bool const from_right = left == middle || (right < end && less(items[right], items[left]));
                merged.push_back(std::move(items[from_right ? right++ : left++]));
            }
        }
        std::swap(items, merged);
    }
}

} // namespace plait::jinja
