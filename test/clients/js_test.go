package clients

import (
	"os/exec"
	"testing"
)

// The clients for JavaScript run jobs and chats: the SDK's endpoints, and OpenAI's.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, variable, module, want string }{
		{"sdk", "SDK", "runpod-js-1.1.2/node_modules/runpod-sdk/dist/src/index.js", "js_sdk.json"},
		{"openai", "OPENAI", "openai-js-7.57.0/node_modules/openai/index.mjs", "js_openai.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			module := installed(t, tt.module)
			node, err := exec.LookPath("node")
			if err != nil {
				t.Fatal(err)
			}
			drive[report](t, newStack(t, hurried()), node, "js_run.mjs", tt.variable+"="+module).check(t, tt.want)
		})
	}
}
