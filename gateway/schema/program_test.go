package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// bodies returns a body with as many members as fit for each operation that
// takes one.
func bodies() map[string]string {
	const container = `"image":"i:1","args":"x","cmd":["x","y"],"entrypoint":["/bin/sh"],"disk":20,"env":{"A":"1","B":"é"},"ports":["22/tcp"],"registry":null`
	const gpu = `"pools":["ADA_24","AMPERE_80"],"excludedTypes":["NVIDIA L4"],"count":2,"allowedCudaVersions":["12.8","12.9"],"minCudaVersion":"12.8"`
	const endpoint = container + `,"name":"e","gpu":{` + gpu + `},"cpu":[{"id":"cpu5c","vcpuCount":4},{"id":"cpu5c","vcpuCount":8}],
		"dataCenterIds":["EU-RO-1"],"flashboot":"OFF","networkVolumes":["v"],"templateId":"t","timeout":600000,"workers":{"min":0,"max":3,"idleTimeout":5}`
	return map[string]string{
		"createPod": `{` + container + `,"name":"p","cloud":"SECURE","dataCenterIds":["EU-RO-1"],"globalNetworking":true,"startSsh":true,"startJupyter":false,
			"gpu":{"id":"NVIDIA A40","count":2,"allowedCudaVersions":["12.8"],"minCudaVersion":"12.1","minRamPerGpu":8,"minVcpuCountPerGpu":4},
			"cpu":{"id":"cpu5c","vcpuCount":4},"templateId":"t","mounts":{"network":[{"volumeId":"v","path":"/d"}],"persistent":{"size":20,"path":"/w"}}}`,
		"updatePod":           `{` + container + `,"name":"p","globalNetworking":false,"locked":true,"templateId":"t","mounts":{"persistent":{"size":20,"path":"/w"}}}`,
		"podAction":           `{"action":"stop"}`,
		"createEndpoint":      `{` + endpoint + `,"type":"QUEUE","scaling":{"type":"QUEUE_DELAY","queueDelay":0.5}}`,
		"updateEndpoint":      `{` + endpoint + `,"scaling":{"type":"REQUEST_COUNT","requestCount":4}}`,
		"createTemplate":      `{` + container + `,"name":"t","allowedCudaVersions":["12.8"],"category":"NVIDIA","mounts":{"persistent":{"size":20,"path":"/w"}},"public":false,"serverless":true,"startJupyter":true,"startSsh":true}`,
		"updateTemplate":      `{` + container + `,"name":"t","allowedCudaVersions":[],"category":"CPU","mounts":{},"public":true}`,
		"createCluster":       `{"image":"i","args":"","cmd":["x"],"entrypoint":[],"disk":1,"env":{},"ports":[],"templateId":"t","name":"c","type":"RAY","compute":{"gpuTypeId":"x","gpuCountPerPod":8,"podCount":2},"dataCenterIds":[],"mounts":{"network":[]},"startSsh":true,"startJupyter":true}`,
		"updateCluster":       `{"name":"c"}`,
		"createNetworkVolume": `{"name":"v","dataCenter":"EU-RO-1","size":10}`,
		"updateNetworkVolume": `{"name":"v","size":4096}`,
		"createRegistry":      `{"name":"r","username":"u","password":"p"}`,
		"createSecret":        `{"name":"hf/token","value":"v","description":"d"}`,
		"updateSecret":        `{"value":"w","description":""}`,
		"createDelegation":    `{"resource":"x","name":null}`,
		"createSandbox": `{"name":"s","imageName":"i","templateId":"t","cpuFlavorId":"cpu3c","vcpuCount":2,"memoryInGb":4,"dataCenterId":"d","env":{"A":"1"},
			"idleTimeoutSeconds":600,"maxLifetimeSeconds":3600,"labels":{"a":"b"},"egressMode":"x","egressAllowlist":["y"]}`,
		"execSandbox":   `{"command":["echo",""]}`,
		"updateSshKeys": `{"keys":["ssh-ed25519 AAAA me@home","ecdsa-sha2 BBBB"]}`,
	}
}

