//go:build race

package runs

// raceDetector reports that memory means nothing.
const raceDetector = true
