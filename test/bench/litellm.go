package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// liteKey is the one key that LiteLLM knows without a database.
const liteKey = "sk-bench-key"

// liteConfiguration is LiteLLM's file. Chats go through its interface of OpenAI's shape,
// with the key. Calls of pods go through a pass-through route, which checks no key: that
// needs a licence. PLATFORM stands for the platform's address.
const liteConfiguration = `
model_list:
  - model_name: bench
    litellm_params: {model: openai/bench, api_base: "http://PLATFORM/v2/bench/openai/v1", api_key: bench-platform-key}
general_settings:
  master_key: ` + liteKey + `
  pass_through_endpoints:
    - {path: /v2/pods, target: "http://PLATFORM/v2/pods", headers: {Authorization: Bearer bench-platform-key, content-type: application/json}, include_subpath: true}
litellm_settings: {telemetry: false}
`

// liteRequest turns the request of another target into one that LiteLLM takes.
func liteRequest(request string) string {
	return strings.NewReplacer(chatPath, "/v1/chat/completions", "bench-caller-"+callerMark, liteKey).Replace(request)
}

// startLiteLLM starts LiteLLM with one worker and no database.
func (r *runner) startLiteLLM(ctx context.Context, i *instance) (err error) {
	program, err := exec.LookPath("litellm")
	if err != nil {
		return err
	}
	if i.addr, err = port(ctx); err != nil {
		return err
	}
	if err := r.files(map[string]string{"litellm.yaml": strings.ReplaceAll(liteConfiguration, "PLATFORM", r.platform.Addr)}); err != nil {
		return err
	}
	host, number := split(i.addr)
	cmd := r.machine.command(ctx, measured, program, "--config", filepath.Join(r.machine.dir, "litellm.yaml"), "--host", host, "--port", number)
	// Its table of prices is the one of its package; it would fetch a newer one otherwise.
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "NO_PROXY=*")
	cmd.Dir = r.machine.dir
	return r.pass(ctx, i, "litellm", cmd, answers("http://"+i.addr+"/health/liveliness"))
}
