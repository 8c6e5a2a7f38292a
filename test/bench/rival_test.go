package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// The rival's rules decide as tollgate does on the requests that are measured.
func TestRivalRules(t *testing.T) {
	r, err := record()
	if err != nil {
		t.Fatal(err)
	}
	prices, err := gpuPrices(r.Answers["GET /v2/catalog/gpus"])
	if err != nil || prices["NVIDIA L4"] <= 0 {
		t.Fatalf("prices = %v, %v", prices, err)
	}
	data := object{"callers": object{identity.DigestOf("k").String(): object{"id": "caller0", "team": "team0"}}, "prices": object{}}
	for name, price := range prices {
		data["prices"].(object)[name] = price //nolint:forcetypeassert // written above
	}
	query, err := rego.New(rego.Query("data.bench.decision"), rego.Module("bench.rego", rivalRules), rego.Store(inmem.NewFromObject(data))).PrepareForEval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, key, gpu, more string
		allowed              bool
		status               string
	}{
		{"create", "k", "NVIDIA L4", "", true, ""},
		{"unknown key", "no", "NVIDIA L4", "", false, "401"},
		{"unknown member", "k", "NVIDIA L4", `,"bogus":true`, false, "422"},
		{"GPU that is not allowed", "k", "NVIDIA H200", "", false, "403"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var body any
			if err := json.Unmarshal([]byte(podBody("run-1", tc.gpu, tc.more)), &body); err != nil {
				t.Fatal(err)
			}
			results, err := query.Eval(t.Context(), rego.EvalInput(object{
				"attributes":  object{"request": object{"http": object{"method": "POST", "headers": object{"authorization": "Bearer " + tc.key}}}},
				"parsed_path": []any{"v2", "pods"}, "parsed_body": body,
			}))
			if err != nil || len(results) != 1 {
				t.Fatalf("Eval = %v, %v", results, err)
			}
			got, _ := results[0].Expressions[0].Value.(object)
			status, _ := got["http_status"].(json.Number)
			if got["allowed"] != tc.allowed || status.String() != tc.status {
				t.Errorf("decision = %v, want allowed %t, status %q", got, tc.allowed, tc.status)
			}
		})
	}
}

// The rival counts nine windows, and has one caller whose quota is spent.
func TestRivalQuotas(t *testing.T) {
	text := rivalQuotas()
	if got := strings.Count(text, "requests_per_unit: 100000000"); got != 9 || len(rivalDescriptors()) != 9 {
		t.Errorf("%d quotas and %d descriptors, want 9:\n%s", got, len(rivalDescriptors()), text)
	}
	if want := "{key: caller_day, value: spent, rate_limit: {unit: day, requests_per_unit: 1}}"; !strings.Contains(text, want) {
		t.Errorf("quotas lack %s:\n%s", want, text)
	}
}
