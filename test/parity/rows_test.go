package parity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v1"
)

// row is one call of an operation of v1, or of one root field of GraphQL.
type row struct {
	// operation is the one that is called; a word in braces stands for an id that a row before it
	// has kept.
	operation, args string
	// keep names the id of the answer for the rows after it.
	keep string
	// status is v1's; code is that of the error which GraphQL answers, "" for none.
	status int
	code   string
}

// v1Rows calls each operation of v1 at least once. args is query and body.
var v1Rows = []row{
	{operation: "getOpenAPI", status: 200},
	{operation: "getDocs", status: 200},
	{operation: "createContainerRegistryAuth", args: `{"name":"r","username":"u","password":"p"}`, keep: "containerRegistryAuthId", status: 200},
	{operation: "listContainerRegistryAuths", status: 200},
	{operation: "getContainerRegistryAuth", status: 200},
	{operation: "createNetworkVolume", args: `{"name":"v","size":10,"dataCenterId":"EU-RO-1"}`, keep: "networkVolumeId", status: 200},
	{operation: "listNetworkVolumes", status: 200},
	{operation: "getNetworkVolume", status: 200},
	{operation: "updateNetworkVolume", args: `{"size":20}`, status: 200},
	{operation: "updateNetworkVolumeByPost", args: `{"name":"w"}`, status: 200},
	{operation: "createTemplate", args: `{"name":"t","imageName":"img:1","isServerless":true,"env":{"A":"1"}}`, keep: "templateId", status: 200},
	{operation: "listTemplates", args: `?includePublicTemplates=true&includeAcmeTemplates=true&includeEndpointBoundTemplates=true`, status: 200},
	{operation: "getTemplate", status: 200},
	{operation: "updateTemplate", args: `{"readme":"read me"}`, status: 200},
	{operation: "updateTemplateByPost", args: `{"imageName":"img:2"}`, status: 200},
	{operation: "createPod", args: `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"ports":["22/tcp","80/http"],"env":{"A":"1"},"volumeInGb":20}`, keep: "podId", status: 201},
	{operation: "listPods", args: `?includeMachine=true&includeTemplate=true&includeNetworkVolume=true`, status: 200},
	{operation: "getPod", args: `?includeMachine=true`, status: 200},
	{operation: "updatePod", args: `{"name":"p"}`, status: 200},
	{operation: "updatePodByPost", args: `{"env":{"A":"2"}}`, status: 200},
	{operation: "restartPod", status: 200},
	{operation: "stopPod", status: 200},
	{operation: "startPod", status: 200},
	{operation: "resetPod", status: 200},
	{operation: "createEndpoint", args: `{"templateId":"{templateId}","name":"e","gpuTypeIds":["NVIDIA L4"],"workersMin":1}`, keep: "endpointId", status: 200},
	{operation: "listEndpoints", args: `?includeTemplate=true&includeWorkers=true`, status: 200},
	{operation: "getEndpoint", args: `?includeTemplate=true&includeWorkers=true`, status: 200},
	{operation: "updateEndpoint", args: `{"workersMax":4}`, status: 200},
	{operation: "updateEndpointByPost", args: `{"workersMin":0}`, status: 200},
	{operation: "podBilling", args: `?bucketSize=hour&grouping=gpuTypeId`, status: 200},
	{operation: "endpointBilling", args: `?bucketSize=hour&grouping=gpuTypeId`, status: 200},
	{operation: "networkVolumeBilling", args: `?bucketSize=hour`, status: 200},
	{operation: "deletePod", status: 204},
	{operation: "deleteEndpoint", status: 204},
	{operation: "deleteTemplate", status: 204},
	{operation: "deleteNetworkVolume", status: 204},
	{operation: "deleteContainerRegistryAuth", status: 204},
}

