package graphql_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"golang.org/x/tools/txtar"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

func schema(t *testing.T) *ast.Schema {
	t.Helper()
	raw, err := os.ReadFile("schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gqlparser.LoadSchema(&ast.Source{Input: brand(string(raw))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func brand(text string) string {
	return strings.NewReplacer("__BRAND__", "Acme", "__brand__", "acme").Replace(text)
}

// unavailable reports whether a field is always null.
func unavailable(of *ast.Definition, f *ast.FieldDefinition) bool {
	return of.Directives.ForName("unavailable") != nil || f.Directives.ForName("unavailable") != nil
}

// TestKnownNames holds the schema against the fields and inputs that generated clients of
// the retired interface know.
func TestKnownNames(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "known.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	for line := range strings.Lines(string(raw)) {
		typ, fields, _ := strings.Cut(brand(line), ":")
		for name := range strings.FieldsSeq(fields) {
			if def := s.Types[typ]; def == nil || def.Fields.ForName(name) == nil {
				t.Errorf("%s.%s is not in the schema", typ, name)
			}
		}
	}
}

// TestUnavailableFields selects every field that v2 has nothing for: each is null, and
// warnings name them all.
func TestUnavailableFields(t *testing.T) {
	s := schema(t)
	for name, document := range map[string]string{
		"User": "{ myself { %s } }", "Pod": `{ pod(input: {podId: "p"}) { %s } }`, "PodMachineInfo": `{ pod(input: {podId: "p"}) { machine { %s } } }`,
		"GpuType": `{ gpuTypes(input: {id: "NVIDIA L4"}) { %s } }`, "LowestPrice": `{ gpuTypes(input: {id: "NVIDIA L4"}) { lowestPrice { %s } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			var fields, want []string
			for _, f := range s.Types[name].Fields {
				if !unavailable(s.Types[name], f) {
					continue
				}
				want = append(want, name+"."+f.Name)
				if s.Types[f.Type.Name()].IsCompositeType() {
					fields = append(fields, f.Name+" { __typename }")
				} else {
					fields = append(fields, f.Name)
				}
			}
			out := newRig(t).ask(t, newScript(t, "getSshKeys 200 {\"keys\":[]}\ngetPod 200 @running\nlistGpuTypes 200 @gpus"), fmt.Sprintf(document, strings.Join(fields, " ")), "")
			if out.Status != 200 || len(read(t, out).Errors) > 0 || strings.Count(string(out.Body), ":null") != len(fields) {
				t.Errorf("got %d %s, want %d times null", out.Status, out.Body, len(fields))
			}
			warned := strings.Join(out.Header.Values("X-Legacy-Warning"), " ")
			for _, field := range want {
				if !strings.Contains(warned, field) {
					t.Errorf("no warning names %s: %s", field, warned)
				}
			}
			if len(out.LostFields) == 0 || !slices.Contains(want, out.LostFields[0]) {
				t.Errorf("the report of usage gets %q", out.LostFields)
			}
		})
	}
}

// A member that begins with the platform's name is answered in the caller's spelling, and in the
// operator's alone if there is one.
func TestMembersNamedAfterThePlatform(t *testing.T) {
	for _, tt := range []struct {
		brand, member string
		status        int
	}{{"", "vendorIp", 200}, {"", "VendorIp", 200}, {"Acme", "acmeIp", 200}, {"Acme", "AcmeIp", 200}, {"Acme", "vendorIp", 400}, {"", "supportPublicIp", 200}, {"", "vendorHost", 400}} {
		rig := newRig(t, func(c *graphql.Config) { c.Legacy.Brand = tt.brand })
		out := rig.ask(t, newScript(t, "getPod 200 @running"), `{ pod(input: {podId: "p"}) { machine { id `+tt.member+` } } }`, "")
		if out.Status != tt.status || tt.status == 200 && !strings.Contains(string(out.Body), `"`+tt.member+`":`) {
			t.Errorf("brand %q, member %s: got %d %s", tt.brand, tt.member, out.Status, out.Body)
		}
	}
}

// TestEveryFieldHasGolden walks the schema: each field of each type must be
// selected by at least one golden case, so that its value has been looked at, except
// those that are always null.
// That each has a resolver is checked when an API is made.
func TestEveryFieldHasGolden(t *testing.T) {
	s := schema(t)
	seen := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			document := string(f.Data)
			switch f.Name {
			case "request.graphql":
			case "request.json":
				var body struct{ Query string }
				if json.Unmarshal(f.Data, &body) != nil {
					continue // a batch
				}
				document = body.Query
			default:
				continue
			}
			doc, err := parser.ParseQuery(&ast.Source{Input: document})
			if err != nil {
				continue // a case of bad syntax
			}
			for _, op := range doc.Operations {
				root := s.Query
				if op.Operation == ast.Mutation {
					root = s.Mutation
				}
				mark(s, root, op.SelectionSet, seen)
			}
		}
	}
	for name, def := range s.Types {
		if def.Kind != ast.Object || strings.HasPrefix(name, "__") {
			continue
		}
		for _, f := range def.Fields {
			id := name + "." + f.Name
			if !seen[id] && !unavailable(def, f) {
				t.Errorf("%s is selected by no golden case", id)
			}
		}
	}
}

func mark(s *ast.Schema, of *ast.Definition, set ast.SelectionSet, seen map[string]bool) {
	for _, sel := range set {
		f, ok := sel.(*ast.Field)
		if !ok {
			continue
		}
		seen[of.Name+"."+f.Name] = true
		if def := of.Fields.ForName(f.Name); def != nil {
			if below := s.Types[def.Type.Name()]; below != nil {
				mark(s, below, f.SelectionSet, seen)
			}
		}
	}
}

// ignored lists the input fields that are accepted and change nothing, each
// with why that is no lie.
var ignored = map[string]string{
	"PodFindAndDeployOnDemandInput.minDisk":         "v2 cannot filter hosts by it",
	"PodFindAndDeployOnDemandInput.minDownload":     "v2 cannot filter hosts by it",
	"PodFindAndDeployOnDemandInput.minUpload":       "v2 cannot filter hosts by it",
	"PodFindAndDeployOnDemandInput.supportPublicIp": "SECURE always has one; elsewhere the client sees whether there is one",
	"PodFindAndDeployOnDemandInput.computeType":     "the mutation says it, unless instanceIds are given",
	"PodFindAndDeployOnDemandInput.aiApiId":         "public model endpoints are not pods in v2",
	"deployCpuPodInput.gpuCount":                    "a CPU pod has none",
	"deployCpuPodInput.minDisk":                     "v2 cannot filter hosts by it",
	"deployCpuPodInput.minDownload":                 "v2 cannot filter hosts by it",
	"deployCpuPodInput.minUpload":                   "v2 cannot filter hosts by it",
	"deployCpuPodInput.supportPublicIp":             "CPU pods are in SECURE, which always has one",
	"PodStopInput.incrementVersion":                 "v2 has no version of a pod",
	"PodResumeInput.syncMachine":                    "a stopped pod keeps its host",
	"PodResumeInput.computeType":                    "a pod keeps its kind",
	"GpuLowestPriceInput.minMemoryInGb":             "the catalog cannot filter by it",
	"GpuLowestPriceInput.minVcpuCount":              "the catalog cannot filter by it",
	"GpuLowestPriceInput.totalDisk":                 "the catalog cannot filter by it",
	"GpuLowestPriceInput.minDisk":                   "the catalog cannot filter by it",
	"GpuLowestPriceInput.minDownload":               "the catalog cannot filter by it",
	"GpuLowestPriceInput.minUpload":                 "the catalog cannot filter by it",
	"GpuLowestPriceInput.supportPublicIp":           "the catalog cannot filter by it",
	"GpuLowestPriceInput.globalNetwork":             "the catalog cannot filter by it",
	"GpuAvailabilityInput.minDisk":                  "the catalog cannot filter by it",
	"GpuAvailabilityInput.minMemoryInGb":            "the catalog cannot filter by it",
	"GpuAvailabilityInput.minVcpuCount":             "the catalog cannot filter by it",
	"EndpointStatisticInput.granularity":            "v2 has no statistics of endpoints",
	"GpuAvailabilityInput.globalNetwork":            "the catalog cannot filter by it",
	"EndpointInput.workersStandby":                  "v2 keeps no standby count",
	"EndpointInput.computeType":                     "gpuIds and instanceIds say it",
	"EndpointInput.flashEnvironmentId":              "the build service is outside v2",
	"EndpointInput.workersPFBTarget":                "v2 has no such target",
	"EndpointTemplateInput.readme":                  "an inline template is not kept",
	"EndpointTemplateInput.config":                  "it has no meaning in v2",
	"EndpointTemplateInput.advancedStart":           "it has no meaning in v2",
	"EndpointTemplateInput.volumeInGb":              "workers have no volume of their own",
	"EndpointTemplateInput.volumeMountPath":         "workers have no volume of their own",
	"CreateClusterInput.deployCost":                 "the catalog has no price of clusters",
	"CreateClusterInput.throughput":                 "v2 cannot ask for it",
	"CreateClusterInput.allowedCudaVersions":        "v2 clusters take no CUDA constraint",
	"CreateClusterInput.minCudaVersion":             "v2 clusters take no CUDA constraint",
}

// refusedWhole are the inputs of operations that v2 has nothing for.
var refusedWhole = []string{"PodRentInterruptableInput", "PodBidResumeInput", "UpdateRegistryAuthInput"}

// probe asks once without and once with a field of an input type.
type probe struct {
	typ, document, base, v2 string
	samples                 map[string]string // by field, JSON
}

func probes() []probe {
	const pod = "getPod 200 @running\ngetNetworkVolume 200 {\"id\":\"v\",\"dataCenter\":\"US-TX-3\"}\nlistGpuTypes 200 @gpus\nlistCpuTypes 200 @cpus\n" +
		"listDataCenters 200 @centres\ngetTemplate 200 @template\ncreatePod 400 {\"detail\":\"no instances\"}\ncreatePod 400 {\"detail\":\"no instances\"}\ncreatePod 201 @created\nupdatePod 200 @running\npodAction 200 @running\ndeletePod 204\n"
	const serverless = "getEndpoint 200 @endpoint\nupdateEndpoint 200 @endpoint\ncreateEndpoint 201 @endpoint\nlistGpuTypes 200 @gpus\nlistDataCenters 200 @centres\ngetTemplate 200 @template\n"
	const storage = "createRegistry 201 {\"id\":\"r\"}\ncreateNetworkVolume 201 {\"id\":\"v\"}\nupdateNetworkVolume 200 {\"id\":\"v\"}\ngetNetworkVolume 200 {\"id\":\"v\"}\ndeleteNetworkVolume 204\nupdateSshKeys 200 {\"keys\":[\"a\"]}\n"
	const templates = "getTemplate 200 @template\ncreateTemplate 201 @template\nupdateTemplate 200 @template\n" +
		"listPublicTemplates 200 {\"templates\":[{\"id\":\"pub1\",\"name\":\"zz\"},{\"id\":\"zz\",\"name\":\"b\",\"serverless\":true}]}\nlistTemplates 200 {\"templates\":[{\"id\":\"own\",\"name\":\"own\"}]}\n"
	const clusters = "createCluster 201 @cluster\ngetTemplate 200 @template\ngetNetworkVolume 200 {\"id\":\"v\",\"dataCenter\":\"US-TX-3\"}\nlistDataCenters 200 @centres\ndeleteCluster 204\n"
	of := func(root, selection string) string {
		return root + "(input: $v)" + selection
	}
	m := func(root, selection string) string { return "mutation($v: X) { " + of(root, selection) + " }" }
	q := func(root string) string { return "query($v: X) { " + of(root, "{id}") + " }" }
	return []probe{
		{"PodFilter", q("pod"), `{}`, pod, nil},
		{"PodStopInput", m("podStop", "{id}"), `{"podId":"p"}`, pod, map[string]string{"podId": `"other"`}},
		{"PodTerminateInput", m("podTerminate", ""), `{}`, pod, nil},
		{"PodRestartInput", m("podRestart", "{id}"), `{}`, pod, nil},
		{"PodResetInput", m("podReset", "{id}"), `{}`, pod, nil},
		{"PodResumeInput", m("podResume", "{id}"), `{"podId":"p"}`, pod, map[string]string{"podId": `"other"`, "allowedCudaVersions": `["12.1"]`, "minCudaVersion": `"12.9"`, "computeType": `"GPU"`}},
		{"PodFindAndDeployOnDemandInput", m("podFindAndDeployOnDemand", "{id}"), `{"gpuTypeId":"NVIDIA GeForce RTX 4090","imageName":"org/i"}`, pod, map[string]string{
			"gpuTypeId": `"NVIDIA L4"`, "gpuTypeIdList": `["NVIDIA L4","NVIDIA GeForce RTX 4090"]`, "cloudType": `"SECURE"`, "countryCode": `"RO"`,
			"dataCenterId": `"EU-RO-1"`, "compliance": `["GDPR"]`, "env": `[{"key":"a","value":"b"}]`, "allowedCudaVersions": `["12.8"]`,
			"minCudaVersion": `"12.8"`, "cudaVersion": `"12.8"`, "computeType": `"GPU"`, "volumeMountPath": `"/m"`,
			"savingsPlan": `{"planLength":"1_month"}`, "instanceIds": `["cpu3c-2-4"]`, "dataCenterIds": `["EU-RO-1"]`, "volumeMounts": `[{"volumeId":"v"}]`,
		}},
		{"VolumeMountInput", `mutation($v: X) { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", imageName: "i", volumeMounts: [$v]}) { id } }`, `{"volumeId":"v"}`, pod, map[string]string{
			"volumeId": `"other"`, "mountPath": `"/m"`,
		}},
		{"SavingsPlanInput", `mutation($v: X) { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", imageName: "i", savingsPlan: $v}) { id } }`, `{}`, pod, nil},
		{"UserBillingInput", "query($v: X) { myself { billing(input: $v) { summary { time } } } }", `{}`, pod, map[string]string{"granularity": `"MONTHLY"`}},
		{"ServerlessBillingInput", "query($v: X) { myself { billing { serverless(input: $v) { time } } } }", `{}`, pod, map[string]string{"groupBy": `"GPU_TYPE"`}},
		{"EndpointStatisticInput", `query($v: X) { myself { endpoint(id: "e") { workerState(input: $v) { ready } } } }`, `{}`, serverless, map[string]string{"granularity": `"LIVE"`}},
		{"deployCpuPodInput", m("deployCpuPod", "{id}"), `{"imageName":"org/i"}`, pod, map[string]string{
			"instanceId": `"cpu5g-2-8"`, "cloudType": `"COMMUNITY"`, "countryCode": `"RO"`, "dataCenterId": `"EU-RO-1"`, "compliance": `["GDPR"]`,
			"env": `[{"key":"a","value":"b"}]`, "minVcpuCount": `8`, "minMemoryInGb": `6`, "dataCenterIds": `["EU-RO-1"]`, "volumeMounts": `[{"volumeId":"v"}]`,
		}},
		{"PodEditJobInput", m("podEditJob", "{id}"), `{"podId":"p"}`, pod, map[string]string{"podId": `"other"`, "env": `[{"key":"a","value":"b"}]`, "volumeInGb": `40`}},
		{
			"EnvironmentVariableInput", `mutation($v: X) { podFindAndDeployOnDemand(input: {gpuTypeId: "NVIDIA L4", imageName: "i", env: [{key: "k", value: "v"}, $v]}) { id } }`,
			`{"key":"other"}`, pod,
			map[string]string{"key": `"more"`},
		},
		{"GpuTypeFilter", q("gpuTypes"), `{}`, pod, map[string]string{"id": `"NVIDIA L4"`, "ids": `["NVIDIA L4"]`, "cluster": `true`}},
		{"GpuLowestPriceInput", "query($v: X) { gpuTypes { lowestPrice(input: $v) { uninterruptablePrice stockStatus countryCode } } }", `{}`, pod, map[string]string{
			"gpuCount": `2`, "secureCloud": `false`, "dataCenterId": `"US-TX-3"`, "countryCode": `"RO"`, "compliance": `["GDPR"]`,
			"allowedCudaVersions": `["12.8"]`, "minCudaVersion": `"12"`, "cudaVersion": `"12.8"`,
		}},
		{"CpuFlavorInput", q("cpuFlavors"), `{}`, pod, nil},
		{"SpecificsInput", "query($v: X) { cpuFlavors { specifics(input: $v) { stockStatus securePrice } } }", `{}`, pod, map[string]string{"instanceId": `"cpu3c-8-16"`, "dataCenterId": `"US-TX-3"`}},
		{"GpuAvailabilityInput", "query($v: X) { dataCenters { gpuAvailability(input: $v) { id } } }", `{}`, pod, map[string]string{"secureCloud": `false`, "allowedCudaVersions": `["12.8"]`}},
		{"UpdateUserSettingsInput", m("updateUserSettings", "{pubKey}"), `{}`, storage, map[string]string{"pubKey": `"ssh-rsa AAAA"`}},
		{"EndpointInput", m("saveEndpoint", "{id}"), `{"name":"n","templateId":"t","gpuIds":"ADA_24"}`, serverless, map[string]string{
			"name": `"other"`, "templateId": `"other"`, "type": `"LB"`, "gpuIds": `"ADA_48_PRO"`, "scalerType": `"REQUEST_COUNT"`, "flashBootType": `"FLASHBOOT"`,
			"template": `{"imageName":"x"}`, "instanceIds": `["bad"]`, "networkVolumeIds": `[{"networkVolumeId":"v"}]`, "compliance": `["GDPR"]`,
			"env": `[{"key":"a","value":"b"}]`, "locations": `"EU-RO-1"`, "allowedCudaVersions": `"12.8"`, "minCudaVersion": `"12.8"`, "computeType": `"GPU"`,
		}},
		{
			"EndpointTemplateInput", `mutation($v: X) { saveEndpoint(input: {gpuIds: "ADA_24", templateId: "t", template: $v}) { id } }`, `{}`, serverless,
			map[string]string{"env": `[{"key":"a","value":"b"}]`},
		},
		{"NetworkVolumeIdsInput", `mutation($v: X) { saveEndpoint(input: {name: "n", gpuIds: "ADA_24", templateId: "t", networkVolumeIds: [$v]}) { id } }`, `{}`, serverless, nil},
		{"UpdateEndpointTemplateInput", m("updateEndpointTemplate", "{id}"), `{"endpointId":"e","templateId":"t"}`, serverless, nil},
		{"PodTemplateInput", q("podTemplates"), `{}`, templates, nil},
		{"SaveTemplateInput", m("saveTemplate", "{id}"), `{"name":"n","imageName":"i"}`, templates, map[string]string{
			"env": `[{"key":"a","value":"b"}]`, "category": `"CPU"`, "startSsh": `false`, "portsConfig": `[{"port":"1","name":"n"}]`, "name": `"other"`, "imageName": `"other"`,
			"volumeMountPath": `"/m"`,
		}},
		{"PortConfigInput", `mutation($v: X) { saveTemplate(input: {name: "n", imageName: "i", portsConfig: [$v]}) { id } }`, `{}`, templates, nil},
		{"SaveRegistryAuthInput", m("saveRegistryAuth", "{id}"), `{"name":"n","username":"u","password":"p"}`, storage, nil},
		{"CreateNetworkVolumeInput", m("createNetworkVolume", "{id}"), `{"name":"n","size":10,"dataCenterId":"d"}`, storage, map[string]string{"size": `20`}},
		{"UpdateNetworkVolumeInput", m("updateNetworkVolume", "{id}"), `{"id":"v"}`, storage, nil},
		{"DeleteNetworkVolumeInput", m("deleteNetworkVolume", ""), `{}`, storage, nil},
		{"CreateClusterInput", m("createCluster", "{id}"), `{"clusterName":"c","gpuTypeId":"g"}`, clusters, map[string]string{
			"type": `"RAY"`, "env": `[{"key":"a","value":"b"}]`, "dataCenterId": `"EU-RO-1"`,
		}},
		{"DeleteClusterInput", m("deleteCluster", ""), `{}`, clusters, nil},
	}
}

