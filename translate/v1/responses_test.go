package v1

import (
	"path"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/translate"
)

// responseSchemas names the schema of each operation's answer. The description
// leaves out those of the pod actions, whose clients decode a pod all the same.
func responseSchemas(t *testing.T) map[string]string {
	t.Helper()
	schemas := map[string]string{"startPod": "Pod", "stopPod": "Pod", "resetPod": "Pod", "restartPod": "Pod"}
	for _, methods := range translate.Members(described(t), "paths") {
		for _, op := range methods.(map[string]any) {
			id := translate.Text(op, "operationId")
			id = strings.ToLower(id[:1]) + id[1:]
			for _, status := range []string{"200", "201"} {
				if ref := translate.Text(op, "responses", status, "content", "application/json", "schema", "$ref"); ref != "" {
					schemas[id] = path.Base(ref)
				}
			}
		}
	}
	return schemas
}

// unfilled are described members no answer has, with the reason.
var unfilled = map[string]string{
	"machine.cpuType":   "v2 does not name the processor",
	"machine.cpuTypeId": "v2 does not name the processor",
}

// filled collects the members answers have, as paths: "machine.gpuType.id".
func filled(v any, prefix string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			into[prefix+name] = true
			filled(member, prefix+name+".", into)
		}
	case []any:
		for _, item := range v {
			filled(item, prefix+"[].", into)
		}
	}
}

// TestEveryResponseFieldIsFilled: each described member of each answer is in
// some golden answer.
func TestEveryResponseFieldIsFilled(t *testing.T) {
	schemas := responseSchemas(t)
	have := map[string]map[string]bool{}
	for _, file := range goldenFiles(t) {
		g := runGolden(t, file)
		schema := schemas[g.op]
		if g.result.Status >= 300 || schema == "" {
			continue
		}
		if have[schema] == nil {
			have[schema] = map[string]bool{}
		}
		filled(g.result.body, "", have[schema])
	}
	doc := mustJSON(strings.ReplaceAll(string(description), brandMark, DefaultConfig().Legacy.Name()))
	for _, schema := range schemas {
		if have[schema] == nil {
			t.Errorf("no golden answers with a %s", schema)
			continue
		}
		w := walker{t: t, doc: doc, schema: schema, have: have[schema]}
		w.walk(translate.At(doc, "components", "schemas", schema), "", 0)
	}
}

type walker struct {
	t      *testing.T
	doc    any
	schema string
	have   map[string]bool
}

func (w walker) walk(schema any, prefix string, depth int) {
	if ref := translate.Text(schema, "$ref"); ref != "" {
		schema = translate.At(w.doc, "components", "schemas", path.Base(ref))
	}
	if items := translate.At(schema, "items"); items != nil && translate.Text(schema, "type") == "array" {
		w.walk(items, prefix+"[].", depth)
		return
	}
	for name, member := range translate.Members(schema, "properties") {
		at := prefix + name
		if _, known := unfilled[strings.TrimPrefix(at, "[].")]; known {
			continue
		}
		if !w.have[at] {
			w.t.Errorf("%s.%s is never filled", w.schema, at)
			continue
		}
		if depth < 2 && name != "workers" && name != "savingsPlans" { // a worker is a Pod, walked by itself; v2 sells no plans
			w.walk(member, at+".", depth+1)
		}
	}
}

// strict lists what decoders of old clients need, never null.
var strict = map[string][]string{
	"Pod": {
		"id", "image", "consumerUserId", "machineId", "desiredStatus", "costPerHr", "adjustedCostPerHr", "vcpuCount", "memoryInGb",
		"containerDiskInGb", "volumeEncrypted", "ports", "env", "interruptible", "locked",
	},
	"Endpoint": {
		"id", "userId", "templateId", "version", "computeType", "createdAt", "dataCenterIds", "executionTimeoutMs", "idleTimeout",
		"scalerType", "scalerValue", "workersMax", "workersMin",
	},
	"Template": {
		"id", "name", "imageName", "isPublic", "isPlatform", "isServerless", "containerDiskInGb", "volumeInGb", "volumeMountPath",
	},
}

// integers are decoded into integers by old clients.
var integers = []string{"gpuCount", "vcpuCount", "memoryInGb", "containerDiskInGb", "volumeInGb", "version", "scalerValue", "size", "workersMax"}

func checkStrict(t *testing.T, name, schema string, body any) {
	t.Helper()
	if list, ok := body.([]any); ok {
		for _, item := range list {
			checkStrict(t, name, strings.TrimSuffix(schema, "s"), item)
		}
		return
	}
	for _, member := range strict[schema] {
		if translate.At(body, member) == nil {
			t.Errorf("%s: %s.%s is null or absent", name, schema, member)
		}
	}
	for _, member := range integers {
		if v := translate.At(body, member); v != nil {
			if _, ok := translate.Integer(v); !ok || strings.ContainsAny(indent(v), ".eE") {
				t.Errorf("%s: %s is written %s, not as an integer", name, member, strings.TrimSpace(indent(v)))
			}
		}
	}
	for _, worker := range translate.Items(body, "workers") {
		checkStrict(t, name, "Pod", worker)
	}
	if template := translate.At(body, "template"); template != nil {
		checkStrict(t, name, "Template", template)
	}
}

func TestStrictDecodersFindNoNull(t *testing.T) {
	schemas := responseSchemas(t)
	for _, file := range goldenFiles(t) {
		g := runGolden(t, file)
		if schema := schemas[g.op]; schema != "" && g.result.Status < 300 {
			checkStrict(t, g.name, schema, g.result.body)
		}
	}
}

// TestStrictDecodersFindNoNullInAnyState: GPU and CPU, in every state, and a
// record with nothing but an id.
func TestStrictDecodersFindNoNullInAnyState(t *testing.T) {
	for _, family := range []string{"pod", "cpuPod", "exitedPod"} {
		for _, status := range []string{"PROVISIONING", "STARTING", "RUNNING", "EXITED", "ERROR", "TERMINATED"} {
			body := merge(fixture(family), map[string]any{"status": status})
			g := newGate(t, DefaultConfig(), answer{op: "getPod", status: 200, body: body})
			checkStrict(t, family+" "+status, "Pod", g.do(t, "GET /v1/pods/p1?includeMachine=true", "").body)
		}
	}
	for op, target := range map[string]string{"getPod": "Pod GET /v1/pods/x", "getEndpoint": "Endpoint GET /v1/endpoints/x", "getTemplate": "Template GET /v1/templates/x"} {
		schema, target, _ := strings.Cut(target, " ")
		g := newGate(t, DefaultConfig(), answer{op: op, status: 200, body: map[string]any{"id": "x"}})
		checkStrict(t, "bare "+schema, schema, g.do(t, target, "").body)
	}
}
