// Package group lets calls that wait at the same instant travel together: group
// commit, as databases have it.
//
// There is no goroutine of its own. A caller that finds a free flight leads: it lets
// those run first that can, takes the calls then queued, its own included, makes one
// exchange and wakes the others; then it passes the flight on to a caller that has queued
// up meanwhile, or gives it back. A lone caller therefore never waits for company, and a
// crowd forms groups as large as exchanges are slow and processors are busy.
package group
