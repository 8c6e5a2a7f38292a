// Package deploy holds the files below deploy against the program they start: that the configuration loads, that the container gets the
// files and secrets that it refers to, that the recipe builds with the toolchain of go.mod, that probes of the chart's pod are answered.
// It builds no image.
package deploy
