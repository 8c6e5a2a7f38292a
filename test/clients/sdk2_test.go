package clients

import "testing"

// A development session of the next Python SDK, which sends lists of volumes and mounts that are empty.
func TestNextPythonSDK(t *testing.T) {
	t.Parallel()
	python := installed(t, "runpod-2.0.0rc2/bin/python")
	drive[report](t, newStack(t, standing()), python, "sdk2_dev.py").check(t, "sdk2-dev.json")
}
