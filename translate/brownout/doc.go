// Package brownout holds schedules of brownouts: windows of time in which the
// calls of a retired interface are refused on purpose, so that unknown
// callers come forward before the interface is gone for good.
//
// A Config is one entry as it is written: either a single window, or daily
// hours on some days of the week. A Schedule is what such entries mean for one
// dialect. It is arithmetic only: it never reads a clock, refuses nothing
// itself and knows no caller.
//
// Times are instants; daily hours are UTC, which has no summer time, so every
// window has one meaning and one length.
package brownout