// Each row of v1 answers what its description says, through the assembled gateway.
func TestEveryRowOfV1(t *testing.T) {
	t.Parallel()
	operations, driven := map[string]v1.Operation{}, map[string]bool{}
	for _, op := range v1.Operations() {
		operations[op.ID] = op
	}
	for _, r := range v1Rows {
		driven[r.operation] = true
		if _, known := operations[r.operation]; !known {
			t.Errorf("a row calls %s, which is no operation of v1", r.operation)
		}
	}
	for id := range operations {
		if !driven[id] {
			t.Errorf("no row calls %s", id)
		}
	}
	eachDoor(t, func(t *testing.T, d *door) {
		described := decoded(t, d.ask(t, request("GET", "/v1/openapi.json", "", "")))
		ids := map[string]string{}
		for _, r := range v1Rows {
			op := operations[r.operation]
			query, body, _ := strings.Cut(r.args, "{")
			if body != "" {
				body = "{" + body
			}
			key := "key_platform"
			if op.Public {
				key = ""
			}
			d.advance(2 * time.Minute)
			a := d.ask(t, request(op.Method, filled(op.Path, ids)+query, key, filled(body, ids)))
			if a.Status != r.status {
				t.Errorf("%s: %d %s, want %d", r.operation, a.Status, a.Body, r.status)
				continue
			}
			switch {
			case r.operation == "getDocs":
				if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || !strings.Contains(a.Body, "/docs#v1") {
					t.Errorf("%s: %s %s", r.operation, a.Header.Get("Content-Type"), a.Body)
				}
			case r.status == http.StatusNoContent:
				if a.Body != "" {
					t.Errorf("%s: %q, want no body", r.operation, a.Body)
				}
			default:
				answered := decoded(t, a)
				if r.keep != "" {
					ids["{"+r.keep+"}"] = translate.Text(answered, "id")
				}
				schema := answerSchema(described, op)
				if schema == nil {
					t.Errorf("%s: no schema in the description that the gateway serves", r.operation)
				}
				for _, fault := range misshapen(described, schema, answered, r.operation) {
					t.Error(fault)
				}
				if list, ok := answered.([]any); ok && len(list) == 0 {
					t.Errorf("%s: an empty list", r.operation)
				}
			}
		}
	})
}

// filled puts ids in the place of their names.
func filled(text string, ids map[string]string) string {
	for name, id := range ids {
		text = strings.ReplaceAll(text, name, id)
	}
	return text
}

// answerSchema is the schema of an operation's answer. The description leaves out
// those of the pod actions, whose clients decode a pod all the same.
func answerSchema(description any, op v1.Operation) any {
	at := translate.At(description, "paths", strings.TrimPrefix(op.Path, "/v1"), strings.ToLower(op.Method))
	for _, status := range []string{"200", "201"} {
		if schema := translate.At(at, "responses", status, "content", "application/json", "schema"); schema != nil {
			return schema
		}
	}
	if at != nil && strings.HasSuffix(op.V2, "Action") {
		return map[string]any{"$ref": "#/components/schemas/Pod"}
	}
	return nil
}

