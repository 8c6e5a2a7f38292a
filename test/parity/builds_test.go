package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// endpointWithBuilds makes an endpoint with a key, and n builds of it. It returns the path of the builds and their ids, oldest first.
func (d *door) endpointWithBuilds(t *testing.T, key string, n int) (path string, builds []string) {
	t.Helper()
	a := d.ask(t, request("POST", "/v2/serverless", key, bodies["createEndpoint"]))
	if a.Status != 201 {
		t.Fatalf("endpoint: %d %s, want 201", a.Status, a.Body)
	}
	endpoint := fmt.Sprint(field(t, a.Body, "id"))
	for range n {
		id, err := d.platform.AddBuild(endpoint, platform.Build{Branch: "main", CommitMessage: "first words"})
		if err != nil {
			t.Fatal(err)
		}
		builds = append(builds, id)
	}
	return "/v2/serverless/" + endpoint + "/builds", builds
}

// A build is read by those who may read its endpoint, through that endpoint alone.
func TestBuildsHaveOwners(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		theirs, one := d.endpointWithBuilds(t, "key_research", 1)
		mine, other := d.endpointWithBuilds(t, "key_other", 1)
		for _, tt := range []struct {
			key, target string
			status      int
		}{
			{"key_research", theirs, 200},
			{"key_research", theirs + "/" + one[0], 200},
			{"key_other", mine + "/" + other[0], 200},
			{"key_platform", mine, 200}, // of the same team
			{"key_other", theirs, 404},
			{"key_other", theirs + "?limit=1", 404},
			{"key_other", theirs + "/" + one[0], 404},
			{"key_other", mine + "/" + one[0], 404},
			{"key_other", mine + "/" + nothing, 404},
			{"key_other", strings.Replace(mine, "serverless/", "serverless/"+nothing, 1), 404},
			{"key_other", mine + "/%2e%2e", 400},
		} {
			a := d.ask(t, request("GET", tt.target, tt.key, ""))
			if a.Status != tt.status || strings.Contains(a.Body, "first words") != (tt.status == 200) {
				t.Errorf("%s asks for %s: %d %s, want %d", tt.key, tt.target, a.Status, a.Body, tt.status)
			}
		}
		foreign, absent := d.ask(t, request("GET", mine+"/"+one[0], "key_other", "")), d.ask(t, request("GET", mine+"/"+nothing, "key_other", ""))
		if comparable(foreign).Body != comparable(absent).Body {
			t.Errorf("a foreign build: %s\nno build: %s\nwant the same", foreign.Body, absent.Body)
		}
		for _, method := range []string{"POST", "DELETE", "PATCH"} {
			if a := d.ask(t, request(method, mine, "key_other", `{}`)); a.Status != 405 {
				t.Errorf("%s: %d %s, want 405", method, a.Status, a.Body)
			}
		}
	}, apart("{read: team, exempt: [viewer]}"))
}

// Builds come in pages of at most a hundred, newest first, whatever pages the platform has.
func TestPagesOfBuilds(t *testing.T) {
	t.Parallel()
	for _, records := range []int{40, 0} {
		eachDoor(t, func(t *testing.T, d *door) {
			path, builds := d.endpointWithBuilds(t, "key_platform", 105)
			for limit, want := range map[int][]int{100: {100, 5}, 60: {60, 45}, 99: {99, 6}} {
				ids, sizes := d.walk(t, "key_platform", "builds", path, limit)
				if !slices.Equal(ids, newestFirst(builds)) || !slices.Equal(sizes, want) {
					t.Errorf("limit %d: %d builds in pages of %v, want all, newest first, in %v", limit, len(ids), sizes, want)
				}
			}
			if p := d.pageOf(t, "key_platform", "builds", path, "?limit=1"); !slices.Equal(p.ids, builds[104:]) || p.next == "" {
				t.Errorf("a page of one: %v, want the newest build and a cursor", p)
			}
			first := d.pageOf(t, "key_platform", "builds", path, "?")
			if len(first.ids) != 100 || first.next == "" {
				t.Errorf("without limit: %d builds, want a page of 100", len(first.ids))
			}
			other, _ := d.endpointWithBuilds(t, "key_platform", 1)
			for query, place := range map[string]string{
				path + "?limit=101": "query.limit", path + "?limit=0": "query.limit", path + "?limit=a": "query.limit", path + "?cursor=": "query.cursor",
				path + "?cursor=A": "query.cursor", other + "?cursor=" + first.next: "query.cursor",
			} {
				before := len(d.platform.CallsTo("listEndpointBuilds"))
				if a := d.ask(t, request("GET", query, "key_platform", "")); a.Status != 422 || !strings.Contains(a.Body, place) || len(d.platform.CallsTo("listEndpointBuilds")) > before {
					t.Errorf("%s: %d %s, want 422", query, a.Status, a.Body)
				}
			}
		}, paged(t, records))
	}
}

// The image of a build is judged like any other: the images policy names the platform's registry, or refuses it.
func TestImagesOfBuildsAreJudged(t *testing.T) {
	t.Parallel()
	const images = `
- policy: images
  params: {allow: [%s]}
`
	for allow, allowed := range map[string]bool{"registry.platform.test/builds": true, "ghcr.io/acme": false, "registry.platform.test/other": false} {
		eachDoor(t, func(t *testing.T, d *door) {
			endpoint := fmt.Sprint(d.asPlatform(t, "POST", "/v2/serverless", bodies["createEndpoint"])["id"])
			build, err := d.platform.AddBuild(endpoint, platform.Build{})
			if err != nil {
				t.Fatal(err)
			}
			a := d.ask(t, request("GET", "/v2/serverless/"+endpoint+"/builds/"+build, "key_platform", ""))
			image := fmt.Sprint(field(t, a.Body, "imageName"))
			a = d.ask(t, request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"`+image+`","gpu":{"id":"NVIDIA L4"}}`))
			if !allowed {
				wantRefusal(t, a, "images /image")
			} else if a.Status != 201 || d.lastBody(t, "createPod")["image"] != image {
				t.Errorf("a pod of %s under %s: %d %s, want 201", image, allow, a.Status, a.Body)
			}
		}, under(fmt.Sprintf(images, allow)))
	}
}
