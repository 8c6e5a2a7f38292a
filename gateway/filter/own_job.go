package filter

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// defaultLife is how long the platform keeps a job that does not say (reference
	// platform-v2, section 12.2).
	defaultLife = 24 * time.Hour
	// resultLife is how long it keeps the result of one that has ended (section 12.1).
	resultLife = 30 * time.Minute
	// batchLife is the longest that it keeps any job: batches do not say how long they
	// are kept.
	batchLife = 7 * 24 * time.Hour
)

// JobRetention is how long the platform keeps the job of a call that has not ended.
func (ex *Exchange) JobRetention() time.Duration {
	body, _ := ex.Body.Doc.(map[string]any)
	policy, _ := body["policy"].(map[string]any)
	if ms, said := Number(policy["ttl"]); said {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return defaultLife
}

// rememberJob remembers the owner of the job that an answer names, once it is known.
func (f *CheckOwnership) rememberJob(ctx context.Context, ex *Exchange) {
	a := ex.Response
	if a.Stream == nil {
		f.note(ctx, ex)
		return
	}
	a.OnEnd(func() { f.note(ctx, ex) })
}

func (*CheckOwnership) note(ctx context.Context, ex *Exchange) {
	if !ex.Cost.Run.HasID() {
		return
	}
	life := ex.JobRetention() + resultLife
	if ex.Operation.ID == "createBatch" {
		life = batchLife
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	job := ledger.Job{Endpoint: ex.Params["id"], ID: ex.Cost.Run.ID}
	owner := ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
	if err := ex.Ports.Ledger.SetJobOwner(ctx, ex.Caller.Org, job, owner, life); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err // on a public model, the job is nobody's
	}
}
