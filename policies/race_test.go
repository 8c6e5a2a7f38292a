//go:build race

package policies_test

// raceDetector needs more address space than a capped process has.
const raceDetector = true
