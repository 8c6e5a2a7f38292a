package parity

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/operation"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// nothing is an id that nothing has.
const nothing = "aaaaaaaaaaaaaa"

// apart keeps the teams of acme apart. Policies let its callers do everything, and
// the role that isolation exempts is one that they do not have.
func apart(isolation string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    isolation: "+isolation, 1)
		d.text = strings.Replace(d.text, "      - {id: key_platform,", "      - {id: key_other, team: platform, sha256: SHA256(key_other), roles: [admin]}\n      - {id: key_platform,", 1)
		d.text = strings.Replace(d.text, "SHA256(key_research), roles: [operator]", "SHA256(key_research), roles: [admin]", 1)
		d.text = strings.Replace(d.text, `"NVIDIA L4"]`, `"NVIDIA L4", "NVIDIA A100-SXM4-80GB"]`, 1)
	}
}

// bodies makes one of each kind of resource that has an owner, and changes it.
var bodies = map[string]string{
	"createPod":           podL4,
	"createCluster":       `{"name":"c","image":"img:1","type":"TRAINING","compute":{"gpuTypeId":"NVIDIA A100-SXM4-80GB","gpuCountPerPod":1,"podCount":2}}`,
	"createEndpoint":      `{"name":"e","image":"i:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`,
	"createTemplate":      `{"name":"t","image":"img:1"}`,
	"createNetworkVolume": `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`,
	"createRegistry":      `{"name":"r","username":"u","password":"p"}`,
	"createSecret":        `{"name":"of_KEY","value":"a value"}`,
	"updateSecret":        `{"value":"another"}`,
	"createSandbox":       `{"name":"s","imageName":"img:1"}`,
	"execSandbox":         `{"command":["echo"]}`,
	"updatePod":           `{"name":"b"}`,
	"updateCluster":       `{"name":"b"}`,
	"updateEndpoint":      `{"name":"b"}`,
	"updateTemplate":      `{"name":"b"}`,
	"updateNetworkVolume": `{"name":"b"}`,
	"podAction":           `{"action":"stop"}`,
}

// creates are the operations that make a resource with an owner.
var creates = map[operation.Kind]struct{ op, path string }{
	operation.KindPod: {"createPod", "/v2/pods"}, operation.KindCluster: {"createCluster", "/v2/clusters"},
	operation.KindEndpoint: {"createEndpoint", "/v2/serverless"}, operation.KindTemplate: {"createTemplate", "/v2/templates"},
	operation.KindVolume: {"createNetworkVolume", "/v2/network-volumes"}, operation.KindRegistry: {"createRegistry", "/v2/registries"},
	operation.KindSecret:  {"createSecret", "/v2/account/secrets"},
	operation.KindSandbox: {"createSandbox", "/v2/sandboxes"},
}

// owned makes one resource of each kind with a key.
func owned(t *testing.T, d *door, key string) map[operation.Kind]string {
	t.Helper()
	ids := make(map[operation.Kind]string)
	for kind, c := range creates {
		a := d.ask(t, request("POST", c.path, key, strings.ReplaceAll(bodies[c.op], "KEY", strings.TrimPrefix(key, "key_"))))
		if a.Status != 201 {
			t.Fatalf("%s: %d %s, want 201", c.op, a.Status, a.Body)
		}
		ids[kind] = fmt.Sprint(field(t, a.Body, "id"))
	}
	return ids
}

// place is where an id stands in a call, and of what kind it is.
type place struct {
	in   operation.Location
	name string
	kind operation.Kind
}

// namesResource finds the names of parameters and members that hold ids, without asking the code
// that is tested: a word that ends like one and is no name of a machine.
var (
	namesResource = regexp.MustCompile(`(Id|^id|registry|networkVolumes)$`)
	kindOfName    = map[string]operation.Kind{
		"podId": operation.KindPod, "clusterId": operation.KindCluster, "serverlessId": operation.KindEndpoint, "networkVolumeId": operation.KindVolume,
		"templateId": operation.KindTemplate, "registry": operation.KindRegistry, "volumeId": operation.KindVolume, "networkVolumes": operation.KindVolume,
	}
	// machines are ids of rentable machines and of their places.
	machines = []string{"gpu.id", "cpu.id", "cpu.*.id", "compute.gpuTypeId", "cpuFlavorId", "dataCenterId"}
)

