package policies

import "embed"

// regoFiles holds the library: a file per policy, its tests beside it, and the
// functions they share in support.
//
//go:embed rego/*.rego rego/support/*.rego
var regoFiles embed.FS
