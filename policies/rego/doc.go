// Package rego embeds the library: a file per policy, its tests beside it, and
// in support the functions that they share.
package rego