// companions are fields without which another has nothing to act on.
var companions = map[string]string{
	"PodFindAndDeployOnDemandInput.volumeMountPath": `{"volumeInGb":20}`,
	"deployCpuPodInput.volumeMountPath":             `{"networkVolumeId":"v"}`,
	"SaveTemplateInput.volumeMountPath":             `{"volumeInGb":20}`,
	"CreateClusterInput.volumeMountPath":            `{"volumeInGb":20}`,
	"deployCpuPodInput.deployCost":                  `{"instanceId":"cpu5g-2-8"}`,
}

// TestEveryInputFieldCounts gives each input field a value and looks whether
// the v2 calls, the answer, the warnings or the memory change. A field that
// changes nothing must be listed in ignored with a reason, and one listed there
// must change nothing: no argument is lost without anyone having decided so.
func TestEveryInputFieldCounts(t *testing.T) {
	s := schema(t)
	probed := map[string]bool{}
	for _, p := range probes() {
		probed[p.typ] = true
		for _, f := range s.Types[p.typ].Fields {
			id := p.typ + "." + f.Name
			t.Run(id, func(t *testing.T) {
				base := merge(t, p.base, companions[id])
				with := merge(t, base, fmt.Sprintf(`{%q:%s}`, f.Name, sample(p, f)))
				before, after := trace(t, p, base), trace(t, p, with)
				why, listed := ignored[id]
				switch {
				case before == after && !listed:
					t.Errorf("changes nothing and is not listed as ignored:\n%s", after)
				case before != after && listed:
					t.Errorf("is listed as ignored (%s) but changes\n%s\nto\n%s", why, before, after)
				}
			})
		}
	}
	for name, def := range s.Types {
		if def.Kind == ast.InputObject && !probed[name] && !slices.Contains(refusedWhole, name) {
			t.Errorf("input %s is not probed", name)
		}
	}
	for id := range ignored {
		typ, field, _ := strings.Cut(id, ".")
		if def := s.Types[typ]; def == nil || def.Fields.ForName(field) == nil {
			t.Errorf("ignored field %s is not in the schema", id)
		}
	}
}

