// Package rego embeds the policy library: one file per policy, its tests, and the functions they share, in the directory support.
package rego