func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func loaded(t testing.TB) *API {
	t.Helper()
	api, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// judges returns what judges the bodies and parameters of every operation.
func judges(t testing.TB, api *API) map[string]*validator {
	t.Helper()
	all := make(map[string]*validator)
	for _, op := range api.Operations() {
		for _, p := range slices.Concat(op.Query, op.PathParams, op.Headers) {
			all[op.ID+", parameter "+p.Name] = p.validator.compiled()
		}
		if op.HasBody {
			all[op.ID+", body"] = op.body.compiled()
		}
	}
	return all
}

// Every body and every parameter is judged without jsonschema. A gap is correct
// but slow; one that comes with a change of the description asks for an
// extension of fastcheck.
func TestProgramsHaveNoGaps(t *testing.T) {
	api := loaded(t)
	var withBody []string
	for place, j := range judges(t, api) {
		for _, gap := range j.program.Gaps() {
			t.Errorf("%s: %s", place, gap)
		}
		if id, ok := strings.CutSuffix(place, ", body"); ok {
			withBody = append(withBody, id)
		}
	}
	runs, err := LoadRun()
	if err != nil {
		t.Fatal(err)
	}
	for place, j := range judges(t, runs) {
		for _, gap := range j.program.Gaps() {
			t.Errorf("%s: %s", place, gap)
		}
	}
	slices.Sort(withBody)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(bodies())), withBody); diff != "" {
		t.Errorf("operations with a body (-sample here +described):\n%s", diff)
	}
}

// The keywords of the schemas that bodies and parameters are judged by: those
// that fastcheck implements, and annotations.
func TestKeywordsInUse(t *testing.T) {
	src := loaded(t).document.src()
	used, seen := make(map[string]bool), make(map[string]bool)
	var schema func(node any)
	schema = func(node any) {
		object, _ := node.(map[string]any)
		for keyword, value := range object {
			used[keyword] = true
			switch keyword {
			case "$ref":
				if ref := value.(string); !seen[ref] {
					seen[ref] = true
					schema(src.at(strings.TrimPrefix(ref, "#")))
				}
			case "properties":
				for _, sub := range value.(map[string]any) {
					schema(sub)
				}
			case "allOf", "oneOf":
				for _, sub := range value.([]any) {
					schema(sub)
				}
			case "items", "additionalProperties", "unevaluatedProperties", "not", "if", "then":
				schema(value)
			}
		}
	}
	for _, j := range judges(t, loaded(t)) {
		_, pointer, _ := strings.Cut(j.schema.Location, "#")
		schema(src.at(pointer))
	}
	want := []string{
		"$ref", "additionalProperties", "allOf", "const", "default", "dependentRequired", "description", "discriminator", "enum", "format", "if", "items",
		"maxItems", "maxLength", "maximum", "minItems", "minLength", "minProperties", "minimum", "not", "oneOf", "pattern", "properties", "required",
		"then", "type", "unevaluatedProperties", "uniqueItems", "x-unknown-status",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("keywords in use (-want +got):\n%s", diff)
	}
}

// A description with a keyword that fastcheck does not know still validates,
// through jsonschema.
func TestNewKeyword(t *testing.T) {
	const name = `"properties": {"name": {"description": "New name.", "type": "string", "minLength": 1`
	text := strings.Replace(string(openAPI), name, name+`, "maxProperties": 2`, 1)
	api, err := load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	op := api.Operation("updateCluster")
	if gaps := op.body.compiled().program.Gaps(); len(gaps) != 1 || !strings.Contains(gaps[0], ": keyword maxProperties") {
		t.Errorf("gaps = %q, want one for maxProperties", gaps)
	}
	for body, want := range map[string]int{`{"name": "ab"}`: 0, `{"name": 1}`: 1} {
		if got := op.ValidateBody(decode(t, body)); len(got) != want {
			t.Errorf("%s: violations = %v, want %d", body, got, want)
		}
	}
}

// compare fails when the two forms of a body's schema disagree on v, other than in what
// fastcheck leaves open: long numbers and long arrays.
func (op *Operation) compare(t *testing.T, v any) {
	t.Helper()
	j := op.body.compiled()
	accepts, err := j.program.Accepts(v), j.schema.Validate(v)
	if accepts && err != nil || !accepts && err == nil && !open(v) {
		text, _ := json.Marshal(v) //nolint:errchkjson // it was decoded
		t.Fatalf("%s: %s: the program accepts = %v, jsonschema: %v", op.ID, text, accepts, err)
	}
	whole, ok := errors.AsType[*jsonschema.ValidationError](err)
	narrowed, also := errors.AsType[*jsonschema.ValidationError](j.program.Narrow(j.schema, v).Validate(v))
	if ok != also {
		t.Fatalf("%s: %v: narrowed, the schema finds a fault = %t, the whole one %t", op.ID, v, also, ok)
	}
	if ok && len(emptyNames(nil, v)) == 0 {
		if diff := cmp.Diff(op.document.violations(whole, v), op.document.violations(narrowed, v)); diff != "" {
			t.Fatalf("%s: %v: violations (-whole +narrowed):\n%s", op.ID, v, diff)
		}
	}
}

// open reports whether v holds anything that fastcheck leaves to jsonschema.
func open(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), open)
	case []any:
		return len(v) > 20 || slices.ContainsFunc(v, open)
	case json.Number:
		return len(v) > 15
	}
	return false
}

