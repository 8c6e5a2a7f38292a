// Package chart draws time series as SVG on the server: stacked bars and lines.
//
// Every function is pure: typed values in, escaped HTML out. The markup has no inline style and no script, so it works under a strict
// Content-Security-Policy; classes name the colours, which the stylesheet defines. A chart contains its data as a table, which readers
// without scripts use and from which the console's script takes the values of its readouts.
package chart