// misshapen lists the members of a value that are not of their described type. A
// null is a member without a value; an object has a described member at least.
func misshapen(description, schema, v any, at string) (faults []string) {
	if ref := translate.Text(schema, "$ref"); ref != "" {
		schema = translate.At(description, "components", "schemas", path.Base(ref))
	}
	kind := translate.Text(schema, "type")
	is := map[string]bool{"": true}
	switch v := v.(type) {
	case nil:
		is[kind] = true
	case string:
		is["string"] = true
	case bool:
		is["boolean"] = true
	case float64:
		is["number"], is["integer"] = true, v == float64(int64(v))
	case []any:
		is["array"] = true
		for i, item := range v {
			faults = append(faults, misshapen(description, translate.At(schema, "items"), item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		is["object"] = true
		properties := translate.Members(schema, "properties")
		known := len(properties) == 0
		for name, member := range v {
			known = known || properties[name] != nil
			faults = append(faults, misshapen(description, properties[name], member, at+"."+name)...)
		}
		if !known && len(v) > 0 {
			faults = append(faults, fmt.Sprintf("%s has no described member: %v", at, v))
		}
	}
	if !is[kind] {
		faults = append(faults, fmt.Sprintf("%s is %v, want %s", at, v, kind))
	}
	return faults
}

// graphqlRows calls each root field at least once. args is written as in a document.
var graphqlRows = []row{
	{operation: "saveRegistryAuth", args: `(input: {name: "r", username: "u", password: "p"})`, keep: "registry"},
	{operation: "updateRegistryAuth", args: `(input: {id: "{registry}", username: "u", password: "q"})`, code: "NOT_SUPPORTED"},
	{operation: "createNetworkVolume", args: `(input: {name: "v", size: 10, dataCenterId: "{center}"})`, keep: "volume"},
	{operation: "updateNetworkVolume", args: `(input: {id: "{volume}", size: 20})`},
	{operation: "saveTemplate", args: `(input: {name: "t", imageName: "img:1", env: [{key: "A", value: "1"}], portsConfig: [{port: "80", name: "web"}], ports: "80/http", volumeInGb: 20})`, keep: "template"},
	{operation: "saveTemplate", args: `(input: {name: "w", imageName: "img:1", isServerless: true})`, keep: "worker"},
	{operation: "saveTemplate", args: `(input: {name: "x", imageName: "img:2", isServerless: true})`, keep: "other"},
	{operation: "podTemplate", args: `(id: "{template}")`},
	{operation: "podTemplates", args: `(input: {isAcme: true})`},
	{operation: "podFindAndDeployOnDemand", keep: "pod", args: `(input: {gpuTypeId: "NVIDIA L4", imageName: "img:1", networkVolumeId: "{volume}", ports: "22/tcp,80/http", env: [{key: "A", value: "1"}]})`},
	{operation: "podRentInterruptable", args: `(input: {gpuTypeId: "NVIDIA L4", imageName: "img:1", bidPerGpu: 0.2})`, code: "NOT_SUPPORTED"},
	{operation: "podBidResume", args: `(input: {podId: "{pod}", gpuCount: 1, bidPerGpu: 0.2})`, code: "NOT_SUPPORTED"},
	{operation: "deployCpuPod", args: `(input: {instanceId: "cpu3c-2-4", imageName: "img:1"})`, keep: "cpu"},
	{operation: "pod", args: `(input: {podId: "{pod}"})`},
	{operation: "podEditJob", args: `(input: {podId: "{pod}", name: "p", env: [{key: "A", value: "2"}]})`},
	{operation: "podRestart", args: `(input: {podId: "{pod}"})`},
	{operation: "podStop", args: `(input: {podId: "{pod}"})`},
	{operation: "podResume", args: `(input: {podId: "{pod}", gpuCount: 1})`},
	{operation: "podReset", args: `(input: {podId: "{pod}"})`},
	{operation: "saveEndpoint", args: `(input: {name: "e", gpuIds: "AMPERE_24,ADA_24", templateId: "{worker}", workersMin: 1, env: [{key: "A", value: "1"}], networkVolumeId: "{volume}"})`, keep: "endpoint"},
	{operation: "updateEndpointTemplate", args: `(input: {endpointId: "{endpoint}", templateId: "{other}"})`},
	{operation: "updateUserSettings", args: `(input: {pubKey: "ssh-ed25519 AAAA me"})`},
	{operation: "myself"},
	{operation: "gpuTypes", args: `(input: {ids: ["NVIDIA L4", "NVIDIA H100 80GB HBM3"]})`},
	{operation: "cpuTypes"},
	{operation: "cpuFlavors"},
	{operation: "dataCenters"},
	{operation: "countryCodes"},
	{operation: "serverlessGpuPools"},
	{operation: "createCluster", args: `(input: {clusterName: "c", gpuTypeId: "NVIDIA H100 80GB HBM3", podCount: 2, gpuCountPerPod: 4, imageName: "img:1", type: APPLICATION})`, keep: "cluster"},
	{operation: "deleteCluster", args: `(input: {id: "{cluster}"})`},
	{operation: "podTerminate", args: `(input: {podId: "{pod}"})`},
	{operation: "podTerminate", args: `(input: {podId: "{cpu}"})`},
	{operation: "deleteEndpoint", args: `(id: "{endpoint}")`},
	{operation: "deleteTemplate", args: `(templateName: "t")`},
	{operation: "deleteNetworkVolume", args: `(input: {id: "{volume}"})`},
	{operation: "deleteRegistryAuth", args: `(registryAuthId: "{registry}")`},
}

// inner are the arguments of fields below the roots, by name or by type and name.
var inner = map[string]string{
	"lowestPrice": `(input: {gpuCount: 1})`, "User.endpoint": `(id: "{endpoint}")`, "specifics": `(input: {instanceId: "cpu3c-2-4"})`,
	"gpuAvailability": `(input: {gpuCount: 1})`,
}

// unanswered are fields whose parent v2 never tells, so that it is null.
var unanswered = []string{
	"ServerlessDiscount.userId", "ServerlessDiscount.type", "ServerlessDiscount.discountFactor", "ServerlessDiscount.expirationDate",
	"PodTelemetry.state", "PodTelemetry.time",
}

// Each root field answers all that can be selected below it, in the types of the
// schema that the gateway itself shows.
func TestEveryFieldOfGraphQL(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		s := introspected(t, d)
		driven := map[string]bool{}
		for _, r := range graphqlRows {
			driven[r.operation] = true
		}
		for _, parent := range []string{"Query", "Mutation"} {
			for name := range s.types[parent] {
				if !driven[name] {
					t.Errorf("no row calls %s.%s", parent, name)
				}
			}
		}
		ids := map[string]string{"{center}": centerOf("NVIDIA L4")}
		for _, r := range graphqlRows {
			kind, of, known := "query", s.types["Query"][r.operation], s.types["Query"][r.operation].Name != ""
			if !known {
				kind, of = "mutation", s.types["Mutation"][r.operation]
			}
			if of.Name == "" {
				t.Errorf("a row calls %s, which the schema does not have", r.operation)
				continue
			}
			d.advance(2 * time.Minute)
			document := kind + " { " + r.operation + filled(r.args+s.selection(of, map[string]bool{}), ids) + " }"
			text, err := json.Marshal(map[string]string{"query": document})
			if err != nil {
				t.Fatal(err)
			}
			a := d.ask(t, request("POST", "/graphql", "key_platform", string(text)))
			answered := decoded(t, a)
			if r.code != "" {
				if got := translate.Text(translate.Items(answered, "errors")[0], "extensions", "code"); a.Status != 200 || got != r.code {
					t.Errorf("%s: %d %s, want code %s", r.operation, a.Status, a.Body, r.code)
				}
				continue
			}
			if a.Status != 200 || translate.At(answered, "errors") != nil {
				t.Errorf("%s: %d %s", r.operation, a.Status, a.Body)
				continue
			}
			v := translate.At(answered, "data", r.operation)
			if v == nil && of.Name != "Void" {
				t.Errorf("%s is null", r.operation)
			}
			s.check(t, of, v, r.operation)
			if r.keep != "" {
				ids["{"+r.keep+"}"] = translate.Text(v, "id")
			}
		}
		null := unavailable(t)
		for parent, fields := range s.types {
			for name := range fields {
				if id := parent + "." + name; !s.answered[id] && !null[id] && parent != "Query" && parent != "Mutation" && !slices.Contains(unanswered, id) {
					t.Errorf("%s was never answered", id)
				}
			}
		}
	}, with("legacy: {brand: Acme}"))
}

// unavailable returns the fields of the schema that are always null, as Type.field.
func unavailable(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../translate/graphql/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parser.ParseSchema(&ast.Source{Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, def := range doc.Definitions {
		for _, f := range def.Fields {
			out[def.Name+"."+f.Name] = def.Directives.ForName("unavailable") != nil || f.Directives.ForName("unavailable") != nil
		}
	}
	return out
}

// centerOf is a data center that has a GPU type and network volumes.
func centerOf(gpu string) string {
	c := platform.DefaultCatalog()
	for _, g := range c.GPUs {
		for _, dc := range c.DataCenters {
			if g.ID == gpu && len(dc.VolumeTypes) > 0 && slices.Contains(g.DataCenters, dc.ID) {
				return dc.ID
			}
		}
	}
	return ""
}

// shownType is a type as introspection shows it.
type shownType struct {
	Name string
	List bool
}

// shownSchema is the schema that the gateway shows: the fields of its object types.
type shownSchema struct {
	types    map[string]map[string]shownType
	answered map[string]bool
}

func introspected(t *testing.T, d *door) *shownSchema {
	t.Helper()
	a := d.ask(t, request("POST", "/graphql", "key_platform", `{"query":"{ __schema { types { name kind fields { name type { name kind ofType { name } } } } } }"}`))
	s := &shownSchema{types: map[string]map[string]shownType{}, answered: map[string]bool{}}
	for _, shown := range translate.Items(decoded(t, a), "data", "__schema", "types") {
		name := translate.Text(shown, "name")
		if translate.Text(shown, "kind") != "OBJECT" || strings.HasPrefix(name, "__") {
			continue
		}
		s.types[name] = map[string]shownType{}
		for _, f := range translate.Items(shown, "fields") {
			of := shownType{Name: translate.Text(f, "type", "name")}
			if translate.Text(f, "type", "kind") == "LIST" {
				of = shownType{translate.Text(f, "type", "ofType", "name"), true}
			}
			s.types[name][translate.Text(f, "name")] = of
		}
	}
	return s
}

// selection writes all that can be selected of a type, each type once in a document.
func (s *shownSchema) selection(of shownType, seen map[string]bool) string {
	fields := s.types[of.Name]
	switch {
	case fields == nil:
		return ""
	case seen[of.Name]:
		return " { __typename }"
	}
	seen[of.Name] = true
	var b strings.Builder
	for _, leaves := range []bool{true, false} { // what is near is selected there, not further down
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if (s.types[fields[name].Name] == nil) == leaves {
				b.WriteString(" " + name + cmp.Or(inner[of.Name+"."+name], inner[name]) + s.selection(fields[name], seen))
			}
		}
	}
	return " {" + b.String() + " }"
}

// check holds a value against its type, and notes which fields were answered.
func (s *shownSchema) check(t *testing.T, of shownType, v any, at string) {
	t.Helper()
	if list, isList := v.([]any); isList && of.List {
		for i, item := range list {
			s.check(t, shownType{Name: of.Name}, item, fmt.Sprintf("%s[%d]", at, i))
		}
		return
	}
	if v == nil {
		return
	}
	fits := false
	switch v := v.(type) {
	case string:
		fits = s.types[of.Name] == nil && !slices.Contains([]string{"Int", "Float", "Boolean", "Void"}, of.Name)
	case bool:
		fits = of.Name == "Boolean"
	case float64:
		fits = of.Name == "Float" || of.Name == "Int" && v == float64(int64(v))
	case map[string]any:
		fits = s.types[of.Name] != nil
		for name, member := range v {
			if name != "__typename" {
				s.answered[of.Name+"."+name] = true
				s.check(t, s.types[of.Name][name], member, at+"."+name)
			}
		}
	}
	if !fits || of.List {
		t.Errorf("%s is %v, want %+v", at, v, of)
	}
}
