//go:build race

package platform

// raceDetector tells that times mean nothing.
const raceDetector = true
