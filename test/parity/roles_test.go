package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// The roles of a key hold without a policy that is listed, in every dialect. A key
// that names none is an operator.
func TestRolesAreInForce(t *testing.T) {
	t.Parallel()
	calls := []struct {
		name, method, target, body string
		least                      string // role that may
	}{
		{"read", "GET", "/v2/pods", "", "viewer"},
		{"read in v1", "GET", "/v1/pods", "", "viewer"},
		{"read in GraphQL", "POST", "/graphql", `{"query":"{ myself { pods { id } } }"}`, "viewer"},
		{"the catalog in GraphQL", "POST", "/graphql", `{"query":"{ gpuTypes { id } }"}`, "viewer"},
		{"pod", "POST", "/v2/pods", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`, "operator"},
		{"pod in v1", "POST", "/v1/pods", `{"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA L4"]}`, "operator"},
		{"pod in GraphQL", "POST", "/graphql", `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"c\", imageName: \"i:1\", gpuTypeId: \"NVIDIA L4\", gpuCount: 1}) { id } }"}`, "operator"},
		{"template", "POST", "/v2/templates", `{"name":"t-%s","image":"i:1"}`, "operator"},
		{"template in v1", "POST", "/v1/templates", `{"name":"u-%s","imageName":"i:1"}`, "operator"},
		{"template in GraphQL", "POST", "/graphql", `{"query":"mutation { saveTemplate(input: {name: \"v-%s\", imageName: \"i:1\", dockerArgs: \"\", containerDiskInGb: 5, volumeInGb: 0, env: []}) { id } }"}`, "operator"},
		{"volume", "POST", "/v2/network-volumes", `{"name":"v","size":10,"dataCenter":"EU-RO-1"}`, "operator"},
		{"volume in v1", "POST", "/v1/networkvolumes", `{"name":"v","size":10,"dataCenterId":"EU-RO-1"}`, "operator"},
		{"volume in GraphQL", "POST", "/graphql", `{"query":"mutation { createNetworkVolume(input: {name: \"v\", size: 10, dataCenterId: \"EU-RO-1\"}) { id } }"}`, "operator"},
		{"registry", "POST", "/v2/registries", `{"name":"r-%s","username":"u","password":"p"}`, "operator"},
		{"registry in v1", "POST", "/v1/containerregistryauth", `{"name":"s-%s","username":"u","password":"p"}`, "operator"},
		{"registry in GraphQL", "POST", "/graphql", `{"query":"mutation { saveRegistryAuth(input: {name: \"q-%s\", username: \"u\", password: \"p\"}) { id } }"}`, "operator"},
		{"SSH keys", "PUT", "/v2/account/ssh-keys", `{"keys":[]}`, "admin"},
		{"SSH keys in GraphQL", "POST", "/graphql", `{"query":"mutation { updateUserSettings(input: {pubKey: \"\"}) { id } }"}`, "admin"},
	}
	rank := map[string]int{"viewer": 0, "": 1, "operator": 1, "admin": 2}
	eachDoor(t, func(t *testing.T, d *door) {
		for role, may := range rank {
			for _, c := range calls {
				body := c.body
				if strings.Contains(body, "%s") {
					body = fmt.Sprintf(body, "of"+role)
				}
				a := d.ask(t, request(c.method, c.target, "key_of_role_"+role, body))
				refused := a.Status == 403 || strings.Contains(a.Body, `"FORBIDDEN"`)
				byRoles := strings.Contains(a.Body, "roles: none of the caller's roles allows")
				if want := may < rank[c.least]; refused != want || byRoles != want || a.Status >= 400 && !want || !want && strings.Contains(a.Body, `"errors"`) {
					t.Errorf("%s by %q: %d %s, want refused = %t", c.name, role, a.Status, a.Body, want)
				}
			}
		}
	}, func(d *door) {
		var keys strings.Builder
		for role := range rank {
			fmt.Fprintf(&keys, "      - {id: key_of_role_%s, team: platform, sha256: SHA256(key_of_role_%s), roles: [%s]}\n", role, role, role)
		}
		d.text = strings.Replace(configuration, "    keys:\n", "    keys:\n"+keys.String(), 1)
	})
}

// An operator changes and deletes templates, volumes and registries of its own team,
// and no others where isolation keeps teams apart.
func TestOperatorsChangeWhatIsolationLets(t *testing.T) {
	t.Parallel()
	changes := []struct{ method, path, body string }{
		{"PATCH", "/v2/templates/template", `{"name":"u"}`},
		{"PATCH", "/v1/templates/template", `{"name":"w"}`},
		{"PATCH", "/v2/network-volumes/network_volume", `{"name":"u"}`},
		{"PATCH", "/v1/networkvolumes/network_volume", `{"name":"w"}`},
		{"DELETE", "/v1/templates/template", ""},
		{"DELETE", "/v2/network-volumes/network_volume", ""},
		{"DELETE", "/v2/registries/registry", ""},
	}
	eachDoor(t, func(t *testing.T, d *door) {
		made := owned(t, d, "key_research")
		for _, by := range []struct {
			key  string
			want bool
		}{{"key_tiny_operator", false}, {"key_research", true}} {
			for _, c := range changes {
				kind := c.path[strings.LastIndexByte(c.path, '/')+1:]
				path := strings.TrimSuffix(c.path, kind) + made[operation.Kind(kind)]
				a := d.ask(t, request(c.method, path, by.key, c.body))
				if (a.Status < 300) != by.want || !by.want && a.Status != 404 {
					t.Errorf("%s %s by %s: %d %s, want allowed = %t", c.method, c.path, by.key, a.Status, a.Body, by.want)
				}
			}
		}
	}, func(d *door) {
		d.text = strings.Replace(d.text, "credential: {env: ACME}", "credential: {env: ACME}\n    isolation: {change: team}", 1)
		d.text = strings.Replace(d.text, "    keys:\n", "    keys:\n      - {id: key_tiny_operator, team: tiny, sha256: SHA256(key_tiny_operator)}\n", 1)
		d.text = strings.Replace(d.text, `"NVIDIA L4"]`, `"NVIDIA L4", "NVIDIA A100-SXM4-80GB"]`, 1)
	})
}

// An exception is for the roles that it names, in every dialect.
func TestExceptionsTakeRoles(t *testing.T) {
	t.Parallel()
	pods := []string{
		"POST /v2/pods " + podH100,
		`POST /v1/pods {"name":"b","imageName":"i:1","gpuTypeIds":["NVIDIA H100 80GB HBM3"]}`,
		`POST /graphql {"query":"mutation { podFindAndDeployOnDemand(input: {name: \"c\", imageName: \"i:1\", gpuTypeId: \"NVIDIA H100 80GB HBM3\", gpuCount: 1}) { id } }"}`,
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for key, passes := range map[string]bool{"key_platform": true, "key_research": false} {
			for _, pod := range pods {
				part := strings.SplitN(pod, " ", 3)
				a := d.ask(t, request(part[0], part[1], key, part[2]))
				if got := a.Status < 300 && !strings.Contains(a.Body, `"errors"`); got != passes {
					t.Errorf("%s by %s: %d %s, want allowed = %t", part[1], key, a.Status, a.Body, passes)
				}
			}
		}
	}, under(`
- policy: gpu_allow_list
  params: {gpus: [NVIDIA L4]}
`), func(d *door) {
		d.text = strings.Replace(d.text, "    teams: [{id: research}", "    exceptions: [{id: x, policy: gpu_allow_list, roles: [admin], until: 2099-01-01T00:00:00Z, reason: r, granted_by: ada}]\n    teams: [{id: research}", 1)
	})
}