func sample(p probe, f *ast.FieldDefinition) string {
	if v, ok := p.samples[f.Name]; ok {
		return v
	}
	v := map[string]string{"Int": "7", "Float": "0.01", "Boolean": "true", "DateTime": `"2026-12-01T00:00:00Z"`}[f.Type.Name()]
	if v == "" {
		v = `"zz"`
	}
	if f.Type.Elem != nil {
		v = "[" + v + "]"
	}
	return v
}

func merge(t *testing.T, a, b string) string {
	t.Helper()
	out := map[string]any{}
	for _, text := range []string{a, b} {
		if text == "" {
			continue
		}
		m, _ := decode(t, text).(map[string]any)
		maps.Copy(out, m)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// trace is everything a request does that anyone could see.
func trace(t *testing.T, p probe, variable string) string {
	t.Helper()
	r := newRig(t)
	v2 := newScript(t, p.v2)
	out := r.ask(t, v2, p.document, `{"v":`+variable+`}`)
	parts := append(v2.lines(), string(out.Body))
	parts = append(parts, out.Warnings...)
	for _, kind := range []string{translate.KindPod, translate.KindEndpoint, translate.KindTemplate} {
		notes, err := r.store.List(t.Context(), account, kind)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(notes)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, kind+" "+string(raw))
	}
	return strings.Join(parts, "\n")
}
