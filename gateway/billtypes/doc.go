// Package billtypes remembers and tells the GPU types of what was billed, which v2 does not.
package billtypes
