// Package retired notes the callers of the retired interfaces, and lists them for operators.
package retired
