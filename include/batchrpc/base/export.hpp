#pragma once

/// Marks what users of the library may link to; everything else is hidden. It goes before a
/// function, or between `class` and the name of a class that is not wholly inline. Exception types
/// need it too: a hidden one cannot be caught outside the library.
#define BATCHRPC_EXPORT __attribute__((visibility("default")))
