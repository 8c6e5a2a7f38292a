// Package billtypes remembers the GPU types of bills, which v2 does not, and answers callers about them.
package billtypes