// places lists every place of an operation's calls where the id of a resource with
// an owner can stand.
func places(t *testing.T, op *schema.Operation) []place {
	t.Helper()
	row, _ := operation.Lookup(op.ID)
	var out []place
	for _, p := range op.PathParams {
		if p.Name == "id" && operation.HasOwner(row.Kind) {
			out = append(out, place{operation.InPath, "id", row.Kind})
		}
	}
	add := func(in operation.Location, path string) {
		last := strings.TrimSuffix(path, ".*")
		last = last[strings.LastIndexByte(last, '.')+1:]
		if !namesResource.MatchString(last) || slices.Contains(machines, path) {
			return
		}
		kind, ok := kindOfName[last]
		if !ok {
			t.Fatalf("%s: it is not known what %s is the id of", op.ID, path)
		}
		out = append(out, place{in, path, kind})
	}
	for _, p := range op.Query {
		add(operation.InQuery, p.Name)
	}
	var walk func(s *operation.Shape, path string)
	walk = func(s *operation.Shape, path string) {
		if s == nil {
			return
		}
		for name, m := range s.Members {
			walk(m, strings.TrimPrefix(path+"."+name, "."))
		}
		if s.Items != nil {
			walk(s.Items, path+".*")
		}
		if s.Members == nil && s.Items == nil && path != "" {
			add(operation.InBody, path)
		}
	}
	walk(operation.BodyShape(op.ID), "")
	return out
}

