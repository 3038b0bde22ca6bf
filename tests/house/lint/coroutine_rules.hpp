#pragma once

#include <plait/tests/house/lint/source.hpp>

#include <vector>

namespace plait::house {

/// The rules of docs/compilers.md that keep coroutines clear of g++ 12's mistakes, as far as they can be seen without
/// knowing types. Findings carry the rule's name there: `await-in-condition`, `lambda-beside-await`,
/// `braces-beside-await`, `choice-beside-await`, `publish-last`, `coroutine-parameter`, `coroutine-local`.
/// `coroutine-parameter` looks at headers only: what is in a source file is nobody else's to call.
std::vector<finding> check_coroutines(source const& file);

} // namespace plait::house
