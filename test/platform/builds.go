package platform

import (
	"cmp"
	"fmt"
	"time"
)

// maxBuildPage is the largest page of builds.
const maxBuildPage = 100

// The states of a build. Those after buildTesting are final.
const (
	buildPending    = "PENDING"
	buildBuilding   = "BUILDING"
	buildUploading  = "UPLOADING"
	buildTesting    = "TESTING"
	buildCompleted  = "COMPLETED"
	buildFailed     = "FAILED"
	buildCancelled  = "CANCELLED"
	buildTestFailed = "TEST_FAILED"
)

// Build is a push to the repository that an endpoint is connected to, from which the
// platform builds an image: the caller's API has no operation that starts one.
type Build struct {
	// Outcome is COMPLETED, FAILED, CANCELLED or TEST_FAILED; empty is COMPLETED. FAILED and
	// CANCELLED end in BUILDING, the others in TESTING. COMPLETED makes a release.
	Outcome string `json:"outcome"`
	// CommitHash, CommitMessage, Branch and CommitDate are of the commit that was pushed;
	// those left out are null.
	CommitHash    string    `json:"commitHash"`
	CommitMessage string    `json:"commitMessage"`
	Branch        string    `json:"branch"`
	CommitDate    time.Time `json:"commitDate"`
	// Error is what the build reports if it becomes FAILED or TEST_FAILED.
	Error string `json:"error"`
}

// build is a Build of an endpoint.
type build struct {
	Build
	ID       string
	Number   uint64 // counts the builds of the endpoint from 1
	Image    string
	QueuedAt time.Time
	Each     time.Duration // how long it is in each state
	Released bool
}

// stages are the states that the build passes through, the last one final; nil for an
// outcome that no build has.
func (b Build) stages() []string {
	switch b.Outcome {
	case buildFailed, buildCancelled:
		return []string{buildPending, buildBuilding, b.Outcome}
	case buildCompleted, buildTestFailed:
		return []string{buildPending, buildBuilding, buildUploading, buildTesting, b.Outcome}
	default:
		return nil
	}
}

func (b *build) startsAt() time.Time { return b.QueuedAt.Add(b.Each) }

func (b *build) endsAt() time.Time {
	return b.QueuedAt.Add(time.Duration(len(b.stages())-1) * b.Each)
}

func (b *build) statusAt(now time.Time) string {
	stages := b.stages()
	if b.Each <= 0 {
		return b.Outcome
	}
	return stages[min(int(now.Sub(b.QueuedAt)/b.Each), len(stages)-1)]
}

func (b *build) record(now time.Time) object {
	started, ended, fault := b.startsAt(), b.endsAt(), ""
	if now.Before(started) {
		started = time.Time{}
	}
	if now.Before(ended) {
		ended = time.Time{}
	} else if b.Outcome == buildFailed || b.Outcome == buildTestFailed {
		fault = b.Error
	}
	return object{
		"id", b.ID, "status", b.statusAt(now), "commitHash", optional(b.CommitHash), "commitMessage", optional(b.CommitMessage),
		"commitDate", b.CommitDate, "branch", optional(b.Branch), "imageName", b.Image, "startedAt", started, "completedAt", ended,
		"error", optional(fault),
	}
}

// AddBuild starts a build of an endpoint of any account and returns its id. It goes on by
// the clock, and stays Timing.Build in each of its states.
func (s *Server) AddBuild(endpointID string, b Build) (id string, err error) {
	b.Outcome = cmp.Or(b.Outcome, buildCompleted)
	if b.stages() == nil {
		return "", fmt.Errorf("a build cannot end as %q", b.Outcome)
	}
	err = endpoints().alter(s, endpointID, func(a *account, e *endpoint, now time.Time) error {
		id = s.newIDLocked(func(id string) bool { return e.build(id) != nil })
		e.Builds = append(e.Builds, &build{
			Build: b, ID: id, Image: "registry.platform.test/builds/" + e.ID + ":" + id,
			Number: uint64(len(e.Builds)) + 1, QueuedAt: now, Each: s.timing.Build,
		})
		s.stepLocked(a, e, now)
		return nil
	})
	return id, err
}

func (e *endpoint) build(id string) *build {
	for _, b := range e.Builds {
		if b.ID == id {
			return b
		}
	}
	return nil
}

// releaseBuilds makes a release of each build that has been completed by an instant.
func (e *endpoint) releaseBuilds(at time.Time, by string) {
	for _, b := range e.Builds {
		if b.Released || b.Outcome != buildCompleted || at.Before(b.endsAt()) {
			continue
		}
		before := *e
		b.Released, e.Container.Image = true, b.Image
		e.release(at, by, before.diff(e))
		e.Releases[len(e.Releases)-1].Build = b.ID
	}
}

func (x *exchange) buildsLocked(e *endpoint) (reply, error) {
	p := &params{q: x.query}
	pg := x.page(p, maxBuildPage, "")
	if err := p.err(); err != nil {
		return reply{}, err
	}
	number := func(b *build) uint64 { return b.Number }
	return ok(paged(pg, "builds", e.Builds, number, nil, func(b *build) object { return b.record(x.now) })), nil
}

func (x *exchange) buildLocked(e *endpoint) (reply, error) {
	b := e.build(x.params[1])
	if b == nil {
		return reply{}, notFound("build")
	}
	return ok(b.record(x.now)), nil
}
