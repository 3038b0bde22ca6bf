#include <plait/actors/tasks/stop.hpp>

namespace plait::detail {

template class stop_state<>;

} // namespace plait::detail
