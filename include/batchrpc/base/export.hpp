#pragma once

/// Marks what the library's users may link to; everything else is hidden. Goes before a function,
/// or between `class` and the name of a class that is not wholly inline. Exception types need it
/// too: one that is hidden cannot be caught outside the library.
#define BATCHRPC_EXPORT __attribute__((visibility("default")))
