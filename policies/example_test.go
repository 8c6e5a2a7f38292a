package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

func ExampleEngine_Decide() {
	limits := policyconfig.DefaultLimits()
	limits.Deadline = 10 * time.Second
	engine, err := policies.NewEngine(limits, map[string]policies.Config{
		"acme": {Policies: []policies.Entry{{
			Policy: "gpu_count", Params: map[string]any{"max_per_pod": 2},
		}}},
	}, policies.Deps{})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := map[string]any{"gpu": map[string]any{"id": "NVIDIA L4", "count": json.Number("3")}}
	decision, err := engine.Decide(context.Background(), "acme", &policies.Input{
		Request:  policies.Request{Operation: "createPod", Body: body},
		Resource: policies.Resource{After: body},
		Time:     time.Now(),
	})
	if err != nil {
		fmt.Println(err) // the call must be refused
		return
	}
	for _, v := range decision.Deny {
		fmt.Println(v.Policy, v.Pointer, v.Message)
	}
	// Output: gpu_count /gpu/count 3 GPUs per pod exceed the limit of 2
}
