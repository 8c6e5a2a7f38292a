// Package chart draws time series as SVG on the server: stacked bars and lines.
//
// Every function is pure: it takes typed values and returns escaped HTML. The markup contains no inline styles and no scripts, so it works
// under a strict Content-Security-Policy. It refers to colours by classes that the stylesheet defines. A chart contains its data as a table
// for readers without scripts. The console's script reads the values of readouts from this table.
package chart