func TestProgramsAgree(t *testing.T) {
	api := loaded(t)
	for id, text := range bodies() {
		t.Run(id, func(t *testing.T) {
			op := api.Operation(id)
			j := op.body.compiled()
			if body := decode(t, text); !j.program.Accepts(body) {
				t.Errorf("the sample is not accepted: %v", j.schema.Validate(body))
			}
			m := mutator{rand.New(rand.NewPCG(1, uint64(len(text))))}
			accepted := 0
			for range 400 {
				body := decode(t, text)
				for range 1 + m.IntN(3) {
					body = m.change(body)
				}
				op.compare(t, body)
				if j.program.Accepts(body) {
					accepted++
				}
			}
			if accepted == 0 || accepted == 400 {
				t.Errorf("%d of 400 changed bodies were valid: the changes are out of tune", accepted)
			}
		})
	}
}

// Accepting allocates nothing, but for the allocations that the race detector adds to
// regular expressions.
func TestAcceptingAllocatesNothing(t *testing.T) {
	api := loaded(t)
	for id, text := range bodies() {
		j, body := api.Operation(id).body.compiled(), decode(t, text)
		if n := testing.AllocsPerRun(10, func() { j.program.Accepts(body) }); n > 4 {
			t.Errorf("%s: %.0f allocations, want none", id, n)
		}
	}
}

// FuzzCompiled holds every body against the schema of every operation.
func FuzzCompiled(f *testing.F) {
	for _, text := range bodies() {
		f.Add([]byte(text), uint64(0))
		f.Add([]byte(text), uint64(1))
	}
	operations := loaded(f).Operations()
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var v any
		if len(text) > 4096 || d.Decode(&v) != nil {
			return
		}
		if seed > 0 {
			v = mutator{rand.New(rand.NewPCG(seed, 0))}.change(v)
		}
		for _, op := range operations {
			if op.HasBody {
				op.compare(t, v)
			}
		}
	})
}

// mutator changes JSON values a little, so that a valid value comes to the border of
// validity.
type mutator struct{ *rand.Rand }

func (m mutator) change(v any) any {
	if m.IntN(6) == 0 {
		return m.other(v)
	}
	switch v := v.(type) {
	case map[string]any:
		return m.changeObject(v)
	case []any:
		return m.changeArray(v)
	}
	return m.other(v)
}

func (m mutator) changeObject(o map[string]any) any {
	names := slices.Sorted(maps.Keys(o))
	if len(names) == 0 {
		names = []string{"name"}
	}
	name := names[m.IntN(len(names))]
	switch m.IntN(8) {
	case 0:
		o[strings.ToUpper(name)] = o[name]
	case 1:
		o[m.word()] = m.other(nil)
	case 2, 3:
		delete(o, name)
	default:
		o[name] = m.change(o[name])
	}
	return o
}

func (m mutator) changeArray(items []any) any {
	if len(items) == 0 {
		return []any{m.other(nil)}
	}
	i := m.IntN(len(items))
	switch m.IntN(6) {
	case 0:
		return append(items, items[i])
	case 1:
		return append(items, m.other(items[i]))
	case 2:
		return slices.Delete(items, i, i+1)
	case 3:
		return slices.Repeat(items, 12)
	}
	items[i] = m.change(items[i])
	return items
}

// other returns a value to stand for v, as often as not of the same type.
func (m mutator) other(v any) any {
	numbers := []json.Number{"0", "-0", "1", "2", "3", "1.0", "1e1", "80e-1", "10", "0.5", "0.4999999", "5e0", "250", "251", "4096", "9007199254740992", "-1"}
	switch v.(type) {
	case json.Number:
		return numbers[m.IntN(len(numbers))]
	case string:
		return m.word()
	}
	switch m.IntN(6) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2:
		return numbers[m.IntN(len(numbers))]
	case 3:
		return []any{m.word()}
	case 4:
		return map[string]any{m.word(): m.word()}
	}
	return m.word()
}

func (m mutator) word() string {
	words := []string{
		"", "a", "é", "id", "name", "type", "scaling", "gpu", "templateId", "QUEUE", "LOAD_BALANCER", "REQUEST_COUNT", "QUEUE_DELAY", "SECURE",
		"12.8", "12.", " -x", "ssh-rsa AAAA", "ssh-rsa AAAA\nx", "stop", "RAY", "OFF", "AMD",
	}
	return words[m.IntN(len(words))]
}

// Every schema of the descriptions compiles, those of answers too, which Load leaves
// alone.
func TestEverySchemaCompiles(t *testing.T) {
	for _, text := range [][]byte{openAPI, runInterface} {
		src, err := newSource(text)
		if err != nil {
			t.Fatal(err)
		}
		c := newCompiler(text)
		for name := range src.schemaAt("/components/schemas") {
			if _, err := c.Compile(documentURL + "#/components/schemas/" + escapeToken(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
