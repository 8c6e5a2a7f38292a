package v1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/translate"
)

// drawBody draws a body that is valid for v1: described members with described
// types, closed words and ranges, nulls and empties among them.
func drawBody(t *rapid.T, f form) map[string]any {
	body := map[string]any{}
	for _, field := range f {
		if !field.required && rapid.IntRange(0, 2).Draw(t, field.name+" given") > 0 {
			continue
		}
		body[field.name] = drawField(t, field)
	}
	return body
}

// words are texts that mean something to the fixtures, and some that do not.
var words = map[string][]string{
	"gpuTypeIds":          {"NVIDIA L4", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3", "Tesla V100-PCIE-16GB", "NVIDIA A40", "AMPERE_24", ""},
	"cpuFlavorIds":        {"cpu3c", "cpu5c", "cpu3g", "cpu3m", "cpu5c-4-8"},
	"dataCenterIds":       {"EU-RO-1", "EU-SE-1", "US-TX-3", "", "XX-1"},
	"countryCodes":        {"SE", "RO", "US"},
	"allowedCudaVersions": {"13.0", "12.9", "12.4", "11.8"},
	"minCudaVersion":      {"13.0", "12.4", "11.8", ""},
	"networkVolumeIds":    {"v1", "v2", ""},
	"ports":               {"80/http", "22/tcp", " 1/tcp ", "x"},
	"templateId":          {"t1", "t2", "", "ept_e1"},
	"networkVolumeId":     {"v1", ""},
	"dataCenterId":        {"EU-RO-1", "XX-1"},
}

func drawField(t *rapid.T, f field) any {
	label := f.name
	if !f.required && rapid.IntRange(0, 9).Draw(t, label+" null") == 0 {
		return nil
	}
	pick := words[f.name]
	if pick == nil {
		pick = []string{"a", "b c", "", `quote"'\`, "ü", "x:1"}
	}
	switch f.kind {
	case kindString:
		if len(f.enum) > 0 {
			return rapid.SampledFrom(f.enum).Draw(t, label)
		}
		return rapid.SampledFrom(pick).Draw(t, label)
	case kindInteger:
		low, high := max(f.atLeast, -5), int64(5000)
		if f.atMost > 0 {
			high = f.atMost
		}
		return translate.Int(rapid.Int64Range(low, high).Draw(t, label))
	case kindNumber:
		return json.Number(rapid.SampledFrom([]string{"0", "1.5", "100", "2e3"}).Draw(t, label))
	case kindBoolean:
		return rapid.Bool().Draw(t, label)
	case kindEnv:
		env := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "PUBLIC_KEY"}), 0, 3).Draw(t, label) {
			env[name] = rapid.SampledFrom([]any{"v", true, json.Number("1.5"), nil}).Draw(t, label+" "+name)
		}
		return env
	default:
		return translate.List(rapid.SliceOfN(rapid.SampledFrom(pick), 0, 4).Draw(t, label))
	}
}

// TestAnyV1BodyBecomesV2Bodies: whatever v1 allowed either becomes v2 bodies of
// the documented shape or is refused in v1's words.
func TestAnyV1BodyBecomesV2Bodies(t *testing.T) {
	schemas := referenceSchemas(t)
	for _, row := range operations() {
		if row.form == nil || strings.HasSuffix(row.ID, "ByPost") {
			continue
		}
		t.Run(row.ID, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				body := drawBody(rt, row.form)
				g := willing(t)
				api, err := New(DefaultConfig(), translate.Deps{Now: g.clock.now, Sleep: g.clock.sleep, Store: g.store})
				if err != nil {
					rt.Fatal(err)
				}
				g.api = api
				g.defaults["getEndpoint"] = fixture(rapid.SampledFrom([]string{"endpoint", "cpuEndpoint"}).Draw(rt, "endpoint"))
				g.defaults["getPod"] = fixture(rapid.SampledFrom([]string{"pod", "cpuPod", "exitedPod"}).Draw(rt, "pod"))
				out := g.do(t, usual[row.ID].target, indent(body))
				if out.Status >= 400 && out.text("message") == "" || out.Status >= 500 && out.text("message") != "create pod: "+textNoCapacity {
					rt.Fatalf("answer %d %s to %s", out.Status, out.Body, indent(body))
				}
				for _, call := range g.calls {
					for _, v := range check(call) {
						rt.Errorf("%s\nfrom %s\nin %s", v, indent(body), indent(call.body))
					}
					if s := schemas[call.op]; s != nil {
						if err := s.Validate(call.body); err != nil {
							rt.Errorf("%s: %#v\nfrom %s\nin %s", call.op, err, indent(body), indent(call.body))
						}
					}
				}
			})
		})
	}
}

// referenceSchemas compiles the request schemas of the reference description of
// v2, with the specification's additions to it: the command arrays of pods and the
// placement minimums. They are a second judge and may be absent.
func referenceSchemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "v2.openapi.json"))
	if err != nil {
		t.Logf("the reference schemas are not here, bodies are held against our own shapes only: %v", err)
		return nil
	}
	doc := mustJSON(string(raw)).(map[string]any)
	list := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	least := map[string]any{"type": "integer", "minimum": json.Number("1")}
	for schema, members := range map[string]map[string]any{
		"CreatePodRequest": {"cmd": list, "entrypoint": list},
		"UpdatePodRequest": {"cmd": list, "entrypoint": list},
		"CreateGpuConfig":  {"minRamPerGpu": least, "minVcpuCountPerGpu": least},
	} {
		s := translate.Members(doc, "components", "schemas", schema)
		s["allOf"] = append(translate.Items(s, "allOf"), map[string]any{"properties": members})
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	if err := compiler.AddResource("v2.json", strings.NewReader(indent(doc))); err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Schema{}
	for op, name := range map[string]string{
		"createPod": "CreatePodRequest", "updatePod": "UpdatePodRequest", "podAction": "PodActionRequest",
		"createEndpoint": "CreateEndpointRequest", "updateEndpoint": "UpdateEndpointRequest",
		"createTemplate": "CreateTemplateRequest", "updateTemplate": "UpdateTemplateRequest",
		"createNetworkVolume": "CreateNetworkVolumeRequest", "updateNetworkVolume": "UpdateNetworkVolumeRequest",
		"createRegistry": "CreateRegistryRequest",
	} {
		if out[op], err = compiler.Compile("v2.json#/components/schemas/" + name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
