// as: actors/asio_bridge.hpp
#pragma once

#include <asio/async_result.hpp>
