#include <plait/actors/machine.hpp>

namespace plait::detail {

machine::~machine() = default;
machine::guest::~guest() = default;

} // namespace plait::detail
