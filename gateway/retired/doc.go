// Package retired notes who calls the retired interfaces, and is what operators ask of that.
package retired