// naming sets a member of a body, and the members that it needs.
func naming(t *testing.T, body, path, id string) string {
	t.Helper()
	doc := map[string]any{}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	switch path {
	case "mounts.network.*.volumeId":
		doc["mounts"] = map[string]any{"network": []any{map[string]any{"volumeId": id, "path": "/data"}}}
	case "networkVolumes.*":
		doc["networkVolumes"] = []any{id}
	default:
		doc[path] = id
	}
	if path == "templateId" {
		delete(doc, "image")
		delete(doc, "imageName")
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sameAnswer reports an answer about a foreign id that differs from that about an id
// which nothing has, and calls of the platform that differ.
func sameAnswer(t *testing.T, d *door, what, id string, ask func(id string) answer) {
	t.Helper()
	plain := func(id string) string {
		before := len(d.platform.Calls())
		a := comparable(ask(id))
		for name := range a.Header {
			if strings.HasPrefix(name, "Ratelimit") || name == "X-Tollgate-Budget" || name == "X-Tollgate-V2-Operation" { // the first of two reads the catalog
				a.Header.Del(name)
			}
		}
		body := regexp.MustCompile(`"(id|createdAt|startedAt)":"[^"]*"`).ReplaceAllString(a.Body, `"$1":"-"`)
		return strings.ReplaceAll(fmt.Sprintf("%d %v %s", a.Status, a.Header, body), id, "ID") + calls(d, before)
	}
	if foreign, absent := plain(id), plain(nothing); foreign != absent {
		t.Errorf("%s: of another team's: %s\nof what does not exist: %s\nwant the same", what, foreign, absent)
	}
}

// anyID is an id in a path or a query.
var anyID = regexp.MustCompile(`\b[a-z0-9]{10,26}\b`)

// calls lists the calls of the platform behind some, without ids and prices.
func calls(d *door, before int) string {
	var out strings.Builder
	for _, c := range d.platform.Calls()[before:] {
		if !strings.HasPrefix(c.Path, "/v2/catalog/") {
			fmt.Fprintf(&out, "\n\t%s %s", c.Method, anyID.ReplaceAllString(c.Path+"?"+c.RawQuery, "ID"))
		}
	}
	return out.String()
}

// TestForeignIsAbsent asks every operation of the description, in every place where an id can
// stand, for a resource of another team and for one that does not exist. Both have the same
// answer, and the platform never sees the foreign id.
func TestForeignIsAbsent(t *testing.T) {
	t.Parallel()
	api, err := schema.Load()
	if err != nil {
		t.Fatal(err)
	}
	eachDoor(t, func(t *testing.T, d *door) {
		theirs, mine := owned(t, d, "key_research"), owned(t, d, "key_other")
		before, asked := len(d.platform.Calls()), 0
		for _, op := range api.Operations() {
			row, _ := operation.Lookup(op.ID)
			for _, p := range places(t, op) {
				asked++
				foreign := func(id string, header ...string) answer {
					own, body, query := mine[row.Kind], bodies[op.ID], ""
					switch p.in {
					case operation.InPath:
						own = id
					case operation.InQuery:
						query = "?" + p.name + "=" + id
					case operation.InBody:
						body = naming(t, body, p.name, id)
					}
					path := strings.NewReplacer("{id}", own, "{workerId}", "w1").Replace(op.Path)
					return d.ask(t, request(op.Method, path+query, "key_other", body, header...))
				}
				what := fmt.Sprintf("%s, %s %s", op.ID, p.in, p.name)
				sameAnswer(t, d, what, theirs[p.kind], func(id string) answer { return foreign(id) })
				sameAnswer(t, d, "dry run of "+what, theirs[p.kind], func(id string) answer {
					a := foreign(id, "Tollgate-Dry-Run: true")
					if p.in != operation.InBody && strings.Contains(a.Body, `"path"`) && !strings.Contains(a.Body, id) {
						t.Errorf("dry run of %s: %s, want the path with %s", what, a.Body, id)
					}
					return a
				})
			}
		}
		if asked < 40 {
			t.Errorf("%d places were found, want those of all operations", asked)
		}
		for _, c := range d.platform.Calls()[before:] {
			for kind, id := range theirs {
				if c.Method != "GET" && strings.Contains(c.Path+c.RawQuery+string(c.Body), id) {
					t.Errorf("the platform was asked for the foreign %s: %s %s?%s %s", kind, c.Method, c.Path, c.RawQuery, c.Body)
				}
			}
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// The same in the retired interfaces.
func TestForeignIsAbsentInOldDialects(t *testing.T) {
	t.Parallel()
	kinds := map[string]operation.Kind{
		"podId": operation.KindPod, "endpointId": operation.KindEndpoint, "templateId": operation.KindTemplate,
		"networkVolumeId": operation.KindVolume, "containerRegistryAuthId": operation.KindRegistry,
	}
	d := openDoor(t, "http", apart("{read: team, exempt: [viewer]}"))
	theirs := owned(t, d, "key_research")
	old := func(method, path, body string) func(string) answer {
		return func(id string) answer {
			fill := strings.NewReplacer("<id>", id)
			return d.ask(t, request(method, fill.Replace(path), "key_other", fill.Replace(body)))
		}
	}
	for _, op := range v1.Operations() {
		for name, kind := range kinds {
			if path := strings.ReplaceAll(op.Path, "{"+name+"}", "<id>"); path != op.Path {
				body := ""
				if op.Method == "PATCH" || strings.HasSuffix(path, "/update") {
					body = `{"name":"b"}`
				}
				sameAnswer(t, d, "v1 "+op.ID, theirs[kind], old(op.Method, path, body))
			}
		}
	}
	for _, tt := range []struct {
		kind               operation.Kind
		method, path, body string
	}{
		{operation.KindTemplate, "POST", "/v1/pods", `{"name":"a","templateId":"<id>","gpuTypeIds":["NVIDIA L4"]}`},
		{operation.KindVolume, "POST", "/v1/pods", `{"name":"a","imageName":"i:1","networkVolumeId":"<id>","gpuTypeIds":["NVIDIA L4"]}`},
		{operation.KindRegistry, "POST", "/v1/pods", `{"name":"a","imageName":"i:1","containerRegistryAuthId":"<id>","gpuTypeIds":["NVIDIA L4"]}`},
		{operation.KindTemplate, "POST", "/v1/endpoints", `{"name":"a","templateId":"<id>","gpuTypeIds":["NVIDIA L4"]}`},
		{operation.KindPod, "GET", "/v1/billing/pods?podId=<id>", ""},
		{operation.KindEndpoint, "GET", "/v1/billing/endpoints?endpointId=<id>", ""},
		{operation.KindVolume, "GET", "/v1/billing/networkvolumes?networkVolumeId=<id>", ""},
		{operation.KindVolume, "GET", "/v1/pods?networkVolumeId=<id>", ""},
		{operation.KindPod, "GET", "/v1/pods?id=<id>", ""},
	} {
		sameAnswer(t, d, tt.method+" "+tt.path+" "+tt.body, theirs[tt.kind], old(tt.method, tt.path, tt.body))
	}
	for _, tt := range []struct {
		kind  operation.Kind
		query string
	}{
		{operation.KindPod, `query { pod(input: {podId: "<id>"}) { id name } }`},
		{operation.KindPod, `mutation { podStop(input: {podId: "<id>"}) { id } }`},
		{operation.KindPod, `mutation { podResume(input: {podId: "<id>", gpuCount: 1}) { id } }`},
		{operation.KindPod, `mutation { podTerminate(input: {podId: "<id>"}) }`},
		{operation.KindTemplate, `query { podTemplate(id: "<id>") { id name } }`},
		{operation.KindTemplate, `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", templateId: "<id>", cloudType: SECURE}) { name } }`},
		{operation.KindEndpoint, `mutation { deleteEndpoint(id: "<id>") }`},
		{operation.KindVolume, `mutation { deleteNetworkVolume(input: {id: "<id>"}) }`},
		{operation.KindRegistry, `mutation { deleteRegistryAuth(registryAuthId: "<id>") }`},
		{operation.KindCluster, `mutation { deleteCluster(input: {id: "<id>"}) }`},
	} {
		sameAnswer(t, d, "GraphQL "+tt.query, theirs[tt.kind], func(id string) answer {
			return d.ask(t, strings.Replace(graphql(strings.ReplaceAll(tt.query, "<id>", id)), "key_research", "key_other", 1))
		})
	}
	everything := strings.Replace(graphql(`query { myself { pods { id } endpoints { id } networkVolumes { id } podTemplates { id } } }`), "key_research", "key_other", 1)
	for _, raw := range []string{
		everything, request("GET", "/v1/pods", "key_other", ""), request("GET", "/v1/endpoints", "key_other", ""), request("GET", "/v1/templates", "key_other", ""),
		request("GET", "/v1/networkvolumes", "key_other", ""), request("GET", "/v1/containerregistryauth", "key_other", ""), request("GET", "/v1/billing/pods", "key_other", ""),
	} {
		a := d.ask(t, raw)
		for kind, id := range theirs {
			if a.Status != 200 || strings.Contains(a.Body, id) {
				t.Errorf("%s: %d %s, want 200 without the foreign %s %s", raw, a.Status, a.Body, kind, id)
			}
		}
	}
}

// queueFromTemplate makes a template and an endpoint that follows it, for the team research.
func queueFromTemplate(t *testing.T, d *door) (template, endpoint string) {
	t.Helper()
	create := func(path, body string) string {
		a := d.ask(t, request("POST", path, "key_research", body))
		if a.Status != 200 && a.Status != 201 {
			t.Fatalf("%s: %d %s, want success", path, a.Status, a.Body)
		}
		return fmt.Sprint(field(t, a.Body, "id"))
	}
	template = create("/v1/templates", `{"name":"q","imageName":"w:1","isServerless":true}`)
	return template, create("/v1/endpoints", `{"name":"q","templateId":"`+template+`","gpuTypeIds":["NVIDIA L4"],"scalerType":"REQUEST_COUNT","workersMax":1}`)
}

// A change that only the gateway stores needs the same access as a change at the platform.
func TestForeignNotesStay(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", apart("{change: team, exempt: [viewer]}"))
	template, queue := queueFromTemplate(t, d)
	for _, tt := range []struct{ path, body, query string }{
		{"/v1/templates/" + template, `{"readme":"x"}`, ""},
		{"/v1/templates/" + template + "/update", `{"readme":"y","name":""}`, ""},
		{"/v1/templates/ept_" + queue, `{"name":"x"}`, ""},
		{"/v1/endpoints/" + queue, `{"idleTimeout":99}`, ""},
		{"", "", `mutation { saveTemplate(input: {id: "` + template + `", config: "{}"}) { id } }`},
		{"", "", `mutation { saveEndpoint(input: {id: "` + queue + `", idleTimeout: 98}) { id } }`},
	} {
		raw := request("PATCH", tt.path, "KEY", tt.body)
		if strings.HasSuffix(tt.path, "/update") {
			raw = request("POST", tt.path, "KEY", tt.body)
		}
		if tt.query != "" {
			raw = strings.Replace(graphql(tt.query), "key_research", "KEY", 1)
		}
		if a := d.ask(t, strings.Replace(raw, "KEY", "key_other", 1)); !strings.Contains(a.Body, "not found") {
			t.Errorf("%s%s%s of another team: %d %s, want not found", tt.path, tt.body, tt.query, a.Status, a.Body)
		}
		if a := d.ask(t, strings.Replace(raw, "KEY", "key_research", 1)); a.Status != 200 || strings.Contains(a.Body, `"errors"`) {
			t.Errorf("%s%s%s of the owner: %d %s, want 200", tt.path, tt.body, tt.query, a.Status, a.Body)
		}
	}
}

// A call that another team may not make does not unlink an endpoint from its template.
func TestForeignLinksStay(t *testing.T) {
	t.Parallel()
	for isolation, calls := range map[string][][3]string{
		"{change: team, exempt: [viewer]}": {{"DELETE", "/v1/endpoints/<id>", ""}, {"PATCH", "/v1/endpoints/<id>", `{"name":"x"}`}},
		"{read: team, exempt: [viewer]}":   {{"GET", "/v1/endpoints/<id>", ""}, {"DELETE", "/v1/endpoints/<id>", ""}},
	} {
		d := openDoor(t, "http", apart(isolation))
		template, queue := queueFromTemplate(t, d)
		for _, c := range calls {
			d.ask(t, request(c[0], strings.Replace(c[1], "<id>", queue, 1), "key_other", c[2]))
		}
		d.ask(t, strings.Replace(graphql(`mutation { updateEndpointTemplate(input: {endpointId: "`+queue+`", templateId: "`+template+`"}) { id } }`), "key_research", "key_other", 1))
		a := d.ask(t, request("GET", "/v1/endpoints/"+queue, "key_research", ""))
		if got := field(t, a.Body, "templateId"); got != template {
			t.Errorf("%s: template %v, want %s", isolation, got, template)
		}
		if a := d.ask(t, request("DELETE", "/v1/templates/"+template, "key_research", "")); a.Status != 400 || !strings.Contains(a.Body, "bound to endpoint "+queue) {
			t.Errorf("%s: deletion of the template: %d %s, want 400", isolation, a.Status, a.Body)
		}
	}
}

// An update of a template warns about an endpoint that the caller may not change.
func TestRollOutToForeignEndpoint(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", apart("{change: team, exempt: [viewer]}"))
	made := d.ask(t, request("POST", "/v1/templates", "key_other", `{"name":"q","imageName":"w:1","isServerless":true}`))
	template := fmt.Sprint(field(t, made.Body, "id"))
	made = d.ask(t, request("POST", "/v1/endpoints", "key_research", `{"name":"q","templateId":"`+template+`","gpuTypeIds":["NVIDIA L4"],"workersMax":1}`))
	queue := fmt.Sprint(field(t, made.Body, "id"))
	a := d.ask(t, request("PATCH", "/v1/templates/"+template, "key_other", `{"imageName":"w:2"}`))
	if want := "template: cannot apply the change to an endpoint of another caller"; a.Status != 200 || a.Header.Get("X-Legacy-Warning") != want {
		t.Errorf("update: %d %q, want 200 with the warning %q", a.Status, a.Header.Get("X-Legacy-Warning"), want)
	}
	a = d.ask(t, request("GET", "/v1/endpoints/"+queue, "key_research", ""))
	if got := field(t, a.Body, "templateId"); got != template {
		t.Errorf("template %v, want %s", got, template)
	}
}

// Lists hold the resources that the caller may read, and the account that billing gives of its
// records is that of the records left.
func TestListsLeaveOutWhatIsForeign(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		theirs, mine := owned(t, d, "key_research"), owned(t, d, "key_other")
		d.advance(2 * time.Hour)
		for path, kind := range map[string]operation.Kind{
			"/v2/pods": operation.KindPod, "/v2/pods?includeClusterPods=true": operation.KindCluster, "/v2/clusters": operation.KindCluster,
			"/v2/serverless": operation.KindEndpoint, "/v2/templates": operation.KindTemplate, "/v2/network-volumes": operation.KindVolume,
			"/v2/registries": operation.KindRegistry, "/v2/account/secrets": operation.KindSecret, "/v2/billing/pods": operation.KindPod, "/v2/billing/network-volumes": operation.KindVolume,
			"/v2/billing/clusters": operation.KindCluster, "/v2/sandboxes?state=TERMINATED": operation.KindSandbox,
		} {
			a := d.ask(t, request("GET", path, "key_other", ""))
			if a.Status != 200 || strings.Contains(a.Body, theirs[kind]) || !strings.Contains(a.Body, mine[kind]) {
				t.Errorf("%s: %d %s, want 200 with %s and without %s", path, a.Status, a.Body, mine[kind], theirs[kind])
			}
		}
		bill := d.ask(t, request("GET", "/v2/billing/pods", "key_other", ""))
		records, _ := field(t, bill.Body, "records").([]any)
		meta, _ := field(t, bill.Body, "metadata").(map[string]any)
		totals, _ := meta["totals"].(map[string]any)
		sum := 0.0
		for _, r := range records {
			sum += r.(map[string]any)["totalAmount"].(float64)
		}
		if got, _ := totals["totalAmount"].(float64); got == 0 || math.Abs(got-sum) > 1e-9 || meta["recordCount"] != float64(len(records)) || meta["uniquePodCount"] != 1.0 {
			t.Errorf("metadata = %v, want that of %d records about one pod which come to %v", meta, len(records), sum)
		}
		for _, path := range []string{"/v2/billing", "/v2/billing/endpoints"} {
			if whole := d.ask(t, request("GET", path, "key_other", "")); whole.Status != 403 || !strings.Contains(whole.Body, "isolation hides the bills of the whole account") {
				t.Errorf("%s: %d %s, want 403", path, whole.Status, whole.Body)
			}
		}
		spent := d.ask(t, strings.Replace(graphql(`query { myself { clientLifetimeSpend pods { id } } }`), "key_research", "key_other", 1))
		if spent.Status != 200 || !strings.Contains(spent.Body, `"clientLifetimeSpend":null`) || !strings.Contains(spent.Body, mine[operation.KindPod]) {
			t.Errorf("GraphQL: %d %s, want the pods, and null for the account's costs", spent.Status, spent.Body)
		}
		members := d.ask(t, request("GET", "/v2/clusters/"+theirs[operation.KindCluster]+"/pods", "key_research", ""))
		pods, _ := field(t, members.Body, "pods").([]any)
		member := fmt.Sprint(pods[0].(map[string]any)["id"])
		for _, call := range [][3]string{{"GET", "", ""}, {"GET", "/logs", ""}, {"PATCH", "", `{"name":"b"}`}, {"POST", "/action", `{"action":"stop"}`}, {"DELETE", "", ""}} {
			sameAnswer(t, d, call[0]+" a member of a cluster "+call[1], member, func(id string) answer {
				return d.ask(t, request(call[0], "/v2/pods/"+id+call[1], "key_other", call[2]))
			})
		}
	}, apart("{read: team, exempt: [viewer]}"))
}
