//go:build race

package strictjson_test

// raceDetector tells that times mean nothing.
const raceDetector = true
