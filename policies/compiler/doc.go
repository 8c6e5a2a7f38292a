// Package compiler makes of an organisation's policies what can be evaluated: it
// reads the library and the organisation's own Rego, checks parameters and
// places, links an entrypoint of constant calls and compiles it.
//
// A fault is an [Error] with its place; all of them are reported, joined.
// Nothing here is changed once it is made, so results may be shared.
package compiler
