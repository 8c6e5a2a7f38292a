package contract

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// builds of an endpoint can only be read. No call starts one, so that their states are seen
// on the emulator only.
func builds(t *testing.T, c *client) {
	t.Helper()
	endpoint := c.want(t, 201, "createEndpoint", queueBody).text("id")
	c.tidy(t, "deleteEndpoint", endpoint)
	if a := c.want(t, 200, "listEndpointBuilds", "", endpoint); len(a.list("builds")) != 0 || a.at("pagination.hasNextPage") != false {
		t.Errorf("builds of a new endpoint: got %s", a.body)
	}
	c.want(t, 404, "getEndpointBuild", "", endpoint, "nope")
	c.needsEmulator(t)
	for _, outcome := range []string{"COMPLETED", "FAILED", "CANCELLED", "TEST_FAILED"} {
		id, err := c.emulator.AddBuild(endpoint, platform.Build{Outcome: outcome, Error: "why"})
		if err != nil {
			t.Fatal(err)
		}
		var states []int // as far as they were seen, by their places in the course
		course := []string{"PENDING", "BUILDING", "UPLOADING", "TESTING", outcome}
		last := c.await(t, "the end of build "+id, func() answer { return c.want(t, 200, "getEndpointBuild", "", endpoint, id) }, func(a answer) bool {
			states = append(states, slices.Index(course, a.text("status")))
			return a.text("status") == outcome
		})
		failed := outcome == "FAILED" || outcome == "TEST_FAILED"
		if slices.Contains(states, -1) || !slices.IsSorted(states) || last.text("completedAt") == "" || (last.text("error") != "") != failed {
			t.Errorf("%s: came by %v of %v to %s", outcome, states, course, last.body)
		}
		if got := c.want(t, 200, "listEndpointBuilds", "", endpoint, "?limit=1").text("builds.0.id"); got != id {
			t.Errorf("the newest build is %s, want %s", got, id)
		}
		release := c.want(t, 200, "listEndpointReleases", "", endpoint)
		if outcome == "COMPLETED" && (release.text("releases.0.buildId") != id || release.text("releases.0.source") != "GIT_BUILD") {
			t.Errorf("the release of build %s: got %s", id, release.body)
		}
	}
	c.want(t, 204, "deleteEndpoint", "", endpoint)
}
