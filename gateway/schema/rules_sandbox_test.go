package schema_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The bounds of a sandbox are those of the platform's pages, which it applies without an error; the rules between members are
// refused with 400, like unknown members.
func TestSandboxes(t *testing.T) {
	op := operation(t, "createSandbox")
	for body, want := range map[string]string{
		`{"imageName":"i:1"}`:  "",
		`{"templateId":"t_1"}`: "",
		`{"imageName":"i:1","vcpuCount":1,"memoryInGb":1,"idleTimeoutSeconds":7200,"maxLifetimeSeconds":86400,"labels":{"":"","a=b":"c"}}`: "",

		`{}`:                                 "400 $: must have exactly one of 'imageName' and 'templateId'",
		`{"imageName":"i","templateId":"t"}`: "400 $: must have exactly one of 'imageName' and 'templateId'",
		`{"imageName":"i","image":"i"}`:      "400 $: additional properties 'image' not allowed",
		`{"imageName":"i","idletimeoutseconds":1}`:                   "400 $: additional properties 'idletimeoutseconds' not allowed, did you mean 'idleTimeoutSeconds'?",
		`{"imageName":"i","vcpuCount":0}`:                            "422 $.vcpuCount: must be at least 1",
		`{"imageName":"i","memoryInGb":0}`:                           "422 $.memoryInGb: must be at least 1",
		`{"imageName":"i","vcpuCount":1.5}`:                          "422 $.vcpuCount: must be an integer in plain digits",
		`{"imageName":"i","vcpuCount":1025}`:                         "400 $.vcpuCount: must be at most 1024",
		`{"imageName":"i","memoryInGb":65537}`:                       "400 $.memoryInGb: must be at most 65536",
		`{"imageName":"i","idleTimeoutSeconds":0}`:                   "422 $.idleTimeoutSeconds: must be at least 1",
		`{"imageName":"i","idleTimeoutSeconds":7201}`:                "400 $.idleTimeoutSeconds: must be at most 7200",
		`{"imageName":"i","maxLifetimeSeconds":86401}`:               "400 $.maxLifetimeSeconds: must be at most 86400",
		`{"imageName":"i","labels":{"a":1}}`:                         "422 $.labels.a: must be a string",
		`{"imageName":"i","env":{"A=B":"c"}}`:                        `400 $.env["A=B"]: the name of an environment variable must not be empty or contain '='`,
		`{"imageName":"i","dataCenterId":"\u0001"}`:                  "400 $.dataCenterId: must not be empty or contain control characters",
		`{"imageName":"i","egressMode":"DENY_ALL"}`:                  "400 $.egressMode: is not available because the platform does not confirm that outbound connections are restricted",
		`{"imageName":"i","egressAllowlist":null,"egressMode":null}`: "400 $.egressAllowlist: is not available because the platform does not confirm that outbound connections are restricted",
	} {
		vs := append(op.ValidateBody(parse(t, body)), op.CheckRules(parse(t, body))...)
		got := ""
		if len(vs) > 0 {
			got = map[int]string{400: "400 ", 422: "422 "}[vs[0].Status] + strings.ReplaceAll(vs[0].String(), `['A=B']`, `["A=B"]`)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// The one parameter that may be repeated is checked each time.
func TestRepeatedParameter(t *testing.T) {
	for query, want := range map[string]string{
		"labels=a%3Db":                           "",
		"labels=a%3Db&labels=c%3D":               "",
		"labels=a%3Db,c&state=RUNNING":           "",
		"labels=a%3Db&labels=c":                  "query.labels[1]: must match the pattern ^[^=]+=",
		"labels=%3Db":                            "query.labels[0]: must match the pattern ^[^=]+=",
		"state=RUNNING&state=FAILED&labels=a%3D": "query.state: must not be sent more than once",
		"state=running":                          "query.state: must be one of 'CREATING', 'RUNNING', 'TERMINATED', 'FAILED'",
	} {
		given, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		out, vs := operation(t, "listSandboxes").CanonicalQuery(given)
		if got := strings.Join(lines(vs), "\n"); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if diff := cmp.Diff(given, out); want == "" && diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}
