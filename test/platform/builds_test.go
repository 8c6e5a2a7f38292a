package platform

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A build passes through its states by the clock, whatever becomes of it.
func TestBuildStates(t *testing.T) {
	tests := []struct {
		outcome string
		states  []string // one each half minute
		fault   any
	}{
		{"COMPLETED", []string{"PENDING", "BUILDING", "UPLOADING", "TESTING", "COMPLETED", "COMPLETED"}, nil},
		{"", []string{"PENDING", "BUILDING", "UPLOADING", "TESTING", "COMPLETED"}, nil},
		{"FAILED", []string{"PENDING", "BUILDING", "FAILED", "FAILED"}, "no space left"},
		{"CANCELLED", []string{"PENDING", "BUILDING", "CANCELLED", "CANCELLED"}, nil},
		{"TEST_FAILED", []string{"PENDING", "BUILDING", "UPLOADING", "TESTING", "TEST_FAILED"}, "no space left"},
	}
	for _, tt := range tests {
		r := newRig(t, Options{})
		endpoint := r.newEndpoint(queueEndpoint)
		id, err := r.AddBuild(endpoint, Build{
			Outcome: tt.outcome, CommitHash: "1a2b3c4", CommitMessage: "m", Branch: "main", CommitDate: start().Add(-time.Hour), Error: "no space left",
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, state := range tt.states {
			want := map[string]any{
				"id": id, "status": state, "commitHash": "1a2b3c4", "commitMessage": "m", "branch": "main", "commitDate": "2026-06-01T11:00:00Z",
				"imageName": "registry.platform.test/builds/" + endpoint + ":" + id, "startedAt": "2026-06-01T12:00:30Z", "completedAt": nil, "error": nil,
			}
			if i == 0 {
				want["startedAt"] = nil
			}
			if final := slices.Index(tt.states, tt.states[len(tt.states)-1]); i >= final {
				want["error"], want["completedAt"] = tt.fault, start().Add(time.Duration(final)*30*time.Second).Format(time.RFC3339)
			}
			got := r.want(200, "GET", "/v2/serverless/"+endpoint+"/builds/"+id, "")
			if diff := cmp.Diff(want, got.body); diff != "" {
				t.Errorf("%q after %d s (-want +got):\n%s", tt.outcome, 30*i, diff)
			}
			r.Clock().Advance(30 * time.Second)
		}
	}
}

// A completed build makes a release of its image, at the instant of its completion.
func TestBuildReleases(t *testing.T) {
	r := newRig(t, Options{})
	endpoint := r.newEndpoint(queueEndpoint)
	path := "/v2/serverless/" + endpoint
	id, err := r.AddBuild(endpoint, Build{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddBuild(endpoint, Build{Outcome: "FAILED"}); err != nil {
		t.Fatal(err)
	}
	bare := r.want(200, "GET", path+"/builds/"+id, "")
	for _, member := range []string{"commitHash", "commitMessage", "commitDate", "branch"} {
		if v, has := bare.body[member]; v != nil || !has {
			t.Errorf("%s: got %v, want null", member, v)
		}
	}
	r.Clock().Advance(time.Hour)
	image := "registry.platform.test/builds/" + endpoint + ":" + id
	got := r.want(200, "GET", path+"/releases", "")
	if got.at("endpointVersion") != 2.0 || got.text("releases.0.source") != "GIT_BUILD" || got.text("releases.0.buildId") != id ||
		got.text("releases.0.createdAt") != "2026-06-01T12:02:00Z" || got.text("releases.1.source") != "MANUAL" || got.at("releases.1.buildId") != nil {
		t.Errorf("releases: got %s", got.raw)
	}
	if now := r.want(200, "GET", path, "").text("image"); now != image {
		t.Errorf("the endpoint runs %s, want %s", now, image)
	}
	for _, tt := range []struct{ endpoint, outcome string }{{"nope", ""}, {endpoint, "LOST"}} {
		if _, err := r.AddBuild(tt.endpoint, Build{Outcome: tt.outcome}); err == nil {
			t.Errorf("AddBuild(%q, %q): want an error", tt.endpoint, tt.outcome)
		}
	}
	other := r.newEndpoint(queueEndpoint)
	r.want(404, "GET", "/v2/serverless/"+other+"/builds/"+id, "")
	r.want(404, "GET", path+"/builds/nope", "")
	r.want(404, "GET", "/v2/serverless/nope/builds", "")
}

// Builds have pages of 100 at the most; every one of them can be reached.
func TestBuildPages(t *testing.T) {
	r := newRig(t, Options{Strict: true, PageSize: 200})
	endpoint := r.newEndpoint(queueEndpoint)
	path := "/v2/serverless/" + endpoint
	var made []string
	for range 205 {
		id, err := r.AddBuild(endpoint, Build{Outcome: "CANCELLED"})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, id)
	}
	slices.Reverse(made)
	for query, want := range map[string][]int{"": {100, 100, 5}, "limit=100": {100, 100, 5}, "limit=68": {68, 68, 68, 1}} {
		var ids []string
		var pages []int
		for cursor := ""; ; {
			got := r.want(200, "GET", path+"/builds?"+query+cursor, "")
			items, _ := got.at("builds").([]any)
			for _, item := range items {
				ids = append(ids, item.(map[string]any)["id"].(string))
			}
			pages = append(pages, len(items))
			if got.at("pagination.hasNextPage") != true {
				break
			}
			cursor = "&cursor=" + got.text("pagination.nextCursor")
		}
		if !slices.Equal(ids, made) || !slices.Equal(pages, want) {
			t.Errorf("%q: %d builds in pages of %v, want all, the newest first, in %v", query, len(ids), pages, want)
		}
	}
	cursor := r.want(200, "GET", path+"/builds?limit=1", "").text("pagination.nextCursor")
	other := "/v2/serverless/" + r.newEndpoint(queueEndpoint)
	for target, status := range map[string]int{
		path + "/builds?limit=0": 422, path + "/builds?limit=101": 422, path + "/releases?limit=101": 200,
		path + "/builds?cursor=" + cursor: 200, path + "/releases?cursor=" + cursor: 422, other + "/builds?cursor=" + cursor: 422,
	} {
		r.want(status, "GET", target, "")
	}
}

// Each page of releases has the present state of the endpoint.
func TestReleasePages(t *testing.T) {
	r := newRig(t, Options{PageSize: 2})
	path := "/v2/serverless/" + r.newEndpoint(queueEndpoint)
	for i := range 4 {
		r.want(200, "PATCH", path, `{"image":"i:`+strconv.Itoa(i)+`"}`)
	}
	var versions []any
	for cursor, pages := "", 1; ; pages++ {
		got := r.want(200, "GET", path+"/releases"+cursor, "")
		if got.at("endpointVersion") != 5.0 || got.at("rollout.workersTotal") != 0.0 {
			t.Errorf("page %d: got %s", pages, got.raw)
		}
		items, _ := got.at("releases").([]any)
		for _, item := range items {
			versions = append(versions, item.(map[string]any)["version"])
		}
		if got.at("pagination.hasNextPage") != true {
			break
		}
		cursor = "?cursor=" + got.text("pagination.nextCursor")
	}
	if diff := cmp.Diff([]any{5.0, 4.0, 3.0, 2.0, 1.0}, versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
